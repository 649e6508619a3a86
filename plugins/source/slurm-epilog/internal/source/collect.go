package source

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/job"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
)

const (
	maxAsk     = 500              // events in one question to sacct
	firstPause = 5 * time.Second  // before it is asked again for what it did not know
	mostPause  = 2 * time.Minute  // between two questions for the same
	maxSent    = 100_000          // runs that are remembered as sent
	maxRefused = 10_000           // refusals that are remembered
	slack      = 24 * time.Hour   // how long after a run's end its epilogs run as a rule
	skew       = time.Minute      // by which the clocks of a cluster may differ
	openWait   = 30 * time.Second // for a former process of this source to end
)

// What was told without slurmdbd's word is asked for from time to time, since
// slurmctld keeps what slurmdbd did not take for as long as it lives. It is written
// into the journal again now and then, so that the checkpoint goes on.
const (
	watched   = 31 * 24 * time.Hour // how long it is asked for
	toldPause = 2 * time.Minute     // before it is asked for first
	mostTold  = time.Hour           // between two questions for it
	rewrite   = 6 * time.Hour       // after which it is written anew
	maxTold   = 100_000             // of which more are not watched
	maxPauses = 6                   // by which pauses double
)

// pass is one Collect.
type pass struct {
	*Source
	plan *job.Plan
	out  *sdk.Stream
}

// Collect takes events and sends what became of their runs, until ctx ends.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	done, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, openWait)
	defer cancel()
	if err := s.openJournal(waiting); err != nil {
		return err
	}
	columns, err := s.sacct.Columns(ctx)
	if err != nil {
		return err
	}
	plan, err := job.NewPlan(s.wants, columns)
	if err != nil {
		return err
	}
	p := &pass{Source: s, plan: plan, out: out}
	if from.Window != nil {
		return p.recheckWindow(ctx, from.Window)
	}
	if err := p.resumePending(ctx, from, done); err != nil {
		return err
	}
	return p.followEvents(ctx)
}

// resumePending makes what waits that which lies behind the checkpoint.
func (p *pass) resumePending(ctx context.Context, from sdk.Start, done int64) error {
	if p.resumed && from.Rewind == 0 && bytes.Equal(p.at, from.Checkpoint) {
		return nil // it is already
	}
	p.resumed, p.sent, p.refused = false, map[job.Key]int64{}, map[refusal]bool{}
	p.journal.Raise(done)
	p.pending.forgetAll()
	first, n := done-from.Rewind.Microseconds(), 0
	err := p.journal.After(first, func(e journal.Entry) error {
		if !e.OfEnd() {
			return nil
		}
		n++
		p.pending.addEntries([]journal.Entry{e}, p.now())
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	if n > 0 {
		p.log.Info("epilogs of the journal are looked at", "epilogs", n)
	}
	p.at, p.resumed = from.Checkpoint, true
	if n > 0 || from.Rewind == 0 {
		return nil
	}
	// The daemon wants to know that the source has stepped back.
	p.at = encodeCheckpoint(done)
	return p.out.Send(ctx, sdk.Batch{Checkpoint: p.at})
}

// followEvents settles what is due, again and again.
func (p *pass) followEvents(ctx context.Context) error {
	var not time.Time // sacct is not asked before
	for p.pending.awaitDue(ctx, not, p.now) {
		due := p.pending.popDue(p.now(), p.most)
		err := p.resolveEvents(ctx, due)
		if err != nil {
			p.pending.putBack(due)
			return err
		}
		if len(due) < p.most {
			not = p.now().Add(p.config.Delay)
		}
	}
	return ctx.Err()
}

// resolveEvents asks about the runs of some events, sends those that ended, and forgets the
// events that are settled by them.
func (p *pass) resolveEvents(ctx context.Context, due []*waiting) error {
	found, err := p.askRuns(ctx, due)
	if err != nil {
		return err
	}
	d := newDraft(p)
	var settled, open []*waiting
	for _, w := range due {
		done := d.judgeEvent(w, found[w.Job])
		if !done && w.Told != "" && p.now().Sub(time.UnixMicro(w.Stamp)) >= rewrite {
			w.news, done = w.Told, true
		}
		if done {
			settled = append(settled, w)
		} else {
			open = append(open, w)
		}
	}
	if err := p.journalTold(settled); err != nil {
		return err
	}
	if len(settled) > 0 || d.hasSome() {
		done := p.pending.doneUpTo(settled)
		d.batch.Checkpoint = encodeCheckpoint(done)
		if err := p.out.Send(ctx, d.batch); err != nil {
			return err
		}
		p.rememberDraft(d)
		p.at = d.batch.Checkpoint
		p.pending.dropResolved(settled)
		p.journal.Settled(done)
	}
	for _, w := range open {
		p.postponeEvent(w)
	}
	p.pending.putBack(open)
	return nil
}

// postponeEvent says when to ask again.
func (p *pass) postponeEvent(w *waiting) {
	now := p.now()
	if w.since.IsZero() {
		w.since = now
	}
	if w.Told != "" {
		w.due = now.Add(min(p.pending.toldPause<<min(w.asked, maxPauses), mostTold))
	} else {
		w.due = now.Add(min(max(firstPause, p.config.Delay)<<min(w.asked, maxPauses), mostPause))
	}
	w.asked++
}

// journalTold writes into the journal what was told now without slurmdbd's word, before it
// is sent: the checkpoint passes its epilog then.
func (p *pass) journalTold(settled []*waiting) error {
	var again []event.Event
	_, told := p.pending.countWaiting()
	for _, w := range settled {
		e := w.Event
		switch {
		case w.news == "":
			continue
		case e.Told == "" && told+len(again) >= maxTold:
			p.log.Warn("too many runs are unknown to slurmdbd; it is not asked for this one again", "job", w.news)
			continue
		case e.Told == "":
			e.Since = p.now().UnixMicro()
		}
		e.ID, e.Told = nextID(e.ID), w.news
		again = append(again, e)
	}
	return p.journal.AppendAll(again)
}

// nextID is the id of an event that is written again: the same after a crash.
func nextID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:len(id)/2])
}

// rememberDraft notes what is with the daemon.
func (p *pass) rememberDraft(d *draft) {
	if len(p.sent) > maxSent {
		clear(p.sent)
	}
	if len(p.refused) > maxRefused {
		clear(p.refused)
	}
	for _, r := range d.sent {
		p.sent[r.Key] = r.End.Unix()
	}
	for _, mark := range d.refused {
		p.refused[mark] = true
	}
}

// recheckWindow looks at the events of a window once more.
func (p *pass) recheckWindow(ctx context.Context, w *sdk.Window) error {
	var events []*waiting
	flush := func() error {
		err := p.resolveWindow(ctx, events, w)
		events = nil
		return err
	}
	err := p.journal.After(0, func(e journal.Entry) error {
		one := &waiting{Entry: e}
		if !e.OfEnd() || one.epilogTime().Before(w.From.Add(-skew)) {
			return nil // an epilog may run long after the end, but not before it
		}
		if events = append(events, one); len(events) < p.most {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return fmt.Errorf("look again at %s to %s: %w", w.From.Format(time.RFC3339), w.To.Format(time.RFC3339), err)
	}
	return nil
}

func (p *pass) resolveWindow(ctx context.Context, events []*waiting, w *sdk.Window) error {
	if len(events) == 0 {
		return nil
	}
	found, err := p.askRuns(ctx, events)
	if err != nil {
		return err
	}
	d := newDraft(p)
	d.window = w
	for _, e := range events {
		e.since = e.epilogTime() // what slurmdbd does not have by now it may never have
		d.judgeEvent(e, found[e.Job])
	}
	if !d.hasSome() {
		return nil
	}
	return p.out.Send(ctx, d.batch)
}
