package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// countedDays is a cluster that has the counts of two days of March, of which one
// lacks runs.
func countedDays(t *testing.T, more ...change) *rig {
	t.Helper()
	rg := newRig(t, append(more, noon("2026-04-02T12:00:00Z"))...)
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	at, err := record.ParseTime("2026-03-30T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	c := &store.IngestCommand{Agent: "head1", Now: at, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 3, After: store.Chain{3}}
	for i, runs := range []int64{1, 5} {
		f := wire.Frame{SourceType: source.Type, SourceLabel: source.Label, Kind: wire.KindCount}
		f.Count = wire.Count{From: at + record.Time(i)*record.Day, Counted: runs, Records: runs - int64(i), Filtered: int64(i), At: at + 3*record.Day}
		f.Count.To = f.Count.From + record.Day
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCount, Source: source, At: f.Count.From, Data: wire.AppendFrame(nil, &f)})
	}
	c.Writes = []record.Write{{
		Op: record.OpPut, ID: "a", Origin: source, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(at)},
		Record: &record.Record{ID: "a", Start: at, Stop: at + record.Hour, Submit: record.None},
	}}
	if _, err := rg.node.Write(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	return rg
}

type daysAnswer struct {
	Window struct{ From, To string }
	Days   []struct {
		Source, Day, State string
		Runs               *int64
		Stored, Missing    int64
	}
	Stretches []struct {
		Agent, Do     string
		Missing, Lost int64
	}
	Missing int64
}

func TestDaysAreComparedWithWhatSchedulersHave(t *testing.T) {
	rg := countedDays(t)
	var all, none daysAnswer
	rg.get("/v1/completeness?window=2026-03", &all)
	if len(all.Days) != 31 || all.Missing != 4 || len(all.Stretches) != 1 || all.Stretches[0].Lost != 4 ||
		all.Stretches[0].Do != "bursar-agent recollect -source slurm/nemo -from 2026-03-31 -to 2026-04-01" {
		t.Errorf("%+v", all)
	}
	states := []string{all.Days[28].State, all.Days[29].State, all.Days[30].State}
	if d := cmp.Diff([]string{"unchecked", "ok", "missing"}, states); d != "" {
		t.Error(d)
	}
	rg.get("/v1/completeness", &all)
	if len(all.Days) != 31 || all.Window.From != "2026-03-03T00:00:00Z" || all.Days[30].State != "open" {
		t.Errorf("%+v", all)
	}
	rg.get("/v1/completeness?source=slurm/other", &none)
	if len(none.Days) != 0 || none.Missing != 0 {
		t.Errorf("%+v", none)
	}
	rg.get("/v1/completeness?source=head1/slurm/nemo&from=2026-03-30&to=2026-03-31", &none)
	if len(none.Days) != 1 || none.Days[0].State != "ok" {
		t.Errorf("%+v", none)
	}
	for _, query := range []string{"day=1", "window=2026-03&from=2026-03-01", "from=2020-01-01&to=2026-01-01", "source=a&source=b"} {
		if a := rg.do("GET", "/v1/completeness?"+query, ""); a.status != 400 {
			t.Error(query, a)
		}
	}
}

func TestAnswersAboutUsageNameTheDaysThatLackRuns(t *testing.T) {
	rg := countedDays(t, func(o *api.Options, _ *store.Options) {
		source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
		o.Days = func(w completeness.Window) ([]completeness.Day, bool) {
			return []completeness.Day{{Source: source, From: w.From, To: w.From + record.Day, Count: wire.Count{Counted: 3, Records: 3}, Stored: 1}}, true
		}
	})
	var s struct {
		Complete struct {
			Missing []struct {
				Source, From, To string
				Runs             int64
			}
		}
	}
	a := rg.get("/v1/usage?window=2026-03", &s)
	if m := s.Complete.Missing; len(m) != 1 || m[0].Runs != 2 || m[0].From != "2026-03-01T00:00:00Z" || m[0].Source != "head1/slurm/nemo" {
		t.Errorf("%+v", m)
	}
	if got := a.header.Get("X-Bursar-Missing-Runs"); got != "2" {
		t.Errorf("header %q", got)
	}
}
