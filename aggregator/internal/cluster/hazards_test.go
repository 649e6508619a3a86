package cluster

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestANodeWhoseTailConflictsWithAnImageIsBroughtBackByARestart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	old := f.leader()
	f.part(old)
	for range 100 { // a tail that no one else has
		if _, err := old.Submit(t.Context(), []byte("lost")); err != nil {
			break
		}
	}
	eventually(t, "it gives up", func() bool { return !old.IsLeader() })
	for _, s := range f.up() {
		s.running.conf.TrailingBytes = 1
	}
	f.say(3, 4)
	rush(t, f.leader().Node, 4, 200)
	for _, s := range f.ships {
		if s == old {
			continue
		}
		takeSnapshot(t, s.Node)
	}
	f.heal()
	select {
	case err := <-old.done: // raft alone would refuse entries for ever
		if !errors.Is(err, ErrRestart) {
			t.Fatal(err)
		}
		old.sink()
		old.restart()
	case <-t.Context().Done():
	case <-caughtUp(old, 200):
	}
	f.agree(numbered(0, 200), f.ships...)
}

func caughtUp(s *ship, want int) <-chan struct{} {
	ch := make(chan struct{})
	go func() {
		defer close(ch)
		for len(s.state.commands()) < want && s.haltReason() == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return ch
}

// stuck is a log store whose writes hang while it is closed.
type stuck struct {
	raft.LogStore
	mu   sync.RWMutex
	once sync.Once
}

func (s *stuck) StoreLogs(logs []*raft.Log) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.LogStore.StoreLogs(logs)
}

func TestALeaderWhoseLogHangsIsReplacedWhileItHangs(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	gates := map[*ship]*stuck{}
	for _, s := range f.ships {
		s.stop()
		s.conf.stall = 500 * time.Millisecond
		s.restart()
		gates[s] = &stuck{LogStore: s.entries.under}
	}
	for s, g := range gates {
		s.entries.under = g // nothing is written yet
	}
	f.found(3)
	f.say(0, 3)
	old := f.leader()
	if old.LogStalled() > 0 {
		t.Log("a write was under way")
	}
	gates[old].mu.Lock()
	defer gates[old].once.Do(gates[old].mu.Unlock)
	if _, err := old.Submit(t.Context(), []byte("c3")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the write hangs", func() bool { return old.LogStalled() > 0 })
	eventually(t, "another leads", func() bool {
		for _, s := range f.ships {
			if s != old && s.IsLeader() && s.Linearizable(t.Context()) == nil {
				return true
			}
		}
		return false
	})
	gates[old].once.Do(gates[old].mu.Unlock)
	eventually(t, "the old one follows", func() bool { return !old.IsLeader() && old.LogStalled() == 0 })
	f.say(4, 6)
	for _, s := range f.ships {
		eventually(t, "all have it", func() bool { c := s.state.commands(); return len(c) > 0 && c[len(c)-1] == "c5" })
	}
}

func TestANodeIsAliveWhileItRuns(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 1)
	for _, s := range f.ships {
		if err := s.Alive(); err != nil {
			t.Fatal(err)
		}
	}
	s := f.followers()[0]
	s.stop()
	if err := s.Alive(); err == nil {
		t.Fatal("it is alive after its end")
	}
}

// halfPipe is a pipeline that behaves as raft's own does: it hands out answers
// without a buffer, and takes no request while one waits to be read.
type halfPipe struct {
	in, out chan raft.AppendFuture
	closed  chan struct{}
}

func newHalfPipe() *halfPipe {
	h := &halfPipe{in: make(chan raft.AppendFuture), out: make(chan raft.AppendFuture), closed: make(chan struct{})}
	go func() {
		for {
			select {
			case f := <-h.in:
				select {
				case h.out <- f:
				case <-h.closed:
					return
				}
			case <-h.closed:
				return
			}
		}
	}()
	return h
}

func (h *halfPipe) AppendEntries(req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	f := done{req, resp}
	select {
	case h.in <- f:
		return f, nil
	case <-h.closed:
		return nil, raft.ErrPipelineShutdown
	}
}

func (h *halfPipe) Consumer() <-chan raft.AppendFuture { return h.out }

func (h *halfPipe) Close() error {
	close(h.closed)
	return nil
}

// done is an answer.
type done struct {
	req  *raft.AppendEntriesRequest
	resp *raft.AppendEntriesResponse
}

func (done) Error() error                            { return nil }
func (done) Start() time.Time                        { return time.Time{} }
func (d done) Request() *raft.AppendEntriesRequest   { return d.req }
func (d done) Response() *raft.AppendEntriesResponse { return d.resp }

func TestAPipelineWhoseReaderHasGoneDoesNotBlockItsSender(t *testing.T) {
	t.Parallel()
	m := &mesh{peers: newContacts(), silent: func() error { return nil }}
	p := newPipeline(newHalfPipe(), "a", m)
	defer p.Close()
	if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1, PrevLogEntry: 7}, &raft.AppendEntriesResponse{Term: 1, Success: true}); err != nil {
		t.Fatal(err)
	}
	<-p.Consumer()
	if got := m.peers.contactOf("a", 1).match; got != 7 {
		t.Fatalf("match %d", got)
	}
	refusal := &raft.AppendEntriesResponse{Term: 1}
	if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, refusal); err != nil {
		t.Fatal(err)
	}
	<-p.Consumer() // raft reads no more after this
	end := make(chan error)
	go func() {
		for {
			if _, err := p.AppendEntries(&raft.AppendEntriesRequest{Term: 1}, refusal); err != nil {
				end <- err
				return
			}
		}
	}()
	select {
	case err := <-end:
		if !errors.Is(err, raft.ErrPipelineShutdown) {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the sender is blocked")
	}
}
