package main

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

const hour = 3600

// used is what a plan says that groups used.
func used(t testing.TB, c *cluster, nodes ...sdk.Node) (map[string]float64, string) {
	t.Helper()
	p := c.plan(t, must(t, nodes...), sdk.PlanStart{})
	return gauges(p), notes(p)
}

func TestARunCountsForAsLongAsItRanInTheLookBack(t *testing.T) {
	one := component("Cores", 2, hepscore(10))
	c := &cluster{records: []record.Record{
		run("g", 10*hour, hour, one),                // whole
		run("g", 25*hour, 2*hour, one),              // the second half
		run("g", 30*hour, 6*hour, one),              // ends as the look-back begins
		run("g", 0.5, 2, one),                       // ends in the future
		run("g", -5, 2, one),                        // begins in the future
		run("g", 5*hour, -hour, one),                // stops before it starts
		run("g", 24*hour+0.000001, 0.000003, one),   // two microseconds of it
		run("long", 1000*hour, 2000*hour, one),      // all of the look-back
		run("unscored", 2*hour, 1, one, one),        // AUDITOR multiplies what is there twice
		run("tiny", hour, 1, component("Cores", 0)), // nothing
	}}
	g, _ := used(t, c, cores(), textNode("lookback", "1d"), groupOf("g", "a"), groupOf("long", "b"), groupOf("unscored", "c"), groupOf("tiny", "d"))
	for group, want := range map[string]float64{"g": 20 * (hour + hour + 0.5 + 0.000002), "long": 20 * 24 * hour, "unscored": 400, "tiny": 0} {
		if got := g["resource_usage "+group]; got != want {
			t.Errorf("%s used %v, want %v", group, got, want)
		}
	}
	g, _ = used(t, c, cores(), groupOf("g", "a"), groupOf("long", "b"))
	if want := 20 * (hour + 2*hour + 6*hour + 0.5 + 0.000003); g["resource_usage g"] != want || g["resource_usage long"] != 20*1000*hour {
		t.Errorf("without a look-back: %v, want %v", g, want)
	}
	if len(c.asked) != 6 || !strings.Contains(c.asked[2], "stop_time%5Bgt%5D=2026-11-19T12%3A00%3A00Z") || strings.Contains(c.asked[5], "stop_time") {
		t.Errorf("asked %q", c.asked)
	}
}

func TestUsage_RecordsInArchives_Count(t *testing.T) {
	c := &cluster{records: []record.Record{run("g", 10*hour, hour, component("Cores", 2, hepscore(10)))}}
	c.archived = map[string]bool{c.records[0].ID: true}
	g, _ := used(t, c, cores(), textNode("lookback", "1d"), groupOf("g", "a"))
	if got := g["resource_usage g"]; got != 20*hour {
		t.Errorf("%v", got)
	}
}

func TestTheRuleOfAUDITORTakesRunsByTheirStart(t *testing.T) {
	one := component("Cores", 2, hepscore(10))
	open := run("g", hour, 0, one)
	open.Stop = record.None
	c := &cluster{records: []record.Record{
		run("g", 10*hour, hour+0.9, one), // whole seconds
		run("g", 24*hour, 2*hour, one),
		run("g", 24*hour+0.1, 2*hour, one), // began before
		run("g", hour, 3*hour, one),        // all of it, also what lies ahead
		run("g", 5*hour, -hour, one),
		open,
	}}
	g, _ := used(t, c, cores(), textNode("lookback", "1d"), textNode("credit", "start"), groupOf("g", "a"))
	if want := 20.0 * 6 * hour; g["resource_usage g"] != want {
		t.Errorf("%v, want %v", g, want)
	}
	if len(c.asked) != 1 || !strings.Contains(c.asked[0], "start_time%5Bgte%5D=2026-11-19T12%3A00%3A00Z") {
		t.Errorf("asked %q", c.asked)
	}
}

func TestRunsThatGoOnCountAsFarAsTheirSourceIsComplete(t *testing.T) {
	records := []record.Record{run("g", 100*hour, 0), run("g", 2*hour, 0), run("g", hour/2, 0)}
	for i := range records {
		records[i].Stop, records[i].Components = record.None, []record.Component{component("Cores", 1)}
	}
	c := &cluster{
		records: append(records, run("g", 2*hour, hour, component("Cores", 100))), ends: map[string]string{"nemo": "2026-11-20T11:00:00Z", "fresh": "2026-11-20T11:59:59Z"},
		origins: map[string]string{records[1].ID: "nemo", records[2].ID: "nemo"},
	}
	bare := scored(map[string]string{"Cores": ""})
	g, told := used(t, c, bare, textNode("lookback", "1d"), groupOf("g", "a"))
	if want := 100.0*hour + 24*hour + hour + 0; g["resource_usage g"] != want {
		t.Errorf("%v, want %v", g, want)
	}
	if !strings.Contains(told, "head1/slurm/nemo is complete up to 2026-11-20T11:00:00Z only") || strings.Contains(told, "fresh") || strings.Contains(told, "score") {
		t.Error(told)
	}
	g, _ = used(t, c, bare, textNode("lookback", "1d"), attribute("running", sdk.Bool(false)), groupOf("g", "a"))
	if g["resource_usage g"] != 100*hour {
		t.Errorf("without running ones: %v", g)
	}
}

func TestARunThatEndsWhileItIsReadCountsOnce(t *testing.T) {
	open := run("g", hour, 0, component("Cores", 1))
	open.Stop = record.None
	ended := open
	ended.Stop = record.FromStd(now()) - record.Second
	g, _ := used(t, &cluster{records: []record.Record{open, ended}}, cores(), groupOf("g", "a"))
	if g["resource_usage g"] != hour {
		t.Error(g)
	}
}

func TestARecordCountsWithTheProductOfItsComponents(t *testing.T) {
	c := &cluster{records: []record.Record{
		run("both", hour, 10, component("Cores", 4, hepscore(2.5)), component("Memory", 3), component("Disk", 9)),
		run("one", hour, 10, component("Cores", 4, record.Score{Name: "other", Value: 7})),
		run("none", hour, 10, component("Disk", 4)),
		run("total", hour, 10, component("Cores", 4, hepscore(1)), record.Component{Name: "Memory", Amount: 50, Kind: record.Total}),
		{ID: "bare", Start: record.FromStd(now()) - record.Hour, Stop: record.FromStd(now()), Components: []record.Component{component("Cores", 1)}},
	}}
	g, told := used(t, c, scored(map[string]string{"Cores": "HEPscore23", "Memory": ""}), groupOf("both", "a"), groupOf("one", "b"), groupOf("none", "c"), groupOf("total", "d"))
	for group, want := range map[string]float64{"both": 4 * 2.5 * 3 * 10, "one": 40, "none": 0, "total": 4 * 50} {
		if got := g["resource_usage "+group]; got != want {
			t.Errorf("%s used %v, want %v", group, got, want)
		}
	}
	for _, want := range []string{"2 records have Cores without the score HEPscore23; it counts as 1", "1 records have none of the components Cores, Memory", "1 records have no meta key group_id", "without usage ever: none"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is not in\n%s", want, told)
		}
	}
}

func TestAnotherMetaKeyMayNameTheGroup(t *testing.T) {
	r := run("x", hour, 10, component("Cores", 1))
	r.Meta = record.Meta{{Key: "group_id", Values: []string{"x"}}, {Key: "voms", Values: []string{"/atlas"}}}
	g, _ := used(t, &cluster{records: []record.Record{r}}, cores(), textNode("group_meta", "voms"), groupOf("/atlas", "a"))
	if g["resource_usage /atlas"] != 10 {
		t.Error(g)
	}
}

func TestScoresCountAsTheDecimalsThatTheyAreWrittenAs(t *testing.T) {
	c := &config{components: map[string]string{"Cores": "HEPscore23"}, groups: []group{{name: "g"}}, groupMeta: "group_id"}
	u := newUsage(c, now())
	for i := range 5000 { // more than are kept apart
		score, _ := strconv.ParseFloat(fmt.Sprintf("0.1%04d", i%2500), 64)
		r := run("g", hour, 1, component("Cores", 1, hepscore(score)))
		u.addRecord(&r, r.Stop)
	}
	// 5000 × 0.1 + 2 × (0 + … + 2499) / 10⁵
	if got, want := u.groupTotals()[0], big.NewRat(50_000_000+2499*2500, 100_000); got.Cmp(want) != 0 {
		t.Errorf("%s, want %s", got, want)
	}
}

// The look-back may be cut anywhere: the parts add up to the whole, to the microsecond.
func TestLookBacksAddUp(t *testing.T) {
	c := &config{components: map[string]string{"Cores": "s"}, groups: []group{{name: "g"}}, groupMeta: "group_id"}
	rapid.Check(t, func(t *rapid.T) {
		end := record.FromStd(now())
		cut := end - record.Time(rapid.Int64Range(0, 1e9).Draw(t, "cut"))
		whole, late, early := newUsage(c, end.Std()), newUsage(c, end.Std()), newUsage(c, cut.Std())
		late.from = cut
		for range rapid.IntRange(0, 20).Draw(t, "n") {
			r := record.Record{
				Start: end - record.Time(rapid.Int64Range(-1e6, 2e9).Draw(t, "start")), Meta: record.Meta{{Key: "group_id", Values: []string{"g"}}},
				Components: []record.Component{component("Cores", rapid.Int64Min(0).Draw(t, "cores"), record.Score{Name: "s", Value: rapid.Float64Range(0, 1e300).Draw(t, "score")})},
			}
			r.Stop = r.Start + record.Time(rapid.Int64Range(-1e6, 2e9).Draw(t, "length"))
			for _, u := range []*usage{whole, late, early} {
				u.addRecord(&r, r.Stop)
			}
		}
		sum := new(big.Rat).Add(late.groupTotals()[0], early.groupTotals()[0])
		if sum.Cmp(whole.groupTotals()[0]) != 0 {
			t.Errorf("%s and %s are not %s", late.groupTotals()[0], early.groupTotals()[0], whole.groupTotals()[0])
		}
	})
}
