package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
// would hold the buffer. Show is called several times a second. A source that
// fails does not keep the others from being collected.
func Once(ctx context.Context, cfg *config.Config, sources []*config.Source, p Plugins, log *slog.Logger, show func(name string, s control.Source)) error {
	b, err := buffer.Open(cfg.BufferPath(), cfg.BufferOptions())
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range sources {
		if err := once(ctx, cfg, s, b, p, log, show); err != nil {
			errs = append(errs, fmt.Errorf("source %s: %w", s.Name(), err))
		}
	}
	return errors.Join(append(errs, b.Close())...)
}

// fixed is a session that is not started again.
type fixed struct{ session *host.Session }

// Plugin implements host.Sessions.
func (f fixed) Plugin(context.Context) (*host.Session, error) { return f.session, nil }

func once(ctx context.Context, cfg *config.Config, s *config.Source, b *buffer.Buffer, p Plugins, log *slog.Logger, show func(string, control.Source)) error {
	session, diags, err := p.Open(ctx, cfg, s)
	if err := errors.Join(err, diags.Err()); err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	if session.Description.GetPush() {
		return ErrPush
	}
	loop, err := collect.NewLoop(s.Key(), s.Interval.Duration, b, fixed{session}, log)
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- loop.Once(ctx) }()
	return watch(done, func() { show(s.Name(), statusOf(s, loop.Status())) })
}

// watch calls show until done gives the result.
func watch(done <-chan error, show func()) error {
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
