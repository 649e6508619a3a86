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

// advance does the next thing of the run that is under way.
func (r *runner) advance(ctx context.Context, p *picture) (time.Duration, error) {
	now, next, soonest := r.Now(), -1, time.Time{}
	for i := range p.effects {
		e := p.effects[i].value
		switch at := Instant(e.NotBefore); {
		case e.State == Dispatched:
			return r.doubt(ctx, p, i)
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
		return r.dispatch(ctx, p, next)
	case soonest.IsZero():
		return 0, r.finish(ctx, p)
	case r.supersedes(p):
		return 0, r.supersede(ctx, p)
	}
	return min(look, soonest.Sub(now)), nil
}

// supersedes reports whether a new plan takes the place of what is left of the run:
// it has been tried, it may be left undone, and a new plan is due.
func (r *runner) supersedes(p *picture) bool {
	if sdk.EffectClass(p.run.value.Class) == sdk.ClassAtMostOnce {
		return false
	}
	for i := range p.effects {
		if e := p.effects[i].value; e.State == Planned && e.Tries == 0 {
			return false
		}
	}
	due := r.due(p.card.value, p.seq)
	return len(p.card.value.Asked) > 0 || !due.IsZero() && !r.Now().Before(due)
}

func (r *runner) supersede(ctx context.Context, p *picture) error {
	for i := range p.effects {
		if p.effects[i].value.State != Planned {
			continue
		}
		e := *p.effects[i].value
		e.State = Superseded
		if err := r.write(ctx, p.effects[i].was(), p.effects[i].becomes(&e)); err != nil {
			return err
		}
	}
	return nil
}

// dispatch writes down that an effect begins, makes sure that this node still
// leads, and has the plugin do it.
func (r *runner) dispatch(ctx context.Context, p *picture, i int) (time.Duration, error) {
	if err := r.open(ctx); err != nil {
		return r.trouble(ctx, p, nil, err)
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
		e.First = micros(r.Now())
	}
	e.Attempts = append(slices.Clone(e.Attempts[max(0, len(e.Attempts)-maxAttempts+1):]), Attempt{Number: e.Tries, Node: r.Node, Term: r.term, Begun: micros(r.Now())})
	begun := p.effects[i]
	begun.value, begun.raw = &e, encode(&e)
	r.unbegun = begun.raw // it may be written though no one says so
	fence, err := r.commit(ctx, []store.Document{p.effects[i].was(), p.card.was()}, begun.was())
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
	result, crash := r.execute(ctx, attempt)
	if err := r.end(ctx, p, begun, fence, result); err != nil {
		return 0, err
	}
	if crash != nil {
		return 0, r.crash(context.WithoutCancel(ctx), crash)
	}
	return 0, nil
}

// execute has the plugin do an effect. The second result is how the plugin crashed
// or hung; nil: it did not.
func (r *runner) execute(ctx context.Context, a sdk.Attempt) (sdk.Result, error) {
	ctx, cancel := lasting(ctx, deadline(r.about))
	defer cancel()
	result, err := r.plugin.Execute(ctx, a)
	if err == nil {
		return result, nil
	}
	result = sdk.Result{Outcome: sdk.Unknown, Message: cut(err.Error(), maxText)}
	switch {
	case errors.Is(context.Cause(ctx), errOver):
		r.kill()
		result.Message = "this node leads no longer; " + result.Message
		return result, nil //nolint:nilerr // it is in the result
	case ctx.Err() != nil || host.Late(ctx):
		r.hang("Execute", deadline(r.about))
		err = fmt.Errorf("it did not end within %s: %w", deadline(r.about), err)
	case !r.plugin.Gone():
		return result, nil //nolint:nilerr // it is in the result
	}
	return result, err
}

// errOver is why an effect is broken off after the leadership has ended.
var errOver = errors.New("the leadership has ended")

// lasting is a context of a call, which lasts a little longer than the leadership,
// so that what has begun can be ended.
func lasting(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
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

func deadline(d *Description) time.Duration {
	if d.Deadline <= 0 {
		return time.Minute
	}
	return min(d.Deadline, maxDeadline)
}

// end writes down how an attempt ended.
func (r *runner) end(ctx context.Context, p *picture, begun held[Effect], fence uint64, result sdk.Result) error {
	e := *begun.value
	e.Attempts = slices.Clone(e.Attempts)
	a, now := e.last(), r.Now()
	a.Fence, a.Ended, a.Message, a.Reference = fence, micros(now), cut(result.Message, maxText), cut(result.Reference, maxNote)
	r.settle(&e, p.run.value, result, now)
	r.metrics.ended(r.set.Name, a.Outcome)
	if e.State != Done {
		r.log.Warn("an effect is not done", "run", p.run.value.Number, "effect", e.Name, "outcome", a.Outcome, "state", e.State, "message", a.Message)
	}
	for {
		err := r.write(context.WithoutCancel(ctx), begun.was(), begun.becomes(&e))
		if err == nil || errors.Is(err, ErrChanged) || ctx.Err() != nil {
			return err
		}
		sleep(ctx, look) // no one else knows how it ended
	}
}

// settle decides what follows from an outcome.
func (r *runner) settle(e *Effect, run *Run, result sdk.Result, now time.Time) {
	a := e.last()
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
	e.NotBefore = micros(now.Add(max(backoff(e.Tries), min(result.RetryAfter, giveUp))))
}

// doubt settles an effect that was begun by someone who has not said how it ended.
func (r *runner) doubt(ctx context.Context, p *picture, i int) (time.Duration, error) {
	run, now := p.run.value, r.Now()
	e := *p.effects[i].value
	if bytes.Equal(r.unbegun, p.effects[i].raw) {
		e.State, e.Tries, e.Attempts = Planned, e.Tries-1, e.Attempts[:len(e.Attempts)-1]
		return 0, r.write(ctx, p.effects[i].was(), p.effects[i].becomes(&e))
	}
	if now.Before(r.quiet) {
		return min(look, r.quiet.Sub(now)), nil
	}
	e.Attempts = slices.Clone(e.Attempts)
	a := e.last()
	if a.Ended == 0 {
		a.Ended, a.Outcome, a.Message = micros(now), Unknown, fmt.Sprintf("%s, where it was begun, has not said how it ended", a.Node)
	}
	e.State, e.NotBefore = Planned, 0
	if sdk.EffectClass(run.Class) == sdk.ClassAtMostOnce {
		e.State = Unknown
	}
	if r.about.Probes {
		if err := r.probe(ctx, p, i, &e); err != nil {
			return r.trouble(ctx, p, nil, err)
		}
	}
	r.log.Warn("an effect was in doubt", "run", run.Number, "effect", e.Name, "begun_on", a.Node, "state", e.State)
	return 0, r.write(ctx, p.effects[i].was(), p.effects[i].becomes(&e))
}

// probe asks the plugin whether an effect has happened. The error is a plugin that
// cannot be asked.
func (r *runner) probe(ctx context.Context, p *picture, i int, e *Effect) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	kept, err := store.With(r.Views, func(view *store.View) (*content, error) {
		return readContent(view, r.set.Name, p.run.value.Number, i, e)
	})
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, deadline(r.about))
	defer cancel()
	result, err := r.plugin.Probe(bounded, sdk.Attempt{
		Effect: sdk.Effect{Name: e.Name, Summary: e.Summary, Payload: kept.Payload, Show: kept.Show}, Fence: p.index, Number: e.Tries, Key: e.Key,
	})
	a := e.last()
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil && (r.plugin.Gone() || host.Late(bounded)):
		if host.Late(bounded) {
			r.hang("Probe", deadline(r.about))
		}
		return errors.Join(err, r.crash(ctx, err))
	case err != nil:
		a.Message += "; nor is it known to the plugin: " + cut(err.Error(), maxText)
	case result.Outcome == sdk.Done:
		e.State, a.Outcome, a.Reference = Done, Done, cut(result.Reference, maxNote)
		a.Message = "it has happened, as the plugin found: " + cut(result.Message, maxText)
	case result.Outcome == sdk.Rejected:
		e.State, a.Outcome = Rejected, Rejected
		a.Message = "it is not tried again, as the plugin has it: " + cut(result.Message, maxText)
	case result.Outcome == sdk.Retry && e.State == Unknown && (a.Term != r.term || a.Node != r.Node):
		a.Message += "; it had not happened when the plugin looked, but who began it may only have been stopped: " + cut(result.Message, maxText)
	case result.Outcome == sdk.Retry:
		e.State, a.Outcome = Planned, "retry"
		a.Message = "it has not happened, as the plugin found: " + cut(result.Message, maxText)
	default:
		a.Message += "; nor is it known to the plugin: " + cut(result.Message, maxText)
	}
	return nil
}

// finish ends the run: nothing of it is left to be done by itself.
func (r *runner) finish(ctx context.Context, p *picture) error {
	run, card := *p.run.value, *p.card.value
	run.Counts = Counts{}
	for i := range p.effects {
		run.Counts.add(p.effects[i].value.State)
	}
	run.Ended = micros(r.Now())
	card.Current, card.Problem = 0, nil
	card.doubt(&run)
	var docs []store.Document
	if run.Counts.well() {
		docs = card.take(r.set.Name, &run)
		card.Well = max(card.Well, run.Planned)
	}
	docs = append(docs, p.run.becomes(&run), p.card.becomes(&card))
	if _, err := r.commit(ctx, []store.Document{p.card.was(), p.run.was()}, docs...); err != nil {
		return err
	}
	r.metrics.finished(r.set.Name, &run)
	r.log.Info("a run has ended", "run", run.Number, "done", run.Counts.Done, "rejected", run.Counts.Rejected, "unknown", run.Counts.Unknown)
	return r.prune(ctx)
}

func (c *Counts) add(state string) {
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

// well reports whether nothing is left undone but what a person wants so.
func (c *Counts) well() bool { return c.Rejected+c.Unknown+c.Superseded == 0 }

// reopen takes up an effect of an old run again, because a person wants it.
func (r *runner) reopen(ctx context.Context, p *picture) error {
	card := *p.card.value
	order := card.Asked[0]
	card.Asked = card.Asked[1:]
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
	if found.effect.value == nil || found.run.value == nil || !retriable(found.effect.value.State) {
		return r.write(ctx, p.card.was(), p.card.becomes(&card)) // it was settled meanwhile
	}
	run, e := *found.run.value, *found.effect.value
	run.Ended, card.Current = 0, run.Number
	e.State, e.By, e.First, e.NotBefore = Planned, order.By, 0, 0
	_, err = r.commit(ctx, []store.Document{p.card.was(), found.run.was(), found.effect.was()},
		found.run.becomes(&run), found.effect.becomes(&e), p.card.becomes(&card))
	return err
}

// retriable reports whether a person can have an effect tried again.
func retriable(state string) bool {
	return state == Unknown || state == Rejected || state == Skipped || state == Superseded
}

// keep is how long a run is kept. What was once set is of little interest when other
// values have been for weeks.
func (r *Run) keep() time.Duration {
	if sdk.EffectClass(r.Class) == sdk.ClassSet {
		return keepSet
	}
	return KeepFor
}

// prune removes runs that are too old, with all that belongs to them.
func (r *runner) prune(ctx context.Context) error {
	for range 8 { // a few with each run that ends
		p, err := r.look()
		if err != nil {
			return err
		}
		card := *p.card.value
		if card.Next-card.Oldest <= KeepLeast {
			return nil
		}
		name, old := r.set.Name, card.Oldest
		keys, err := store.With(r.Views, func(view *store.View) ([]store.Document, error) {
			return r.outdated(view, name, old, card.Next-old > keepMost)
		})
		if err != nil || keys == nil {
			return err
		}
		if old != card.Kept {
			keys = append(keys, document(stateSpace, name.runKey(old), nil))
		}
		card.Oldest++
		card.Doubtful = slices.DeleteFunc(slices.Clone(card.Doubtful), func(n uint64) bool { return n == old })
		for len(keys) > 0 {
			n := min(len(keys), 1000)
			if err := r.write(ctx, p.card.was(), keys[:n]...); err != nil {
				return err
			}
			keys = keys[n:]
		}
		if err := r.write(ctx, p.card.was(), p.card.becomes(&card)); err != nil {
			return err
		}
	}
	return nil
}

// outdated are the deletions of a run; nil: it is not old enough, and there are not
// too many.
func (r *runner) outdated(view *store.View, name Name, number uint64, many bool) ([]store.Document, error) {
	run, err := readRun(view, name, number)
	if err != nil || run.value != nil && !many && r.Now().Sub(Instant(run.value.Planned)) < run.value.keep() {
		return nil, err
	}
	keys := []store.Document{document(runSpace, name.runKey(number), nil)}
	for _, space := range []string{effectSpace, payloadSpace} {
		err := view.Documents(space, name.runKey(number)+"/", func(d store.Document) error {
			keys = append(keys, document(space, d.Key, nil))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}
