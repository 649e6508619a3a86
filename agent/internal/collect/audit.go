package collect

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Bounds of an audit.
const (
	// A day is counted when it has been over for the first of these, and again at
	// the others: schedulers tell of some runs late.
	settled     = 2 * time.Hour
	settledDay  = settled + 24*time.Hour
	settledWeek = settled + 7*24*time.Hour
	// minPiece is the shortest part of a day that is counted at once. It may take
	// minPatience, also when the next collection is due.
	minPiece    = 15 * time.Minute
	minPatience = time.Minute
	// auditAgain is the pause after an audit that failed.
	auditAgain = 15 * time.Minute
)

// auditor knows which days of a source are to be counted.
type auditor struct {
	mu   sync.Mutex
	days map[record.Time]record.Time // that were counted → when

	off    bool
	reach  time.Duration // how far back; 0: nothing is counted
	cannot *host.Session // that has no second route
	after  time.Time     // of the next try, after a failure
	task   *auditTask    // what is under way
}

// SetAudit says whether past days are counted, and how many: those of the time
// for which acknowledged frames are kept, and the last one always.
func (l *Loop) SetAudit(on bool, retain time.Duration) {
	l.audit.mu.Lock()
	defer l.audit.mu.Unlock()
	l.audit.off, l.audit.reach = !on, max(retain, 24*time.Hour)
}

// countedDays returns which of days were counted, in order.
func (a *auditor) countedDays(days map[record.Time]bool) (out []record.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for day := range days {
		if _, ok := a.days[day]; ok {
			out = append(out, day)
		}
	}
	slices.Sort(out)
	return out
}

// forgetDays forgets that days were counted.
func (a *auditor) forgetDays(days []record.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, day := range days {
		delete(a.days, day)
	}
}

// setCounted notes that a day was counted.
func (a *auditor) setCounted(audit buffer.Audit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.days[audit.Day] = audit.At
}

// dueDay returns the youngest day that is to be counted; false when there is none.
// CompleteTo is up to when the source is known to be complete.
func (a *auditor) dueDay(now, completeTo time.Time) (day time.Time, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.off || now.Before(a.after) {
		return day, false
	}
	last := now.Add(-a.reach)
	for day = now.UTC().Truncate(24 * time.Hour).Add(-24 * time.Hour); day.Add(24 * time.Hour).After(last); day = day.Add(-24 * time.Hour) {
		end := day.Add(24 * time.Hour)
		if !completeTo.Before(end) && a.isDue(day, end, now) {
			return day, true
		}
	}
	return day, false
}

// isDue reports whether a day has come of an age at which it was not counted yet.
// a.mu is held.
func (a *auditor) isDue(day, end, now time.Time) bool {
	at, counted := a.days[record.FromStd(day)]
	for _, age := range []time.Duration{settledWeek, settledDay, settled} {
		if ripe := end.Add(age); !now.Before(ripe) {
			return !counted || at.Std().Before(ripe)
		}
	}
	return false
}

// expiredDays returns days that were counted so long ago that they never are again.
func (a *auditor) expiredDays(now time.Time) (days []record.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for day := range a.days {
		if day.Std().Before(now.Add(-a.reach - settledWeek - 24*time.Hour)) {
			days = append(days, day)
		}
	}
	slices.Sort(days)
	return days
}

// dayOf is the start of the day of t.
func dayOf(t record.Time) record.Time {
	const day = record.Time(24*time.Hour) / record.Time(time.Microsecond)
	begin := t - t%day
	if t < begin {
		begin -= day
	}
	return begin
}

// auditDays counts past days, one after the other, until idle ends or there is none
// to count. Ctx is that of the loop.
func (l *Loop) auditDays(ctx, idle context.Context) {
	if takes, err := l.buffer.Takes(wire.CountVersion); err != nil || !takes || l.Status().State != "waiting" {
		return
	}
	for idle.Err() == nil {
		s := l.Status()
		day, ok := l.audit.dueDay(time.Now(), completeTo(&s))
		if !ok {
			return
		}
		err := l.auditPiece(ctx, idle, day)
		if errors.Is(err, errCannot) {
			return
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, context.Canceled) {
			l.log.Warn("the runs of a past day could not be counted; it is tried again", "day", day.Format(time.DateOnly), "error", err, "after", auditAgain)
			l.audit.postponeAudit(time.Now().Add(auditAgain))
		}
	}
}

func (a *auditor) postponeAudit(to time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.after, a.task = to, nil
}

// completeTo is the watermark of a source, or when it was last collected to its
// end.
func completeTo(s *Status) time.Time {
	if s.Watermark != record.None {
		return s.Watermark.Std()
	}
	return s.LastSuccess.Add(-settled)
}

// auditTask is a day that is being counted, piece by piece.
type auditTask struct {
	session *host.Session
	day     time.Time
	at      time.Time // begin of the next piece
	width   time.Duration
	count   wire.Count
	seen    seen
}

// seen are the runs and the record ids that were met, as hashes.
type seen struct{ runs, ids map[uint64]struct{} }

func newSeen() seen { return seen{map[uint64]struct{}{}, map[uint64]struct{}{}} }

// seenBefore reports whether the text is in any of the sets, and puts it into the last one
// if it is not.
func seenBefore(text string, sets ...map[uint64]struct{}) bool {
	key := runKey(text)
	for _, set := range sets {
		if _, ok := set[key]; ok {
			return true
		}
	}
	sets[len(sets)-1][key] = struct{}{}
	return false
}

// auditPiece counts a piece of the day; the last one sends the frame. A piece that
// has not come to its end when the next collection is due is made smaller.
func (l *Loop) auditPiece(ctx, idle context.Context, day time.Time) error {
	t := l.audit.beginTask(day)
	piece, cancel := idle, context.CancelFunc(func() {})
	if t.width <= minPiece {
		piece, cancel = context.WithTimeout(ctx, minPatience)
	}
	defer cancel()
	run, leave := l.lockSource(piece, audit)
	defer leave()
	session, err := l.sessions.Plugin(run)
	if err != nil {
		return err
	}
	if l.audit.cannotBe(session) {
		return errCannot
	}
	if t.session != session { // its mapping may be another one
		*t = auditTask{session: session, day: day, at: day, width: t.width, seen: newSeen()}
	}
	err = l.countPiece(run, t)
	switch {
	case status.Code(err) == codes.Unimplemented:
		l.audit.setCannot(session)
		return errCannot
	case run.Err() != nil && ctx.Err() == nil && !errors.Is(run.Err(), context.DeadlineExceeded):
		t.width = max(minPiece, t.width/2)
		return nil
	case err != nil:
		return err
	}
	if t.at.Before(day.Add(24 * time.Hour)) {
		return nil
	}
	return l.tellCount(t)
}

func (a *auditor) beginTask(day time.Time) *auditTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.task == nil || !a.task.day.Equal(day) {
		a.task = &auditTask{day: day, at: day, width: 24 * time.Hour}
	}
	return a.task
}

// countPiece counts from t.at on by both routes.
func (l *Loop) countPiece(ctx context.Context, t *auditTask) error {
	from, to := t.at, t.at.Add(t.width)
	if end := t.day.Add(24 * time.Hour); to.After(end) {
		to = end
	}
	counted, err := t.session.Count(ctx, &bursarv1.CountRequest{From: from.UnixMicro(), To: to.UnixMicro()})
	if err != nil {
		return err
	}
	sum, met := wire.Count{Counted: max(counted.GetRuns(), 0)}, newSeen()
	start := &bursarv1.CollectRequest_Start{Window: &bursarv1.CollectRequest_Window{From: from.UnixMicro(), To: to.UnixMicro()}}
	err = t.session.Stream(ctx, start, func(resp *bursarv1.CollectResponse) error {
		l.countBatch(t, resp, &sum, met)
		return nil
	})
	if err != nil {
		return err
	}
	t.at = to
	t.addPiece(&sum, met)
	return nil
}

// countBatch adds what a batch would come to.
func (l *Loop) countBatch(t *auditTask, resp *bursarv1.CollectResponse, sum *wire.Count, met seen) {
	l.work.Lock()
	defer l.work.Unlock()
	l.useMapping(t.session)
	for _, job := range resp.GetJobs() {
		switch {
		case translate.Nameless(job.GetRun()) != "":
			sum.Quarantined++
		case job.GetEnded() && !seenBefore(job.GetRun(), t.seen.runs, met.runs):
			l.countJob(t, job, sum, met)
		}
	}
	for _, r := range resp.GetRefused() {
		if r.GetRun() == "" || !seenBefore(r.GetRun(), t.seen.runs, met.runs) {
			sum.Quarantined++
		}
	}
	sum.Skipped += max(resp.GetSkipped(), 0)
}

// countJob adds one run. l.work is held.
func (l *Loop) countJob(t *auditTask, job *bursarv1.Job, sum *wire.Count, met seen) {
	switch r, keep, err := translate.Map(l.tr.mapper, job); {
	case err != nil:
		sum.Quarantined++
	case !keep:
		sum.Filtered++
	case seenBefore(r.ID, t.seen.ids, met.ids):
		sum.Shared++
	default:
		sum.Records++
	}
}

// addPiece adds what a piece came to.
func (t *auditTask) addPiece(sum *wire.Count, met seen) {
	c := &t.count
	c.Counted += sum.Counted
	c.Records += sum.Records
	c.Filtered += sum.Filtered
	c.Quarantined += sum.Quarantined
	c.Shared += sum.Shared
	c.Skipped += sum.Skipped
	for key := range met.runs {
		t.seen.runs[key] = struct{}{}
	}
	for key := range met.ids {
		t.seen.ids[key] = struct{}{}
	}
}

// errCannot: the source has no second route.
var errCannot = errors.New("the source does not count")

func (a *auditor) cannotBe(s *host.Session) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cannot == s
}

func (a *auditor) setCannot(s *host.Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cannot, a.task = s, nil
}

// tellCount sends what a day came to.
func (l *Loop) tellCount(t *auditTask) error {
	now := time.Now()
	c := t.count
	c.From, c.To, c.At = record.FromStd(t.day), record.FromStd(t.day.Add(24*time.Hour)), record.FromStd(now)
	l.work.Lock()
	defer l.work.Unlock()
	l.useMapping(t.session)
	d, done := newDraft(l.source), buffer.Audit{Day: c.From, At: c.At}
	l.tr.addFrame(d, &wire.Frame{Kind: wire.KindCount, Count: c})
	d.append.Audited, d.append.Unaudited = []buffer.Audit{done}, l.audit.expiredDays(now)
	if _, err := l.buffer.Append(d.append); err != nil {
		return err
	}
	l.audit.forgetDays(d.append.Unaudited)
	l.audit.setCounted(done)
	l.audit.postponeAudit(time.Time{})
	if given := c.Records + c.Shared + c.Filtered + c.Quarantined; given != c.Counted {
		l.log.Warn("the source does not collect what it counts", "day", t.day.Format(time.DateOnly), "counted", c.Counted, "collected", given)
	}
	return nil
}

// recountWindow has the days of a window counted again.
func (l *Loop) recountWindow(ctx context.Context, w Window) error {
	days := map[record.Time]bool{}
	l.audit.mu.Lock()
	for day := range l.audit.days {
		if begin := day.Std(); begin.Before(w.To) && begin.Add(24*time.Hour).After(w.From) {
			days[day] = true
		}
	}
	l.audit.mu.Unlock()
	list := l.audit.countedDays(days)
	if len(list) == 0 {
		return nil
	}
	if err := l.appendPieces(ctx, buffer.Append{Source: l.source, Unaudited: list}); err != nil {
		return err
	}
	l.audit.forgetDays(list)
	return nil
}
