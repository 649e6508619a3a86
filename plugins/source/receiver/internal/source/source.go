package source

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/queue"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/seen"
)

// version of the plugin.
const version = "1.0.0"

// Source implements sdk.Source. It listens from the first Collect on, and goes on to
// between two of them: then pushes wait.
type Source struct {
	log      *slog.Logger
	settings settings
	queue    *queue.Queue
	ids      *seen.IDs
	listener *listener
}

// New makes a source.
func New(log *slog.Logger) *Source { return &Source{log: log} }

// Describe implements sdk.Source.
func (s *Source) Describe() sdk.Description {
	return sdk.Description{
		Type: "receiver", Version: version, Rank: sdk.RankPush, Push: true, Pushed: true,
		Interval: time.Second, // the pause after a failure
		Settings: new(document),
	}
}

// Configure implements sdk.Source.
func (s *Source) Configure(_ context.Context, cfg *sdk.Config) (err error) {
	s.settings, err = readSettings(cfg)
	s.settings.file = filepath.Join(cfg.DataDir, "known.db")
	s.queue = queue.New(s.settings.IgnoreKnown, s.log)
	return err
}

// Collect implements sdk.Source. There is nothing to collect again: what was pushed
// is with the agent alone.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	if from.Window != nil {
		return nil
	}
	if err := s.openAll(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := s.listener.onEnd(cancel)
	defer stop()
	err := s.queue.Run(ctx, from, s.ids, out)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		s.listener = nil // the next Collect listens anew
		return cause
	}
	return err
}

// openAll opens what is not open yet.
func (s *Source) openAll(ctx context.Context) (err error) {
	if s.ids == nil {
		if s.ids, err = seen.Open(s.settings.file, seen.Options{Remember: s.settings.Remember, Now: time.Now, Log: s.log}); err != nil {
			return err
		}
	}
	if s.listener == nil {
		s.listener, err = startListener(ctx, &s.settings, s.queue, s.log)
	}
	return err
}

// Close ends what the source has open.
func (s *Source) Close() error {
	var errs []error
	if s.listener != nil {
		errs = append(errs, s.listener.close())
	}
	if s.ids != nil {
		errs = append(errs, s.ids.Close())
	}
	return errors.Join(errs...)
}
