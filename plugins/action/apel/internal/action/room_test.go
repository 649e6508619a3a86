package action

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/apeltest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

// drain runs until nothing is left to send, with a limit on what a run sends, and
// returns what the receiver has then.
func drain(t *testing.T, r *rig, now string) (receiver *apeltest.Receiver, runs int) {
	t.Helper()
	receiver = &apeltest.Receiver{}
	for runs = 0; ; runs++ {
		p := r.plans(t, now, nil)
		if more := strings.Contains(strings.Join(p.Notes, "\n"), "the next run goes on"); more != p.Partial || more && len(p.Effects) == 0 {
			t.Fatalf("run %d: %d effects, %v", runs, len(p.Effects), p.Notes)
		}
		if len(p.Effects) == 0 {
			return receiver, runs
		}
		for _, e := range p.Effects {
			if err := receiver.Take(text(t, e), at(now)); err != nil {
				t.Fatal(err)
			}
		}
		r.state = p.State
	}
}

func TestABacklogThatDoesNotFitIntoARunIsSentByTheFollowingOnes(t *testing.T) {
	r := newRig(t, mapped+`
site "A" {}
site "B" {}
`)
	r.room = 3 * 2 * around // about three months
	var jobs int64
	for i := range 24 {
		stop := time.Date(2024, time.Month(8+i), 5, 0, 0, 0, 0, time.UTC).Format(time.RFC3339)
		for _, site := range []string{"A", "B"} {
			r.data.records = append(r.data.records, job(fmt.Sprint(site, i), site, stop, 60))
			jobs++
		}
	}
	r.config.from.Year = 2024
	receiver, runs := drain(t, r, "2026-07-20T00:00:00Z")
	if n := receiver.Sum("APEL-norm", "NumberOfJobs"); n != jobs || receiver.Sum("APEL-sync", "NumberOfJobs") != jobs || runs < 16 {
		t.Errorf("%d of %d jobs in %d runs", n, jobs, runs)
	}
	// What changes while there is a backlog is sent too.
	r.state = nil
	r.runs(t, "2026-07-20T00:00:00Z", nil)
	r.data.records = append(r.data.records, job("late", "A", "2024-08-20T00:00:00Z", 60))
	receiver, _ = drain(t, r, "2026-07-20T00:00:00Z")
	if rows := receiver.Rows("APEL-norm"); len(rows) != 47 || rows[0].Int("NumberOfJobs")+rows[46].Int("NumberOfJobs") < 2 {
		t.Errorf("%d rows", len(rows))
	}
}

// The daemon gives up a plan that takes too long; what was looked at until then counts.
func TestAPlanThatRunsOutOfTimeGoesOnInTheNextRun(t *testing.T) {
	r := newRig(t, oneSite)
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T00:00:00Z", 60), job("2", "nemo", "2026-11-10T00:00:00Z", 60)}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Minute))
	defer cancel()
	start := sdk.PlanStart{Now: at("2026-11-20T00:00:00Z")}
	effects := []int{}
	for range 5 {
		p, err := r.planRun(late, start, &r.data)
		if err != nil {
			t.Fatal(err)
		}
		effects, start.State = append(effects, len(p.Effects)), p.State
	}
	// August, September, October, November, and nothing: each run gets on by a month.
	if !slices.Equal(effects, []int{2, 0, 0, 2, 0}) {
		t.Error(effects)
	}
}

func TestADayOfJobsThatDoesNotFitIntoARunIsGoneOnWith(t *testing.T) {
	r := newRig(t, oneSite+"send = \"jobs\"\nmax_message = \"10kB\"\n")
	r.room = 40_000
	var all []record.Record
	for i := range 200 {
		all = append(all, job(fmt.Sprintf("first-%03d", i), "nemo", "2026-08-10T10:00:00Z", 60), job(fmt.Sprintf("second-%03d", i), "nemo", "2026-08-11T10:00:00Z", 60))
	}
	r.data.records = all
	receiver, runs := drain(t, r, "2026-08-20T00:00:00Z")
	if n := len(receiver.Rows("APEL-ind")); n != 400 || receiver.Sum("APEL-sync", "NumberOfJobs") != 400 || runs < 4 {
		t.Errorf("%d jobs in %d runs", n, runs)
	}
	// A day that changes in the middle starts over.
	r.state = nil
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	r.data.records = append(all, job("a-late-one", "nemo", "2026-08-10T10:00:00Z", 60))
	receiver, _ = drain(t, r, "2026-08-20T00:00:00Z")
	if n := len(receiver.Rows("APEL-ind")); n != 401 {
		t.Errorf("%d jobs", n)
	}
}

func TestADayOfJobsIsSentAgainOnDemand(t *testing.T) {
	r := newRig(t, oneSite+"send = \"jobs\"\n")
	r.data.records = []record.Record{job("1", "nemo", "2026-08-10T10:00:00Z", 60), job("2", "nemo", "2026-08-11T10:00:00Z", 60)}
	r.runs(t, "2026-08-20T00:00:00Z", nil)
	before := string(r.state)
	p := r.runs(t, "2026-08-20T00:00:00Z", map[string]string{"day": "2026-08-11"})
	if want := []string{"site=UNI-EXAMPLE month=2026-08 sync", "site=UNI-EXAMPLE month=2026-08 jobs day=2026-08-11"}; !slices.Equal(names(p), want) || string(r.state) != before {
		t.Errorf("%v, %s became %s", names(p), before, r.state)
	}
	for what, arguments := range map[string]map[string]string{
		"another month": {"day": "2026-08-11", "month": "2026-09"}, "no day": {"day": "11"}, "the future": {"day": "2026-09-11"},
	} {
		if _, err := r.tries(t, "2026-08-20T00:00:00Z", arguments); err == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	if _, err := newRig(t, oneSite).tries(t, "2026-08-20T00:00:00Z", map[string]string{"day": "2026-08-11"}); err == nil {
		t.Error("a day of summaries is accepted")
	}
	// What an order asks for and does not fit is told, and nothing is taken for sent.
	r.room = 1
	p = r.plans(t, "2026-08-20T00:00:00Z", map[string]string{"month": "2026-08"})
	if len(p.Effects) != 2 || !p.Partial || !strings.Contains(p.Notes[0], "order it by site=NAME, and jobs by day=") {
		t.Errorf("%v %v", names(p), p.Notes)
	}
}

// The daemon takes 200 gauges, whose labels have 64 bytes at most.
func TestManySitesAndMonthsMakeAPlanThatTheDaemonTakes(t *testing.T) {
	text := mapped
	for i := range 150 {
		text += fmt.Sprintf("site \"SITE-%d\" {}\n", i)
	}
	long := strings.Repeat("LONG-", 20)
	r := newRig(t, text+fmt.Sprintf("site %q {}\n", long))
	r.data.records = []record.Record{job("1", long, "2026-08-10T00:00:00Z", 60)}
	p := r.plans(t, "2027-08-20T00:00:00Z", nil)
	if len(p.Gauges) > 200 || len(p.Gauges) < 100 || len(p.Effects) != 2 {
		t.Errorf("%d gauges, %d effects", len(p.Gauges), len(p.Effects))
	}
	if slices.ContainsFunc(p.Gauges, func(g sdk.Gauge) bool { return len(g.Labels["site"]) > 64 }) {
		t.Error("a label is too long")
	}
}
