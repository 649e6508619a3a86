package accounting

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// drawMeters are up to three meters with gaps, in readings of whole minutes.
func drawMeters(t *rapid.T) (list []Meter) {
	for i := range rapid.IntRange(1, 3).Draw(t, "meters") {
		m := Meter{Name: fmt.Sprint("m", i)}
		at := record.Time(0)
		if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
			at = record.Time(rapid.Int64Range(0, 2000).Draw(t, "first")) * record.Minute
		}
		for at < 7*record.Day {
			if rapid.IntRange(0, 40).Draw(t, "gap") == 0 {
				at += record.Time(rapid.Int64Range(1, 600).Draw(t, "lost")) * record.Minute
			}
			r := usage.MeterReading{From: at, To: at + record.Time(rapid.Int64Range(60, 2000).Draw(t, "minutes"))*record.Minute}
			joules := rapid.Int64Range(0, 1e9).Draw(t, "J")
			r.Energy, _ = usage.SumOf(joules).Times(1e12)
			at = r.To
			m.Readings = append(m.Readings, r)
		}
		list = append(list, m)
	}
	return list
}

// slowMeter is what meters counted in a time, minute by minute; nil where one has none of a
// minute.
func slowMeter(list []Meter, from, to record.Time) *big.Rat {
	sum := new(big.Rat)
	for _, m := range list {
		at := 0
		for minute := from; minute < to; minute += record.Minute {
			for at < len(m.Readings) && m.Readings[at].To <= minute {
				at++
			}
			if at == len(m.Readings) || minute < m.Readings[at].From {
				return nil
			}
			r := &m.Readings[at]
			sum.Add(sum, new(big.Rat).SetFrac(r.Energy.Big(), big.NewInt(int64((r.To-r.From)/record.Minute))))
		}
	}
	return sum
}

func valueNamed(t *rapid.T, a *usage.Result, name string) *usage.Value {
	for i := range a.Worths {
		if a.Worths[i].Name == name {
			return &a.Worths[i]
		}
	}
	t.Fatalf("%s is not in the answer", name)
	return nil
}

func isNull(v *usage.Value, b int) bool { return v.Sum[b].IsZero() && !v.Beside[b].IsZero() }

// What the jobs have and the idle part are the meter, to the last unit of 10^-12 J, in every
// bucket that the meter has all of.
func TestMeter_RandomReadings_JobsAndIdleAreTheMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, jobs := drawEnergy(t)
		s.Meters = drawMeters(t)
		now := 5 * record.Day
		edges := []record.Time{0}
		for range rapid.IntRange(1, 6).Draw(t, "buckets") {
			edges = append(edges, edges[len(edges)-1]+record.Time(rapid.Int64Range(1, 2880).Draw(t, "minutes"))*record.Minute)
		}
		a := keep(t, jobs).ask(t, s, edges, now)
		if len(a.Groups) != 1 {
			t.Fatalf("%d groups", len(a.Groups))
		}
		energy, meter, idle := valueNamed(t, a, EnergyMeasure), valueNamed(t, a, EnergyMeteredMeasure), valueNamed(t, a, EnergyIdleMeasure)
		exceeded := 0
		for b := range len(edges) - 1 {
			from, to := edges[b], min(edges[b+1], now)
			want := slowMeter(s.Meters, from, to)
			switch isUnknown := want == nil || from >= to; {
			case isNull(meter, b) != isUnknown:
				t.Fatalf("the meter from %s to %s: null is %v, want %v", from, to, isNull(meter, b), isUnknown)
			case isUnknown:
				if !isNull(idle, b) {
					t.Fatalf("idle from %s to %s is %s without a meter", from, to, idle.Sum[b])
				}
				continue
			}
			// Readings that are cut are whole units.
			if off := new(big.Rat).Sub(want, new(big.Rat).SetInt(meter.Sum[b].Big())); off.Abs(off).Cmp(big.NewRat(int64(len(s.Meters)), 1)) > 0 {
				t.Fatalf("the meter from %s to %s is off by %s pJ", from, to, off)
			}
			if isNull(energy, b) != isNull(idle, b) && !idle.Sum[b].IsZero() {
				t.Fatalf("jobs unknown: %v, idle unknown: %v", isNull(energy, b), isNull(idle, b))
			}
			if isNull(energy, b) {
				continue
			}
			if got := energy.Sum[b].Add(idle.Sum[b]); got != meter.Sum[b] {
				t.Fatalf("jobs %s and idle %s are %s, and the meter %s", energy.Sum[b], idle.Sum[b], got, meter.Sum[b])
			}
			if idle.Sum[b].Less(usage.Sum{}) {
				if at := a.Basis.Meter.Exceeded[exceeded]; at.From != from || at.To != to || at.By.Add(idle.Sum[b]) != (usage.Sum{}) {
					t.Fatalf("named %v, want %s to %s", at, from, to)
				}
				exceeded++
			}
		}
		if exceeded != len(a.Basis.Meter.Exceeded) {
			t.Fatalf("%d are named, want %d", len(a.Basis.Meter.Exceeded), exceeded)
		}
		last := min(edges[len(edges)-1], now)
		if gap := slowMeter(s.Meters, 0, last) == nil; gap != (len(a.Basis.Meter.Gaps) > 0) {
			t.Fatalf("gaps: %v, named: %v", gap, a.Basis.Meter.Gaps)
		}
	})
}

// Buckets that the meter has all of add up to their window.
func TestMeter_Buckets_AddUpToTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, jobs := drawEnergy(t)
		s.Meters = drawMeters(t)
		edges := []record.Time{0, record.Time(rapid.Int64Range(1, 3*int64(record.Day)).Draw(t, "cut")), 3 * record.Day}
		k, now := keep(t, jobs), 5*record.Day
		pieces, whole := k.ask(t, s, edges, now), k.ask(t, s, []record.Time{edges[0], edges[2]}, now)
		for _, name := range []string{EnergyMeteredMeasure, EnergyIdleMeasure} {
			p, w := valueNamed(t, pieces, name), valueNamed(t, whole, name)
			if isNull(p, 0) || isNull(p, 1) || isNull(w, 0) {
				continue
			}
			if sum := p.Sum[0].Add(p.Sum[1]); sum != w.Sum[0] {
				t.Fatalf("%s: the buckets add up to %s, and the window is %s", name, sum, w.Sum[0])
			}
		}
	})
}
