package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/journal"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/nomad"
	"github.com/bursar-accounting/bursar/plugins/source/nomad/internal/run"
)

// syncListing lists all allocations, takes what has changed, finds out about those that
// are gone, and moves the checkpoint.
func (p *pass) syncListing(ctx context.Context) error {
	began := p.now().UTC()
	people, queue, err := p.listJobs(ctx)
	if err != nil {
		return err
	}
	listed, index, err := p.listAll(ctx)
	if err == nil && index < p.done.Index {
		p.log.Warn("Nomad's state is older than it was, as after a restore of a snapshot; all is taken again", "index", index, "before", p.done.Index)
		p.start, p.done.Index = 0, 0
		for _, e := range p.Open { // its indexes say nothing any more
			e.Alloc.CreateIndex, e.Alloc.ModifyIndex = 0, 0
		}
		listed, index, err = p.listAll(ctx)
	}
	if err != nil {
		return p.markServerError(ctx, err)
	}
	if err := p.checkVanished(ctx, listed, index); err != nil {
		return err
	}
	if err := p.retryOrphans(ctx); err != nil {
		return err
	}
	p.done.Advance(began)
	p.done.Index, p.renew = index, false
	if err := p.Prune(p.now(), p.config.Remember, func(id string) bool { return listed[id] }); err != nil {
		return err
	}
	p.Batch.Checkpoint = p.done.encodeWire()
	p.Batch.Watermark, p.Batch.CompleteFrom = began.Add(-p.config.Lag), p.done.CompleteFrom(p.config.Earliest.Time)
	p.Batch.Gaps = append(p.Batch.Gaps, p.gaps...)
	if err := p.Flush(ctx); err != nil {
		return err
	}
	p.gaps = nil
	p.listings++
	return p.sendFacts(ctx, people, queue)
}

// listAll takes all allocations that have changed, and returns which there are and
// up to which index they are whole.
func (p *pass) listAll(ctx context.Context) (map[string]bool, uint64, error) {
	listed := map[string]bool{}
	index, err := p.nomad.Allocations(ctx, func(page []*nomad.Allocation) error {
		for _, a := range page {
			listed[a.ID] = true
			if err := p.applyListed(a); err != nil {
				return err
			}
		}
		if len(p.Touched()) > 0 && len(page) > 0 { // else they wait from before
			p.Batch.Progress = &sdk.Progress{Done: int64(len(listed)), Unit: "allocations", At: fmt.Sprintf("%s, %s", page[0].Namespace, page[0].JobID)}
		}
		return p.finishTouched(ctx)
	})
	return listed, index, err
}

// markServerError marks an error as one of Nomad's, unless it is the daemon's.
func (p *pass) markServerError(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, journal.ErrDaemon) {
		return err
	}
	return ofServer(err)
}

// applyListed takes an allocation of a listing when it has news.
func (p *pass) applyListed(a *nomad.Allocation) error {
	old, isSettled := p.Settled[a.ID]
	open := p.Open[a.ID]
	again := p.renew && (!a.Over() || a.ModifyTime >= p.since.UnixNano())
	switch {
	case again:
	case open != nil && open.Alloc.ModifyIndex == a.ModifyIndex:
		return nil
	case isSettled && old.Version == a.ModifyIndex:
		return nil
	case open == nil && !isSettled && a.Over() && a.ModifyIndex <= p.start:
		p.Settled[a.ID] = journal.Settled{Version: a.ModifyIndex, Changed: time.Unix(0, a.ModifyTime)} // it was sent by a source with another journal
		return nil
	}
	e, err := p.Entry(a.ID)
	if err != nil {
		return err
	}
	if p.start == 0 && a.ModifyIndex < e.Alloc.ModifyIndex {
		e.Alloc.ModifyIndex = 0 // Nomad's state may be one of a backup
	}
	if again {
		e.Untell()
	}
	p.observeAllocation(e, a)
	return nil
}

// checkVanished asks for allocations that were expected in the listing and are not in it.
func (p *pass) checkVanished(ctx context.Context, listed map[string]bool, index uint64) error {
	for _, id := range slices.Sorted(maps.Keys(p.Open)) {
		e := p.Open[id]
		if listed[id] || e.Alloc.CreateIndex > index || e.Settled() {
			continue
		}
		a, err := p.nomad.Allocation(ctx, e.Alloc.Namespace, id)
		switch {
		case errors.Is(err, nomad.ErrGone):
			p.closeForgotten(e)
		case err != nil:
			return p.markServerError(ctx, err)
		default:
			p.observeAllocation(e, a)
		}
	}
	return p.finishTouched(ctx)
}

// closeForgotten closes what went on in an allocation that Nomad does not know any more.
func (p *pass) closeForgotten(e *run.Entry) {
	seen := p.LastSeen(e.Alloc.ID)
	lost := false
	for _, v := range e.Views(p.config.ends) {
		lost = lost || v.Stop.IsZero()
	}
	e.Forgotten(seen)
	p.Touch(e)
	if lost {
		p.log.Warn("an allocation that was running is no longer in Nomad; its end is estimated", "allocation", e.Alloc.ID, "job", e.Alloc.JobID, "end", seen)
		e.Holes = append(e.Holes, journal.Hole{From: seen, To: p.now().UTC()})
	}
}

// retryOrphans tries again to find jobs that could not be found.
func (p *pass) retryOrphans(ctx context.Context) error {
	for _, e := range p.Open {
		if e.NoJob {
			p.Touch(e)
		}
	}
	return p.finishTouched(ctx)
}
