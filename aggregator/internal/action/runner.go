package action

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// runner runs one action for as long as this node leads. It keeps nothing that
// counts: what is to be done follows from the documents.
type runner struct {
	*Manager

	set      Setting
	term     uint64
	quiet    time.Time      // before that, others may be at work
	life     store.Document // the cluster has not been restored since
	log      *slog.Logger
	plugin   Plugin // nil: it does not run
	about    *Description
	schedule Schedule

	failed  int         // plans in a row that could not be made
	later   time.Time   // no plan is made before
	crashed []time.Time // when the plugin crashed or hung
	unbegun []byte      // the effect whose last attempt was dispatched and not begun, as it was written
}

// picture is what is written down of the action.
type picture struct {
	state   held[State]
	run     held[Run] // the current one
	effects []held[Effect]
	index   uint64
	seq     uint64
	cluster string
}

// workTerm runs the action until the leadership ends, with ctx, or until it is not to
// go on, which does not break off what has begun.
func (r *runner) workTerm(ctx, until context.Context) {
	defer r.closePlugin()
	for told := ""; until.Err() == nil; {
		wait, err := r.doNext(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, ErrChanged):
			wait = look / 10
		case err != nil:
			wait = look
			if err.Error() != told {
				r.log.Warn("an action is interrupted", "error", err)
			}
			told = err.Error()
		default:
			told = ""
		}
		sleepFor(until, wait)
	}
}

func sleepFor(ctx context.Context, d time.Duration) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func (r *runner) closePlugin() {
	if r.plugin != nil {
		_ = r.plugin.Close() // one that does not end by itself is killed
		r.plugin = nil
	}
}

// killPlugin ends a plugin at once of which no one knows what it does: what is written
// down then is not outrun by it.
func (r *runner) killPlugin() {
	if r.plugin != nil {
		_ = r.plugin.Kill() // one that has ended is as good
		r.plugin = nil
	}
}

// endHanging ends a plugin of which a call did not end in time, with its goroutines in the log.
func (r *runner) endHanging(call string, limit time.Duration) {
	if r.plugin != nil {
		r.plugin.Hang(&host.Stall{Call: call, Silent: limit})
		r.closePlugin()
	}
}

// readPicture reads what is written down.
func (r *runner) readPicture() (*picture, error) {
	return store.With(r.Views, func(view *store.View) (*picture, error) {
		p := &picture{seq: view.Seq()}
		p.index, _ = view.Applied()
		p.cluster, _ = view.Cluster()
		var err error
		if p.state, err = readActionState(view, r.set.Name); err != nil || p.state.value == nil || p.state.value.Current == 0 {
			return p, err
		}
		if p.run, err = readRun(view, r.set.Name, p.state.value.Current); err != nil {
			return p, err
		}
		if p.run.value == nil {
			return p, fmt.Errorf("run %d of %s is not there", p.state.value.Current, r.set.Name)
		}
		for i := range p.run.value.Effects {
			e, err := readEffect(view, r.set.Name, p.run.value.Number, i)
			if err == nil && e.value == nil {
				err = fmt.Errorf("effect %d of run %d of %s is not there", i, p.run.value.Number, r.set.Name)
			}
			if err != nil {
				return p, err
			}
			p.effects = append(p.effects, e)
		}
		return p, nil
	})
}

// doNext does the next thing, if there is one, and says how long to wait until the
// one after it.
func (r *runner) doNext(ctx context.Context) (time.Duration, error) {
	p, err := r.readPicture()
	if err != nil {
		return 0, err
	}
	state := p.state.value
	switch {
	case state == nil:
		return 0, r.writeUnder(ctx, p.state.unchangedCondition(), p.state.changedTo(&State{version: version{Format}, Began: unixMicros(r.Now()), Next: 1, Oldest: 1}))
	case state.Paused != nil:
		r.closePlugin()
		return look, nil
	case state.Disabled != nil:
		return r.awaitChange(ctx, p)
	}
	if now := r.Now(); r.about == nil && now.Before(r.later) {
		return min(look, r.later.Sub(now)), nil
	}
	if r.about == nil {
		if err := r.openPlugin(ctx); err != nil {
			return r.noteTrouble(ctx, p, requestedRun(state), err)
		}
	}
	if state.Current != 0 {
		return r.advanceRun(ctx, p)
	}
	return r.considerRun(ctx, p)
}

// writeUnder changes documents under a condition, and that of the cluster's life.
func (r *runner) writeUnder(ctx context.Context, was store.Document, sets ...store.Document) error {
	_, err := r.commitUnder(ctx, []store.Document{was}, sets...)
	return err
}

func (r *runner) commitUnder(ctx context.Context, was []store.Document, sets ...store.Document) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return commitDocuments(ctx, r.Writer, &store.DocumentCommand{If: append(was, r.life), Sets: sets})
}

// awaitChange waits for another configuration or binary. What was ordered before the action
// was disabled is in the history as runs that could not be planned.
func (r *runner) awaitChange(ctx context.Context, p *picture) (time.Duration, error) {
	r.closePlugin()
	state := *p.state.value
	if state.Disabled.Of == r.identityOf() {
		run := requestedRun(&state)
		if run == nil {
			return look, nil
		}
		state.Requests = state.Requests[1:]
		failed := r.unplannedRun(&state, p, run, cutText("the action is disabled: "+state.Disabled.Why, maxText))
		return 0, r.writeUnder(ctx, p.state.unchangedCondition(), failed, p.state.changedTo(&state))
	}
	r.log.Info("the action is enabled again: its configuration or its plugin is another one")
	state.Disabled, r.crashed = nil, nil
	return 0, r.writeUnder(ctx, p.state.unchangedCondition(), p.state.changedTo(&state))
}

// identityOf names the configuration and the binary.
func (r *runner) identityOf() string {
	return digestOf([]byte(r.set.Digest + r.Plugins.Identity(&r.set)))
}

// openPlugin starts the plugin unless it runs. The error is one of the plugin or of the
// configuration.
func (r *runner) openPlugin(ctx context.Context) error {
	if r.plugin != nil && !r.plugin.Gone() && !r.plugin.Stale() {
		return nil
	}
	r.closePlugin()
	if r.set.Lacks != "" {
		return errors.New(r.set.Lacks)
	}
	bounded, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	plugin, err := r.Plugins.Open(bounded, &r.set)
	switch {
	case errors.Is(err, host.ErrCrash):
		return errors.Join(err, r.countCrash(ctx, err))
	case err != nil:
		return err
	}
	schedule, err := r.set.scheduleOf(plugin.Description())
	if err != nil {
		_ = plugin.Close() // the error that counts is the one before
		return err
	}
	r.plugin, r.about, r.schedule = plugin, plugin.Description(), schedule
	return nil
}

// requestedRun is the run that was ordered and is next; nil: there is none.
func requestedRun(state *State) *Run {
	if state.Current != 0 || len(state.Requests) == 0 || state.Requests[0].Run != 0 {
		return nil
	}
	o := &state.Requests[0]
	return &Run{Why: WhyOrder, By: o.By, Ordered: o.At, Arguments: o.Arguments}
}

// noteTrouble notes why a run cannot be planned or an action does not go on, for which run
// is nil, and waits before the next try. A run that was ordered is in the history then
// and is not tried again: whoever ordered it looks. Of those that are tried again, the
// history has the first.
func (r *runner) noteTrouble(ctx context.Context, p *picture, run *Run, problem error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	r.failed++
	wait := backoffAfter(r.failed)
	r.later = r.Now().Add(wait)
	state := *p.state.value
	why, at := cutText(problem.Error(), maxText), unixMicros(r.Now())
	known, ordered := state.Problem, run != nil && run.Why == WhyOrder
	var docs []store.Document
	switch {
	case ordered:
		state.Requests = state.Requests[1:]
		docs = append(docs, r.unplannedRun(&state, p, run, why))
		why = cutText(fmt.Sprintf("run %d, which %s ordered at %s, cannot be planned: %s", state.Next-1, run.By, Instant(run.Ordered).UTC().Format(time.RFC3339), why), maxText)
	case known != nil && known.Why == why:
		return min(wait, look), nil
	case run != nil && known == nil:
		docs = append(docs, r.unplannedRun(&state, p, run, why))
	}
	r.log.Warn("an action cannot be planned", "error", problem)
	state.Problem = &Mark{At: at, Why: why}
	if known != nil {
		state.Problem.At = known.At
	}
	return min(wait, look), r.writeUnder(ctx, p.state.unchangedCondition(), append(docs, p.state.changedTo(&state))...)
}

// unplannedRun is the next run, which could not be planned.
func (r *runner) unplannedRun(state *State, p *picture, run *Run, why string) store.Document {
	now := unixMicros(r.Now())
	out := Run{
		version: version{Format}, Number: state.Next, Why: run.Why, By: run.By, Ordered: run.Ordered, Arguments: run.Arguments,
		RunOn: r.set.RunOn, Planned: now, Index: p.index, Ended: now, Failure: why,
	}
	if r.about != nil {
		out.Class, out.Version = uint8(r.about.Class), r.about.Version
	}
	state.Next++
	return newDocument(runSpace, r.set.Name.runKey(out.Number), encodeDocument(&out))
}

// backoffAfter is how long to wait after the nth failure: any time up to a bound that
// doubles.
func backoffAfter(n int) time.Duration {
	bound := maxBackoff
	if n < 16 {
		bound = min(minBackoff<<(n-1), maxBackoff)
	}
	return bound/10 + rand.N(bound*9/10)
}

// countCrash counts that the plugin crashed or hung; too often, and the action is
// disabled.
func (r *runner) countCrash(ctx context.Context, why error) error {
	r.closePlugin()
	now := r.Now()
	r.crashed = append(r.crashed, now)
	for len(r.crashed) > 0 && now.Sub(r.crashed[0]) > crashTime {
		r.crashed = r.crashed[1:]
	}
	if len(r.crashed) < crashes {
		return nil
	}
	r.crashed = nil
	p, err := r.readPicture()
	if err != nil || p.state.value == nil {
		return err
	}
	state := *p.state.value
	state.Disabled = &Mark{At: unixMicros(now), Of: r.identityOf(), Why: fmt.Sprintf("its plugin crashed or hung %d times in %s; the last time: %s", crashes, crashTime, cutText(why.Error(), maxText))}
	r.log.Error("an action is disabled", "reason", state.Disabled.Why)
	return r.writeUnder(ctx, p.state.unchangedCondition(), p.state.changedTo(&state))
}

// considerRun plans a run when one is due.
func (r *runner) considerRun(ctx context.Context, p *picture) (time.Duration, error) {
	state, now := p.state.value, r.Now()
	if len(state.Requests) > 0 {
		if state.Requests[0].Run != 0 {
			return 0, r.reopenEffect(ctx, p)
		}
		return r.planRun(ctx, p, *requestedRun(state))
	}
	if now.Before(r.later) {
		return min(look, r.later.Sub(now)), nil
	}
	due := r.dueTime(state, p.seq)
	if due.IsZero() || now.Before(due) {
		if r.plugin != nil && (due.IsZero() || due.Sub(now) > idle) {
			r.closePlugin()
		}
		if due.IsZero() {
			return look, nil
		}
		return min(look, due.Sub(now)), nil
	}
	why := WhySchedule
	if r.schedule.OnChange() {
		why = WhyChange
	}
	return r.planRun(ctx, p, Run{Why: why})
}

// dueTime is when the next run is due; zero: no one knows. A last run in the future, by
// a clock that was wrong, is as one of now.
func (r *runner) dueTime(state *State, seq uint64) time.Time {
	if r.schedule.OnChange() && state.Last != 0 && seq <= state.Seq {
		return time.Time{}
	}
	last := Instant(state.Last)
	if now := r.Now(); last.After(now) {
		last = now
	}
	return r.schedule.Next(last, Instant(state.Began))
}

// planRun makes a plan and writes it down.
func (r *runner) planRun(ctx context.Context, p *picture, run Run) (time.Duration, error) {
	made, err := r.makePlan(ctx, p, &run)
	if err == nil {
		err = r.keepPlan(ctx, p, &run, made)
		if err == nil {
			r.failed, r.later = 0, time.Time{}
			r.log.Info("a run is planned", "run", run.Number, "why", run.Why, "effects", run.Effects, "partial", run.Partial)
		}
		return 0, err
	}
	return r.noteTrouble(ctx, p, &run, err)
}

// makePlan has the plugin make a plan.
func (r *runner) makePlan(ctx context.Context, p *picture, run *Run) (*sdk.Plan, error) {
	if err := r.openPlugin(ctx); err != nil {
		return nil, err
	}
	state := p.state.value
	kept, err := store.With(r.Views, func(view *store.View) ([]byte, error) { return readState(view, r.set.Name, state.Kept) })
	if err != nil {
		return nil, err
	}
	now := r.Now().UTC().Truncate(time.Microsecond)
	*run = Run{
		version: version{Format}, Number: state.Next, Why: run.Why, By: run.By, Ordered: run.Ordered, Arguments: run.Arguments,
		Class: uint8(r.about.Class), Version: r.about.Version, RunOn: r.set.RunOn, Planned: unixMicros(now), Index: p.index,
	}
	bounded, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	made, err := r.plugin.Plan(bounded, sdk.PlanStart{Now: now, Since: Instant(state.Since), State: kept, Arguments: run.Arguments, Index: p.index})
	if err == nil {
		if err := checkPlan(made); err != nil {
			return nil, fmt.Errorf("the plugin's plan cannot be kept: %w", err)
		}
		return made, nil
	}
	if late := host.Late(bounded); ctx.Err() == nil && (r.plugin.Gone() || late) {
		if late {
			r.endHanging("Plan", planTime)
		}
		err = errors.Join(err, r.countCrash(ctx, err))
	}
	return nil, err
}

// readState returns the state that a run left; nil for none.
func readState(from Documents, name Name, run uint64) ([]byte, error) {
	if run == 0 {
		return nil, nil
	}
	raw, ok, err := from.Document(stateSpace, name.runKey(run))
	if err != nil || !ok {
		return nil, err
	}
	c, err := decodeDocument[content](raw)
	if err != nil {
		return nil, err
	}
	return c.Payload, nil
}
