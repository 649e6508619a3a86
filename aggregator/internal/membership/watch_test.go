package membership

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

func hash(n uint64) store.Hash { return store.Hash{Lo: n} }

func TestOnlyTheMajorityOfAllVotersIsRight(t *testing.T) {
	voter := func(id string, h uint64) vote { return vote{id, hash(h), true} }
	learner := func(id string, h uint64) vote { return vote{id, hash(h), false} }
	for name, c := range map[string]struct {
		voters int
		votes  []vote
		want   verdict
	}{
		"alone":                   {1, []vote{voter("a", 1)}, verdict{right: hash(1), decided: true}},
		"three agree":             {3, []vote{voter("a", 1), voter("b", 1), voter("c", 1)}, verdict{right: hash(1), decided: true}},
		"two of three agree":      {3, []vote{voter("a", 1), voter("b", 1)}, verdict{right: hash(1), decided: true}},
		"one of three":            {3, []vote{voter("a", 1)}, verdict{}},
		"one differs":             {3, []vote{voter("a", 1), voter("b", 2), voter("c", 1)}, verdict{right: hash(1), decided: true, wrong: []string{"b"}}},
		"a learner differs":       {3, []vote{voter("a", 1), learner("n", 2), voter("c", 1)}, verdict{right: hash(1), decided: true, wrong: []string{"n"}}},
		"learners do not count":   {3, []vote{voter("a", 1), learner("n", 2), learner("m", 2)}, verdict{split: true}},
		"three differ":            {3, []vote{voter("a", 1), voter("b", 2), voter("c", 3)}, verdict{split: true}},
		"two differ, one is mute": {3, []vote{voter("a", 1), voter("b", 2)}, verdict{split: true}},
		"two of two differ":       {2, []vote{voter("a", 1), voter("b", 2)}, verdict{split: true}},
		"two and two":             {4, []vote{voter("a", 1), voter("b", 2), voter("c", 2), voter("d", 1)}, verdict{split: true}},
	} {
		if got := judgeVotes(c.voters, c.votes); !cmp.Equal(c.want, got, cmp.AllowUnexported(verdict{})) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// others are the other members.
type others struct {
	mu   sync.Mutex
	list []Member
}

func (o *others) Peers() []Member {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list)
}

func (o *others) say(list ...Member) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = list
}

// memory is what a store remembers.
type memory map[uint64]store.Hash

func (m memory) HashAt(index uint64) (store.Hash, bool) {
	h, ok := m[index]
	return h, ok
}

func (m memory) LastHash() (last uint64, h store.Hash, ok bool) {
	for index := range m {
		last = max(last, index)
	}
	h, ok = m[last]
	return last, h, ok
}

// writes remembers what was proposed.
type writes struct {
	mu   sync.Mutex
	list []store.Command
	err  error
}

func (w *writes) Write(_ context.Context, c store.Command) (any, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, c)
	return nil, w.err
}

func (w *writes) all() []store.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

func (w *writes) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func watching(t *testing.T, peers Peers, hashes Hashes) *Watch {
	t.Helper()
	return NewWatch(WatchOptions{ID: "me", Dir: t.TempDir(), Voter: func() bool { return true }, Peers: peers, Hashes: hashes, Writer: &writes{},
		Log: quiet(), Metrics: prometheus.NewRegistry(), Every: time.Millisecond, Look: time.Millisecond})
}

func watchedPeer(id string, index, h uint64) Member {
	return Member{ID: id, Name: id, Voter: true, Index: index, Hash: hash(h)}
}

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTheNodeThatDiffersFromTheMajorityFencesItselfForGood(t *testing.T) {
	o := &others{}
	w := watching(t, o, memory{7: hash(2)})
	o.say(watchedPeer("b", 7, 1), watchedPeer("c", 0, 0))
	if err := w.compareStates(noon); err != nil {
		t.Fatal("without a majority:", err)
	}
	if err := Fenced(w.opt.Dir); err != nil {
		t.Fatal(err)
	}
	o.say(watchedPeer("b", 8, 9), watchedPeer("c", 7, 1)) // b has gone on; what it said of 7 counts
	err := w.compareStates(noon)
	if !errors.Is(err, ErrFenced) {
		t.Fatal(err)
	}
	if !errors.Is(w.Check(), ErrFenced) || !errors.Is(w.Readable(), ErrFenced) {
		t.Error("a fenced node reads and writes")
	}
	again := Fenced(w.opt.Dir)
	if !errors.Is(again, ErrFenced) || again.Error() != err.Error() {
		t.Error(again)
	}
	for _, want := range []string{"index 7", "move " + w.opt.Dir + " away", hash(2).String(), hash(1).String(), "2026-11-21T12:00:00Z"} {
		if !strings.Contains(again.Error(), want) {
			t.Errorf("%q is missing in: %v", want, again)
		}
	}
}

func TestOneOfTheMajorityGoesOnAndNamesTheOther(t *testing.T) {
	o := &others{}
	w := watching(t, o, memory{7: hash(1)})
	o.say(watchedPeer("b", 7, 1), watchedPeer("c", 7, 2))
	if err := w.compareStates(noon); err != nil || w.Check() != nil || w.Readable() != nil {
		t.Fatal(err, w.Check())
	}
	if f := w.Facts(); !slices.Equal(f.Wrong, []string{"c"}) || !f.Equal.IsZero() {
		t.Error(f)
	}
	o.say(watchedPeer("b", 7, 1))
	w.opt.Hashes.(memory)[9] = hash(4)
	o.say(watchedPeer("b", 9, 4))
	if err := w.compareStates(noon); err != nil {
		t.Fatal(err)
	}
	if f := w.Facts(); len(f.Wrong) > 0 || f.Equal != noon {
		t.Error(f)
	}
}

func TestWithoutAMajorityNothingIsWrittenUntilThereIsOne(t *testing.T) {
	o := &others{}
	hashes := memory{7: hash(1)}
	w := watching(t, o, hashes)
	o.say(watchedPeer("b", 7, 2), watchedPeer("c", 7, 3))
	if err := w.compareStates(noon); err != nil {
		t.Fatal(err)
	}
	if err := w.Check(); !errors.Is(err, ErrDiverged) || !strings.Contains(err.Error(), "b has "+hash(2).String()) {
		t.Fatal(err)
	}
	hashes[9] = hash(5)
	o.say(watchedPeer("b", 9, 5), watchedPeer("c", 0, 0))
	if err := w.compareStates(noon); err != nil || w.Check() != nil {
		t.Error(err, w.Check())
	}
}

func TestAMemberThatIsNoneAnyMoreHasNoVote(t *testing.T) {
	o := &others{}
	w := watching(t, o, memory{7: hash(1)})
	o.say(watchedPeer("old", 7, 2), watchedPeer("b", 0, 0))
	if err := w.compareStates(noon); err != nil || w.Check() == nil {
		t.Fatal(err, w.Check())
	}
	o.say(watchedPeer("new", 7, 1), watchedPeer("b", 0, 0))
	if err := w.compareStates(noon); err != nil || w.Check() != nil {
		t.Error(err, w.Check())
	}
}

func TestOnlyTheNewestComparisonsAreKept(t *testing.T) {
	o := &others{}
	hashes := memory{}
	w := watching(t, o, hashes)
	for i := range uint64(100) {
		hashes[i+1] = hash(i)
		o.say(watchedPeer("b", i+1, i))
		if err := w.compareStates(noon); err != nil {
			t.Fatal(err)
		}
	}
	if len(w.votes) != remembered {
		t.Error(len(w.votes))
	}
}

func TestTheLeaderHasTheStatesComparedAgainAndAgain(t *testing.T) {
	w := watching(t, &others{}, memory{})
	log := w.opt.Writer.(*writes)
	log.fail(errors.New("not now"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2)
	go func() { ended <- w.Lead(ctx) }()
	go func() { ended <- w.Run(ctx) }()
	await(t, func() bool { return len(log.all()) > 3 })
	for _, c := range log.all() {
		if _, ok := c.(*store.HashCheckCommand); !ok {
			t.Errorf("%T", c)
		}
	}
	cancel()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func await(t *testing.T, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen")
		}
	}
}

func TestAFenceThatCannotBeReadKeepsTheNodeFromStarting(t *testing.T) {
	for _, text := range []string{"", "{}", `{"format":2}`, `{"format":1,"more":true}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, fenceName), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Fenced(dir); !errors.Is(err, ErrFenced) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheFormatOfAFenceStays(t *testing.T) {
	dir := t.TempDir()
	f := &Fence{At: noon, Index: 7, Own: "o", Majority: "m"}
	if err := f.raiseFence(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, fenceName))
	want := "{\n  \"format\": 1,\n  \"at\": \"2026-11-21T12:00:00Z\",\n  \"index\": 7,\n  \"own\": \"o\",\n  \"majority\": \"m\"\n}\n"
	if err != nil || string(text) != want {
		t.Errorf("%s %v", text, err)
	}
}

func FuzzFence(f *testing.F) {
	f.Add([]byte(`{"format":1,"at":"2026-11-21T12:00:00Z","index":7,"own":"o","majority":"m"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if fence, err := decodeFence(raw); err == nil && !errors.Is(fence.fenceError("/d"), ErrFenced) {
			t.Error(fence)
		}
	})
}
