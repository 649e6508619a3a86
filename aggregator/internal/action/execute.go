package action

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// advanceRun does the next thing of the run that is under way.
func (r *runner) advanceRun(ctx context.Context, p *picture) (time.Duration, error) {
	now, next, soonest := r.Now(), -1, time.Time{}
	for i := range p.effects {
		e := p.effects[i].value
		switch at := Instant(e.NotBefore); {
		case e.State == Dispatched:
			return r.settleDoubt(ctx, p, i)
		case e.State != Planned:
		case at.After(now):
			if soonest.IsZero() || at.Before(soonest) {
				soonest = at
			}
		case next < 0:
			next = i
		}
	}
	switch {
	case next >= 0:
		return r.dispatchEffect(ctx, p, next)
	case soonest.IsZero():
		return 0, r.finishRun(ctx, p)
	case r.isSuperseded(p):
		return 0, r.supersedeRun(ctx, p)
	}
	return min(look, soonest.Sub(now)), nil
}

// isSuperseded reports whether a new plan takes the place of what is left of the run:
// it has been tried, it may be left undone, and a new plan is due.
func (r *runner) isSuperseded(p *picture) bool {
	if sdk.EffectClass(p.run.value.Class) == sdk.ClassAtMostOnce {
		return false
	}
	for i := range p.effects {
		if e := p.effects[i].value; e.State == Planned && e.Tries == 0 {
			return false
		}
	}
	due := r.dueTime(p.state.value, p.seq)
	return len(p.state.value.Requests) > 0 || !due.IsZero() && !r.Now().Before(due)
}

func (r *runner) supersedeRun(ctx context.Context, p *picture) error {
	for i := range p.effects {
		if p.effects[i].value.State != Planned {
			continue
		}
		e := *p.effects[i].value
		e.State = Superseded
		if err := r.writeUnder(ctx, p.effects[i].unchangedCondition(), p.effects[i].changedTo(&e)); err != nil {
			return err
		}
	}
	return nil
}

// dispatchEffect writes down that an effect begins, makes sure that this node still
// leads, and has the plugin do it.
func (r *runner) dispatchEffect(ctx context.Context, p *picture, i int) (time.Duration, error) {
	if err := r.openPlugin(ctx); err != nil {
		return r.noteTrouble(ctx, p, nil, err)
	}
	name, run := r.set.Name, p.run.value
	kept, err := store.With(r.Views, func(view *store.View) (*content, error) {
		return readContent(view, name, run.Number, i, p.effects[i].value)
	})
	if err != nil {
		return 0, err
	}
	e := *p.effects[i].value
	e.State, e.Tries, e.NotBefore = Dispatched, e.Tries+1, 0
	if e.First == 0 {
		e.First = unixMicros(r.Now())
	}
	e.Attempts = append(slices.Clone(e.Attempts[max(0, len(e.Attempts)-maxAttempts+1):]), Attempt{Number: e.Tries, Node: r.Node, Term: r.term, Begun: unixMicros(r.Now())})
	begun := p.effects[i]
	begun.value, begun.raw = &e, encodeDocument(&e)
	r.unbegun = begun.raw // it may be written though no one says so
	fence, err := r.commitUnder(ctx, []store.Document{p.effects[i].unchangedCondition(), p.state.unchangedCondition()}, begun.unchangedCondition())
	if err != nil {
		return 0, err
	}
	if err := r.Leader.Verify(ctx, r.term); err != nil {
		return 0, fmt.Errorf("ask whether this node is still the leader: %w", err)
	}
	r.unbegun = nil
	attempt := sdk.Attempt{
		Effect: sdk.Effect{Name: e.Name, Summary: e.Summary, Payload: kept.Payload, Show: kept.Show},
		Fence:  fence, Number: e.Tries, Key: e.Key,
	}
	result, crash := r.executeEffect(ctx, attempt)
	if err := r.endAttempt(ctx, p, begun, fence, result); err != nil {
		return 0, err
	}
	if crash != nil {
		return 0, r.countCrash(context.WithoutCancel(ctx), crash)
	}
	return 0, nil
}

// executeEffect has the plugin do an effect. The second result is how the plugin crashed
// or hung; nil: it did not.
func (r *runner) executeEffect(ctx context.Context, a sdk.Attempt) (sdk.Result, error) {
	ctx, cancel := lastingContext(ctx, effectDeadline(r.about))
	defer cancel()
	result, err := r.plugin.Execute(ctx, a)
	if err == nil {
		return result, nil
	}
	result = sdk.Result{Outcome: sdk.Unknown, Message: cutText(err.Error(), maxText)}
	switch {
	case errors.Is(context.Cause(ctx), errOver):
		r.killPlugin()
		result.Message = "this node leads no longer; " + result.Message
		return result, nil //nolint:nilerr // it is in the result
	case ctx.Err() != nil || host.Late(ctx):
		r.endHanging("Execute", effectDeadline(r.about))
		err = fmt.Errorf("it did not end within %s: %w", effectDeadline(r.about), err)
	case !r.plugin.Gone():
		return result, nil //nolint:nilerr // it is in the result
	}
	return result, err
}

// errOver is why an effect is broken off after the leadership has ended.
var errOver = errors.New("the leadership has ended")

// lastingContext is a context of a call, which lasts a little longer than the leadership,
// so that what has begun can be ended.
func lastingContext(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	inner, over := context.WithCancelCause(bounded)
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-timer.C:
			over(errOver)
		case <-inner.Done():
		}
	})
	return inner, func() {
		stop()
		over(nil)
		cancel()
	}
}

func effectDeadline(d *Description) time.Duration {
	if d.Deadline <= 0 {
		return time.Minute
	}
	return min(d.Deadline, maxDeadline)
}

// endAttempt writes down how an attempt ended.
func (r *runner) endAttempt(ctx context.Context, p *picture, begun held[Effect], fence uint64, result sdk.Result) error {
	e := *begun.value
	e.Attempts = slices.Clone(e.Attempts)
	a, now := e.lastAttempt(), r.Now()
	a.Fence, a.Ended, a.Message, a.Reference = fence, unixMicros(now), cutText(result.Message, maxText), cutText(result.Reference, maxNote)
	r.settleOutcome(&e, p.run.value, result, now)
	r.metrics.countEnded(r.set.Name, a.Outcome)
	if e.State != Done {
		r.log.Warn("an effect is not done", "run", p.run.value.Number, "effect", e.Name, "outcome", a.Outcome, "state", e.State, "message", a.Message)
	}
	for {
		err := r.writeUnder(context.WithoutCancel(ctx), begun.unchangedCondition(), begun.changedTo(&e))
		if err == nil || errors.Is(err, ErrChanged) || ctx.Err() != nil {
			return err
		}
		sleepFor(ctx, look) // no one else knows how it ended
	}
}

// settleOutcome decides what follows from an outcome.
func (r *runner) settleOutcome(e *Effect, run *Run, result sdk.Result, now time.Time) {
	a := e.lastAttempt()
	switch result.Outcome {
	case sdk.Done:
		a.Outcome, e.State = Done, Done
		return
	case sdk.Rejected:
		a.Outcome, e.State = Rejected, Rejected
		return
	case sdk.Retry:
		a.Outcome = "retry"
	default:
		a.Outcome = Unknown
		if sdk.EffectClass(run.Class) == sdk.ClassAtMostOnce {
			if r.about.Probes {
				e.State = Dispatched // a look at the receiver comes first
				return
			}
			e.State = Unknown
			return
		}
	}
	if now.Sub(Instant(e.First)) > giveUp {
		e.State = Rejected
		a.Message = fmt.Sprintf("given up after %d attempts in %s: %s", e.Tries, giveUp, a.Message)
		return
	}
	e.State = Planned
	e.NotBefore = unixMicros(now.Add(max(backoffAfter(e.Tries), min(result.RetryAfter, giveUp))))
}

// settleDoubt settles an effect that was begun by someone who has not said how it ended.
func (r *runner) settleDoubt(ctx context.Context, p *picture, i int) (time.Duration, error) {
	run, now := p.run.value, r.Now()
	e := *p.effects[i].value
	if bytes.Equal(r.unbegun, p.effects[i].raw) {
		e.State, e.Tries, e.Attempts = Planned, e.Tries-1, e.Attempts[:len(e.Attempts)-1]
		return 0, r.writeUnder(ctx, p.effects[i].unchangedCondition(), p.effects[i].changedTo(&e))
	}
	if now.Before(r.quiet) {
		return min(look, r.quiet.Sub(now)), nil
	}
	e.Attempts = slices.Clone(e.Attempts)
	a := e.lastAttempt()
	if a.Ended == 0 {
		a.Ended, a.Outcome, a.Message = unixMicros(now), Unknown, fmt.Sprintf("%s, where it was begun, has not said how it ended", a.Node)
	}
	e.State, e.NotBefore = Planned, 0
	if sdk.EffectClass(run.Class) == sdk.ClassAtMostOnce {
		e.State = Unknown
	}
	if r.about.Probes {
		if err := r.probeEffect(ctx, p, i, &e); err != nil {
			return r.noteTrouble(ctx, p, nil, err)
		}
	}
	r.log.Warn("an effect was in doubt", "run", run.Number, "effect", e.Name, "begun_on", a.Node, "state", e.State)
	return 0, r.writeUnder(ctx, p.effects[i].unchangedCondition(), p.effects[i].changedTo(&e))
}

// probeEffect asks the plugin whether an effect has happened. The error is a plugin that
// cannot be asked.
func (r *runner) probeEffect(ctx context.Context, p *picture, i int, e *Effect) error {
	if err := r.openPlugin(ctx); err != nil {
		return err
	}
	kept, err := store.With(r.Views, func(view *store.View) (*content, error) {
		return readContent(view, r.set.Name, p.run.value.Number, i, e)
	})
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, effectDeadline(r.about))
	defer cancel()
	result, err := r.plugin.Probe(bounded, sdk.Attempt{
		Effect: sdk.Effect{Name: e.Name, Summary: e.Summary, Payload: kept.Payload, Show: kept.Show}, Fence: p.index, Number: e.Tries, Key: e.Key,
	})
	a := e.lastAttempt()
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil && (r.plugin.Gone() || host.Late(bounded)):
		if host.Late(bounded) {
			r.endHanging("Probe", effectDeadline(r.about))
		}
		return errors.Join(err, r.countCrash(ctx, err))
	case err != nil:
		a.Message += "; nor is it known to the plugin: " + cutText(err.Error(), maxText)
	case result.Outcome == sdk.Done:
		e.State, a.Outcome, a.Reference = Done, Done, cutText(result.Reference, maxNote)
		a.Message = "it has happened, as the plugin found: " + cutText(result.Message, maxText)
	case result.Outcome == sdk.Rejected:
		e.State, a.Outcome = Rejected, Rejected
		a.Message = "it is not tried again, as the plugin has it: " + cutText(result.Message, maxText)
	case result.Outcome == sdk.Retry && e.State == Unknown && (a.Term != r.term || a.Node != r.Node):
		a.Message += "; it had not happened when the plugin looked, but who began it may only have been stopped: " + cutText(result.Message, maxText)
	case result.Outcome == sdk.Retry:
		e.State, a.Outcome = Planned, "retry"
		a.Message = "it has not happened, as the plugin found: " + cutText(result.Message, maxText)
	default:
		a.Message += "; nor is it known to the plugin: " + cutText(result.Message, maxText)
	}
	return nil
}

// finishRun ends the run: nothing of it is left to be done by itself.
func (r *runner) finishRun(ctx context.Context, p *picture) error {
	run, state := *p.run.value, *p.state.value
	run.Counts = Counts{}
	for i := range p.effects {
		run.Counts.countState(p.effects[i].value.State)
	}
	run.Ended = unixMicros(r.Now())
	state.Current, state.Problem = 0, nil
	state.noteDoubt(&run)
	var docs []store.Document
	if run.Counts.allWell() {
		docs = state.takeRunState(r.set.Name, &run)
		state.LastSuccess = max(state.LastSuccess, run.Planned)
	}
	docs = append(docs, p.run.changedTo(&run), p.state.changedTo(&state))
	if _, err := r.commitUnder(ctx, []store.Document{p.state.unchangedCondition(), p.run.unchangedCondition()}, docs...); err != nil {
		return err
	}
	r.metrics.noteFinished(r.set.Name, &run)
	r.log.Info("a run has ended", "run", run.Number, "done", run.Counts.Done, "rejected", run.Counts.Rejected, "unknown", run.Counts.Unknown)
	return r.pruneRuns(ctx)
}

func (c *Counts) countState(state string) {
	switch state {
	case Done:
		c.Done++
	case Rejected:
		c.Rejected++
	case Unknown:
		c.Unknown++
	case Skipped:
		c.Skipped++
	case Superseded:
		c.Superseded++
	}
}

// allWell reports whether nothing is left undone but what a person wants so.
func (c *Counts) allWell() bool { return c.Rejected+c.Unknown+c.Superseded == 0 }

// reopenEffect takes up an effect of an old run again, because a person wants it.
func (r *runner) reopenEffect(ctx context.Context, p *picture) error {
	state := *p.state.value
	order := state.Requests[0]
	state.Requests = state.Requests[1:]
	type pair struct {
		run    held[Run]
		effect held[Effect]
	}
	found, err := store.With(r.Views, func(view *store.View) (f pair, err error) {
		if f.run, err = readRun(view, r.set.Name, order.Run); err == nil {
			f.effect, err = readEffect(view, r.set.Name, order.Run, order.Effect)
		}
		return f, err
	})
	if err != nil {
		return err
	}
	if found.effect.value == nil || found.run.value == nil || !isRetriable(found.effect.value.State) {
		return r.writeUnder(ctx, p.state.unchangedCondition(), p.state.changedTo(&state)) // it was settled meanwhile
	}
	run, e := *found.run.value, *found.effect.value
	run.Ended, state.Current = 0, run.Number
	e.State, e.By, e.First, e.NotBefore = Planned, order.By, 0, 0
	_, err = r.commitUnder(ctx, []store.Document{p.state.unchangedCondition(), found.run.unchangedCondition(), found.effect.unchangedCondition()},
		found.run.changedTo(&run), found.effect.changedTo(&e), p.state.changedTo(&state))
	return err
}

// isRetriable reports whether a person can have an effect tried again.
func isRetriable(state string) bool {
	return state == Unknown || state == Rejected || state == Skipped || state == Superseded
}
