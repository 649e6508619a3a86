package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/plugins/host"
)

// ErrPush says that a source gives jobs as they come, so that a single
// collection has no end.
var ErrPush = errors.New("the source gives jobs as they come and cannot be collected once")

// Once collects each of the sources once into the buffer, without a daemon, which
// would hold the buffer. The sources go side by side, each with its own deadline for its
// plugin's start, so that one that hangs or fails does not keep the others from being
// collected. Show is called several times a second, by one goroutine at a time, for each
// source; while its plugin has not answered, its state is configuring.
func Once(ctx context.Context, cfg *config.Config, sources []*config.Source, p Plugins, log *slog.Logger, show func(name string, s control.Source)) error {
	b, err := buffer.Open(cfg.BufferPath(), cfg.BufferOptions())
	if err != nil {
		return err
	}
	var mu sync.Mutex
	showOne := func(s *config.Source, status control.Source) {
		mu.Lock()
		defer mu.Unlock()
		show(s.Name(), status)
	}
	errs := make([]error, len(sources))
	var all sync.WaitGroup
	for i, o := range p.openAll(ctx, cfg, sources) {
		all.Go(func() {
			defer o.close()
			if err := collectOnce(ctx, o, b, log, func(status control.Source) { showOne(o.source, status) }); err != nil {
				errs[i] = fmt.Errorf("source %s: %w", o.source.Name(), err)
			}
		})
	}
	all.Wait()
	return errors.Join(append(errs, b.Close())...)
}

// fixed is a session that is not started again.
type fixed struct{ session *host.Session }

// Plugin implements host.Sessions.
func (f fixed) Plugin(context.Context) (*host.Session, error) { return f.session, nil }

func collectOnce(ctx context.Context, o *opening, b *buffer.Buffer, log *slog.Logger, show func(control.Source)) error {
	s := o.source
	opened := make(chan error, 1)
	go func() {
		_, err := o.awaitSession(ctx)
		opened <- err
	}()
	waiting := control.Source{Type: s.Type.Value, Label: s.Label.Value, State: Configuring}
	if err := showUntilDone(opened, func() { show(waiting) }); err != nil {
		return err
	}
	session := o.session
	if session.Description.GetPush() {
		return ErrPush
	}
	loop, err := collect.NewLoop(s.Key(), s.Interval.Duration, b, fixed{session}, log)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- loop.Once(ctx) }()
	return showUntilDone(done, func() { show(statusOf(s, loop.Status())) })
}

// showUntilDone calls show until done gives the result.
func showUntilDone(done <-chan error, show func()) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			show()
			return err
		case <-tick.C:
			show()
		}
	}
}
