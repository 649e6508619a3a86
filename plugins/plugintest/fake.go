package plugintest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// FakeScheduler keeps runs in memory. It is safe for concurrent use.
type FakeScheduler struct {
	mu   sync.Mutex
	runs []FakeRun
}

// FakeRun is a run of a FakeScheduler. A zero Stop: it still runs.
type FakeRun struct {
	ID, User    string
	Start, Stop time.Time
	Cores       int64
}

// Add puts runs behind those that are there: new ones, or later states of known
// ones.
func (f *FakeScheduler) Add(runs ...FakeRun) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runs = append(f.runs, runs...)
}

// runsFrom returns the runs from position n on.
func (f *FakeScheduler) runsFrom(n int) []FakeRun {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]FakeRun(nil), f.runs[min(n, len(f.runs)):]...)
}

// Source returns a source of the scheduler's runs that keeps every promise. Its
// configuration has one attribute, batch: how many runs are sent at once.
func (f *FakeScheduler) Source() sdk.Source { return &FakeSource{scheduler: f} }

// FakeSource is the source of a FakeScheduler, of type "fake". Its checkpoint is
// a position in the list of runs.
type FakeSource struct {
	scheduler *FakeScheduler
	settings  struct {
		Batch int `hcl:"batch,optional" default:"100" min:"1"`
	}
}

// Describe implements sdk.Source.
func (s *FakeSource) Describe() sdk.Description {
	return sdk.Description{
		Type: "fake", Version: "1.0.0",
		Attributes: []sdk.Attribute{
			{Name: "id", Type: sdk.TypeString, Doc: "the run's id"},
			{Name: "user", Type: sdk.TypeString, Doc: "who ran it"},
			{Name: "start", Type: sdk.TypeTime, Doc: "when it began"},
			{Name: "stop", Type: sdk.TypeTime, Doc: "when it ended; null while it runs"},
			{Name: "cores", Type: sdk.TypeInt, Doc: "cores"},
		},
		Mapping: `
id    = "${source.label}-${job.id}"
start = job.start
stop  = job.stop
meta  = { user_id = job.user }
component "Cores" { amount = job.cores }
`,
	}
}

// Configure implements sdk.Source.
func (s *FakeSource) Configure(_ context.Context, cfg *sdk.Config) error {
	return cfg.Decode(&s.settings)
}

// Collect implements sdk.Source.
func (s *FakeSource) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	at := 0
	if from.Checkpoint != nil {
		var err error
		if at, err = strconv.Atoi(string(from.Checkpoint)); err != nil || at < 0 {
			return fmt.Errorf("checkpoint %q is none of this source", from.Checkpoint)
		}
	}
	done := at
	if from.Rewind > 0 || from.Window != nil {
		at = 0
	}
	for {
		runs := s.scheduler.runsFrom(at)
		runs = runs[:min(len(runs), s.settings.Batch)]
		if len(runs) == 0 {
			return nil
		}
		at += len(runs)
		b := sdk.Batch{Checkpoint: []byte(strconv.Itoa(max(at, done))), Jobs: jobsInWindow(runs, from.Window)}
		if err := out.Send(ctx, b); err != nil {
			return err
		}
	}
}

// Count implements sdk.Counter: the runs in their last states.
func (s *FakeSource) Count(_ context.Context, w sdk.Window) (int64, error) {
	last := map[string]FakeRun{}
	for _, r := range s.scheduler.runsFrom(0) {
		last[r.ID] = r
	}
	n := int64(0)
	for _, r := range last {
		if !r.Stop.IsZero() && w.Holds(r.Stop) {
			n++
		}
	}
	return n, nil
}

func jobsInWindow(runs []FakeRun, w *sdk.Window) []sdk.Job {
	var out []sdk.Job
	for _, r := range runs {
		when := r.Stop
		if when.IsZero() {
			when = r.Start
		}
		if w != nil && !w.Holds(when) {
			continue
		}
		out = append(out, sdk.Job{Run: r.ID, Ended: !r.Stop.IsZero(), Values: []sdk.Value{
			sdk.String(r.ID), sdk.String(r.User), sdk.Time(r.Start), sdk.Time(r.Stop), sdk.Int(r.Cores),
		}})
	}
	return out
}
