package api_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// unknownOf are the sources of which an answer says that it does not know how complete
// they are. All answers that speak of completeness must say the same.
func unknownOf(rg *rig, query string) (list []string) {
	rg.t.Helper()
	var s struct {
		Complete struct {
			CompleteTo *string `json:"complete_to"`
			Limited    bool
			Unknown    []struct {
				Source, Reason string
				Days           int64
			}
		}
	}
	a := rg.get("/v1/usage?"+query, &s)
	for _, u := range s.Complete.Unknown {
		list = append(list, fmt.Sprintf("%s %s %d", u.Source, u.Reason, u.Days))
	}
	if got := a.header.Get("X-Bursar-Unknown-Sources"); !s.Complete.Limited && got != fmt.Sprint(len(list)) {
		rg.t.Errorf("header %q, want %d", got, len(list))
	}
	if s.Complete.CompleteTo == nil && !s.Complete.Limited && len(list) == 0 {
		rg.t.Errorf("%s: the answer has no time up to which it is complete, and does not say that this is unknown", query)
	}
	return list
}

func TestUsage_UnknownCompleteness_IsNamed(t *testing.T) {
	at, err := record.ParseTime("2026-03-31T12:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	nemo := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	epilog := record.Origin{Agent: "head1", Type: "slurm-epilog", Label: "nemo"}
	says := store.Watermark{Source: nemo, CompleteTo: at}
	put := func(source record.Origin) []record.Write {
		return []record.Write{{
			Op: record.OpPut, ID: "a", Origin: source, Rank: record.RankEpilog, Version: record.Version{Ended: true, Observed: int64(at)},
			Record: &record.Record{ID: "a", Start: at, Stop: at + record.Hour, Submit: record.None},
		}}
	}
	for name, c := range map[string]struct {
		configured []string
		pulled     *store.IngestCommand
		posted     bool
		counted    int // of the days of March
		want       []string
	}{
		"nothing is configured":          {want: []string{" no_source 0"}},
		"no agent was pulled":            {configured: []string{"head2", "head1"}, want: []string{"head1 no_data 0", "head2 no_data 0"}},
		"an agent has said nothing":      {configured: []string{"head1"}, pulled: &store.IngestCommand{}, want: []string{"head1 no_data 0"}},
		"an agent is collecting":         {pulled: &store.IngestCommand{Checkpoints: []store.Checkpoint{{Source: nemo}}}, want: []string{"head1/slurm/nemo no_watermark 0"}},
		"a source has no watermark":      {pulled: &store.IngestCommand{Writes: put(epilog)}, want: []string{"head1/slurm-epilog/nemo no_watermark 0"}},
		"two sources, of which one says": {pulled: &store.IngestCommand{Writes: put(epilog), Watermarks: []store.Watermark{says}}, counted: 31, want: []string{"head1/slurm-epilog/nemo no_watermark 0"}},
		"records were pushed":            {posted: true, want: []string{"pushed no_watermark 0"}},
		"a source does not count":        {pulled: &store.IngestCommand{Watermarks: []store.Watermark{says}}, want: []string{"head1/slurm/nemo not_counted 31"}},
		"a day was not counted":          {pulled: &store.IngestCommand{Watermarks: []store.Watermark{says}}, counted: 30, want: []string{"head1/slurm/nemo not_counted 1"}},
		"all is known":                   {configured: []string{"head1"}, pulled: &store.IngestCommand{Watermarks: []store.Watermark{says}}, counted: 31},
	} {
		t.Run(name, func(t *testing.T) {
			rg := newRig(t, noon("2026-04-01T12:00:00Z"), func(o *api.Options, _ *store.Options) {
				o.Configured = func() []string { return c.configured }
				o.Days = func(w completeness.Window) (days []completeness.Day, ready bool) {
					for i := range c.counted {
						from := w.From + record.Time(i)*record.Day
						days = append(days, completeness.Day{Source: nemo, From: from, To: from + record.Day, Count: wire.Count{At: at}})
					}
					return days, true
				}
			})
			if c.pulled != nil {
				c.pulled.Agent, c.pulled.Now, c.pulled.Epoch, c.pulled.Begin, c.pulled.From, c.pulled.To = "head1", at, store.Epoch{1}, &store.Begin{}, 1, 1
				if _, err := rg.node.Write(t.Context(), c.pulled); err != nil {
					t.Fatal(err)
				}
			}
			if c.posted {
				rg.add(`{"record_id":"p","components":[],"start_time":"2026-03-10T11:00:00Z","stop_time":"2026-03-10T12:00:00Z"}`)
			}
			if d := cmp.Diff(c.want, unknownOf(rg, "window=2026-03")); d != "" {
				t.Error(d)
			}
		})
	}
}
