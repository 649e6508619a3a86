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

// postQueue commits records that are posted one by one, and stops that are put. One group of
// them is on its way at a time: one that finds none goes at once and alone; those that come
// meanwhile wait and then go together, in one command. Each stays a write of its own,
// whatever becomes of the others, and they are applied in the order in which they came.
type postQueue struct {
	// encode makes the rows of a command of records.
	encode func(records iter.Seq[*record.Record]) ([]byte, error)
	// together reports whether stops may go together: the cluster has agreed on their command.
	together func() bool
	// try commits a command; it ends in time by itself.
	try func(ctx context.Context, c store.Command) (any, error)

	mu      sync.Mutex
	waiting []*post
	busy    bool // a group is on its way, or its leader has been chosen
}

// post is a record, or a stop, that waits for its command.
type post struct {
	id   string
	rec  *record.Record // lent until the post is answered; nil: a stop is put
	stop record.Time

	archived string // the archive that has a record with another stop
	size     int
	group    *group        // that it is sent with; nil while it waits
	leads    chan struct{} // has an element when this post is to commit the next group
	done     chan struct{} // closed after known and err are set
	known    bool          // a record of this id was there before; for a stop, is shown
	err      error
}

// group are posts that go together. When all their clients have left, it is given up.
type group struct {
	posts   []*post
	clients int // that have not left
	giveUp  context.CancelFunc
}

// errNoAnswer says that the store's result is not one of a post.
var errNoAnswer = errors.New("unexpected result of a post")

// newPost is a post of a record, which must be valid and stay as it is until it is added.
func newPost(r *record.Record) *post {
	return &post{id: r.ID, rec: r, size: sizeOf(r), leads: make(chan struct{}, 1), done: make(chan struct{})}
}

// newPut is a post of a stop.
func newPut(id string, stop record.Time) *post {
	return &post{id: id, stop: stop, size: len(id) + 16, leads: make(chan struct{}, 1), done: make(chan struct{})}
}

// exceedsGroup reports whether the record is too large to wait for others.
func (p *post) exceedsGroup() bool { return p.size > queueBytes/2 }

// commitPost commits a post, which must not exceed a group. It reports whether a record of its id was
// known: then a record was not stored, and a stop was. The error
// wraps [ErrNotNow] when nothing was written; after any other one the outcome is unknown. When
// ctx ends, a record that has not been sent is taken back; a record in flight is waited for.
func (q *postQueue) commitPost(ctx context.Context, p *post) (known bool, err error) {
	q.mu.Lock()
	q.waiting = append(q.waiting, p)
	if !q.busy {
		q.chooseLeader()
	}
	q.mu.Unlock()
	select {
	case <-p.leads:
		q.commitNext(ctx)
	case <-p.done:
	case <-ctx.Done():
		if q.withdraw(p) {
			return false, fmt.Errorf("%w: %w", ErrNotNow, ctx.Err())
		}
		q.leaveGroup(p.group)
		<-p.done // it is on its way, and its memory is in use
	}
	return p.known, p.err
}

// chooseLeader chooses the oldest post that waits to commit the next group.
func (q *postQueue) chooseLeader() {
	q.busy = len(q.waiting) > 0
	if q.busy {
		q.waiting[0].leads <- struct{}{}
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
	if len(p.leads) > 0 {
		q.chooseLeader()
	}
	return true
}

// leaveGroup notes that the client of one post of a group has left.
func (q *postQueue) leaveGroup(g *group) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if g.clients--; g.clients == 0 {
		g.giveUp()
	}
}

// commitNext commits the oldest posts that wait, the caller's first.
func (q *postQueue) commitNext(ctx context.Context) {
	work, cancel := context.WithCancel(context.WithoutCancel(ctx)) // one client may leave, the others wait
	defer cancel()
	g := q.dequeueGroup(cancel)
	defer context.AfterFunc(ctx, func() { q.leaveGroup(g) })()
	known, err := map[string]bool(nil), errNoAnswer
	defer func() { // after a panic too: the others and those who come later must not wait for ever
		for _, p := range g.posts {
			p.known, p.err = known[p.id], err
		}
		q.mu.Lock()
		q.chooseLeader()
		q.mu.Unlock()
		for _, p := range g.posts {
			close(p.done)
		}
	}()
	known, err = q.writeGroup(work, g.posts)
}

// dequeueGroup takes the oldest posts that go into one command: all records, or all stops. Of two with
// one id the second waits for the next command, which finds that the id is known.
func (q *postQueue) dequeueGroup(giveUp context.CancelFunc) *group {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size, ids := 0, 0, map[string]bool{}
	first := q.waiting[0]
	most := queueRows
	if first.rec == nil && !q.together() {
		most = 1
	}
	for _, p := range q.waiting[:min(len(q.waiting), most)] {
		size += p.size
		if size > queueBytes || ids[p.id] || (p.rec == nil) != (first.rec == nil) {
			break
		}
		ids[p.id] = true
		n++
	}
	g := &group{posts: slices.Clone(q.waiting[:n]), clients: n, giveUp: giveUp}
	for _, p := range g.posts {
		p.group = g
	}
	q.waiting = slices.Delete(q.waiting, 0, n)
	return g
}

// writeGroup commits a group and returns which of its ids were known.
func (q *postQueue) writeGroup(ctx context.Context, group []*post) (known map[string]bool, err error) {
	if group[0].rec == nil {
		return q.writeStops(ctx, group)
	}
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
	result, err := q.try(ctx, &store.PostCommand{Rows: rows, IgnoreExisting: true, Now: clockNow()})
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

// writeStops commits a group of stops and returns which of its ids show a record.
func (q *postQueue) writeStops(ctx context.Context, group []*post) (known map[string]bool, err error) {
	c := store.Command(&store.PutStopCommand{ID: group[0].id, Stop: group[0].stop, Now: clockNow()})
	if len(group) > 1 {
		puts := make([]store.PutStop, len(group))
		for i, p := range group {
			puts[i] = store.PutStop{ID: p.id, Stop: p.stop}
		}
		c = &store.PutStopsCommand{Puts: puts, Now: clockNow()}
	}
	result, err := q.try(ctx, c)
	if err != nil {
		return nil, err
	}
	answers, ok := result.([]any)
	if !ok {
		answers = []any{result}
	}
	known = make(map[string]bool, len(group))
	for i, answer := range answers {
		put, ok := answer.(store.PutResult)
		if !ok || len(answers) != len(group) {
			return nil, fmt.Errorf("%w: %T %+v", errNoAnswer, result, result)
		}
		group[i].archived = put.Archived
		known[group[i].id] = put.Found
	}
	return known, nil
}
