package source

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/journal"
	"github.com/bursar-accounting/bursar/proto/heap"
)

// waiting is an event of which it is not known yet what became of its run.
type waiting struct {
	journal.Entry

	due   time.Time // when sacct is to be asked
	asked int       // how often it was
	since time.Time // when it first answered without the run's end; zero: it did not
	news  string    // the job id under which the run is told now without slurmdbd's word
}

// epilogTime is when the epilog ran.
func (w *waiting) epilogTime() time.Time { return time.UnixMicro(w.At) }

// pending are the events that wait, by when they are due.
type pending struct {
	mu        sync.Mutex
	byStamp   map[int64]*waiting
	order     []int64 // stamps, ascending; those that are done may still be there
	due       heap.Heap[*waiting]
	last      int64 // the greatest stamp that came
	told      int   // of those that wait, how many were told without slurmdbd's word
	news      chan struct{}
	toldPause time.Duration // before it is asked first for what was told
}

func newPending() *pending {
	soonest := func(a, b *waiting) bool { return a.due.Before(b.due) }
	return &pending{byStamp: map[int64]*waiting{}, due: heap.Heap[*waiting]{Less: soonest}, news: make(chan struct{}, 1), toldPause: toldPause}
}

// forgetAll forgets all that waits.
func (p *pending) forgetAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.byStamp)
	p.order, p.due.Items, p.told = nil, nil, 0
}

// addEntries adds entries that are not there yet.
func (p *pending) addEntries(entries []journal.Entry, due time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range entries {
		if p.byStamp[e.Stamp] != nil {
			continue
		}
		w := &waiting{Entry: e, due: due}
		p.byStamp[e.Stamp] = w
		if e.Told != "" {
			p.told++
			if w.due = due.Add(p.toldPause); e.Stamp-e.Since > mostTold.Microseconds() {
				w.due, w.asked = due.Add(mostTold), maxPauses
			}
		}
		if n := len(p.order); n > 0 && p.order[n-1] > e.Stamp {
			at, _ := slices.BinarySearch(p.order, e.Stamp)
			p.order = slices.Insert(p.order, at, e.Stamp)
		} else {
			p.order = append(p.order, e.Stamp)
		}
		p.due.Push(w)
		p.last = max(p.last, e.Stamp)
	}
	select {
	case p.news <- struct{}{}:
	default:
	}
}

// countWaiting counts those of which nothing was told yet, and those of which something was.
func (p *pending) countWaiting() (fresh, told int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.byStamp) - p.told, p.told
}

// popDue removes from the queue, but not from what waits, at most so many that are due.
func (p *pending) popDue(now time.Time, most int) []*waiting {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*waiting
	for len(out) < most && len(p.due.Items) > 0 && !p.due.Items[0].due.After(now) {
		out = append(out, p.due.Pop())
	}
	return out
}

// putBack returns to the queue what popDue gave.
func (p *pending) putBack(list []*waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range list {
		if p.byStamp[w.Stamp] == w {
			p.due.Push(w)
		}
	}
}

// dropResolved forgets events that are done with.
func (p *pending) dropResolved(list []*waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range list {
		if p.byStamp[w.Stamp] == w && w.Told != "" {
			p.told--
		}
		delete(p.byStamp, w.Stamp)
	}
}

// doneUpTo is the stamp up to which nothing waits but those.
func (p *pending) doneUpTo(those []*waiting) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.order) > 0 && p.byStamp[p.order[0]] == nil {
		p.order = p.order[1:]
	}
	without := make(map[int64]bool, len(those))
	for _, w := range those {
		without[w.Stamp] = true
	}
	for _, stamp := range p.order {
		if p.byStamp[stamp] != nil && !without[stamp] {
			return stamp - 1
		}
	}
	return p.last
}

// awaitDue waits until something is due and not before the time not; it reports false
// when ctx has ended.
func (p *pending) awaitDue(ctx context.Context, not time.Time, now func() time.Time) bool {
	for ctx.Err() == nil {
		pause, ready := p.pauseUntil(not, now())
		if ready {
			return true
		}
		timer, busy := time.NewTimer(pause), sdk.Idle(ctx)
		select {
		case <-ctx.Done():
		case <-p.news:
		case <-timer.C:
		}
		timer.Stop()
		busy()
	}
	return false
}

const longPause = time.Minute

func (p *pending) pauseUntil(not, now time.Time) (pause time.Duration, ready bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.due.Items) == 0 {
		return longPause, false
	}
	at := p.due.Items[0].due
	if at.Before(not) {
		at = not
	}
	if !at.After(now) {
		return 0, true
	}
	return min(at.Sub(now), longPause), false
}
