package run

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/plugins/host"
)

// source is a source that runs: its loop lives as long as the source is
// configured, its plugin until it or its configuration changes.
type source struct {
	loop *collect.Loop
	seat seat
	stop func() // ends the loop and the plugin and waits for them
}

// seat holds the plugin of the present configuration.
type seat struct {
	mu      sync.Mutex
	config  *config.Source
	path    string // of the plugin
	opening *opening
	current *host.Supervisor[*host.Session]
	stop    func()
}

// Plugin implements host.Sessions.
func (s *seat) Plugin(ctx context.Context) (*host.Session, error) {
	s.mu.Lock()
	current := s.current
	s.mu.Unlock()
	return current.Plugin(ctx)
}

func (s *seat) pluginStatus() (*config.Source, host.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.current.Status()
}

// isOpening reports whether the plugin has not answered its first start yet.
func (s *seat) isOpening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.opening.done:
		return false
	default:
		return true
	}
}

// replacePlugin ends the plugin that is there and runs that of the present configuration.
// The opening is its first start.
func (s *seat) replacePlugin(ctx context.Context, p Plugins, cfg *config.Config, o *opening, log *slog.Logger) {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	supervisor := host.Supervise(host.Options[*host.Session]{Launch: newLauncher(p, cfg, o), Logger: log})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = supervisor.Run(ctx) // it returns nil only
	}()
	path, _ := p.Path(cfg, o.source)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.path, s.opening, s.current = o.source, path, o, supervisor
	s.stop = func() {
		cancel()
		<-done
		o.close() // which was not taken where ctx ended at once
	}
}

// restartFailed ends the pause before the next start of a plugin that has failed.
func (s *seat) restartFailed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Status().State == host.Waiting {
		s.current.Restart()
	}
}

// newLauncher returns a function that waits for the plugin that is being opened at the first
// start, and opens it again at all others.
func newLauncher(p Plugins, cfg *config.Config, first *opening) func(context.Context) (*host.Session, error) {
	used := false
	return func(ctx context.Context) (*host.Session, error) {
		if !used {
			used = true
			return first.awaitSession(ctx)
		}
		session, diags, err := p.Open(ctx, cfg, first.source)
		return session, errors.Join(err, diags.Err())
	}
}

// startSource runs a source until ctx ends or it is stopped.
func (a *Agent) startSource(ctx context.Context, cfg *config.Config, o *opening) (*source, error) {
	s := &source{}
	log := a.opt.Log.With("source", o.source.Name())
	loop, err := collect.NewLoop(o.source.Key(), o.source.Interval.Duration, a.buffer, &s.seat, a.opt.Log)
	if err != nil {
		return nil, err
	}
	s.loop = loop
	loop.SetAudit(o.source.Audited(), cfg.Agent.Buffer.Retain.Duration)
	ctx, cancel := context.WithCancel(ctx)
	s.seat.replacePlugin(ctx, a.opt.Plugins, cfg, o, log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = loop.Run(ctx) // it returns nil only
	}()
	s.stop = func() {
		cancel()
		<-done
		s.seat.mu.Lock()
		stop := s.seat.stop
		s.seat.mu.Unlock()
		stop()
	}
	return s, nil
}

// exchangePlugin gives the source another plugin or configuration.
func (a *Agent) exchangePlugin(ctx context.Context, s *source, cfg *config.Config, o *opening) {
	s.loop.Exchange(ctx, func() { s.seat.replacePlugin(ctx, a.opt.Plugins, cfg, o, a.opt.Log.With("source", o.source.Name())) })
	s.loop.SetInterval(o.source.Interval.Duration)
	s.loop.SetAudit(o.source.Audited(), cfg.Agent.Buffer.Retain.Duration)
	s.loop.Nudge()
}

// isStale reports whether the plugin's file is another one than that of the plugin that runs.
func (s *source) isStale() bool {
	s.seat.mu.Lock()
	current := s.seat.current
	s.seat.mu.Unlock()
	if current.Status().State != host.Running {
		return false // its next start takes the file that is there
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	session, err := current.Plugin(ctx)
	if err != nil {
		return false
	}
	process, ok := session.Plugin.(interface{ Stale() bool })
	return ok && process.Stale()
}

// failureCounts are how often the source's plugin hung, and how often it ended otherwise or
// did not start.
func (s *source) failureCounts() (hung, ended int) {
	_, plugin := s.seat.pluginStatus()
	return plugin.Hangs, plugin.Failures - plugin.Hangs
}

// Configuring is the state of a source whose plugin has not answered its first start yet.
const Configuring = "configuring"

// currentStatus is a loop's status, and the plugin's where that does not run.
func (s *source) currentStatus() (*config.Source, collect.Status) {
	cfg, plugin := s.seat.pluginStatus()
	status := s.loop.Status()
	switch {
	case plugin.State == host.Running || status.State == "paused" || status.State == "stopped":
	case plugin.Err != nil:
		status.State, status.Err = "failed", plugin.Err
	case s.seat.isOpening():
		status.State = Configuring
	}
	return cfg, status
}
