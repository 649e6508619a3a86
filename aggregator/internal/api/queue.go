package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// queueRows and queueBytes bound the records that are committed together. The result of a
// command names as many known ids.
const (
	queueRows  = store.MaxExisting
	queueBytes = 128 << 10
)

// postQueue commits records that are posted one by one. One group of them is on its way
// at a time: a record that finds none goes at once and alone; those that come meanwhile
// wait and then go together, in one command. Each stays a post of its own, that is stored
// or known, whatever becomes of the others.
type postQueue struct {
	// encode makes the rows of a command of records.
	encode func(records iter.Seq[*record.Record]) ([]byte, error)
	// try commits a command; it ends in time by itself.
	try func(ctx context.Context, c store.Command) (any, error)

	mu      sync.Mutex
	waiting []*post
	busy    bool // a group is on its way, or its leader has been chosen
}

// post is a record that waits for its command.
type post struct {
	rec   *record.Record // lent until the post is answered
	size  int
	group *group        // that it is sent with; nil while it waits
	lead  chan struct{} // has an element when this post is to commit the next group
	done  chan struct{} // closed after known and err are set
	known bool          // a record of this id was there before
	err   error
}

// group are posts that go together. When all their clients have left, it is given up.
type group struct {
	posts  []*post
	stay   int // clients that have not left
	giveUp context.CancelFunc
}

// errNoAnswer says that the store's result is not one of a post.
var errNoAnswer = errors.New("unexpected result of a post")

// alone reports whether a record is too large to wait for others.
func alone(r *record.Record) bool { return sizeOf(r) > queueBytes/2 }

// add commits a record, which must be valid and not [alone], and stay as it is until add
// returns. It reports whether one of its id was known; then nothing was stored. The error
// wraps [ErrNotNow] when nothing was written; after any other one the outcome is unknown. When
// ctx ends, a record that has not been sent is taken back; a record in flight is waited for.
func (q *postQueue) add(ctx context.Context, r *record.Record) (known bool, err error) {
	p := &post{rec: r, size: sizeOf(r), lead: make(chan struct{}, 1), done: make(chan struct{})}
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	if !q.busy {
		q.next()
	}
	q.mu.Unlock()
	select {
	case <-p.lead:
		q.commit(ctx)
	case <-p.done:
	case <-ctx.Done():
		if q.withdraw(p) {
			return false, fmt.Errorf("%w: %w", ErrNotNow, ctx.Err())
		}
		q.leave(p.group)
		<-p.done // it is on its way, and its memory is in use
	}
	return p.known, p.err
}

// next chooses the oldest post that waits to commit the next group.
func (q *postQueue) next() {
	q.busy = len(q.waiting) > 0
	if q.busy {
		q.waiting[0].lead <- struct{}{}
	}
}

// withdraw takes back a post that has not been sent.
func (q *postQueue) withdraw(p *post) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, p)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if len(p.lead) > 0 {
		q.next()
	}
	return true
}

// leave notes that the client of one post of a group has left.
func (q *postQueue) leave(g *group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if g.stay--; g.stay == 0 {
		g.giveUp()
	}
}

// commit commits the oldest posts that wait, the caller's first.
func (q *postQueue) commit(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx)) // one client may leave, the others wait
	defer cancel()
	g := q.take(cancel)
	defer context.AfterFunc(ctx, func() { q.leave(g) })()
	known, err := map[string]bool(nil), errNoAnswer
	defer func() { // after a panic too: the others and those who come later must not wait for ever
		for _, p := range g.posts {
			p.known, p.err = known[p.rec.ID], err
		}
		q.mu.Lock()
		q.next()
		q.mu.Unlock()
		for _, p := range g.posts {
			close(p.done)
		}
	}()
	known, err = q.write(work, g.posts)
}

// take takes the oldest posts that go into one command. Of two with one id the second
// waits for the next command, which finds that the id is known.
func (q *postQueue) take(giveUp context.CancelFunc) *group {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size, ids := 0, 0, map[string]bool{}
	for _, p := range q.waiting[:min(len(q.waiting), queueRows)] {
		size += p.size
		if size > queueBytes || ids[p.rec.ID] {
			break
		}
		ids[p.rec.ID] = true
		n++
	}
	g := &group{posts: slices.Clone(q.waiting[:n]), stay: n, giveUp: giveUp}
	for _, p := range g.posts {
		p.group = g
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	return g
}

// write commits a group and returns which of its ids were known.
func (q *postQueue) write(ctx context.Context, group []*post) (known map[string]bool, err error) {
	rows, err := q.encode(func(yield func(*record.Record) bool) {
		for _, p := range group {
			if !yield(p.rec) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	result, err := q.try(ctx, &store.PostCommand{Rows: rows, IgnoreExisting: true, Now: now()})
	if err != nil {
		return nil, err
	}
	answer, ok := result.(store.PostResult)
	if !ok || answer.Unknown || answer.Refused != "" {
		return nil, fmt.Errorf("%w: %T %+v", errNoAnswer, result, result)
	}
	known = make(map[string]bool, len(answer.Existing))
	for _, id := range answer.Existing {
		known[id] = true
	}
	return known, nil
}
