package collect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Buffer is what a loop needs of the agent's buffer.
type Buffer interface {
	Begin(s buffer.Source) (buffer.Start, error)
	Append(a buffer.Append) (uint64, error)
	OpenRuns(s buffer.Source) (map[string]buffer.OpenRun, error)
	Clock() *buffer.Clock
}

// Sessions gives the session of the plugin that runs now, and waits for one
// while there is none.
type Sessions interface {
	Plugin(ctx context.Context) (*Session, error)
}

// Loop collects from one source.
type Loop struct {
	source   buffer.Source
	interval time.Duration // 0: what the plugin says
	buffer   Buffer
	sessions Sessions
	log      *slog.Logger
	nudge    chan struct{}

	work sync.Mutex // held while a batch is translated and appended
	tr   *translator

	mu     sync.Mutex
	status Status
}

// Status says how a loop is doing.
type Status struct {
	State       string // starting, collecting, waiting, paused, failed
	Err         error  // why it failed or is paused; nil when all is well
	LastSuccess time.Time
	Watermark   record.Time // complete up to then; None when the source does not say
	Counts      Counts
	Progress    *bursarv1.Progress // of a back-fill; nil when there is none
	Version     string             // of the plugin
}

// NewLoop makes a loop that does nothing until Run.
func NewLoop(source buffer.Source, interval time.Duration, b Buffer, sessions Sessions, log *slog.Logger) (*Loop, error) {
	open, err := b.OpenRuns(source)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source, err)
	}
	l := &Loop{source: source, interval: interval, buffer: b, sessions: sessions, log: log.With("source", source.String()), nudge: make(chan struct{}, 1)}
	l.tr = &translator{source: source, memory: newMemory(), open: open, observe: b.Clock().Observe}
	l.status = Status{State: "starting", Watermark: record.None}
	return l, nil
}

// Nudge ends the pause before the next collection.
func (l *Loop) Nudge() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// Status returns how the loop is doing.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.status
}

func (l *Loop) set(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

// Run collects until ctx ends. Failures are logged, shown by [Loop.Status] and
// tried again after the interval; nothing is skipped.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := l.turn(ctx)
		select {
		case <-ctx.Done():
		case <-l.nudge:
		case <-time.After(pause):
		}
	}
	return nil
}

// retryAfter is the pause after a failure where the interval is longer.
const retryAfter = 10 * time.Second

// turn collects once and returns the pause that follows.
func (l *Loop) turn(ctx context.Context) time.Duration {
	session, err := l.sessions.Plugin(ctx)
	if err != nil {
		l.failed(ctx, err)
		return time.Second
	}
	l.set(func(s *Status) { s.State, s.Version = "collecting", session.Description.GetVersion() })
	err = l.collect(ctx, session)
	if errors.Is(err, buffer.ErrSuperseded) {
		l.log.Info("the source goes back to the checkpoint that the cluster remembers")
		return 0
	}
	if err != nil {
		l.failed(ctx, err)
		return min(retryAfter, l.every(session))
	}
	l.set(func(s *Status) { s.State, s.Err, s.Progress, s.LastSuccess = "waiting", nil, nil, time.Now() })
	return l.every(session)
}

func (l *Loop) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.log.Error("collection failed; it is tried again from the last checkpoint", "error", err)
	l.set(func(s *Status) { s.State, s.Err = "failed", err })
}

// defaultInterval is for plugins that do not say theirs.
const defaultInterval = time.Minute

func (l *Loop) every(session *Session) time.Duration {
	if l.interval > 0 {
		return l.interval
	}
	if d, err := time.ParseDuration(session.Description.GetInterval()); err == nil && d > 0 {
		return d
	}
	return defaultInterval
}

// collect runs one stream from the checkpoint to its end.
func (l *Loop) collect(ctx context.Context, session *Session) error {
	from, err := l.buffer.Begin(l.source)
	if err != nil {
		return err
	}
	start := &bursarv1.CollectRequest_Start{Checkpoint: from.Checkpoint, Rewind: from.Rewind.Microseconds()}
	err = l.stream(ctx, session, start, func(resp *bursarv1.CollectResponse) error {
		return l.take(ctx, session, resp, from)
	})
	if err != nil || from.Rewind == 0 {
		return err
	}
	return l.put(ctx, buffer.Append{Source: l.source, Rewound: true, Generation: from.Generation})
}

// stream runs one Collect call and acknowledges each batch after take has it on
// disk.
func (l *Loop) stream(ctx context.Context, session *Session, start *bursarv1.CollectRequest_Start, take func(*bursarv1.CollectResponse) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := session.Client.Collect(ctx)
	if err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	if err := stream.Send(&bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Start_{Start: start}}); err != nil {
		return fmt.Errorf("collect: %w", err)
	}
	for n := uint64(1); ; n++ {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("collect: %w", err)
		}
		if err := take(resp); err != nil {
			return err
		}
		ack := &bursarv1.CollectRequest{Message: &bursarv1.CollectRequest_Ack_{Ack: &bursarv1.CollectRequest_Ack{Batch: n}}}
		if err := stream.Send(ack); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("acknowledge to the plugin: %w", err)
		}
	}
}

// take translates a batch, puts it into the buffer and remembers what was sent.
func (l *Loop) take(ctx context.Context, session *Session, resp *bursarv1.CollectResponse, from buffer.Start) error {
	l.work.Lock()
	defer l.work.Unlock()
	l.use(session)
	l.tr.amnesia, l.tr.again = from.Rewind > 0, false
	d, err := l.tr.batch(resp)
	if err != nil {
		return err
	}
	d.append.Generation = from.Generation
	if err := l.commit(ctx, d); err != nil {
		return err
	}
	l.set(func(s *Status) {
		s.Progress = resp.GetProgress()
		if w := resp.GetWatermark(); w != 0 {
			s.Watermark = record.Time(w)
		}
	})
	return nil
}

// use translates by the session's mapping from now on. l.work is held.
func (l *Loop) use(session *Session) {
	l.tr.rank, l.tr.attributes, l.tr.mapper = record.Rank(session.Description.GetRank()), session.Description.GetAttributes(), session.Mapper
}

// commit puts a draft into the buffer and then remembers it. l.work is held.
func (l *Loop) commit(ctx context.Context, d *draft) error {
	if len(d.append.Frames) > 0 || len(d.append.Opened)+len(d.append.Closed) > 0 {
		if err := l.put(ctx, d.append); err != nil {
			return err
		}
	}
	for run, s := range d.sent {
		l.tr.memory.put(run, s)
	}
	for _, run := range d.append.Closed {
		delete(l.tr.open, run)
	}
	for _, o := range d.append.Opened {
		l.tr.open[o.Run] = o
	}
	l.set(func(s *Status) { s.Counts.add(d.counts) })
	return nil
}

// pauseFor is how often a full buffer or disk is tried again.
const pauseFor = time.Second

// put appends, and waits for as long as there is no room.
func (l *Loop) put(ctx context.Context, a buffer.Append) error {
	logged := false
	for {
		_, err := l.buffer.Append(a)
		if err == nil || errors.Is(err, buffer.ErrSuperseded) {
			if logged && err == nil {
				l.log.Info("collection goes on")
				l.set(func(s *Status) { s.State, s.Err = "collecting", nil })
			}
			return err
		}
		if !logged {
			l.log.Warn("collection is paused until the buffer takes records again", "error", err)
			l.set(func(s *Status) { s.State, s.Err = "paused", err })
			logged = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauseFor):
		}
	}
}
