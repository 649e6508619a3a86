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
	card    held[State]
	run     held[Run] // the current one
	effects []held[Effect]
	index   uint64
	seq     uint64
	cluster string
}

// work runs the action until the leadership ends, with ctx, or until it is not to
// go on, which does not break off what has begun.
func (r *runner) work(ctx, until context.Context) {
	defer r.close()
	for told := ""; until.Err() == nil; {
		wait, err := r.step(ctx)
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
		sleep(until, wait)
	}
}

func sleep(ctx context.Context, d time.Duration) {
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

func (r *runner) close() {
	if r.plugin != nil {
		_ = r.plugin.Close() // one that does not end by itself is killed
		r.plugin = nil
	}
}

// kill ends a plugin at once of which no one knows what it does: what is written
// down then is not outrun by it.
func (r *runner) kill() {
	if r.plugin != nil {
		_ = r.plugin.Kill() // one that has ended is as good
		r.plugin = nil
	}
}

// hang ends a plugin of which a call did not end in time, with its goroutines in the log.
func (r *runner) hang(call string, limit time.Duration) {
	if r.plugin != nil {
		r.plugin.Hang(&host.Stall{Call: call, Silent: limit})
		r.close()
	}
}

// look reads what is written down.
func (r *runner) look() (*picture, error) {
	return store.With(r.Views, func(view *store.View) (*picture, error) {
		p := &picture{seq: view.Seq()}
		p.index, _ = view.Applied()
		p.cluster, _ = view.Cluster()
		var err error
		if p.card, err = readCard(view, r.set.Name); err != nil || p.card.value == nil || p.card.value.Current == 0 {
			return p, err
		}
		if p.run, err = readRun(view, r.set.Name, p.card.value.Current); err != nil {
			return p, err
		}
		if p.run.value == nil {
			return p, fmt.Errorf("run %d of %s is not there", p.card.value.Current, r.set.Name)
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

// step does the next thing, if there is one, and says how long to wait until the
// one after it.
func (r *runner) step(ctx context.Context) (time.Duration, error) {
	p, err := r.look()
	if err != nil {
		return 0, err
	}
	card := p.card.value
	switch {
	case card == nil:
		return 0, r.write(ctx, p.card.was(), p.card.becomes(&State{version: version{Format}, Began: micros(r.Now()), Next: 1, Oldest: 1}))
	case card.Paused != nil:
		r.close()
		return look, nil
	case card.Disabled != nil:
		return r.disabled(ctx, p)
	}
	if now := r.Now(); r.about == nil && now.Before(r.later) {
		return min(look, r.later.Sub(now)), nil
	}
	if r.about == nil {
		if err := r.open(ctx); err != nil {
			return r.trouble(ctx, p, requestedRun(card), err)
		}
	}
	if card.Current != 0 {
		return r.advance(ctx, p)
	}
	return r.consider(ctx, p)
}

// write changes documents under a condition, and that of the cluster's life.
func (r *runner) write(ctx context.Context, was store.Document, sets ...store.Document) error {
	_, err := r.commit(ctx, []store.Document{was}, sets...)
	return err
}

func (r *runner) commit(ctx context.Context, was []store.Document, sets ...store.Document) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	return commit(ctx, r.Writer, &store.DocumentCommand{If: append(was, r.life), Sets: sets})
}

// disabled waits for another configuration or binary.
func (r *runner) disabled(ctx context.Context, p *picture) (time.Duration, error) {
	r.close()
	card := *p.card.value
	if card.Disabled.Of == r.identity() {
		return look, nil
	}
	r.log.Info("the action is enabled again: its configuration or its plugin is another one")
	card.Disabled, r.crashed = nil, nil
	return 0, r.write(ctx, p.card.was(), p.card.becomes(&card))
}

// identity names the configuration and the binary.
func (r *runner) identity() string { return digest([]byte(r.set.Digest + r.Plugins.Identity(&r.set))) }

// open starts the plugin unless it runs. The error is one of the plugin or of the
// configuration.
func (r *runner) open(ctx context.Context) error {
	if r.plugin != nil && !r.plugin.Gone() && !r.plugin.Stale() {
		return nil
	}
	r.close()
	if r.set.Lacks != "" {
		return errors.New(r.set.Lacks)
	}
	bounded, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	plugin, err := r.Plugins.Open(bounded, &r.set)
	switch {
	case errors.Is(err, host.ErrCrash):
		return errors.Join(err, r.crash(ctx, err))
	case err != nil:
		return err
	}
	schedule, err := r.set.schedule(plugin.Description())
	if err != nil {
		_ = plugin.Close() // the error that counts is the one before
		return err
	}
	r.plugin, r.about, r.schedule = plugin, plugin.Description(), schedule
	return nil
}

// requestedRun is the run that was ordered and is next; nil: there is none.
func requestedRun(card *State) *Run {
	if card.Current != 0 || len(card.Asked) == 0 || card.Asked[0].Run != 0 {
		return nil
	}
	o := &card.Asked[0]
	return &Run{Why: WhyOrder, By: o.By, Ordered: o.At, Arguments: o.Arguments}
}

// trouble notes why a run cannot be planned or an action does not go on, for which run
// is nil, and waits before the next try. A run that was ordered is in the history then
// and is not tried again: whoever ordered it looks. Of those that are tried again, the
// history has the first.
func (r *runner) trouble(ctx context.Context, p *picture, run *Run, problem error) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	r.failed++
	wait := backoff(r.failed)
	r.later = r.Now().Add(wait)
	card := *p.card.value
	why, at := cut(problem.Error(), maxText), micros(r.Now())
	known, ordered := card.Problem, run != nil && run.Why == WhyOrder
	var docs []store.Document
	switch {
	case ordered:
		card.Asked = card.Asked[1:]
		docs = append(docs, r.unplanned(&card, p, run, why))
		why = cut(fmt.Sprintf("run %d, which %s ordered at %s, cannot be planned: %s", card.Next-1, run.By, Instant(run.Ordered).UTC().Format(time.RFC3339), why), maxText)
	case known != nil && known.Why == why:
		return min(wait, look), nil
	case run != nil && known == nil:
		docs = append(docs, r.unplanned(&card, p, run, why))
	}
	r.log.Warn("an action cannot be planned", "error", problem)
	card.Problem = &Mark{At: at, Why: why}
	if known != nil {
		card.Problem.At = known.At
	}
	return min(wait, look), r.write(ctx, p.card.was(), append(docs, p.card.becomes(&card))...)
}

// unplanned is the next run, which could not be planned.
func (r *runner) unplanned(card *State, p *picture, run *Run, why string) store.Document {
	now := micros(r.Now())
	out := Run{
		version: version{Format}, Number: card.Next, Why: run.Why, By: run.By, Ordered: run.Ordered, Arguments: run.Arguments,
		RunOn: r.set.RunOn, Planned: now, Index: p.index, Ended: now, Failure: why,
	}
	if r.about != nil {
		out.Class, out.Version = uint8(r.about.Class), r.about.Version
	}
	card.Next++
	return document(runSpace, r.set.Name.runKey(out.Number), encode(&out))
}

// backoff is how long to wait after the nth failure: any time up to a bound that
// doubles.
func backoff(n int) time.Duration {
	bound := maxBackoff
	if n < 16 {
		bound = min(minBackoff<<(n-1), maxBackoff)
	}
	return bound/10 + rand.N(bound*9/10)
}

// crash counts that the plugin crashed or hung; too often, and the action is
// disabled.
func (r *runner) crash(ctx context.Context, why error) error {
	r.close()
	now := r.Now()
	r.crashed = append(r.crashed, now)
	for len(r.crashed) > 0 && now.Sub(r.crashed[0]) > crashTime {
		r.crashed = r.crashed[1:]
	}
	if len(r.crashed) < crashes {
		return nil
	}
	r.crashed = nil
	p, err := r.look()
	if err != nil || p.card.value == nil {
		return err
	}
	card := *p.card.value
	card.Disabled = &Mark{At: micros(now), Of: r.identity(), Why: fmt.Sprintf("its plugin crashed or hung %d times in %s; the last time: %s", crashes, crashTime, cut(why.Error(), maxText))}
	r.log.Error("an action is disabled", "reason", card.Disabled.Why)
	return r.write(ctx, p.card.was(), p.card.becomes(&card))
}

// consider plans a run when one is due.
func (r *runner) consider(ctx context.Context, p *picture) (time.Duration, error) {
	card, now := p.card.value, r.Now()
	if len(card.Asked) > 0 {
		if card.Asked[0].Run != 0 {
			return 0, r.reopen(ctx, p)
		}
		return r.plan(ctx, p, *requestedRun(card))
	}
	if now.Before(r.later) {
		return min(look, r.later.Sub(now)), nil
	}
	due := r.due(card, p.seq)
	if due.IsZero() || now.Before(due) {
		if r.plugin != nil && (due.IsZero() || due.Sub(now) > idle) {
			r.close()
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
	return r.plan(ctx, p, Run{Why: why})
}

// due is when the next run is due; zero: no one knows. A last run in the future, by
// a clock that was wrong, is as one of now.
func (r *runner) due(card *State, seq uint64) time.Time {
	if r.schedule.OnChange() && card.Last != 0 && seq <= card.Seq {
		return time.Time{}
	}
	last := Instant(card.Last)
	if now := r.Now(); last.After(now) {
		last = now
	}
	return r.schedule.Next(last, Instant(card.Began))
}

// plan makes a plan and writes it down.
func (r *runner) plan(ctx context.Context, p *picture, run Run) (time.Duration, error) {
	made, err := r.make(ctx, p, &run)
	if err == nil {
		err = r.keep(ctx, p, &run, made)
		if err == nil {
			r.failed, r.later = 0, time.Time{}
			r.log.Info("a run is planned", "run", run.Number, "why", run.Why, "effects", run.Effects, "partial", run.Partial)
		}
		return 0, err
	}
	return r.trouble(ctx, p, &run, err)
}

// make has the plugin make a plan.
func (r *runner) make(ctx context.Context, p *picture, run *Run) (*sdk.Plan, error) {
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	card := p.card.value
	state, err := store.With(r.Views, func(view *store.View) ([]byte, error) { return readState(view, r.set.Name, card.Kept) })
	if err != nil {
		return nil, err
	}
	now := r.Now().UTC().Truncate(time.Microsecond)
	*run = Run{
		version: version{Format}, Number: card.Next, Why: run.Why, By: run.By, Ordered: run.Ordered, Arguments: run.Arguments,
		Class: uint8(r.about.Class), Version: r.about.Version, RunOn: r.set.RunOn, Planned: micros(now), Index: p.index,
	}
	bounded, cancel := context.WithTimeout(ctx, planTime)
	defer cancel()
	made, err := r.plugin.Plan(bounded, sdk.PlanStart{Now: now, Since: Instant(card.Since), State: state, Arguments: run.Arguments, Index: p.index})
	if err == nil {
		if err := check(made); err != nil {
			return nil, fmt.Errorf("the plugin's plan cannot be kept: %w", err)
		}
		return made, nil
	}
	if late := host.Late(bounded); ctx.Err() == nil && (r.plugin.Gone() || late) {
		if late {
			r.hang("Plan", planTime)
		}
		err = errors.Join(err, r.crash(ctx, err))
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
	c, err := decode[content](raw)
	if err != nil {
		return nil, err
	}
	return c.Payload, nil
}
