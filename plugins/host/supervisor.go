package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"
)

// Plugin is what a Supervisor keeps running. *Process is one.
type Plugin interface {
	Ping(ctx context.Context) error
	Done() <-chan struct{}
	Err() error
	// Hang ends the plugin because it hangs, which why says and Err returns then.
	Hang(why error)
	io.Closer
}

// Options of a Supervisor. A zero duration is the default in brackets.
type Options[P Plugin] struct {
	// Launch starts the plugin and makes it ready, for example configures it.
	// It is called for every start, and never twice at the same time.
	Launch func(ctx context.Context) (P, error)

	// MinBackoff [1s] is the pause before the first restart. It doubles with
	// every start after which the plugin was not Healthy [1m] long, up to
	// MaxBackoff [1m]; each pause is shortened by chance, by up to a half.
	MinBackoff, MaxBackoff, Healthy time.Duration

	// PingEvery [15s] is how often the plugin is asked for a sign of life, and
	// PingTimeout [10s] how long it has to give one before it is killed.
	PingEvery, PingTimeout time.Duration

	// Logger gets the starts and the ends. Nil: they are not logged.
	Logger *slog.Logger
}

// State is what a Supervisor is doing.
type State string

// The states.
const (
	Starting State = "starting"
	Running  State = "running"
	Waiting  State = "waiting" // until the next start
	Stopped  State = "stopped"
)

// Status of a supervised plugin.
type Status struct {
	State    State
	Since    time.Time
	Starts   int       // successful ones
	Failures int       // starts that failed, crashes and hangs
	Hangs    int       // those of Failures that were hangs
	Err      error     // the last failure; nil when there was none
	Next     time.Time // of the next start, while Waiting
}

// ErrStopped says that the supervisor has ended.
var ErrStopped = errors.New("plugin supervisor stopped")

// Supervisor keeps a plugin running. What fails is started again, with backoff,
// from the binary that is there then.
type Supervisor[P Plugin] struct {
	options Options[P]
	restart chan struct{}

	mu      sync.Mutex
	status  Status
	current P
	changed chan struct{} // closed and replaced when status changes
}

// Supervise makes a supervisor. It does nothing until Run.
func Supervise[P Plugin](o Options[P]) *Supervisor[P] {
	defaults := []struct {
		field *time.Duration
		value time.Duration
	}{
		{&o.MinBackoff, time.Second}, {&o.MaxBackoff, time.Minute}, {&o.Healthy, time.Minute},
		{&o.PingEvery, 15 * time.Second}, {&o.PingTimeout, 10 * time.Second},
	}
	for _, d := range defaults {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Supervisor[P]{
		options: o, restart: make(chan struct{}, 1), changed: make(chan struct{}),
		status: Status{State: Starting},
	}
}

// Run keeps the plugin running until ctx ends, closes it and returns nil. Run
// may be called once.
func (s *Supervisor[P]) Run(ctx context.Context) error {
	defer s.setStatus(func(st *Status) { st.State = Stopped })
	backoff := s.options.MinBackoff
	for ctx.Err() == nil {
		began := time.Now()
		err := s.runOnce(ctx)
		if ctx.Err() != nil {
			break
		}
		stall, hung := errors.AsType[*Stall](err)
		healthy := time.Since(began)
		if hung {
			healthy -= stall.Silent
			s.setStatus(func(st *Status) { st.Hangs++ })
		}
		if healthy >= s.options.Healthy {
			backoff = s.options.MinBackoff
		}
		if err == nil { // a wanted restart
			continue
		}
		s.pauseBeforeStart(ctx, err, backoff)
		backoff = min(2*backoff, s.options.MaxBackoff)
	}
	return nil
}

// runOnce starts the plugin and watches it until it ends, which is an error, or
// until a restart is wanted, which is none.
func (s *Supervisor[P]) runOnce(ctx context.Context) error {
	s.setStatus(func(st *Status) { st.State = Starting })
	p, err := s.options.Launch(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	s.setStatus(func(st *Status) {
		s.current = p
		st.State = Running
		st.Starts++
	})
	defer s.setStatus(func(st *Status) { st.State = Starting }) // before Close, which may take its time
	s.options.Logger.Info("plugin started")
	return s.watchPlugin(ctx, p)
}

func (s *Supervisor[P]) watchPlugin(ctx context.Context, p P) error {
	ping := time.NewTicker(s.options.PingEvery)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.restart:
			s.options.Logger.Info("plugin is restarted")
			return nil
		case <-p.Done():
			return p.Err()
		case <-ping.C:
			if err := s.pingPlugin(ctx, p); err != nil {
				return err
			}
		}
	}
}

// pingPlugin asks for a sign of life. A plugin that ends meanwhile has ended, not hung.
func (s *Supervisor[P]) pingPlugin(ctx context.Context, p P) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.PingTimeout)
	defer cancel()
	err := p.Ping(ctx)
	switch {
	case err == nil || errors.Is(context.Cause(ctx), context.Canceled):
		return nil
	case p.Err() == nil:
		p.Hang(fmt.Errorf("%w: %w", &Stall{Call: "ping", Silent: s.options.PingTimeout}, err))
	}
	return p.Err()
}

// pauseBeforeStart waits before the next start. A wanted restart ends it.
func (s *Supervisor[P]) pauseBeforeStart(ctx context.Context, err error, backoff time.Duration) {
	wait := backoff/2 + rand.N(backoff/2+1)
	s.options.Logger.Warn("plugin failed", "error", err, "next_start_in", wait)
	s.setStatus(func(st *Status) {
		st.State, st.Err, st.Next = Waiting, err, time.Now().Add(wait)
		st.Failures++
	})
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-s.restart:
	case <-timer.C:
	}
}

// Restart closes the plugin and starts it again at once, also when it is waiting
// for its next start. It returns before that has happened.
func (s *Supervisor[P]) Restart() {
	select {
	case s.restart <- struct{}{}:
	default: // one is on its way
	}
}

// Status returns what the supervisor is doing.
func (s *Supervisor[P]) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Plugin waits until the plugin runs and returns it. The plugin may end at any
// time: on an error of a call, ask again. The error is ErrStopped, or that of
// ctx together with the last failure.
func (s *Supervisor[P]) Plugin(ctx context.Context) (P, error) {
	var none P
	for {
		s.mu.Lock()
		status, p, changed := s.status, s.current, s.changed
		s.mu.Unlock()
		switch status.State {
		case Running:
			select {
			case <-p.Done(): // which is about to be noticed
			default:
				return p, nil
			}
		case Stopped:
			return none, ErrStopped
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return none, errors.Join(ctx.Err(), status.Err)
		}
	}
}

// setStatus changes the status and wakes those that wait for it.
func (s *Supervisor[P]) setStatus(change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.status.State
	change(&s.status)
	if s.status.State != before {
		s.status.Since = time.Now()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}
