package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/seen"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Push is what one request says. One of its parts is set.
type Push struct {
	Records []record.Record // all of them, or none
	Stop    *sdk.Stop
	Refused *sdk.Refused // what was not understood, to be kept
}

// Result says what became of a push.
type Result int

// The results.
const (
	Taken  Result = iota // it is on the agent's disk
	Exists               // a record of it is known; nothing of it was taken
	Some                 // those of its records that were not known are on the agent's disk
)

// ErrNotNow says that a push was not answered in time: it may be taken later, or
// never.
var ErrNotNow = errors.New("the agent does not take it now")

// Limits of a group: a few thousand records, and what is far below the greatest
// message. One push alone may be larger.
const (
	groupBytes = 4 << 20
	groupMost  = 4096
)

// Queue gathers pushes. It is safe for concurrent use.
type Queue struct {
	// ignoreKnown takes those records of a push that are not known, instead of none.
	ignoreKnown bool
	log         *slog.Logger
	wake        chan struct{}

	mu      sync.Mutex
	waiting []*entry
	running bool      // the agent listens
	since   time.Time // when the group began that is being written; zero when there is none

	group *group // the one whose end is not known; of Run alone
}

// New makes a queue. With ignoreKnown, the records of a push that are known are left
// out of it, and do not refuse the others.
func New(ignoreKnown bool, log *slog.Logger) *Queue {
	return &Queue{ignoreKnown: ignoreKnown, log: log, wake: make(chan struct{}, 1)}
}

// entry is a push that waits.
type entry struct {
	push   Push
	size   int
	gone   bool // no one waits any more; under the queue's lock
	answer chan Result
}

// Do queues a push and waits for what becomes of it. When ctx ends before, the error
// is [ErrNotNow].
func (q *Queue) Do(ctx context.Context, p Push) (Result, error) {
	e := &entry{push: p, size: p.byteSize(), answer: make(chan Result, 1)}
	q.mu.Lock()
	q.waiting = append(q.waiting, e)
	q.mu.Unlock()
	q.wakeWriter()
	select {
	case r := <-e.answer:
		return r, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e.gone = true
	q.dropGone()
	select {
	case r := <-e.answer:
		return r, nil
	default:
		return 0, ErrNotNow
	}
}

func (p *Push) byteSize() int {
	n := 64
	for i := range p.Records {
		n += sdk.SizePushed(&p.Records[i])
	}
	if p.Stop != nil {
		n += len(p.Stop.ID)
	}
	if p.Refused != nil {
		n += len(p.Refused.Raw)
	}
	return n
}

func (q *Queue) wakeWriter() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// stuckAfter is how long a group may be under way before the agent counts as one
// that takes nothing.
const stuckAfter = 5 * time.Second

// Ready reports whether a push would be taken now.
func (q *Queue) Ready() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.running && (q.since.IsZero() || time.Since(q.since) < stuckAfter)
}

func (q *Queue) setRunning(running bool, since time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running, q.since = running, since
}

// Run sends what is queued until ctx ends or sending fails. What it could not finish
// waits for the next Run, whose checkpoint tells whether it got there.
func (q *Queue) Run(ctx context.Context, from sdk.Start, ids *seen.IDs, out *sdk.Stream) error {
	defer q.setRunning(false, time.Time{})
	if err := q.resumeGroup(ctx, from, ids, out); err != nil {
		return err
	}
	q.setRunning(true, time.Time{})
	for {
		entries, err := q.waitForPushes(ctx)
		if err != nil {
			return err
		}
		if err := q.sendGroup(ctx, entries, ids, out); err != nil {
			return err
		}
	}
}

// resumeGroup finishes or puts back the group that the last Run left, and tells the agent
// where the source is when it does not know.
func (q *Queue) resumeGroup(ctx context.Context, from sdk.Start, ids *seen.IDs, out *sdk.Stream) error {
	whole, err := ids.Resume(from.Checkpoint)
	if err != nil {
		return err
	}
	if g := q.group; g != nil {
		q.group = nil
		if g.numbered && ids.Alive(g.batch) {
			q.answerGroup(g)
		} else {
			q.putBack(g.entries)
		}
	}
	if whole && from.Rewind == 0 {
		return nil
	}
	return out.Send(ctx, sdk.Batch{Checkpoint: ids.Checkpoint().Bytes()})
}

// putBack puts entries in front of those that wait.
func (q *Queue) putBack(entries []*entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(slices.Clone(entries), q.waiting...)
	q.dropGone()
}

// dropGone forgets the pushes for whose answer no one waits any more, so that no more
// are kept than clients wait for. The caller holds the lock.
func (q *Queue) dropGone() {
	q.waiting = slices.DeleteFunc(q.waiting, func(e *entry) bool { return e.gone })
}

// waitForPushes waits for pushes and returns as many as a group may have. Those for whose
// answer no one waits any more are dropped: their clients know that they do not know.
func (q *Queue) waitForPushes(ctx context.Context) ([]*entry, error) {
	busy := sdk.Idle(ctx)
	defer busy()
	for {
		if entries := q.firstPushes(); len(entries) > 0 {
			return entries, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-q.wake:
		}
	}
}

func (q *Queue) firstPushes() []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size, records := 0, 0, 0
	for n < len(q.waiting) {
		e := q.waiting[n]
		size, records = size+e.size, records+max(len(e.push.Records), 1)
		if n > 0 && (size > groupBytes || records > groupMost) {
			break
		}
		n++
	}
	entries := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return entries
}

// sendGroup writes one group.
func (q *Queue) sendGroup(ctx context.Context, entries []*entry, ids *seen.IDs, out *sdk.Stream) error {
	q.setRunning(true, time.Now())
	defer q.setRunning(true, time.Time{})
	g, err := formGroup(entries, ids, q.ignoreKnown)
	if err != nil {
		q.putBack(entries)
		return err
	}
	q.group = g
	if g.isEmpty() {
		q.group = nil
		q.answerGroup(g)
		return nil
	}
	at, err := ids.Put(g.ids)
	if err != nil {
		return err
	}
	g.batch, g.numbered = at.Batch, true
	g.out.Checkpoint = at.Bytes()
	if err := out.Send(ctx, g.out); err != nil {
		return err
	}
	q.group = nil
	q.answerGroup(g)
	return nil
}

// answerGroup answers all of a group, which the agent has on disk.
func (q *Queue) answerGroup(g *group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i, e := range g.entries {
		e.answer <- g.results[i]
	}
}
