package accounting

import (
	"cmp"
	"context"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// kept is a store with records.
type kept struct{ *store.Store }

func keep(t interface {
	Fatal(...any)
	Cleanup(func())
}, records []record.Record,
) kept {
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() }) // in memory
	rows := columns.NewBuilder()
	for i, r := range records {
		r.ID, r.Submit = fmt.Sprint("r", i), record.None
		rows.Add(&columns.Row{Record: r, Rank: record.RankPush, Stop: record.None})
	}
	if len(records) > 0 {
		if _, err := s.Apply(1, 1, store.Encode(&store.PostCommand{Rows: rows.Bytes()})); err != nil {
			t.Fatal(err)
		}
	}
	return kept{s}
}

// ask returns the energy measures by user in buckets.
func (k kept) ask(t interface{ Fatal(...any) }, s *EnergySettings, edges []record.Time, now record.Time, by ...string) *sums.Answer {
	weights, err := s.Weights()
	if err != nil {
		t.Fatal(err)
	}
	book := &usage.Derivation{Weights: weights}
	q := sums.Query{Edges: edges, By: by, Now: now, Components: []string{}}
	for _, w := range weights {
		q.Weights = append(q.Weights, w.Name)
	}
	a, err := book.Answer(context.Background(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		return sums.Rows(ctx, k, q)
	}, q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// kilo is a figure in kWh or kg, exactly.
func kilo(s sums.Sum) *big.Rat {
	return new(big.Rat).Quo(new(big.Rat).SetInt(s.Big()), new(big.Rat).SetInt64(3600e15))
}

func decimalOf(t *testing.T, text string) Decimal {
	t.Helper()
	d, err := ParseDecimal(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// handWorked is a site with a class of 10 W a core, 40 % of them idle, 0.5 W a GB in MB, and
// 300 W a GPU, a PUE of 1.2, and the factors of two hours.
func handWorked(t *testing.T) *EnergySettings {
	d := func(text string) Decimal { return decimalOf(t, text) }
	return &EnergySettings{
		Measured: "Energy", Overheads: []Overhead{{From: record.MinTime, PUE: d("1.2")}}, Zone: "DE",
		Classes: []PowerClass{{
			Name: "node", Match: []NodeMatch{{Key: "host", Values: []string{"n*"}}},
			Draws: []Draw{
				{Component: "Cores", Amount: 1, Watts: d("10"), Idle: d("0.4"), Busy: "TotalCPU", Embodied: d("8.766"), Years: d("1")},
				{Component: "Memory", Amount: 1000, Watts: d("0.5")},
				{Component: "GPUs", Amount: 1, Watts: d("300")},
			},
		}},
		Factors: []CO2Factor{
			{Zone: "DE", From: moment(t, "2026-03-01T10:00:00Z"), To: record.None, Grams: 300e6},
			{Zone: "DE", From: moment(t, "2026-03-01T11:00:00Z"), To: moment(t, "2026-03-01T12:00:00Z"), Grams: 500e6},
		},
	}
}

func TestEnergy_HandWorkedExamples_AreTheFigures(t *testing.T) {
	s := handWorked(t)
	cpu := func(n int64) record.Component {
		return record.Component{Name: "TotalCPU", Kind: record.Total, Amount: n}
	}
	for _, c := range []struct {
		name  string
		start string
		stop  string
		host  string
		parts []record.Component
		want  string // energy, measured, modelled, co2, co2 measured, modelled, embodied
		lacks string
	}{
		// 4 cores for 2 h, half of the time busy: 10 W × (0.4 × 8 h + 0.6 × 4 h) = 56 Wh, × 1.2 = 0.0672 kWh.
		// Half of it at 300 g and half at 500 g: 0.0672 × 0.4 = 0.02688 kg.
		// Embodied: 8.766 kg in 8766 h are 1 g an hour, for 8 core-hours 0.008 kg.
		{
			"cores half busy", "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 4}, cpu(4 * 3600)}, "0.0672 - 0.0672 0.03488 - 0.02688 0.008", "",
		},
		// Without CPU time it was under full load: 10 W × 8 h × 1.2 = 0.096 kWh; 0.0384 kg + 0.008 kg.
		{
			"CPU time unknown", "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 4}}, "0.096 - 0.096 0.0464 - 0.0384 0.008", "",
		},
		// More CPU time than cores × time, by hyper-threads, is no more than full load.
		{
			"CPU time above the cores", "2026-03-01T10:00:00Z", "2026-03-01T12:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 4}, cpu(1 << 40)}, "0.096 - 0.096 0.0464 - 0.0384 0.008", "",
		},
		// 1 core idle for 1 h: 4 Wh; 64 000 MB: 64 GB × 0.5 W = 32 Wh; 2 GPUs: 600 Wh. 636 × 1.2 = 0.7632 kWh;
		// at 300 g 0.22896 kg; 1 core-hour embodied 0.001 kg.
		{
			"memory and GPUs", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 1}, cpu(0), {Name: "Memory", Amount: 64000}, {Name: "GPUs", Amount: 2}},
			"0.7632 - 0.7632 0.22996 - 0.22896 0.001", "",
		},
		// 360 000 J measured are 0.1 kWh, × 1.2 = 0.12 kWh; one hour at 500 g: 0.06 kg, and 0.001 kg embodied.
		{
			"measured", "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 1}, {Name: "Energy", Kind: record.Total, Amount: 360_000}},
			"0.12 0.12 - 0.061 0.06 - 0.001", "",
		},
		// 0 J is what Slurm says where it measured nothing.
		{
			"0 J", "2026-03-01T11:00:00Z", "2026-03-01T12:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 1}, {Name: "Energy", Kind: record.Total}}, "0.012 - 0.012 0.007 - 0.006 0.001", "",
		},
		// From 12:00 on no factor is known: of 0.024 kWh the second half is in no CO2.
		{
			"without a factor", "2026-03-01T11:00:00Z", "2026-03-01T13:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 1}}, "0.024 - 0.024 0.008 - 0.006 0.002", "energy 0.012",
		},
		// A host of no class: what was measured counts, with the PUE of all; what was not is not known.
		{
			"measured, without a class", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "x1",
			[]record.Component{{Name: "Cores", Amount: 1}, {Name: "Energy", Kind: record.Total, Amount: 360_000}},
			"0.12 0.12 - 0.036 0.036 - -", "",
		},
		{
			"without a class", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", "x1",
			[]record.Component{{Name: "Cores", Amount: 2}}, "- - - - - - -", "Cores 7200",
		},
		// The run of an instant took no time, and what was measured.
		{
			"no time", "2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z", "n1",
			[]record.Component{{Name: "Cores", Amount: 2}, {Name: "Energy", Kind: record.Total, Amount: 36}}, "0.000012 0.000012 - 0.0000036 0.0000036 - -", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := job(t, c.start, c.stop, 1, "host", c.host)
			r.Components = c.parts
			a := keep(t, []record.Record{r}).ask(t, s, []record.Time{moment(t, "2026-03-01T00:00:00Z"), moment(t, "2026-03-02T00:00:00Z")}, 0)
			var got []string
			lacks := map[string]bool{}
			for _, w := range a.Worths {
				text := strings.TrimSuffix(strings.TrimRight(kilo(w.Sum[0]).FloatString(12), "0"), ".")
				if w.Sum[0].IsZero() && !w.Beside[0].IsZero() {
					text = "-"
				}
				got = append(got, text)
				for _, l := range w.Lacking {
					lacks[fmt.Sprintf("%s %s", l.Component, l.Used[0].AppendDecimal(nil))] = true
				}
			}
			if got := strings.Join(got, " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if len(lacks) > 1 || c.lacks != "" && !lacks[c.lacks] || c.lacks == "" && len(lacks) > 0 {
				t.Errorf("lacking %v, want %q", lacks, c.lacks)
			}
		})
	}
}

// Energy and CO2 have prices as components have: by condition, unknown where no factor or no
// power is known, beside those of components.
func TestEnergy_Priced_CostsWhatItIsWorth(t *testing.T) {
	total := func(name string, billionths int64, when ...PriceCondition) PriceRule {
		return PriceRule{Component: name, Kind: record.Total, Billionths: billionths, When: when}
	}
	set, err := compileSet(Settings{Energy: handWorked(t), Money: PriceSettings{Lists: []PriceList{always(
		rate("Cores", 1e6), total("energy", 3e8), total("energy", 6e8, PriceCondition{"user", "carol"}), total("co2", 1e8),
	)}}}, &facts{})
	if err != nil {
		t.Fatal(err)
	}
	k := keep(t, []record.Record{
		job(t, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 1, "user", "alice", "host", "n1"),
		job(t, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 2, "user", "bob", "host", "x1"),
		job(t, "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z", 1, "user", "carol", "host", "n1"),
	})
	a, err := set.Derivation.Answer(t.Context(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k, q) },
		sums.Query{Edges: []record.Time{0, moment(t, "2026-03-02T00:00:00Z")}, By: []string{"user"}, Now: record.MaxTime, Components: []string{}, Weights: []string{Cost}})
	if err != nil {
		t.Fatal(err)
	}
	// An hour of a core, and 0.012 kWh and 4.6 g of alice; of bob's host no power is known, and of
	// carol's hour no factor, so that only its embodied gram is in the price.
	want := []string{"1.00406", "2", "1.0073"}
	for g := range a.Groups {
		if got := AmountOf(a.Worths[0].Sum[g]).Decimal(9); got != want[g] {
			t.Errorf("%s: %s, want %s", a.Groups[g].Values, got, want[g])
		}
	}
	lacking := ""
	for _, l := range a.Worths[0].Lacking {
		lacking += fmt.Sprint(l.Component, l.Used, "; ")
	}
	if lacking != "energy of Cores[0 7200000000 0]; co2 of Cores[0 7200000000 0]; co2 of energy[0 0 12000]; " || len(a.Components) > 0 {
		t.Error(lacking, a.Components)
	}
}

// slowEnergy is the definition, record by record and hour by hour.
type slowEnergy struct {
	*EnergySettings
	sums map[string]*big.Rat
}

func (s *slowEnergy) class(r *record.Record) PowerClass {
	for _, c := range s.Classes {
		if !slices.ContainsFunc(c.Match, func(m NodeMatch) bool {
			return !slices.ContainsFunc(r.Meta.Get(m.Key)[:min(1, len(r.Meta.Get(m.Key)))], func(v string) bool { return slices.Contains(m.Values, v) })
		}) {
			c.Zone = cmp.Or(c.Zone, s.Zone)
			return c
		}
	}
	return PowerClass{Zone: s.Zone}
}

// overhead is the PUE of a class at a time: what was written last, of the class if there is
// any.
func (s *slowEnergy) overhead(c *PowerClass, at record.Time) *big.Rat {
	pue := One
	for _, list := range [][]Overhead{s.Overheads, c.Overheads} {
		for _, o := range list {
			if o.From <= at {
				pue = o.PUE
			}
		}
	}
	return pue.rat()
}

// factor is that of a zone at a time, in kg; nil: not known.
func (s *slowEnergy) factor(zone string, at record.Time) (kg *big.Rat) {
	for _, f := range s.Factors {
		if f.Zone == zone && f.From <= at {
			if kg = big.NewRat(f.Grams, 1e9); f.To.Present() && f.To <= at {
				kg = nil
			}
		}
	}
	return kg
}

func (s *slowEnergy) plus(name, user string, bucket int, v *big.Rat) {
	key := fmt.Sprint(name, " ", user, " ", bucket)
	if s.sums[key] == nil {
		s.sums[key] = new(big.Rat)
	}
	s.sums[key].Add(s.sums[key], v)
}

func (s *slowEnergy) add(r *record.Record, end record.Time, edges []record.Time) {
	c := s.class(r)
	hours := big.NewRat(int64(end-r.Start), int64(record.Hour))
	joules, busy := new(big.Rat), map[string]*big.Rat{}
	for _, p := range r.Components {
		if p.Kind == record.Total {
			busy[p.Name] = big.NewRat(p.Amount, 3600)
			if p.Name == s.Measured {
				joules.SetInt64(p.Amount)
			}
		}
	}
	mul := func(list ...*big.Rat) *big.Rat {
		out := big.NewRat(1, 1)
		for _, x := range list {
			out.Mul(out, x)
		}
		return out
	}
	energy, made, way := new(big.Rat), new(big.Rat), "measured"
	for _, p := range r.Components {
		for _, d := range c.Draws {
			if d.Component != p.Name || p.Kind == record.Total {
				continue
			}
			held := mul(hours, big.NewRat(p.Amount, d.Amount))
			load := held
			if b := busy[d.Busy]; d.Busy != "" && b != nil && b.Cmp(held) < 0 {
				load = b
			}
			idle := d.Idle.rat()
			share := new(big.Rat).Add(mul(idle, held), mul(new(big.Rat).Sub(big.NewRat(1, 1), idle), load))
			energy.Add(energy, mul(share, d.Watts.rat(), big.NewRat(1, 1000)))
			if d.Years > 0 {
				made.Add(made, new(big.Rat).Quo(mul(held, d.Embodied.rat()), mul(d.Years.rat(), big.NewRat(8766, 1))))
			}
		}
	}
	if joules.Sign() > 0 {
		energy = mul(joules, big.NewRat(1, 3_600_000))
	} else {
		way = "modelled"
	}
	user := append(r.Meta.Get("user"), "")[0]
	for b := range len(edges) - 1 {
		for from := max(r.Start, edges[b]); from < min(end, edges[b+1]); {
			to := min(end, edges[b+1], (from/record.Hour+1)*record.Hour)
			part := big.NewRat(int64(to-from), int64(end-r.Start))
			energy := mul(energy, s.overhead(&c, from))
			s.plus("energy", user, b, mul(energy, part))
			s.plus("energy_"+way, user, b, mul(energy, part))
			s.plus("co2", user, b, mul(made, part))
			s.plus("co2_embodied", user, b, mul(made, part))
			if kg := s.factor(c.Zone, from); kg != nil {
				s.plus("co2", user, b, mul(energy, part, kg))
				s.plus("co2_"+way, user, b, mul(energy, part, kg))
			}
			from = to
		}
	}
}

func drawEnergy(t *rapid.T) (*EnergySettings, []record.Record) {
	percent := func(label string, most int64) Decimal {
		return Decimal(rapid.Int64Range(0, most).Draw(t, label)) * One / 100
	}
	overheads := func(plain bool) (list []Overhead) {
		if plain {
			list = append(list, Overhead{From: record.MinTime, PUE: One + percent("pue", 80)})
		}
		at := record.Time(0)
		for range rapid.IntRange(0, 3).Draw(t, "changes of pue") {
			at += record.Time(rapid.Int64Range(0, 40).Draw(t, "hours of pue"))*record.Hour + record.Hour
			list = append(list, Overhead{From: at, PUE: One + percent("pue", 80)})
		}
		return list
	}
	s := &EnergySettings{Measured: "Energy", Overheads: overheads(rapid.Bool().Draw(t, "plain")), Zone: "A"}
	for i := range rapid.IntRange(0, 3).Draw(t, "classes") {
		c := PowerClass{Name: fmt.Sprint("c", i)}
		if rapid.Bool().Draw(t, "matches") {
			c.Match = []NodeMatch{{Key: "site", Values: []string{rapid.SampledFrom([]string{"x", "y"}).Draw(t, "of")}}}
		}
		if rapid.Bool().Draw(t, "own") {
			c.Zone, c.Overheads = "B", overheads(rapid.Bool().Draw(t, "plain"))
		}
		c.Draws = []Draw{{
			Component: "Cores", Amount: 1, Watts: percent("watts", 2000), Idle: percent("idle", 100), Busy: "TotalCPU",
			Embodied: percent("made", 3000), Years: percent("years", 900) + One,
		}, {Component: "Memory", Amount: 1000, Watts: percent("watts", 100)}}
		s.Classes = append(s.Classes, c)
	}
	for _, zone := range []string{"A", "B"} {
		at := record.Time(rapid.Int64Range(0, 30).Draw(t, "first")) * record.Hour
		for range rapid.IntRange(1, 40).Draw(t, "factors") {
			f := CO2Factor{Zone: zone, From: at, To: record.None, Grams: rapid.Int64Range(0, 1e9).Draw(t, "grams")}
			at += record.Time(rapid.Int64Range(1, 5).Draw(t, "hours")) * record.Hour
			if rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
				f.To = at
				at += record.Time(rapid.Int64Range(0, 2).Draw(t, "gap")) * record.Hour
			}
			s.Factors = append(s.Factors, f)
		}
	}
	var list []record.Record
	for range rapid.IntRange(0, 12).Draw(t, "jobs") {
		r := record.Record{Start: record.Time(rapid.Int64Range(0, 4*int64(record.Day)).Draw(t, "start")), Components: []record.Component{
			{Name: "Cores", Amount: rapid.Int64Range(0, 256).Draw(t, "cores")},
		}}
		r.Stop = r.Start + record.Time(rapid.SampledFrom([]int64{1, int64(record.Minute), int64(record.Hour), 30 * int64(record.Hour)}).Draw(t, "about")*
			rapid.Int64Range(1, 3).Draw(t, "times")) + record.Time(rapid.Int64Range(0, 1e6).Draw(t, "odd"))
		if rapid.IntRange(0, 4).Draw(t, "goes on") == 0 {
			r.Stop = record.None
		}
		for _, name := range []string{"Energy", "TotalCPU"} {
			if rapid.Bool().Draw(t, "with "+name) {
				r.Components = append(r.Components, record.Component{Name: name, Kind: record.Total, Amount: rapid.Int64Range(0, 1e8).Draw(t, name)})
			}
		}
		if rapid.Bool().Draw(t, "memory") {
			r.Components = append(r.Components, record.Component{Name: "Memory", Amount: rapid.Int64Range(0, 1e6).Draw(t, "MB")})
		}
		r.Meta = record.Meta{{Key: "user", Values: []string{rapid.SampledFrom([]string{"alice", "bob"}).Draw(t, "user")}}}
		if site := rapid.SampledFrom([]string{"x", "y", "z", ""}).Draw(t, "site"); site != "" {
			r.Meta = append(r.Meta, record.MetaEntry{Key: "site", Values: []string{site}})
		}
		r.Meta = r.Meta.Sorted()
		list = append(list, r)
	}
	return s, list
}

func TestEnergy_RandomRecords_AreThoseOfTheSlowSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list := drawEnergy(t)
		now := 5 * record.Day
		edges := []record.Time{0}
		for range rapid.IntRange(1, 6).Draw(t, "buckets") {
			edges = append(edges, edges[len(edges)-1]+record.Time(rapid.Int64Range(1, 2*int64(record.Day)).Draw(t, "bucket")))
		}
		slow := &slowEnergy{s, map[string]*big.Rat{}}
		for i := range list {
			end := list[i].Stop
			if !end.Present() {
				end = now
			}
			slow.add(&list[i], end, edges)
		}
		k := keep(t, list)
		a := k.ask(t, s, edges, now, "user")
		whole := k.ask(t, s, []record.Time{edges[0], edges[len(edges)-1]}, now, "user")
		for i, w := range a.Worths {
			for g, group := range a.Groups {
				var all sums.Sum
				for b := range len(edges) - 1 {
					cell := w.Sum[g*(len(edges)-1)+b]
					all = all.Add(cell)
					want := slow.sums[fmt.Sprint(w.Name, " ", group.Values[0], " ", b)]
					if want == nil {
						want = new(big.Rat)
					}
					near(t, fmt.Sprint(w.Name, " of ", group.Values[0], " in ", b), kilo(cell), want)
				}
				if month := whole.Worths[i].Sum[g]; month != all {
					t.Fatalf("%s: the buckets add up to %s, and the window is %s", w.Name, all, month)
				}
			}
		}
	})
}

// near allows for the rounding of a run to 10^-18, and of embodied CO2 to 10^-8 of it.
func near(t *rapid.T, what string, got, want *big.Rat) {
	off := new(big.Rat).Sub(got, want)
	room := new(big.Rat).Add(new(big.Rat).Mul(want, big.NewRat(1, 1e8)), big.NewRat(1, 1e15))
	if off.Abs(off).Cmp(room) > 0 {
		t.Fatalf("%s: got %s, want %s", what, got.FloatString(18), want.FloatString(18))
	}
}

func TestEnergy_UnknownFigures_AreNullAndNeverZero(t *testing.T) {
	s := handWorked(t)
	weights, err := s.Weights()
	if err != nil {
		t.Fatal(err)
	}
	book := &usage.Derivation{Weights: weights}
	k := keep(t, []record.Record{
		job(t, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 1, "user", "alice", "host", "n1"),
		job(t, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z", 2, "user", "bob", "host", "x1"),
		job(t, "2026-03-01T09:00:00Z", "2026-03-01T10:00:00Z", 1, "user", "carol", "host", "n1"),
	})
	r := usage.Request{
		Window: calendar.Window{From: moment(t, "2026-03-01T09:00:00Z"), To: moment(t, "2026-03-01T12:00:00Z")}, Bucket: calendar.Hour,
		By: []string{"user"}, Measures: []string{"energy", "energy_measured", "energy_modelled", "co2"}, Hours: true,
	}
	for _, w := range weights {
		r.Weights = append(r.Weights, w.Name)
	}
	table, err := usage.MakeTable(context.Background(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
		return book.Answer(ctx, func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k, q) }, q)
	}, r)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := table.CSV(func(b []byte) error { text.Write(b); return nil }); err != nil {
		t.Fatal(err)
	}
	// A core for an hour at 10 W × 1.2; 0.012 kWh at 300 g and 1 g embodied. Of bob's host nothing is
	// known, and of carol's hour no factor: its embodied gram is not its CO2.
	const want = `user,bucket,from,to,energy [kWh],energy_measured [kWh],energy_modelled [kWh],co2 [kg CO2e]
alice,2026-03-01T09:00Z,2026-03-01T09:00:00Z,2026-03-01T10:00:00Z,0,0,0,0
alice,2026-03-01T10:00Z,2026-03-01T10:00:00Z,2026-03-01T11:00:00Z,0.012,,0.012,0.0046
alice,2026-03-01T11:00Z,2026-03-01T11:00:00Z,2026-03-01T12:00:00Z,0,0,0,0
bob,2026-03-01T09:00Z,2026-03-01T09:00:00Z,2026-03-01T10:00:00Z,0,0,0,0
bob,2026-03-01T10:00Z,2026-03-01T10:00:00Z,2026-03-01T11:00:00Z,,,,
bob,2026-03-01T11:00Z,2026-03-01T11:00:00Z,2026-03-01T12:00:00Z,0,0,0,0
carol,2026-03-01T09:00Z,2026-03-01T09:00:00Z,2026-03-01T10:00:00Z,0.012,,0.012,
carol,2026-03-01T10:00Z,2026-03-01T10:00:00Z,2026-03-01T11:00:00Z,0,0,0,0
carol,2026-03-01T11:00Z,2026-03-01T11:00:00Z,2026-03-01T12:00:00Z,0,0,0,0
`
	if got := text.String(); got != want {
		t.Errorf("got\n%s", got)
	}
	got := string(table.AppendJSON(nil, []byte("{}")))
	for _, want := range []string{
		`"energy":{"total":0.024,"measured":0,"without_factor":0.012,"default_pue":0,"default_load":0.024},"complete":{}`,
		`"values":[0,0.012,0,0,null,0,0.012,0,0],"totals":[0.012,null,0.012],"total":0.024,"lacking":null,"unpriced":[{"component":"Cores","unit":"hour","total":2}]`,
		`"values":[0,null,0,0,null,0,null,0,0],"totals":[null,null,null],"total":null`,
		`"values":[0,0.0046,0,0,null,0,null,0,0],"totals":[0.0046,null,null],"total":0.0056,`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

func TestEnergy_Defaults_AreNamedWithTheirEnergy(t *testing.T) {
	at := func(hour int) record.Time { return moment(t, fmt.Sprintf("2026-03-01T%02d:00:00Z", hour)) }
	core := func(host string, parts ...record.Component) record.Record {
		r := job(t, "2026-03-01T10:00:00Z", "2026-03-01T13:00:00Z", 1, "host", host)
		r.Components = append([]record.Component{{Name: "Cores", Amount: 1}}, parts...)
		return r
	}
	s := handWorked(t)
	s.Overheads = []Overhead{{From: at(11), PUE: decimalOf(t, "1.2")}} // before it none is set
	s.Classes = append([]PowerClass{{
		Name: "own", Match: []NodeMatch{{Key: "host", Values: []string{"own"}}}, Overheads: []Overhead{{From: record.MinTime, PUE: One}}, Draws: s.Classes[0].Draws,
	}}, s.Classes...)
	k := keep(t, []record.Record{
		// 10 Wh at PUE 1, then 2 × 12 Wh; the last hour has no factor; full load, as CPU time is absent.
		core("n1"),
		// The same, idle: 4 Wh, then 2 × 4.8 Wh.
		core("n1", record.Component{Name: "TotalCPU", Kind: record.Total}),
		// Memory has no load to know: 1 GB draws 0.5 Wh, then 2 × 0.6 Wh.
		func() record.Record {
			r := core("n1")
			r.Components = []record.Component{{Name: "Memory", Amount: 1000}}
			return r
		}(),
		// A PUE of 1 that is set is no default: 30 Wh at full load.
		core("own"),
		// Measured: 10.8 kJ are 3 Wh, 1 Wh and 2 × 1.2 Wh.
		core("n1", record.Component{Name: "Energy", Kind: record.Total, Amount: 10_800}),
	})
	weights, err := s.Weights()
	if err != nil {
		t.Fatal(err)
	}
	for measure, want := range map[string]string{ // Wh: total, measured, without factor, default PUE, default load
		"energy":          "82.7 3.4 0 15.5 64",
		"co2":             "82.7 3.4 28.6 15.5 64",
		"energy_measured": "82.7 3.4 0 15.5 0",
		"co2_embodied":    "0 0 0 0 0",
	} {
		book := &usage.Derivation{Weights: weights}
		q := sums.Query{Edges: []record.Time{at(0), at(11), at(14)}, Components: []string{}, Weights: []string{measure}, Bases: true}
		a, err := book.Answer(context.Background(), func(ctx context.Context, q sums.Query) (*sums.Answer, error) { return sums.Rows(ctx, k, q) }, q)
		if err != nil {
			t.Fatal(err)
		}
		var cells sums.EnergyBasis
		for i := range a.Bases {
			cells.Add(&a.Bases[i])
		}
		if len(a.Bases) != 2 || cells != *a.Basis {
			t.Errorf("%s: the cells have %+v, all %+v", measure, cells, *a.Basis)
		}
		var got []string
		for _, s := range []sums.Sum{a.Basis.Total, a.Basis.Measured, a.Basis.WithoutFactor, a.Basis.DefaultPUE, a.Basis.DefaultLoad} {
			got = append(got, strings.TrimSuffix(strings.TrimRight(new(big.Rat).Mul(kilo(s), big.NewRat(1000, 1)).FloatString(6), "0"), "."))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: got %s, want %s", measure, text, want)
		}
	}
}
