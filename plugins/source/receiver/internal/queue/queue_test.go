package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/receiver/internal/seen"
	"github.com/bursar-accounting/bursar/proto/record"
)

// agent is the other end of the stream: it keeps what is sent, and its checkpoint.
type agent struct {
	mu         sync.Mutex
	checkpoint []byte
	batches    []sdk.Batch
	fail       error         // what the next sends return
	keeps      bool          // although they fail
	hold       chan struct{} // when not nil, a send waits for it
	held       chan struct{} // gets an element when one waits
}

func (a *agent) take(ctx context.Context, b sdk.Batch) error {
	if a.hold != nil && len(b.Records)+len(b.Stops) > 0 {
		a.held <- struct{}{}
		select {
		case <-a.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.fail == nil || a.keeps {
		a.batches = append(a.batches, b)
		a.checkpoint = b.Checkpoint
	}
	return a.fail
}

func (a *agent) set(fail error, keeps bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail, a.keeps = fail, keeps
}

// said is what the agent has, in a few words.
func (a *agent) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var words []string
	for _, b := range a.batches {
		for _, r := range b.Records {
			words = append(words, r.ID)
		}
		for _, s := range b.Stops {
			words = append(words, "stop "+s.ID)
		}
		for _, r := range b.Refused {
			words = append(words, "refused "+string(r.Raw))
		}
	}
	return strings.Join(words, ", ")
}

// rig is a queue between pushes and an agent.
type rig struct {
	*Queue

	t     *testing.T
	agent *agent
	ids   *seen.IDs
	end   func() // of the collection; waits for it
	err   error  // with which it ended
}

func newRig(t *testing.T, ignoreKnown bool) *rig {
	ids, err := seen.Open(filepath.Join(t.TempDir(), "known.db"), seen.Options{Remember: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ids.Close() })
	r := &rig{Queue: New(ignoreKnown, slog.New(slog.DiscardHandler)), t: t, agent: &agent{}, ids: ids}
	return r
}

// collect begins a collection, from where the agent is.
func (r *rig) collect() {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	r.agent.mu.Lock()
	from := sdk.Start{Checkpoint: r.agent.checkpoint}
	r.agent.mu.Unlock()
	go func() {
		defer close(done)
		r.err = r.Run(ctx, from, r.ids, sdk.NewStream(nil, r.agent.take))
	}()
	r.end = func() { cancel(); <-done }
	r.t.Cleanup(r.end)
}

// awaitFailure waits until the collection has ended by itself.
func (r *rig) awaitFailure() {
	r.t.Helper()
	for range 600 {
		if !r.Ready() {
			r.end()
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	r.t.Fatal("the collection goes on")
}

func rec(id string) record.Record {
	return record.Record{ID: id, Stop: record.None, Submit: record.None}
}

func add(ids ...string) Push {
	var p Push
	for _, id := range ids {
		p.Records = append(p.Records, rec(id))
	}
	return p
}

func (r *rig) push(p Push) string {
	r.t.Helper()
	result, err := r.Do(r.t.Context(), p)
	if err != nil {
		return err.Error()
	}
	return []string{"taken", "exists", "some"}[result]
}

func (r *rig) want(p Push, result string) {
	r.t.Helper()
	if got := r.push(p); got != result {
		r.t.Errorf("%v: %s, want %s", p, got, result)
	}
}

func (r *rig) wantSaid(want string) {
	r.t.Helper()
	if got := r.agent.said(); got != want {
		r.t.Errorf("the agent has %q, want %q", got, want)
	}
}

func TestAPushIsTakenOnceAndABulkAsAWholeOrNotAtAll(t *testing.T) {
	r := newRig(t, false)
	r.collect()
	r.want(add("a"), "taken")
	r.want(add("a"), "exists")
	r.want(add("b", "c"), "taken")
	r.want(add("d", "c"), "exists")
	r.want(add("e", "e"), "exists")
	r.want(add("d"), "taken")
	r.want(Push{Stop: &sdk.Stop{ID: "elsewhere"}}, "taken")
	r.want(Push{Stop: &sdk.Stop{ID: "a"}}, "taken")
	r.want(Push{Refused: &sdk.Refused{Raw: []byte("x")}}, "taken")
	r.wantSaid("a, b, c, d, stop elsewhere, stop a, refused x")
}

func TestWithKnownOnesIgnoredTheOthersAreTaken(t *testing.T) {
	r := newRig(t, true)
	r.collect()
	r.want(add("a"), "taken")
	r.want(add("a"), "some")
	r.want(add("b", "a", "b", "c"), "some")
	r.wantSaid("a, b, c")
}

func TestPushesThatComeWhileAGroupIsWrittenGoTogetherInOrder(t *testing.T) {
	r := newRig(t, false)
	r.agent.hold, r.agent.held = make(chan struct{}), make(chan struct{}, 10)
	r.collect()
	var all sync.WaitGroup
	push := func(p Push, result string) { all.Go(func() { r.want(p, result) }) }
	push(add("first"), "taken")
	<-r.agent.held
	for i := range 100 {
		push(add(fmt.Sprint(i)), "taken")
	}
	push(add("first"), "exists") // it waits for the first
	for len(r.queued()) < 101 {
		time.Sleep(time.Millisecond)
	}
	close(r.agent.hold)
	all.Wait()
	if n := len(r.agent.batches); n != 3 { // the checkpoint, the first, the others
		t.Errorf("%d batches", n)
	}
}

func (q *Queue) queued() []*entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.waiting)
}

func TestAGroupIsCutBeforeItIsTooLarge(t *testing.T) {
	r := newRig(t, false)
	var all sync.WaitGroup
	for i := range 5 {
		p := add(fmt.Sprint(i))
		p.Records[0].State = strings.Repeat("x", groupBytes/2)
		all.Go(func() { r.want(p, "taken") })
	}
	for len(r.queued()) < 5 {
		time.Sleep(time.Millisecond)
	}
	r.collect()
	all.Wait()
	for _, b := range r.agent.batches {
		if len(b.Records) > 1 {
			t.Errorf("%d records of half a group each", len(b.Records))
		}
	}
}

func TestAGroupWhoseEndIsNotKnownIsSettledByTheNextCheckpoint(t *testing.T) {
	for name, keeps := range map[string]bool{"it got there": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			r.collect()
			r.want(add("before"), "taken")
			r.agent.set(errors.New("the stream broke"), keeps)
			answer := make(chan string, 1)
			go func() { answer <- r.push(add("a", "b")) }()
			r.awaitFailure()
			if r.err == nil {
				t.Error("the collection ended without an error")
			}
			r.agent.set(nil, false)
			r.collect()
			if got := <-answer; got != "taken" {
				t.Error(got)
			}
			r.wantSaid("before, a, b")
			r.want(add("b"), "exists")
		})
	}
}

func TestWhatNobodyWaitsForIsNotSent(t *testing.T) {
	r := newRig(t, false)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Do(ctx, add("late")); !errors.Is(err, ErrNotNow) {
		t.Error(err)
	}
	r.collect()
	r.want(add("a"), "taken")
	r.wantSaid("a")
}

func TestAnIdIsUnknownAgainWhenItsRecordDidNotGetThere(t *testing.T) {
	r := newRig(t, false)
	r.collect()
	r.agent.set(errors.New("no"), false)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		r.awaitFailure()
	}()
	if _, err := r.Do(ctx, add("a")); !errors.Is(err, ErrNotNow) {
		t.Error(err)
	}
	r.agent.set(nil, false)
	r.collect()
	r.want(add("a"), "taken")
	r.wantSaid("a")
}

func TestItIsNotReadyWhileNobodyCollects(t *testing.T) {
	r := newRig(t, false)
	if r.Ready() {
		t.Error("ready before the first collection")
	}
	r.collect()
	r.want(add("a"), "taken")
	if !r.Ready() {
		t.Error("not ready")
	}
	r.end()
	if r.Ready() {
		t.Error("ready after it")
	}
}

func TestAnAgentThatKnowsWhereTheSourceIsIsNotToldAgain(t *testing.T) {
	r := newRig(t, false)
	r.collect()
	r.want(add("a"), "taken")
	n := len(r.agent.batches)
	r.end()
	r.collect()
	r.want(add("b"), "taken")
	if len(r.agent.batches) != n+1 {
		t.Errorf("%d batches, want %d", len(r.agent.batches), n+1)
	}
}

func TestDo_PushesThatTimedOut_AreNotKeptWhileASendHangs(t *testing.T) {
	r := newRig(t, false)
	r.agent.hold, r.agent.held = make(chan struct{}), make(chan struct{}, 1)
	r.collect()
	first := make(chan error, 1)
	go func() {
		_, err := r.Do(t.Context(), Push{Stop: &sdk.Stop{ID: "under way"}})
		first <- err
	}()
	<-r.agent.held // the agent takes nothing, as one whose buffer is full
	for n := range 5000 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := r.Do(ctx, Push{Stop: &sdk.Stop{ID: fmt.Sprint(n)}}); !errors.Is(err, ErrNotNow) {
			t.Fatal(err)
		}
	}
	r.mu.Lock()
	kept := len(r.waiting)
	r.mu.Unlock()
	if kept > 0 {
		t.Errorf("%d of 5000 pushes are kept", kept)
	}
	close(r.agent.hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
}
