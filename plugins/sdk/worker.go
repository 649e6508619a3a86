package sdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// configurable is a Source or an Action.
type configurable interface {
	Configure(ctx context.Context, cfg *Config) error
}

// worker has the one source or action of a process, which does one thing at a
// time.
type worker[P configurable] struct {
	make func() P
	log  *slog.Logger
	busy chan struct{} // holds one element while it is at work

	mu         sync.Mutex
	plugin     P
	configured bool
}

func newWorker[P configurable](makePlugin func() P, log *slog.Logger) *worker[P] {
	return &worker[P]{make: makePlugin, plugin: makePlugin(), log: log, busy: make(chan struct{}, 1)}
}

func (w *worker[P]) currentPlugin() (P, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.plugin, w.configured
}

// acquirePlugin waits until the plugin is idle.
func (w *worker[P]) acquirePlugin(ctx context.Context) error {
	select {
	case w.busy <- struct{}{}:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (w *worker[P]) releasePlugin() { <-w.busy }

// guardPanic turns a panic into an error.
func (w *worker[P]) guardPanic(where string, err *error) {
	if p := recover(); p != nil {
		*err = status.Errorf(codes.Internal, "%s", w.logPanic(where, p))
	}
}

// logPanic logs a panic and says in a line what it was.
func (w *worker[P]) logPanic(where string, p any) string {
	w.log.Error("panic in "+where, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	return fmt.Sprintf("panic in %s: %s", where, validText(cutText(fmt.Sprint(p))))
}

// configurePlugin configures a new plugin, which takes the place of the old one when
// its configuration has no errors.
func (w *worker[P]) configurePlugin(ctx context.Context, r *bursarv1.ConfigureRequest) (_ *bursarv1.ConfigureResponse, err error) {
	if err := w.acquirePlugin(ctx); err != nil {
		return nil, err
	}
	defer w.releasePlugin()
	defer w.guardPanic("Configure", &err)
	next, cfg := w.make(), newConfig(r)
	ds := configureWith(ctx, next, cfg)
	out := new(bursarv1.ConfigureResponse)
	for _, d := range ds {
		out.Diagnostics = append(out.Diagnostics, d.encodeDiagnostic())
	}
	if !ds.HasErrors() {
		w.adoptPlugin(next)
	}
	return out, nil
}

// configureWith returns the problems that the plugin reported, and those that it
// forgot to report.
func configureWith(ctx context.Context, plugin configurable, cfg *Config) Diagnostics {
	err := plugin.Configure(ctx, cfg)
	if err == nil {
		err = cfg.Err()
	}
	if err == nil {
		return nil
	}
	if ds, ok := errors.AsType[Diagnostics](err); ok {
		return ds
	}
	ds := Diagnostics{{Summary: "invalid configuration", Detail: err.Error(), Subject: cfg.Range()}}
	return append(ds, *cfg.problems...)
}

// adoptPlugin puts a configured plugin in the place of the old one, which is closed
// when it can be.
func (w *worker[P]) adoptPlugin(next P) {
	w.mu.Lock()
	old := w.plugin
	w.plugin, w.configured = next, true
	w.mu.Unlock()
	if c, ok := any(old).(io.Closer); ok {
		if err := c.Close(); err != nil {
			w.log.Warn("close what was configured before", "error", err)
		}
	}
}
