package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/programs"
	"github.com/bursar-accounting/bursar/agent/internal/serve"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Options of an [Agent].
type Options struct {
	// Paths are the configuration's files and folders, for a reload.
	Paths []string
	// Version is the agent's, for people.
	Version string
	// Plugins starts the plugins; its Log is set by [New].
	Plugins Plugins
	// Log gets what happens.
	Log *slog.Logger
	// Level is changed by a reload; nil: it stays.
	Level *slog.LevelVar
	// Ready is called when the agent serves and no plugin that has answered refuses its
	// configuration; nil: no one is told.
	Ready func()
	// Patience is how long the start and a reload wait for plugins to answer [10s], to
	// refuse a configuration that one of them refuses.
	Patience time.Duration
}

// Agent is the agent's daemon.
type Agent struct {
	opt     Options
	started time.Time

	buffer  *buffer.Buffer
	keys    *identity.Keys   // nil: no one can pull
	runner  *programs.Runner // of programs of actions
	listen  string
	dialler *serve.Dialler  // nil: the agent does not dial in
	alive   context.Context // ends with Run; for what a reload starts; nil before

	reload  sync.Mutex // one reload at a time, and none while the agent starts or stops
	mu      sync.Mutex
	config  *config.Config
	sources map[buffer.Source]*source
}

// New makes an agent of a configuration without errors. It does nothing until
// Run.
func New(cfg *config.Config, opt Options) *Agent {
	opt.Plugins.Log = opt.Log
	opt.Patience = cmp.Or(opt.Patience, patience)
	a := &Agent{opt: opt, config: cfg, sources: map[buffer.Source]*source{}, started: time.Now()}
	a.runner = programs.NewRunner(programs.Options{Rules: a.currentRules, Fences: programs.NewFences(cfg.FencesPath()), Dev: opt.Plugins.Dev, Log: opt.Log})
	return a
}

// Run runs the agent until ctx ends. The error is an [hcl.Diagnostics] when the
// configuration turns out to be wrong, and whatever keeps the agent from
// running at all. The agent serves from the beginning, and each source is started,
// configured and collected by itself: a plugin that does not start, or hangs, is no
// error, but its source is shown as failed and tried again.
func (a *Agent) Run(ctx context.Context) error {
	a.reload.Lock()
	defer a.reload.Unlock()
	cfg := a.config
	openings := a.opt.Plugins.openAll(ctx, cfg, cfg.Running())
	if diags := CheckIdentity(cfg); diags.HasErrors() {
		diags.Extend(a.pluginDiagnostics(ctx, openings))
		closeOpenings(openings)
		return diags.Err()
	}
	if err := a.openBufferAndKeys(cfg); err != nil {
		closeOpenings(openings)
		return err
	}
	defer a.closeBuffer()
	return a.runParts(ctx, cfg, openings)
}

// pluginDiagnostics waits for the plugins, as long as the agent's patience lasts, and returns
// what they say about the configuration.
func (a *Agent) pluginDiagnostics(ctx context.Context, openings []*opening) hcl.Diagnostics {
	return answerDiagnostics(awaitAnswers(ctx, openings, a.opt.Patience))
}

// Alive returns when no part of the agent holds what all of them need, for a
// watchdog.
func (a *Agent) Alive(context.Context) error {
	a.runningSources()
	return nil
}

// openBufferAndKeys opens the buffer and the certificates.
func (a *Agent) openBufferAndKeys(cfg *config.Config) (err error) {
	if a.buffer, err = buffer.Open(cfg.BufferPath(), cfg.BufferOptions()); err != nil {
		return err
	}
	if cfg.Agent.TLS == nil {
		return nil
	}
	if a.keys, err = identity.Load(cfg.Identity()); err != nil {
		return errors.Join(err, a.buffer.Close())
	}
	return nil
}

func (a *Agent) closeBuffer() {
	if err := a.buffer.Close(); err != nil {
		a.opt.Log.Error("close the buffer", "error", err)
	}
}

// runParts runs all parts and returns when all of them have ended. a.reload is held
// but for the time between.
func (a *Agent) runParts(ctx context.Context, cfg *config.Config, openings []*opening) error {
	parts, err := a.openListeners(cfg)
	if err != nil {
		closeOpenings(openings)
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	a.alive = ctx
	if err := a.startAll(ctx, cfg, openings); err != nil {
		a.stopAll()
		return errors.Join(err, closeAll(parts))
	}
	for _, p := range parts {
		group.Go(func() error { return p.run(ctx) })
	}
	group.Go(func() error { return a.trimRegularly(ctx) })
	group.Go(func() error { return a.followKeys(ctx) })
	if err := a.announceReady(ctx, cfg, openings); err != nil {
		group.Go(func() error { return err }) // which ends the others
	}
	a.reload.Unlock()
	err = group.Wait()
	a.reload.Lock()
	a.stopAll()
	a.runner.Wait()
	a.opt.Log.Info("the agent has stopped")
	return err
}

// announceReady says that the agent is ready, unless a plugin refuses the configuration.
func (a *Agent) announceReady(ctx context.Context, cfg *config.Config, openings []*opening) error {
	diags := a.pluginDiagnostics(ctx, openings)
	if diags.HasErrors() || ctx.Err() != nil {
		return diags.Err()
	}
	for _, w := range diags {
		a.opt.Log.Warn("configuration", "warning", hcl.Diagnostics{w}.Error())
	}
	a.opt.Log.Info("the agent runs", "name", cfg.Agent.Name.Value, "version", a.opt.Version, "sources", len(openings), "configuring", a.configuringSources(), "listen", a.listen, "dial", cfg.DialAddresses())
	if a.opt.Ready != nil {
		a.opt.Ready()
	}
	return nil
}

func (a *Agent) startAll(ctx context.Context, cfg *config.Config, openings []*opening) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i, o := range openings {
		s, err := a.startSource(ctx, cfg, o)
		if err != nil {
			closeOpenings(openings[i:])
			return err
		}
		a.sources[o.source.Key()] = s
	}
	return nil
}

// stopAll ends all sources, side by side.
func (a *Agent) stopAll() {
	a.mu.Lock()
	sources := slices.Collect(maps.Values(a.sources))
	a.mu.Unlock()
	var wg sync.WaitGroup
	for _, s := range sources {
		wg.Go(s.stop)
	}
	wg.Wait()
}

// part is something that listens.
type part struct {
	listener net.Listener
	run      func(ctx context.Context) error
}

func closeAll(parts []part) error {
	var errs []error
	for _, p := range parts {
		errs = append(errs, p.listener.Close())
	}
	return errors.Join(errs...)
}

// openListeners opens the listeners: all, or none.
func (a *Agent) openListeners(cfg *config.Config) (parts []part, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(parts))
			parts = nil
		}
	}()
	server := &serve.Server{Buffer: a.buffer, Orders: orders{a}, Programs: programAdmitter{a.runner}, Reporter: a, Keys: a.keys, Log: a.opt.Log, Resumed: a.nudgeSources}
	if address := cfg.ListenAddress(); address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return parts, fmt.Errorf("listen for aggregators: %w", err)
		}
		a.listen = l.Addr().String()
		parts = append(parts, part{l, func(ctx context.Context) error { return server.Run(ctx, l) }})
	}
	if list := cfg.DialAddresses(); len(list) > 0 {
		d := serve.NewDialler(list, a.keys, a.opt.Log)
		a.dialler = d
		parts = append(parts, part{d, d.Run}, part{d, func(ctx context.Context) error { return server.Run(ctx, d) }})
	}
	if address, path := cfg.MetricsAddress(); address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return parts, fmt.Errorf("listen for metrics: %w", err)
		}
		parts = append(parts, part{l, func(ctx context.Context) error { return a.serveMetrics(ctx, l, path) }})
	}
	l, err := control.Listen(cfg.SocketPath())
	if err != nil {
		return parts, err
	}
	return append(parts, part{l, func(ctx context.Context) error { return control.Serve(ctx, l, a) }}), nil
}

// followKeys takes over certificates that are renewed, says in the log when they
// end, and ends connections of aggregators whose own are not valid any more.
func (a *Agent) followKeys(ctx context.Context) error {
	if a.keys == nil {
		return nil
	}
	return a.keys.Run(ctx, a.opt.Log)
}

// trimEvery is the pause between two looks for frames that may go.
const trimEvery = 5 * time.Minute

// trimRegularly drops from the buffer what is acknowledged and old, until ctx ends.
func (a *Agent) trimRegularly(ctx context.Context) error {
	tick := time.NewTicker(trimEvery)
	defer tick.Stop()
	for {
		if n, err := a.buffer.Trim(); err != nil {
			a.opt.Log.Error("trim the buffer", "error", err)
		} else if n > 0 {
			a.opt.Log.Info("dropped acknowledged frames", "frames", n)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// nudgeSources makes all sources collect now.
func (a *Agent) nudgeSources() {
	for _, s := range a.runningSources() {
		s.loop.Nudge()
	}
}

// runningSources returns the sources in the order of their names.
func (a *Agent) runningSources() []*source {
	a.mu.Lock()
	defer a.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(a.sources), func(x, y buffer.Source) int { return strings.Compare(x.String(), y.String()) })
	out := make([]*source, len(keys))
	for i, k := range keys {
		out[i] = a.sources[k]
	}
	return out
}

// currentSource returns the configuration and the running source of that name; nil
// when there is none.
func (a *Agent) currentSource(name string) (*config.Config, *source) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.config.Source(name); s != nil {
		return a.config, a.sources[s.Key()]
	}
	return a.config, nil
}
