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

func (s *seat) status() (*config.Source, host.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config, s.current.Status()
}

// put ends the plugin that is there and runs the one that is configured now.
// Prepared is its first start.
func (s *seat) put(ctx context.Context, p Plugins, cfg *config.Config, prepared Prepared, log *slog.Logger) {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	if stop != nil {
		stop()
	}
	ctx, cancel := context.WithCancel(ctx)
	supervisor := host.Supervise(host.Options[*host.Session]{Launch: launch(p, cfg, prepared), Logger: log})
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = supervisor.Run(ctx) // it returns nil only
	}()
	path, _ := p.Path(cfg, prepared.Source)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config, s.path, s.current = prepared.Source, path, supervisor
	s.stop = func() { cancel(); <-done }
}

// retry ends the pause before the next start of a plugin that has failed.
func (s *seat) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current.Status().State == host.Waiting {
		s.current.Restart()
	}
}

// launch gives what was prepared at the first start and starts the plugin again
// at all others.
func launch(p Plugins, cfg *config.Config, first Prepared) func(context.Context) (*host.Session, error) {
	used := false
	return func(ctx context.Context) (*host.Session, error) {
		if !used {
			used = true
			return first.Session, first.Err
		}
		session, diags, err := p.Open(ctx, cfg, first.Source)
		return session, errors.Join(err, diags.Err())
	}
}

// start runs a source until ctx ends or it is stopped.
func (a *Agent) start(ctx context.Context, cfg *config.Config, p Prepared) (*source, error) {
	s := &source{}
	log := a.opt.Log.With("source", p.Source.Name())
	loop, err := collect.NewLoop(p.Source.Key(), p.Source.Interval.Duration, a.buffer, &s.seat, a.opt.Log)
	if err != nil {
		return nil, err
	}
	s.loop = loop
	loop.SetAudit(p.Source.Audited(), cfg.Agent.Buffer.Retain.Duration)
	ctx, cancel := context.WithCancel(ctx)
	s.seat.put(ctx, a.opt.Plugins, cfg, p, log)
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

// exchange gives the source another plugin or configuration.
func (a *Agent) exchange(ctx context.Context, s *source, cfg *config.Config, p Prepared) {
	s.loop.Exchange(ctx, func() { s.seat.put(ctx, a.opt.Plugins, cfg, p, a.opt.Log.With("source", p.Source.Name())) })
	s.loop.SetInterval(p.Source.Interval.Duration)
	s.loop.SetAudit(p.Source.Audited(), cfg.Agent.Buffer.Retain.Duration)
	s.loop.Nudge()
}

// stale reports whether the plugin's file is another one than the one that runs.
func (s *source) stale() bool {
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

// failures are how often the source's plugin hung, and how often it ended otherwise or
// did not start.
func (s *source) failures() (hung, ended int) {
	_, plugin := s.seat.status()
	return plugin.Hangs, plugin.Failures - plugin.Hangs
}

// report is a loop's status, and the plugin's where that does not run.
func (s *source) report() (*config.Source, collect.Status) {
	cfg, plugin := s.seat.status()
	status := s.loop.Status()
	if plugin.State != host.Running && plugin.Err != nil && status.State != "paused" && status.State != "stopped" {
		status.State, status.Err = "failed", plugin.Err
	}
	return cfg, status
}
