package api_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/action"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/alerts"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// watched is the plugin alert with its default rules, which asks the real handlers.
type watched struct {
	*apitest.World

	session *action.Session
	now     time.Time // of the runs
	state   []byte
	quiet   health.Facts // of a cluster without findings
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	bin := t.TempDir()
	if err := programtest.Build(bin, map[string]string{"bursar-action-alert": "plugins/action/alert"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	process, err := host.Launch(ctx, host.Spec{Kind: "action", Type: "alert", Path: filepath.Join(bin, "bursar-action-alert"), Dev: true, StartTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Close() })
	about, err := process.DescribeAction(ctx)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{World: apitest.Filled(t), now: apitest.Noon()}
	w.quiet = w.Facts
	w.at("2026-01-06")
	config := plugintest.Block("config", plugintest.Attr("defaults", true))
	w.session, err = action.NewSession(ctx, process, process.Action(), about, action.Spec{Node: "agg1", Label: "site", Config: config, Data: w})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// at changes the time of the handlers.
func (w *watched) at(text string) {
	w.Options.Now = func() time.Time { return apitest.At(text).Std() }
}

// cores changes how many the cluster has.
func (w *watched) cores(n int64) {
	w.Settings.Capacity.Clusters[0].Parts = []accounting.ClusterPart{{From: apitest.At("2026-02-01"), To: record.None, Components: map[string]int64{"Cores": n}}}
	w.Keep()
}

// firing makes two runs that are so far apart that nothing is pending, and returns the rules of
// the alerts that fire.
func (w *watched) firing() (rules []string) {
	w.T.Helper()
	for range 2 {
		plan, err := w.session.Plan(w.T.Context(), sdk.PlanStart{Now: w.now, State: w.state})
		if err != nil {
			w.T.Fatal(err)
		}
		if plan.Partial {
			w.T.Errorf("%q", plan.Notes)
		}
		if plan.State != nil {
			w.state = plan.State
		}
		w.now = w.now.Add(2 * time.Hour)
	}
	state, err := alerts.Read(w.state)
	if err != nil {
		w.T.Fatal(err)
	}
	for i := range state.Alerts {
		if state.Alerts[i].Firing() {
			rules = append(rules, state.Alerts[i].Rule)
		}
	}
	return slices.Compact(rules)
}

func TestAlert_EachDefaultRule_FiresAndRecovers(t *testing.T) {
	w := newWatched(t)
	facts := func(change func(*health.Facts)) func() {
		return func() {
			w.Facts = w.quiet
			w.Facts.Nodes = slices.Clone(w.quiet.Nodes)
			w.Facts.Data.Known = true
			change(&w.Facts)
		}
	}
	hour := func(n int) time.Time { return apitest.Noon().Add(time.Duration(n) * time.Hour) }
	at := func(text string) func() { return func() { w.at(text) } }
	calm := facts(func(*health.Facts) {})
	type step struct {
		rule      string
		fire, end func()
	}
	steps := []step{
		{"silent-source", facts(func(f *health.Facts) {
			f.Agents = []health.Agent{{Name: "head1", Connected: true}}
			f.Data.Silent = []health.Silent{{Agent: "head1", Source: "head1/slurm/nemo", Since: hour(-3), Allowed: time.Hour}}
		}), calm},
		{"silent-source", facts(func(f *health.Facts) {
			f.Agents = []health.Agent{{Name: "head2", Error: "no route to host", Contact: hour(-1)}}
		}), calm},
		{"late-source", facts(func(f *health.Facts) { f.Data.CompleteTo, f.Data.Late = hour(-7), "head1/slurm/nemo" }), calm},
		{"missing-runs", facts(func(f *health.Facts) {
			f.Data.Lacking = []health.Lacking{{Agent: "head1", Source: "head1/slurm/nemo", From: hour(-60), To: hour(-36), Runs: 3}}
		}), calm},
		{"gap", facts(func(f *health.Facts) { f.Data.Gaps, f.Data.NewestGap = 2, hour(-1) }), calm},
		{"quarantine", facts(func(f *health.Facts) { f.Data.Quarantined, f.Data.OldestQuarantined = 1, hour(-1) }), calm},
		{"odd-records", facts(func(f *health.Facts) {
			f.Others = []health.Finding{{Severity: health.Warning, ID: "records-odd", About: "head1/slurm/nemo", What: "3 records have no Cores"}}
		}), calm},
		{"certificate", facts(func(f *health.Facts) { f.Nodes[0].CertFrom, f.Nodes[0].CertEnds = hour(-8000), hour(24) }), calm},
		{"backup", facts(func(f *health.Facts) {
			f.Nodes[0].Backup = &health.LocalBackup{Every: 24 * time.Hour, Began: hour(-1), Error: "no space left on device", Failing: hour(-1)}
		}), calm},
		{"disk", facts(func(f *health.Facts) { f.Nodes[1].Disk.Level = health.LevelWarn }), calm},
		{"cluster", facts(func(f *health.Facts) { f.Leader = "" }), calm},
		{"action", facts(func(f *health.Facts) {
			f.Others = []health.Finding{{Severity: health.Warning, ID: "action-failing", About: "priority/nemo", What: "it cannot be planned"}}
		}), calm},
		{"budget-75", at("2026-03-01T12:00:00Z"), at("2026-01-06")},
		{"budget-90", at("2026-03-01T12:00:00Z"), at("2026-01-06")},
		{"budget-100", at("2026-03-01T12:00:00Z"), at("2026-01-06")},
		{"utilization-low", at("2026-03-01T12:00:00Z"), at("2026-02-16T09:00:00Z")},
		{"utilization-high", func() { w.at("2026-03-01T12:00:00Z"); w.cores(51) }, func() { w.cores(1000) }},
		{"conflict", func() {}, func() {
			if err := w.API().DeleteRecord(t.Context(), "nemo-1"); err != nil {
				t.Error(err)
			}
		}},
	}
	calm()
	if got := w.firing(); !slices.Equal(got, []string{"conflict"}) {
		t.Fatalf("before anything happened %q fire", got)
	}
	var rules []string
	for _, s := range steps {
		rules = append(rules, s.rule)
		s.fire()
		if got := w.firing(); !slices.Contains(got, s.rule) {
			t.Errorf("%s does not fire: %q", s.rule, got)
		}
		s.end()
		if got := w.firing(); slices.Contains(got, s.rule) {
			t.Errorf("%s does not recover: %q", s.rule, got)
		}
	}
	readme, err := os.ReadFile("../../../plugins/action/alert/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+(?:-[a-z0-9]+)*)` \\|.*\\| (?:notice|warning|critical|that of the finding) \\|$").FindAllStringSubmatch(string(readme), -1) {
		if !slices.Contains(rules, m[1]) {
			t.Errorf("the default rule %s is not tried", m[1])
		}
	}
}
