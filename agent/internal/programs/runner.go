package programs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Options of a [Runner]. All are needed.
type Options struct {
	// Rules returns the present ones, and the file in which they are.
	Rules  func() (Rules, string)
	Fences *Fences
	// Dev accepts programs below folders such as /tmp.
	Dev bool
	Log *slog.Logger
}

// Runner runs programs. It is safe for use by many goroutines.
type Runner struct {
	opt     Options
	results *prometheus.CounterVec

	mu     sync.Mutex
	active map[slot]*Permit // that run, or are about to
}

// slot is where one program runs at a time: an action of a cluster.
type slot struct{ cluster, action string }

// NewRunner makes a runner.
func NewRunner(opt Options) *Runner {
	return &Runner{opt: opt, active: map[slot]*Permit{}, results: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "bursar_action_programs_total", Help: "Programs that actions of the aggregator asked for, by what became of them.",
	}, []string{"action", "result"})}
}

// Collector are the runner's metrics.
func (r *Runner) Collector() prometheus.Collector { return r.results }

// The results, as the metric has them.
const (
	refused    = "refused"     // by the configuration
	outdated   = "outdated"    // a later attempt is known
	notStarted = "not_started" // for another reason
	done       = "done"        // with status 0
	failed     = "failed"      // with another one
	killed     = "killed"      // or its end is not known
)

// Permit is the leave to run a program once.
type Permit struct {
	runner  *Runner
	slot    slot
	attempt attempt
	program sdk.Program
	path    string // of the file that was checked
	log     *slog.Logger

	stop context.CancelCauseFunc
	over chan struct{} // closed when nothing of it runs any more
}

const (
	maxTimeout   = time.Hour
	maxArguments = 1000
)

// Admit permits a program, or says why not: then nothing was run. by is who asks. When
// it returns the fence of the attempt is on the disk, and what ran for attempts before
// is being killed.
func (r *Runner) Admit(e *bursarv1.Errand, by string) (*Permit, error) {
	p := &Permit{
		runner: r, slot: slot{e.GetCluster(), e.GetAction()}, over: make(chan struct{}),
		attempt: attempt{e.GetCluster(), e.GetIncarnation(), e.GetAction(), e.GetFence()},
		program: sdk.Program{Arguments: e.GetArguments(), Environment: e.GetEnvironment(), Input: e.GetInput(), Timeout: timeoutOf(e.GetTimeoutMs())},
		log: r.opt.Log.With("action", shortText(e.GetAction()), "effect", shortText(e.GetEffect()), "attempt", e.GetAttempt(), "fence", e.GetFence(), "key", shortText(e.GetKey()),
			"asked_by", by, "cluster", shortText(e.GetCluster()), "program", listExpression(e.GetArguments())),
	}
	rules, file := r.opt.Rules()
	if err := checkAdmissible(rules, e, file); err != nil {
		name := e.GetAction()
		if rules[name] == nil {
			name = "" // whatever the caller made up
		}
		return nil, p.declineRun(name, refused, err)
	}
	var err error
	if p.path, err = host.CheckCommand(e.GetArguments(), r.opt.Dev); err != nil {
		return nil, p.declineRun(p.slot.action, notStarted, err)
	}
	if err := r.opt.Fences.raiseFence(&p.attempt); err != nil {
		if errors.Is(err, ErrOutdated) {
			return nil, p.declineRun(p.slot.action, outdated, err)
		}
		return nil, p.declineRun(p.slot.action, notStarted, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if before := r.active[p.slot]; before != nil && !r.opt.Fences.isNewest(&before.attempt) {
		before.stop(errReplaced)
	}
	return p, nil
}

// errReplaced is why a program is killed for a later one.
var errReplaced = errors.New("a later attempt has come")

func timeoutOf(ms uint64) time.Duration {
	if ms == 0 || ms > uint64(maxTimeout/time.Millisecond) {
		return maxTimeout
	}
	return time.Duration(ms) * time.Millisecond
}

func checkAdmissible(rules Rules, e *bursarv1.Errand, file string) error {
	if len(e.GetArguments()) == 0 || len(e.GetArguments()) > maxArguments {
		return fmt.Errorf("the program has %d arguments; 1 to %d are possible", len(e.GetArguments()), maxArguments)
	}
	return rules.permitProgram(e.GetAction(), e.GetArguments(), e.GetEnvironment(), len(e.GetInput()) > 0, file)
}

func (p *Permit) declineRun(action, result string, err error) error {
	p.runner.results.WithLabelValues(action, result).Inc()
	p.log.Warn("a program of an action is not run", "result", result, "error", err)
	return sdk.NotStarted(err)
}

// Run runs the program, or not if a later attempt has come since: sdk.NotRun tells.
func (p *Permit) Run(ctx context.Context) (sdk.Output, error) {
	ctx, p.stop = context.WithCancelCause(ctx)
	defer p.stop(nil)
	if err := p.enterPlace(ctx); err != nil {
		result := notStarted
		if errors.Is(err, ErrOutdated) {
			result = outdated
		}
		return sdk.Output{}, p.declineRun(p.slot.action, result, err)
	}
	defer p.leavePlace()
	p.log.Info("a program of an action is run")
	begun := time.Now()
	out, err := host.RunProgram(ctx, p.path, p.program)
	if err != nil && errors.Is(context.Cause(ctx), errReplaced) {
		err = fmt.Errorf("%w: %w", errReplaced, err)
	}
	result := done
	switch {
	case sdk.NotRun(err):
		return out, p.declineRun(p.slot.action, notStarted, err)
	case err != nil:
		result = killed
	case out.Status != 0:
		result = failed
	}
	p.runner.results.WithLabelValues(p.slot.action, result).Inc()
	p.log.Info("a program of an action has ended", "result", result, "status", out.Status, "took", time.Since(begun).Round(time.Millisecond), "error", err)
	return out, err
}

// enterPlace takes the action's place, once what is in it has been killed.
func (p *Permit) enterPlace(ctx context.Context) error {
	r := p.runner
	for {
		r.mu.Lock()
		if !r.opt.Fences.isNewest(&p.attempt) {
			r.mu.Unlock()
			return fmt.Errorf("%w: %w", ErrOutdated, errReplaced)
		}
		before := r.active[p.slot]
		if before == nil {
			r.active[p.slot] = p
			r.mu.Unlock()
			return nil
		}
		before.stop(errReplaced) // its caller has gone, or it is of an attempt before
		r.mu.Unlock()
		select {
		case <-before.over:
		case <-ctx.Done():
			return fmt.Errorf("what ran before has not ended yet: %w", ctx.Err())
		}
	}
}

func (p *Permit) leavePlace() {
	p.runner.mu.Lock()
	defer p.runner.mu.Unlock()
	delete(p.runner.active, p.slot)
	close(p.over)
}

// Wait returns when no program runs any more; the contexts of all have to end first.
func (r *Runner) Wait() {
	for {
		r.mu.Lock()
		var one *Permit
		for _, p := range r.active {
			one = p
		}
		r.mu.Unlock()
		if one == nil {
			return
		}
		<-one.over
	}
}
