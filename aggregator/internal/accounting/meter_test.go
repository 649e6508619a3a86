package accounting

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
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
			r := sums.MeterReading{From: at, To: at + record.Time(rapid.Int64Range(60, 2000).Draw(t, "minutes"))*record.Minute}
			joules := rapid.Int64Range(0, 1e9).Draw(t, "J")
			r.Energy, _ = sums.SumOf(joules).Times(1e12)
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

func valueNamed(t interface{ Fatalf(string, ...any) }, a *sums.Answer, name string) *sums.Worth {
	for i := range a.Worths {
		if a.Worths[i].Name == name {
			return &a.Worths[i]
		}
	}
	t.Fatalf("%s is not in the answer", name)
	return nil
}

func isNull(v *sums.Worth, b int) bool { return v.Sum[b].IsZero() && !v.Beside[b].IsZero() }

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
			if idle.Sum[b].Less(sums.Sum{}) {
				if at := a.Basis.Meter.Exceeded[exceeded]; at.From != from || at.To != to || at.By.Add(idle.Sum[b]) != (sums.Sum{}) {
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

// A node of 10 cores draws 40 W without load and 100 W under full load: 10 W a core, of which 4 W
// without load. In 2 h its base load is 80 Wh, and 4 core-hours under load take 6 Wh each: 104 Wh,
// and with a PUE of 1.2 the meter says 124.8 Wh = 449 280 J. Of the base load each job has the part
// of the cores that it requested, and what was requested by none is the idle part.
func TestMeter_BaseLoadOfANode_IsSharedByRequestAndTheRestIsIdle(t *testing.T) {
	s := handWorked(t)
	from, to := moment(t, "2026-03-01T10:00:00Z"), moment(t, "2026-03-01T12:00:00Z")
	reading := sums.MeterReading{From: from, To: to}
	reading.Energy, _ = sums.SumOf(449_280).Times(1e12)
	s.Meters = []Meter{{Name: "node", Readings: []sums.MeterReading{reading}}}
	run := func(user string, cores, busy int64) record.Record {
		r := job(t, "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z", 1, "user", user, "host", "n1")
		r.Components = []record.Component{{Name: "Cores", Amount: cores}, {Name: "TotalCPU", Kind: record.Total, Amount: busy}}
		return r
	}
	// Half busy on 4 of 10 cores: (80 × 4/10 + 4 × 6) Wh × 1.2 = 67.2 Wh = 241 920 J.
	// Without load on 3 of 10: 80 × 3/10 Wh × 1.2 = 28.8 Wh = 103 680 J.
	records := []record.Record{run("alice", 4, 4*3600), run("bob", 3, 0)}
	joules := func(a *sums.Answer, name string) (list []string) {
		for _, sum := range valueNamed(t, a, name).Sum {
			list = append(list, new(big.Rat).SetFrac(sum.Big(), big.NewInt(1e12)).RatString())
		}
		return list
	}
	edges := []record.Time{from, to}
	whole := keep(t, records).ask(t, s, edges, record.MaxTime)
	got := fmt.Sprint(joules(whole, EnergyMeasure), joules(whole, EnergyMeteredMeasure), joules(whole, EnergyIdleMeasure))
	// 80 × 3/10 Wh × 1.2 are left: 28.8 Wh = 103 680 J.
	if want := "[345600] [449280] [103680]"; got != want {
		t.Errorf("jobs, meter and idle have %s J, want %s", got, want)
	}
	s.Meters = nil // it is of no one user
	if got := fmt.Sprint(joules(keep(t, records).ask(t, s, edges, record.MaxTime, "user"), EnergyMeasure)); got != "[241920 103680]" {
		t.Errorf("alice and bob have %s J", got)
	}
}
