package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
)

// Reload reads the configuration again and takes it over: sources are added,
// changed and removed, and replaced plugin binaries are started, without touching
// the others. A configuration with an error is refused as a whole, with all its
// diagnostics as the error, and the old one stays. A plugin that has not answered
// within the patience of [Options] holds nothing up: its source is taken over, named
// in the answer, and configured by itself.
func (a *Agent) Reload(ctx context.Context) (control.Reloaded, error) {
	a.reload.Lock()
	defer a.reload.Unlock()
	if a.alive == nil || a.alive.Err() != nil {
		return control.Reloaded{}, errors.New("the agent does not run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(a.alive, cancel)
	defer stop()
	out, err := a.reloadNow(ctx)
	if err != nil {
		a.opt.Log.Error("the new configuration is refused; the old one stays", "error", err)
		return control.Reloaded{}, err
	}
	a.opt.Log.Info("configuration reloaded", "added", out.Added, "changed", out.Changed, "removed", out.Removed, "configuring", out.Configuring, "needs_restart", out.Restart)
	return out, nil
}

func (a *Agent) reloadNow(ctx context.Context) (control.Reloaded, error) {
	next, diags := config.Load(a.opt.Paths...)
	diags.Extend(CheckIdentity(next))
	if diags.HasErrors() {
		return control.Reloaded{}, diags.Err()
	}
	out := control.Reloaded{Restart: a.resetFixed(next)}
	plan := a.planChange(next)
	openings := a.opt.Plugins.openAll(a.alive, next, plan.start)
	answered := awaitAnswers(ctx, openings, a.opt.Patience)
	diags.Extend(answerDiagnostics(answered))
	diags.Extend(brokenPlugins(answered))
	if err := errors.Join(ctx.Err(), diags.Err()); err != nil {
		closeOpenings(openings)
		return control.Reloaded{}, err
	}
	out.Warnings = diags.Warnings().Error()
	out.RecordBlocks = recordBlocks(answered)
	if err := a.applyChange(next, plan, openings, &out); err != nil {
		return control.Reloaded{}, err
	}
	out.Configuring = a.configuringSources()
	return out, nil
}

// resetFixed puts what cannot change while the agent runs back to what it is, and
// names what would have changed.
func (a *Agent) resetFixed(next *config.Config) []string {
	old := a.config
	var names []string
	note := func(same bool, name string) {
		if !same {
			names = append(names, name)
		}
	}
	_, oldPath := old.MetricsAddress()
	oldMetrics, _ := old.MetricsAddress()
	newMetrics, newPath := next.MetricsAddress()
	note(old.Agent.Name.Value == next.Agent.Name.Value, "agent.name")
	note(old.Agent.DataDir.Path == next.Agent.DataDir.Path, "agent.data_dir")
	note(old.ListenAddress() == next.ListenAddress(), "agent.listen")
	note(slices.Equal(old.DialAddresses(), next.DialAddresses()), "agent.dial")
	note(sameIdentity(old, next), "agent.tls")
	note(old.BufferOptions().MaxSize == next.BufferOptions().MaxSize && old.BufferOptions().Retain == next.BufferOptions().Retain, "agent.buffer")
	note(oldMetrics == newMetrics && oldPath == newPath, "agent.metrics")
	note(old.Agent.Log.Format.Value == next.Agent.Log.Format.Value, "agent.log.format")
	fixed := old.Agent
	fixed.PluginDirs, fixed.Log.Level = next.Agent.PluginDirs, next.Agent.Log.Level
	next.Agent = fixed
	return names
}

func sameIdentity(a, b *config.Config) bool {
	if a.Agent.TLS == nil || b.Agent.TLS == nil {
		return a.Agent.TLS == b.Agent.TLS
	}
	return a.Identity() == b.Identity()
}

// change is what a reload does.
type change struct {
	start  []*config.Source // those that are new or other than before
	kept   []*config.Source
	remove []buffer.Source
}

func (a *Agent) planChange(next *config.Config) change {
	var c change
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range next.Running() {
		if now := a.sources[s.Key()]; now != nil && !a.needsExchange(now, next, s) {
			c.kept = append(c.kept, s)
			continue
		}
		c.start = append(c.start, s)
	}
	for k := range a.sources {
		if !slices.ContainsFunc(next.Running(), func(s *config.Source) bool { return s.Key() == k }) {
			c.remove = append(c.remove, k)
		}
	}
	return c
}

// needsExchange reports whether the source has to be given another plugin.
func (a *Agent) needsExchange(now *source, next *config.Config, s *config.Source) bool {
	now.seat.mu.Lock()
	same, path := now.seat.config.Same(s), now.seat.path
	now.seat.mu.Unlock()
	if !same {
		return true
	}
	if found, err := a.opt.Plugins.Path(next, s); err == nil && found != path {
		return true
	}
	return now.isStale()
}

// configuringSources returns the names of the sources whose plugins are still being configured.
func (a *Agent) configuringSources() (names []string) {
	for _, s := range a.runningSources() {
		if cfg, status := s.currentStatus(); status.State == Configuring {
			names = append(names, cfg.Name())
		}
	}
	return names
}

// applyChange does what the plan says. Sources that go end first, since another one may take
// over what they hold; all others change side by side. Nothing of it can be refused any
// more but the start of a new source, when the buffer cannot be read.
func (a *Agent) applyChange(next *config.Config, plan change, openings []*opening, out *control.Reloaded) error {
	a.removeSources(plan.remove, out)
	var exchanges sync.WaitGroup
	defer exchanges.Wait()
	for i, o := range openings {
		a.mu.Lock()
		s := a.sources[o.source.Key()]
		a.mu.Unlock()
		if s != nil {
			exchanges.Go(func() { a.exchangePlugin(a.alive, s, next, o) })
			out.Changed = append(out.Changed, o.source.Name())
			continue
		}
		s, err := a.startSource(a.alive, next, o)
		if err != nil {
			closeOpenings(openings[i:])
			return fmt.Errorf("start source %s: %w", o.source.Name(), err)
		}
		a.mu.Lock()
		a.sources[o.source.Key()] = s
		a.mu.Unlock()
		out.Added = append(out.Added, o.source.Name())
	}
	a.updateUnchanged(next, plan.kept)
	return nil
}

// removeSources ends sources, side by side.
func (a *Agent) removeSources(keys []buffer.Source, out *control.Reloaded) {
	var ends sync.WaitGroup
	for _, k := range keys {
		a.mu.Lock()
		s := a.sources[k]
		delete(a.sources, k)
		a.mu.Unlock()
		ends.Go(s.stop)
		out.Removed = append(out.Removed, k.String())
	}
	ends.Wait()
}

// updateUnchanged hands the new intervals to the sources that are otherwise the same, and
// has those tried again that failed.
func (a *Agent) updateUnchanged(next *config.Config, kept []*config.Source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range kept {
		now := a.sources[s.Key()]
		now.loop.SetInterval(s.Interval.Duration)
		now.loop.SetAudit(s.Audited(), next.Agent.Buffer.Retain.Duration)
		now.seat.restartFailed()
	}
	a.config = next
	if a.opt.Level != nil {
		a.opt.Level.Set(next.LogLevel())
	}
	if a.keys != nil {
		if err := a.keys.Reload(); err != nil {
			a.opt.Log.Error("the new certificates are refused; the old ones stay", "error", err)
		}
	}
}
