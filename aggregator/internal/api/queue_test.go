package api

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// slowStore takes posts, each command in a time of its own.
type slowStore struct {
	took     time.Duration
	fail     error
	mu       sync.Mutex
	has      map[string]bool
	commands []int // records of each
	stops    map[string]record.Time
}

func (s *slowStore) try(_ context.Context, c store.Command) (any, error) {
	time.Sleep(s.took)
	switch c := c.(type) {
	case *store.PutStopCommand:
		return s.put([]store.PutStop{{ID: c.ID, Stop: c.Stop}})[0], nil
	case *store.PutStopsCommand:
		return s.put(c.Puts), nil
	}
	ids := strings.Fields(string(c.(*store.PostCommand).Rows))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, len(ids))
	if s.fail != nil {
		return nil, s.fail
	}
	var result store.PostResult
	for _, id := range ids {
		if s.has[id] {
			result.Existing = append(result.Existing, id)
		}
		s.has[id] = true
	}
	return result, nil
}

// put notes the stops of records that are there.
func (s *slowStore) put(puts []store.PutStop) (results []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commands = append(s.commands, -len(puts))
	for _, p := range puts {
		if s.has[p.ID] {
			s.stops[p.ID] = p.Stop
		}
		results = append(results, store.PutResult{Found: s.has[p.ID]})
	}
	return results
}

// ids stand for rows.
func ids(records iter.Seq[*record.Record]) (rows []byte, err error) {
	for r := range records {
		rows = append(append(rows, r.ID...), '\n')
	}
	return rows, nil
}

func newQueue() (*postQueue, *slowStore) {
	s := &slowStore{took: time.Millisecond, has: map[string]bool{}, stops: map[string]record.Time{}}
	return &postQueue{encode: ids, try: s.try, together: func() bool { return true }}, s
}

func queued(id string) *record.Record {
	return &record.Record{ID: id, Start: 1, Stop: 2, Components: []record.Component{{Name: "Cores", Amount: 1}}}
}

func TestPostQueue_OneAfterTheOther_EachGoesAtOnceAndAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue()
		begun := time.Now()
		for i := range 10 {
			if known, err := q.commitPost(t.Context(), newPost(queued(fmt.Sprint(i)))); known || err != nil {
				t.Fatal(known, err)
			}
		}
		if took := time.Since(begun); took != 10*time.Millisecond || len(s.commands) != 10 {
			t.Errorf("10 posts took %s and %v commands, want 10 ms and 10", took, s.commands)
		}
	})
}

func TestPostQueue_WhileOneIsOnItsWay_AllOthersGoTogether(t *testing.T) {
	for _, n := range []int{1, 16, 256} {
		synctest.Test(t, func(t *testing.T) {
			q, s := newQueue()
			var g sync.WaitGroup
			for i := range n + 1 {
				g.Go(func() {
					if known, err := q.commitPost(t.Context(), newPost(queued(fmt.Sprint(i)))); known || err != nil {
						t.Error(i, known, err)
					}
				})
				synctest.Wait()
			}
			g.Wait()
			if len(s.commands) != 2 || s.commands[0] != 1 || s.commands[1] != n {
				t.Errorf("%d posts after the first one: commands of %v records", n, s.commands)
			}
		})
	}
}

// TestPostQueue_StopsBetweenRecords_GoTogetherInTheirOrder has a command for each run of
// writes of one kind; a stop of a record that comes later finds none.
func TestPostQueue_StopsBetweenRecords_GoTogetherInTheirOrder(t *testing.T) {
	for _, together := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			q, s := newQueue()
			q.together = func() bool { return together }
			var g sync.WaitGroup
			add := func(p *post, want bool) {
				g.Go(func() {
					if known, err := q.commitPost(t.Context(), p); known != want || err != nil {
						t.Error(p.id, known, err)
					}
				})
				synctest.Wait()
			}
			add(newPost(queued("first")), false) // alone: the others come while it is on its way
			add(newPost(queued("a")), false)
			add(newPost(queued("b")), false)
			add(newPut("a", 5), true)
			add(newPut("b", 6), true)
			add(newPut("c", 7), false)
			add(newPost(queued("c")), false)
			add(newPut("c", 8), true)
			add(newPut("c", 9), true)
			g.Wait()
			want := []int{1, 2, -3, 1, -1, -1}
			if !together {
				want = []int{1, 2, -1, -1, -1, 1, -1, -1}
			}
			if !slices.Equal(s.commands, want) || s.stops["a"] != 5 || s.stops["b"] != 6 || s.stops["c"] != 9 {
				t.Errorf("together %t: commands %v, want %v; stops %v", together, s.commands, want, s.stops)
			}
		})
	}
}

// The same ids are posted by many, at random moments; some leave, and some records are large.
func TestPostQueue_ManyPostsOfTheSameIds_ExactlyOneOfEachIsNew(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			q, s := newQueue()
			rng := rand.New(rand.NewPCG(seed, 1))
			added, left := map[string]int{}, 0
			var mu sync.Mutex
			var g sync.WaitGroup
			for range 2000 {
				r := queued(fmt.Sprint("id-", rng.IntN(300)))
				if rng.IntN(50) == 0 {
					r.Meta = record.Meta{{Key: "k", Values: []string{string(make([]byte, rng.IntN(60<<10)))}}}
				}
				wait, patience := time.Duration(rng.IntN(20_000))*time.Microsecond, time.Duration(1+rng.IntN(30_000))*time.Microsecond
				g.Go(func() {
					time.Sleep(wait)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					known, err := q.commitPost(ctx, newPost(r))
					mu.Lock()
					defer mu.Unlock()
					switch {
					case errors.Is(err, ErrNotNow):
						left++
					case err != nil:
						t.Error(err)
					case !known:
						added[r.ID]++
					}
				})
			}
			g.Wait()
			for id, n := range added {
				if n != 1 {
					t.Errorf("seed %d: %s is new for %d", seed, id, n)
				}
			}
			if len(added) != len(s.has) || left == 0 || q.busy || len(q.waiting) > 0 {
				t.Errorf("seed %d: %d are new, %d stored; %d left; busy %t, waiting %d", seed, len(added), len(s.has), left, q.busy, len(q.waiting))
			}
		})
	}
}

func TestPostQueue_AllClientsOfACommandLeave_ItIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, _ := newQueue()
		q.try = func(ctx context.Context, _ store.Command) (any, error) {
			<-ctx.Done() // as while no node leads
			return nil, ErrNotNow
		}
		var g sync.WaitGroup
		for i := range 10 {
			g.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+i%5)*time.Second)
				defer cancel()
				if _, err := q.commitPost(ctx, newPost(queued(fmt.Sprint(i)))); !errors.Is(err, ErrNotNow) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		begun := time.Now()
		g.Wait()
		if took := time.Since(begun); took > 5*time.Second || q.busy || len(q.waiting) > 0 {
			t.Errorf("given up after %s; busy %t, waiting %d", took, q.busy, len(q.waiting))
		}
	})
}

func TestPostQueue_ACommandThatFailsOrPanics_FailsItsPostsAndNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, s := newQueue()
		s.fail = errors.New("no leader")
		if _, err := q.commitPost(t.Context(), newPost(queued("a"))); !errors.Is(err, s.fail) {
			t.Error(err)
		}
		q.try = func(context.Context, store.Command) (any, error) { time.Sleep(time.Millisecond); panic("a defect") }
		var g sync.WaitGroup
		g.Go(func() {
			defer func() { _ = recover() }()
			_, _ = q.commitPost(t.Context(), newPost(queued("b")))
			t.Error("no panic")
		})
		synctest.Wait()
		q.try = s.try
		s.fail = nil
		if known, err := q.commitPost(t.Context(), newPost(queued("c"))); known || err != nil {
			t.Error(known, err)
		}
		g.Wait()
	})
}
