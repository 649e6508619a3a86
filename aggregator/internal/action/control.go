package action

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// ErrRefused is wrapped by orders that make no sense now.
var ErrRefused = errors.New("it cannot be done")

// Status is an action as it stands.
type Status struct {
	Name       Name
	Configured bool
	Schedule   string // as it is written in the configuration; "": the plugin's
	Zone       string // of the schedule; "": UTC
	RunOn      string // the agent on which its programs run; "": they run on the leader
	// Next is when the next run is due by the schedule, in microseconds; 0: no one can
	// say it, or it depends on changes.
	Next    int64
	Stored  State
	Current *Run // nil: none is under way
	Last    *Run // the newest one that was planned; nil: there was none
}

// State is how the action is doing, in a word.
func (s *Status) State() string {
	switch c := &s.Stored; {
	case !s.Configured:
		return "not configured"
	case c.Paused != nil:
		return "paused"
	case c.Disabled != nil:
		return "disabled"
	case c.Current != 0:
		return "running"
	case c.Problem != nil:
		return "failing"
	case len(c.Doubtful) > 0:
		return "unknown"
	case s.Last != nil && s.Last.Counts.Rejected > 0:
		return "failing"
	case s.Last != nil && s.Last.Partial:
		return "partial"
	}
	return "healthy"
}

// retriedOften is how many attempts in vain tell an effect whose receiver is gone from an effect
// that had to wait for a moment.
const retriedOften = 3

// Retried are the effects of the run under way that were tried [retriedOften] times and wait to be
// tried again; none where no run is under way.
func (m *Manager) Retried(from Documents, s *Status) (list []Effect, err error) {
	if s.Current == nil {
		return nil, nil
	}
	for i := range s.Current.Effects {
		e, err := readEffect(from, s.Name, s.Current.Number, i)
		if err != nil {
			return nil, err
		}
		if e.value != nil && e.value.Tries >= retriedOften && e.value.NotBefore > 0 && e.value.lastAttempt() != nil {
			list = append(list, *e.value)
		}
	}
	return list, nil
}

// Answered is what was said of the last attempt; "" without one.
func (e *Effect) Answered() string {
	if a := e.lastAttempt(); a != nil {
		return a.Message
	}
	return ""
}

// List returns the actions that are configured or that something is kept of, by
// name.
func (m *Manager) List(from Documents) ([]Status, error) {
	settings, _ := m.configuredSettings()
	var list []Status
	seen := map[Name]bool{}
	for i := range settings {
		s, err := readStatus(from, settings[i].Name)
		if err != nil {
			return nil, err
		}
		s.Configured, s.Schedule, s.Zone, s.RunOn, seen[s.Name] = true, settings[i].Schedule, settings[i].Zone, settings[i].RunOn, true
		s.Next = nextRun(&settings[i], &s.Stored)
		list = append(list, *s)
	}
	var others []Name
	err := from.Documents(actionSpace, "", func(d store.Document) error {
		name, err := ParseName(d.Key)
		if err == nil && !seen[name] {
			others = append(others, name)
		}
		return err
	})
	for _, name := range others {
		s, e := readStatus(from, name)
		if e != nil {
			return nil, e
		}
		list = append(list, *s)
	}
	return list, err
}

// nextRun is when the next run is due by the schedule that is written in the
// configuration.
func nextRun(s *Setting, state *State) int64 {
	if s.Schedule == "" || state.Began == 0 || state.Paused != nil || state.Disabled != nil {
		return 0
	}
	schedule, err := s.scheduleOf(&Description{})
	if err != nil || schedule.OnChange() {
		return 0
	}
	due := schedule.Next(Instant(state.Last), Instant(state.Began))
	if due.IsZero() {
		return 0
	}
	return unixMicros(due)
}

func readStatus(from Documents, name Name) (*Status, error) {
	h, err := readActionState(from, name)
	s := &Status{Name: name}
	if err != nil || h.value == nil {
		return s, err
	}
	s.Stored = *h.value
	for n := s.Stored.Next - 1; n >= s.Stored.Oldest && n > 0 && s.Stored.Next-n <= KeepLeast; n-- {
		last, err := readRun(from, name, n)
		if err != nil {
			return nil, err
		}
		if last.value == nil || last.value.Failure == "" {
			s.Last = last.value
			break
		}
	}
	if s.Stored.Current != 0 {
		now, err := readRun(from, name, s.Stored.Current)
		if err != nil {
			return nil, err
		}
		s.Current = now.value
	}
	return s, nil
}

// History calls yield with the runs of an action, the newest first.
func (m *Manager) History(from Documents, name Name, yield func(*Run) bool) error {
	h, err := readActionState(from, name)
	if err != nil {
		return err
	}
	if h.value == nil {
		if _, err := m.settingOf(name); err != nil {
			return err
		}
		return nil
	}
	for n := h.value.Next - 1; n >= h.value.Oldest && n > 0; n-- {
		run, err := readRun(from, name, n)
		if err != nil {
			return err
		}
		if run.value != nil && !yield(run.value) {
			return nil
		}
	}
	return nil
}

// Show returns a run with its effects.
func (m *Manager) Show(from Documents, name Name, number uint64) (*Run, []Effect, error) {
	run, err := readRun(from, name, number)
	if err == nil && run.value == nil {
		err = fmt.Errorf("%w: %s has no run %d", ErrNone, name, number)
	}
	if err != nil {
		return nil, nil, err
	}
	var effects []Effect
	for i := range run.value.Effects {
		e, err := readEffect(from, name, number, i)
		if err == nil && e.value == nil {
			err = fmt.Errorf("effect %d of run %d of %s is not there", i, number, name)
		}
		if err != nil {
			return nil, nil, err
		}
		effects = append(effects, *e.value)
	}
	return run.value, effects, nil
}

// Payload returns the bytes of an effect, and how they are shown to people.
func (m *Manager) Payload(from Documents, name Name, number uint64, effect int) (payload []byte, show string, err error) {
	e, err := readEffect(from, name, number, effect)
	if err == nil && e.value == nil {
		err = fmt.Errorf("%w: run %d of %s has no effect %d", ErrNone, number, name, effect)
	}
	if err != nil {
		return nil, "", err
	}
	c, err := readContent(from, name, number, effect, e.value)
	if err != nil {
		return nil, "", err
	}
	return c.Payload, c.Show, nil
}

// Kept returns the state that the next plan of an action begins with; nil: there is none.
func (m *Manager) Kept(from Documents, name Name) ([]byte, error) {
	h, err := readActionState(from, name)
	if err != nil || h.value == nil {
		return nil, err
	}
	return readState(from, name, h.value.Kept)
}

// changeState changes the state of an action. What change returns as an error is not
// done.
func (m *Manager) changeState(ctx context.Context, name Name, change func(*State) error) error {
	for {
		h, err := store.With(m.Views, func(view *store.View) (held[State], error) { return readActionState(view, name) })
		if err != nil {
			return err
		}
		state := State{version: version{Format}, Began: unixMicros(m.Now()), Next: 1, Oldest: 1}
		if h.value != nil {
			state = *h.value
		} else if _, err := m.settingOf(name); err != nil {
			return err
		}
		if err := change(&state); err != nil {
			return err
		}
		_, err = commitDocuments(ctx, m.Writer, &store.DocumentCommand{If: []store.Document{h.unchangedCondition()}, Sets: []store.Document{h.changedTo(&state)}})
		if !errors.Is(err, ErrChanged) {
			return err
		}
		sleepFor(ctx, 20*time.Millisecond) // this node may lag behind the one that leads
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// Pause keeps an action from beginning anything. What has begun goes to its end.
func (m *Manager) Pause(ctx context.Context, name Name, by, why string) error {
	return m.changeState(ctx, name, func(c *State) error {
		if c.Paused != nil && why == "" {
			return nil // who gave a reason is not overruled by who gives none
		}
		c.Paused = &Mark{By: by, At: unixMicros(m.Now()), Why: cutText(why, maxNote)}
		return nil
	})
}

// Resume lets a paused or disabled action go on.
func (m *Manager) Resume(ctx context.Context, name Name) error {
	return m.changeState(ctx, name, func(c *State) error {
		if c.Paused == nil && c.Disabled == nil {
			return fmt.Errorf("%w: %s is neither paused nor disabled", ErrRefused, name)
		}
		c.Paused, c.Disabled = nil, nil
		return nil
	})
}

// Run orders a run, which begins when what is under way has ended, and returns when it
// was ordered: the run in the history that has this in Ordered is the one, whether it
// could be planned or not.
func (m *Manager) Run(ctx context.Context, name Name, by string, arguments map[string]string) (ordered int64, err error) {
	if _, err := m.settingOf(name); err != nil {
		return 0, err
	}
	o := Order{By: by, Arguments: arguments}
	err = m.giveOrder(ctx, name, &o)
	return o.At, err
}

func (m *Manager) giveOrder(ctx context.Context, name Name, o *Order) error {
	size := 0
	for k, v := range o.Arguments {
		size += len(k) + len(v)
	}
	if size > maxText {
		return fmt.Errorf("%w: the arguments have %d bytes; at most %d are allowed", ErrRefused, size, maxText)
	}
	return m.changeState(ctx, name, func(c *State) error {
		switch {
		case c.Paused != nil:
			return fmt.Errorf("%w: %s is paused; resume it first", ErrRefused, name)
		case c.Disabled != nil:
			return fmt.Errorf("%w: %s is disabled (%s); resume it first", ErrRefused, name, c.Disabled.Why)
		case len(c.Requests) >= maxOrders:
			return fmt.Errorf("%w: %d orders wait already", ErrRefused, len(c.Requests))
		}
		o.At = unixMicros(m.Now())
		for _, other := range c.Requests {
			o.At = max(o.At, other.At+1) // which tells it from the others
		}
		c.Requests = append(c.Requests, *o)
		return nil
	})
}

// Retry orders another try at an effect that is unknown, rejected, skipped or
// superseded.
func (m *Manager) Retry(ctx context.Context, name Name, by string, run uint64, effect int) error {
	e, err := store.With(m.Views, func(view *store.View) (held[Effect], error) { return readEffect(view, name, run, effect) })
	switch {
	case err != nil:
		return err
	case e.value == nil:
		return fmt.Errorf("%w: run %d of %s has no effect %d", ErrNone, run, name, effect)
	case !isRetriable(e.value.State):
		return fmt.Errorf("%w: effect %d of run %d is %s", ErrRefused, effect, run, e.value.State)
	}
	return m.giveOrder(ctx, name, &Order{By: by, Run: run, Effect: effect})
}

// Skip settles an effect that waits, is unknown or was rejected: it is not done.
func (m *Manager) Skip(ctx context.Context, name Name, by string, run uint64, effect int) error {
	type all struct {
		state  held[State]
		run    held[Run]
		effect held[Effect]
	}
	h, err := store.With(m.Views, func(view *store.View) (h all, err error) {
		if h.state, err = readActionState(view, name); err != nil {
			return h, err
		}
		if h.run, err = readRun(view, name, run); err == nil {
			h.effect, err = readEffect(view, name, run, effect)
		}
		return h, err
	})
	switch {
	case err != nil:
		return err
	case h.state.value == nil || h.run.value == nil || h.effect.value == nil:
		return fmt.Errorf("%w: run %d of %s has no effect %d", ErrNone, run, name, effect)
	case h.effect.value.State == Done || h.effect.value.State == Dispatched || h.effect.value.State == Skipped:
		return fmt.Errorf("%w: effect %d of run %d is %s", ErrRefused, effect, run, h.effect.value.State)
	}
	state, r, e := *h.state.value, *h.run.value, *h.effect.value
	if r.Ended != 0 {
		r.Counts.moveToSkipped(e.State)
		state.noteDoubt(&r)
	} else {
		r.Counts.Skipped++ // which the end of the run notices, and counts again
	}
	e.State, e.By = Skipped, by
	_, err = commitDocuments(ctx, m.Writer, &store.DocumentCommand{
		If:   []store.Document{h.state.unchangedCondition(), h.run.unchangedCondition(), h.effect.unchangedCondition()},
		Sets: []store.Document{h.state.changedTo(&state), h.run.changedTo(&r), h.effect.changedTo(&e)},
	})
	return err
}

// moveToSkipped counts an effect as skipped that was in a state.
func (c *Counts) moveToSkipped(from string) {
	switch from {
	case Rejected:
		c.Rejected--
	case Unknown:
		c.Unknown--
	case Superseded:
		c.Superseded--
	}
	c.Skipped++
}
