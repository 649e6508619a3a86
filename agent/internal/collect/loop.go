package collect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Buffer is what a loop needs of the agent's buffer.
type Buffer interface {
	Begin(s buffer.Source) (buffer.Start, error)
	Append(a buffer.Append) (uint64, error)
	Pieces(a buffer.Append) []buffer.Append
	OpenRuns(s buffer.Source) (map[string]buffer.OpenRun, error)
	Clock() *buffer.Clock
	Audits(s buffer.Source) (map[record.Time]record.Time, error)
	Takes(version uint32) (bool, error)
	Findings(s buffer.Source) ([]byte, error)
}

// Sessions gives the session of the plugin that runs now, and waits for one
// while there is none.
type Sessions interface {
	Plugin(ctx context.Context) (*host.Session, error)
}

// Loop collects from one source. One stream with its plugin is open at a time.
type Loop struct {
	source   buffer.Source
	buffer   Buffer
	sessions Sessions
	log      *slog.Logger
	nudge    chan struct{}
	lock     sourceLock

	work     sync.Mutex // held while a batch is translated and appended
	tr       *translator
	findings *translate.Findings
	audit    auditor

	mu       sync.Mutex
	interval time.Duration // 0: what the plugin says
	status   Status
	again    time.Time // begin of the collection after one that hung; zero: it has done something since
	heard    heard
}

// heard is what the present collection has sent.
type heard struct {
	at    time.Time     // the last message with something in it, or the begin; zero: no collection goes on
	limit time.Duration // how long there may be none
	push  bool          // there may be none for ever
	empty bool          // messages with nothing in them came since
}

// Status says how a loop is doing.
type Status struct {
	State       string // starting, collecting, waiting, silent, paused, failed
	Err         error  // why it failed or is paused; nil when all is well
	LastSuccess time.Time
	Watermark   record.Time // complete up to then; None when the source does not say
	Counts      Counts
	Progress    *bursarv1.Progress  // of a back-fill; nil when there is none
	Version     string              // of the plugin
	Interval    time.Duration       // between two collections; 0: it streams, or is not known yet
	Findings    []translate.Finding // about the records that were sent, also before a restart
}

// NewLoop makes a loop that does nothing until Run.
func NewLoop(source buffer.Source, interval time.Duration, b Buffer, sessions Sessions, log *slog.Logger) (*Loop, error) {
	open, err := b.OpenRuns(source)
	if err != nil {
		return nil, fmt.Errorf("source %s: %w", source, err)
	}
	l := &Loop{source: source, interval: interval, buffer: b, sessions: sessions, log: log.With("source", source.String()), nudge: make(chan struct{}, 1)}
	l.tr = &translator{source: source, memory: newMemory(), open: open, observe: b.Clock().Observe}
	_, l.tr.memory.partial = open[marker]
	l.status = Status{State: "starting", Watermark: record.None}
	if l.audit.days, err = b.Audits(source); err != nil {
		return nil, fmt.Errorf("source %s: %w", source, err)
	}
	return l, l.loadFindings()
}

// loadFindings reads what was found before a restart. What cannot be read is logged and begun
// anew: it must not keep the source from collecting.
func (l *Loop) loadFindings() error {
	stored, err := l.buffer.Findings(l.source)
	if err != nil {
		return fmt.Errorf("source %s: %w", l.source, err)
	}
	if l.findings, err = translate.DecodeFindings(stored); err != nil {
		l.log.Warn("findings about earlier records are lost", "error", err)
	}
	l.status.Findings = l.findings.List()
	return nil
}

// Nudge ends the pause before the next collection.
func (l *Loop) Nudge() {
	select {
	case l.nudge <- struct{}{}:
	default:
	}
}

// Status returns how the loop is doing. A source that hung has failed until its next
// collection ends, sends something, or goes on for longer than one that hangs may. One
// that collects, and sends nothing for twice that time, is silent.
func (l *Loop) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	if stall, ok := errors.AsType[*host.Stall](s.Err); ok && !l.again.IsZero() && time.Since(l.again) > stall.Silent+stall.Silent/2 {
		s.State, s.Err = "collecting", nil
	}
	if s.State == "collecting" && l.heard.isSilent() {
		s.State, s.Err = "silent", l.heard.silenceError()
	}
	return s
}

// isSilent reports whether the collection should have sent something by now. Of a source
// that is pushed to, only messages with nothing in them show that.
func (h *heard) isSilent() bool {
	return !h.at.IsZero() && (!h.push || h.empty) && time.Since(h.at) > h.limit
}

func (h *heard) silenceError() error {
	what := "says that it works"
	if h.empty {
		what = "sends empty batches"
	}
	return fmt.Errorf("the plugin %s and has sent nothing since %s; see its lines in the agent's log, and set a longer stall_timeout where the scheduler takes so long", what, h.at.UTC().Format(time.DateTime+" MST"))
}

// setCollecting notes that a collection begins.
func (l *Loop) setCollecting(session *host.Session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status.Version = session.Description.GetVersion()
	l.heard = heard{at: time.Now(), limit: 2 * session.StallLimit(), push: session.Description.GetPush()}
	if _, hung := errors.AsType[*host.Stall](l.status.Err); hung {
		l.again = time.Now()
		return
	}
	l.status.State = "collecting"
}

// clearHang notes that a source that hung does something. l.mu is held.
func (l *Loop) clearHang() {
	if !l.again.IsZero() {
		l.again, l.status.State, l.status.Err = time.Time{}, "collecting", nil
	}
}

func (l *Loop) updateStatus(change func(*Status)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.status)
}

// SetInterval changes the pause between two collections from the next one on;
// zero is what the plugin says.
func (l *Loop) SetInterval(interval time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.interval = interval
}

// Run collects until ctx ends. Failures are logged, shown by [Loop.Status] and
// tried again after the interval; nothing is skipped.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		l.pauseAndAudit(ctx, l.tryCollect(ctx))
	}
	l.updateStatus(func(s *Status) { s.State, s.Err, s.Progress = "stopped", nil, nil })
	return nil
}

// pauseAndAudit waits for the pause between two collections, in which past days are
// counted.
func (l *Loop) pauseAndAudit(ctx context.Context, pause time.Duration) {
	end := time.NewTimer(pause)
	defer end.Stop()
	idle, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.auditDays(ctx, idle)
	}()
	select {
	case <-ctx.Done():
	case <-l.nudge:
	case <-end.C:
	}
	cancel()
	<-done
}

// retryAfter is the pause after a failure where the interval is longer.
const retryAfter = 10 * time.Second

// tryCollect collects once, notes a failure, and returns the pause that follows.
func (l *Loop) tryCollect(ctx context.Context) time.Duration {
	pause, err := l.collectOnce(ctx)
	switch {
	case errors.Is(err, buffer.ErrSuperseded):
		l.log.Info("the source goes back to the checkpoint that the cluster remembers")
		return 0
	case errors.Is(err, errInterrupted):
		return 0
	case err != nil && ctx.Err() == nil:
		l.setFailed(err)
	}
	return pause
}

// Once collects once, to the end of what there is now, for callers that do
// without Run. A source of type push ends only with ctx.
func (l *Loop) Once(ctx context.Context) error {
	_, err := l.collectOnce(ctx)
	if errors.Is(err, buffer.ErrSuperseded) {
		_, err = l.collectOnce(ctx)
	}
	return err
}

// errInterrupted: another use of the plugin has priority.
var errInterrupted = errors.New("interrupted")

// collectOnce runs one collection. The pause is how long to wait until the next one.
func (l *Loop) collectOnce(ctx context.Context) (pause time.Duration, err error) {
	run, leave := l.lockSource(ctx, collection)
	defer leave()
	session, err := l.sessions.Plugin(run)
	if err == nil {
		pause = l.pollInterval(session)
		l.setCollecting(session)
		if !session.Description.GetPush() {
			l.updateStatus(func(s *Status) { s.Interval = pause })
		}
		err = l.collectStream(run, session)
		l.updateStatus(func(*Status) { l.heard = heard{} })
	}
	switch {
	case run.Err() != nil && ctx.Err() == nil:
		return 0, errInterrupted
	case err != nil:
		return min(retryAfter, max(pause, time.Second)), err
	}
	l.updateStatus(func(s *Status) {
		l.clearHang()
		s.State, s.Err, s.Progress, s.LastSuccess = "waiting", nil, nil, time.Now()
	})
	return pause, nil
}

// setFailed notes a failure, and logs it unless it is the same again.
func (l *Loop) setFailed(err error) {
	if old := l.Status().Err; old == nil || old.Error() != err.Error() {
		l.log.Error("collection failed; it is tried again from the last checkpoint", "error", err)
	}
	l.updateStatus(func(s *Status) { s.State, s.Err, l.again = "failed", err, time.Time{} })
}

// defaultInterval is for plugins that do not say theirs.
const defaultInterval = time.Minute

func (l *Loop) pollInterval(session *host.Session) time.Duration {
	l.mu.Lock()
	interval := l.interval
	l.mu.Unlock()
	if interval > 0 {
		return interval
	}
	if d, err := time.ParseDuration(session.Description.GetInterval()); err == nil && d > 0 {
		return d
	}
	return defaultInterval
}

// collectStream runs one stream from the checkpoint to its end.
func (l *Loop) collectStream(ctx context.Context, session *host.Session) error {
	from, err := l.buffer.Begin(l.source)
	if err != nil {
		return err
	}
	start := &bursarv1.CollectRequest_Start{Checkpoint: from.Checkpoint, Rewind: from.Rewind.Microseconds()}
	err = session.Stream(ctx, start, func(resp *bursarv1.CollectResponse) error {
		return l.storeBatch(ctx, session, resp, from)
	})
	if err != nil || from.Rewind == 0 {
		return err
	}
	return l.appendPieces(ctx, buffer.Append{Source: l.source, Rewound: true, Generation: from.Generation})
}

// storeBatch translates a batch, puts it into the buffer and remembers what was sent.
func (l *Loop) storeBatch(ctx context.Context, session *host.Session, resp *bursarv1.CollectResponse, from buffer.Start) error {
	l.work.Lock()
	defer l.work.Unlock()
	l.useMapping(session)
	l.tr.amnesia, l.tr.again = from.Rewind > 0, false
	d, err := l.tr.translateBatch(resp)
	if err != nil {
		return err
	}
	d.append.Generation = from.Generation
	// The stream of a push source has no end; its checkpoint says that it has
	// stepped back.
	d.append.Rewound = from.Rewind > 0 && session.Description.GetPush() && d.append.Checkpoint != nil
	if err := l.commitDraft(ctx, d); err != nil {
		return err
	}
	l.updateStatus(func(s *Status) {
		if !host.Says(resp) {
			l.heard.empty = true
			return
		}
		l.clearHang()
		l.heard.at, l.heard.empty = time.Now(), false
		s.Progress = resp.GetProgress()
		if session.Description.GetPush() { // its stream has no end
			s.Err, s.LastSuccess = nil, time.Now()
		}
		if w := resp.GetWatermark(); w != 0 {
			s.Watermark = record.Time(w)
		}
	})
	return nil
}

// useMapping translates by the session's mapping from now on. l.work is held.
func (l *Loop) useMapping(session *host.Session) {
	l.tr.rank, l.tr.attributes, l.tr.mapper = record.Rank(session.Description.GetRank()), session.Description.GetAttributes(), session.Mapper
	l.tr.pushed, l.tr.reuses = session.Description.GetPushed(), session.Description.GetReusesIds()
}

// commitDraft puts a draft into the buffer and then remembers it. l.work is held.
func (l *Loop) commitDraft(ctx context.Context, d *draft) error {
	d.writeNotes()
	d.append.Unaudited = l.audit.countedDays(d.days)
	for _, note := range d.found {
		note(l.findings)
	}
	d.append.Findings = l.findings.Encode()
	if len(d.append.Frames) > 0 || len(d.append.Opened)+len(d.append.Closed) > 0 || d.append.Findings != nil {
		if err := l.appendPieces(ctx, d.append); err != nil {
			return err
		}
	}
	l.findings.Saved()
	l.audit.forgetDays(d.append.Unaudited)
	for run, s := range d.sent {
		l.tr.memory.storeRun(run, s)
	}
	for _, run := range d.append.Closed {
		delete(l.tr.open, run)
	}
	for _, o := range d.append.Opened {
		l.tr.open[o.Run] = o
	}
	found := l.findings.List()
	l.updateStatus(func(s *Status) { s.Counts.addCounts(d.counts); s.Findings = found })
	return nil
}

// pauseFor is how often a full buffer or disk is tried again.
const pauseFor = time.Second

// appendPieces appends, and waits for as long as there is no room.
func (l *Loop) appendPieces(ctx context.Context, a buffer.Append) error {
	for _, piece := range l.buffer.Pieces(a) {
		if err := l.putPiece(ctx, piece); err != nil {
			return err
		}
	}
	return nil
}

func (l *Loop) putPiece(ctx context.Context, a buffer.Append) error {
	logged := false
	for {
		_, err := l.buffer.Append(a)
		if err == nil || errors.Is(err, buffer.ErrSuperseded) {
			if logged && err == nil {
				l.log.Info("collection continues")
				l.updateStatus(func(s *Status) { s.State, s.Err = "collecting", nil })
			}
			return err
		}
		if !logged {
			l.log.Warn("collection is paused until the buffer takes records again", "error", err)
			l.updateStatus(func(s *Status) { s.State, s.Err = "paused", err })
			logged = true
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauseFor):
		}
	}
}
