package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// pass is one Collect.
type pass struct {
	*Source
	*journal.Tracker[*run.Entry]            // of allocations
	done                         checkpoint // that is in effect once what was sent is acknowledged
	start                        uint64     // the index at which the pass began

	gaps     []sdk.Gap
	nodes    map[string]nomad.Node
	asked    time.Time // when nodes were asked for
	renew    bool      // send also what was sent before, of what ended since
	since    time.Time
	blind    string // why there is no event stream; "" when there is one
	listings int
}

// Timings of a pass.
const (
	gather     = 100 * time.Millisecond // events that come within it go together
	patience   = 30 * time.Second       // how long a server may be away before it is an error
	again      = 500 * time.Millisecond // pause before the next try
	blindList  = 10 * time.Second       // between two listings without an event stream, and to the second one of a new stream
	replayWait = time.Second            // for the first events
)

// Collect follows Nomad until ctx ends.
func (s *Source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) (err error) {
	if from.Window != nil {
		return s.collectWindow(ctx, from.Window, out)
	}
	p, err := s.beginPass(ctx, from, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return p.runWithRetries(ctx)
}

// runWithRetries follows Nomad, and starts over when that breaks off.
func (p *pass) runWithRetries(ctx context.Context) error {
	if err := p.restoreJournal(ctx); err != nil {
		return err
	}
	well := time.Time{}
	for {
		listed := p.listings
		err := p.followEvents(ctx)
		if err == nil {
			return nil
		}
		if p.listings > listed {
			well = time.Now()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !errors.Is(err, errServer) || time.Since(well) > patience {
			return err
		}
		p.log.Debug("the connection to Nomad broke off", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(again):
		}
	}
}

// errOlder says that Nomad has an older state than it had.
var errOlder = errors.New("its state is older than it was")

// errServer marks errors of Nomad's, which may pass.
var errServer = errors.New("nomad")

func ofServer(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errServer, err)
}

// beginPass makes ready for a pass.
func (s *Source) beginPass(ctx context.Context, from sdk.Start, out *sdk.Stream) (*pass, error) {
	done, err := decodeCheckpoint(from.Checkpoint)
	if err != nil {
		return nil, err
	}
	tracker, err := journal.OpenTracker(ctx, journalForm(), s.dir, s.now(), from.Checkpoint)
	if err != nil {
		return nil, err
	}
	p := &pass{Source: s, Tracker: tracker, done: done, start: done.Index, nodes: map[string]nomad.Node{}}
	p.Way = p.journalWay(out)
	p.noteDowntime()
	if from.Rewind > 0 {
		p.renew, p.since = true, cmpTime(done.Look, s.now()).Add(-from.Rewind)
		p.done.Told = facts.Told{}
	}
	p.done.Journal = p.ID()
	return p, nil
}

// cmpTime is the first of two times that is not zero.
func cmpTime(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return a
}

// noteDowntime tells what may have been missed since the last listing.
func (p *pass) noteDowntime() {
	now := p.now().UTC()
	switch away := now.Sub(p.done.Look); {
	case p.done.Look.IsZero():
	case p.done.Journal != p.ID():
		p.gaps = append(p.gaps, sdk.Gap{From: p.done.Look, To: now,
			Reason: "the source's folder is not the one it had: what ran at the last listing and is no longer in Nomad could not be closed"})
	case away > p.config.Kept:
		p.gaps = append(p.gaps, sdk.Gap{From: p.done.Look, To: now.Add(-p.config.Kept),
			Reason: fmt.Sprintf("source was down for %s: allocations that Nomad garbage-collected meanwhile are missing", away.Round(time.Second))})
	}
}

// restoreJournal takes over what the journal has, and sends what the daemon may lack.
func (p *pass) restoreJournal(ctx context.Context) error {
	err := p.Restore(p.renew, func(e *run.Entry) {
		whole := e.Settled() && !e.Untold()
		for _, v := range e.Views(p.config.ends) {
			if whole && !v.Told() && (!p.renew || !v.Stop.Before(p.since)) {
				whole = false
			}
		}
		if whole {
			p.closeEntry(e)
			return
		}
		p.Open[e.Alloc.ID] = e
		p.Seen[e.Alloc.ID] = p.done.Look
		if len(e.Views(p.config.ends)) > 0 || e.Untold() {
			p.Touch(e)
		}
	})
	if err != nil {
		return err
	}
	return p.Flush(ctx)
}

func (p *pass) closeEntry(e *run.Entry) {
	p.Settle(e, e.Alloc.ModifyIndex, time.Unix(0, e.Alloc.ModifyTime))
}

// followEvents lists all allocations and then takes events, with a listing now and then,
// until something breaks.
func (p *pass) followEvents(ctx context.Context) error {
	from := p.done.Index
	feed := p.nomad.Follow(ctx, from)
	defer func() { feed.Close() }()
	if err := p.replayEvents(ctx, feed); err != nil {
		return err
	}
	for fresh := true; ; fresh = false {
		if err := p.syncListing(ctx); err != nil || p.oneLook {
			return err
		}
		if p.done.Index < from { // the stream would wait until Nomad is there again
			return ofServer(errOlder)
		}
		every := p.config.ListInterval
		if p.blind != "" || fresh { // a server that has just started may tell less than it knows
			every = min(every, blindList)
		}
		broken, err := p.handleEvents(ctx, feed, every)
		switch {
		case err != nil:
			return err
		case broken != nil && !p.withoutStream(broken):
			return ofServer(broken)
		case broken != nil: // it is tried again with every listing
			feed.Close()
			feed = p.nomad.Follow(ctx, p.done.Index)
		}
	}
}

// replayEvents takes what the server remembers of the time since the checkpoint, which
// says more than a listing about what has been purged.
func (p *pass) replayEvents(ctx context.Context, feed *nomad.Feed) error {
	if len(p.Open) == 0 {
		return nil
	}
	limit := time.NewTimer(replayWait)
	defer limit.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-limit.C: // nothing has happened, or there is no stream
		return nil
	case <-feed.Ready():
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(gather):
	}
	events, _ := feed.Take() // a failure stays and is taken again
	feed.Wake()
	return p.applyEvents(ctx, events)
}

// handleEvents takes events for a while. Broken is why there will be no more.
func (p *pass) handleEvents(ctx context.Context, feed *nomad.Feed, while time.Duration) (broken, err error) {
	end := time.NewTimer(while)
	defer end.Stop()
	for {
		busy := sdk.Idle(ctx)
		select {
		case <-ctx.Done():
			busy()
			return nil, ctx.Err()
		case <-end.C:
			busy()
			return broken, nil
		case <-feed.Ready():
		}
		busy()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(gather):
		}
		events, failure := feed.Take()
		if err := p.applyEvents(ctx, events); err != nil {
			return nil, err
		}
		if failure == nil {
			p.noteStream()
			continue
		}
		if broken = failure; !p.withoutStream(failure) {
			return broken, nil
		}
	}
}

// withoutStream reports whether the server has no event stream for this token, so
// that the listing has to do, and says so once.
func (p *pass) withoutStream(err error) bool {
	_, denied := errors.AsType[*nomad.Denied](err)
	if !denied && !nomad.NoStream(err) {
		return false
	}
	if p.blind == "" {
		p.log.Warn("Nomad's event stream cannot be followed; allocations are listed every "+blindList.String()+
			" instead, and those that come and are purged in between are missed", "error", err)
	}
	p.blind = cmp.Or(err.Error(), "unknown")
	return true
}

// noteStream notes that there is an event stream.
func (p *pass) noteStream() { p.blind = "" }

// applyEvents takes events.
func (p *pass) applyEvents(ctx context.Context, events []nomad.Event) error {
	for i := range events {
		var err error
		switch e := &events[i]; {
		case e.Job != nil:
			p.jobs.addVersion(e.Job)
		case e.Stopped != nil:
			err = p.checkStopped(ctx, e.Stopped)
		default:
			err = p.applyAllocation(e.Allocation)
		}
		if err != nil {
			return err
		}
	}
	return p.finishTouched(ctx)
}

// checkStopped finds out whether a job that was stopped was purged: then its allocations
// are gone at once, and nothing tells when their tasks ended but the purge.
func (p *pass) checkStopped(ctx context.Context, job *nomad.Evaluation) error {
	for id, e := range p.Open {
		if e.Alloc.Namespace != job.Namespace || e.Alloc.JobID != job.JobID || e.Settled() || e.Alloc.CreateTime > job.CreateTime {
			continue
		}
		_, err := p.nomad.Allocation(ctx, e.Alloc.Namespace, id)
		switch {
		case errors.Is(err, nomad.ErrGone):
			if err := p.finishTouched(ctx); err != nil { // what it lacks can still be looked up by its job
				return err
			}
			e.Purge(time.Unix(0, job.CreateTime).UTC())
			p.Touch(e)
		case err != nil:
			return p.markServerError(ctx, err)
		}
	}
	return nil
}

// applyAllocation takes the state of an allocation that an event told.
func (p *pass) applyAllocation(a *nomad.Allocation) error {
	if old, known := p.Settled[a.ID]; known && a.ModifyIndex <= old.Version {
		return nil
	}
	if _, open := p.Open[a.ID]; !open && a.ModifyIndex <= p.start && a.Over() {
		return nil // it was sent before the pass began
	}
	e, err := p.Entry(a.ID)
	if err != nil || e.Alloc.ID != "" && a.ModifyIndex <= e.Alloc.ModifyIndex {
		return err
	}
	p.observeAllocation(e, a)
	return nil
}

// observeAllocation adds what an allocation tells to its entry.
func (p *pass) observeAllocation(e *run.Entry, a *nomad.Allocation) {
	e.Observe(a, p.LastSeen(a.ID))
	p.Seen[a.ID] = p.now().UTC()
	p.Touch(e)
}
