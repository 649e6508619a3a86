package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/gauges"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// ErrDiverged is wrapped by the error of [Watch.Check] while the nodes' states
// differ and no one knows which is right.
var ErrDiverged = errors.New("the states of the nodes differ, and none has a majority")

// Member is what another member of the cluster says of itself.
type Member struct {
	ID    string
	Name  string
	Voter bool
	// Index and Hash are of the newest comparison that the member took part in.
	Index uint64
	Hash  store.Hash
	// Commands is the greatest version of a command that it can apply; 0 when it
	// has not been heard.
	Commands uint32
	// Offset is how far its clock is ahead of this node's, and Doubt how wrong
	// that may be at most.
	Offset, Doubt time.Duration
	// Heard is when it said so, by this node's monotonic clock; zero for never.
	Heard time.Time
}

// Peers says who the other members are, whether they have been heard or not.
type Peers interface{ Peers() []Member }

// Writer commits commands while this node leads.
type Writer interface {
	Write(ctx context.Context, c store.Command) (any, error)
}

// Hashes are the state hashes that a store remembers.
type Hashes interface {
	HashAt(index uint64) (store.Hash, bool)
	LastHash() (index uint64, h store.Hash, ok bool)
}

// WatchOptions of a [Watch].
type WatchOptions struct {
	ID      string // this node's id
	Dir     string // its data directory
	Voter   func() bool
	Peers   Peers
	Hashes  Hashes
	Writer  Writer
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Every is how often the states are compared; 0 means a minute.
	Every time.Duration
	// Look is how often the others' answers are looked at; 0 means a second.
	Look time.Duration
}

// Watch compares the state of this node with that of the others.
type Watch struct {
	opt WatchOptions

	mu    sync.Mutex
	votes map[uint64]map[string]vote // by index and id
	bad   error                      // the states differ and none is right
	out   error                      // this node is fenced
	badAt uint64
	wrong []string  // who differs from the majority
	good  time.Time // when all voters were last found equal
}

const (
	defaultEvery = time.Minute
	defaultLook  = time.Second
	// remembered is how many comparisons are waited for at once.
	remembered = 16
)

// NewWatch makes a watch.
func NewWatch(opt WatchOptions) *Watch {
	opt.Every, opt.Look = cmp.Or(opt.Every, defaultEvery), cmp.Or(opt.Look, defaultLook)
	w := &Watch{opt: opt, votes: map[uint64]map[string]vote{}}
	opt.Metrics.MustRegister(
		newGauge("bursar_state_diverged", "1 while the states of the nodes differ and none has a majority: nothing is written.", func() float64 { return gauges.OneIf(w.Check() != nil) }),
		newGauge("bursar_state_wrong_nodes", "Members whose state differs from that of the majority.", func() float64 { return float64(len(w.Facts().Wrong)) }),
		newGauge("bursar_state_compare_success_timestamp_seconds", "When all members were last found to have the same state.", func() float64 { return gauges.UnixSeconds(w.Facts().Equal) }),
	)
	return w
}

func newGauge(name, help string, value func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value)
}

// Lead has the nodes remember their state, at once and again and again, as long
// as this node leads.
func (w *Watch) Lead(ctx context.Context) error {
	repeat.Every(ctx, w.opt.Every, func() bool {
		if _, err := w.opt.Writer.Write(ctx, &store.HashCheckCommand{}); err != nil && ctx.Err() == nil {
			w.opt.Log.Warn("the nodes' states cannot be compared now", "error", err)
		}
		return true
	})
	return nil
}

// Run compares what the members remember until ctx ends. The error wraps
// [ErrFenced]: this node differs from the majority, has noted it on disk, and
// must stop at once.
func (w *Watch) Run(ctx context.Context) (err error) {
	repeat.Every(ctx, w.opt.Look, func() bool {
		err = w.compareStates(time.Now())
		return err == nil
	})
	return err
}

// compareStates collects what is known and judges it.
func (w *Watch) compareStates(now time.Time) error {
	peers := w.opt.Peers.Peers()
	voters := 0
	if w.opt.Voter() {
		voters++
	}
	for _, p := range peers {
		if p.Voter {
			voters++
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.collectVotes(peers)
	for _, index := range w.votedIndexes() {
		if err := w.judgeIndex(now, index, voters, 1+len(peers)); err != nil {
			return err
		}
	}
	return nil
}

// collectVotes takes what the members say now. Members that are none any more are
// forgotten. w.mu is held.
func (w *Watch) collectVotes(peers []Member) {
	if index, _, ok := w.opt.Hashes.LastHash(); ok {
		w.noteVotes(index, nil)
	}
	for i := range peers {
		if peers[i].Index > 0 {
			w.noteVotes(peers[i].Index, &peers[i])
		}
	}
	list := w.votedIndexes()
	for len(list) > remembered {
		delete(w.votes, list[0])
		list = list[1:]
	}
	for _, votes := range w.votes {
		for id := range votes {
			if id != w.opt.ID && !slices.ContainsFunc(peers, func(p Member) bool { return p.ID == id }) {
				delete(votes, id)
			}
		}
	}
}

// noteVotes remembers this node's vote at the index, and a peer's.
func (w *Watch) noteVotes(index uint64, p *Member) {
	if w.votes[index] == nil {
		w.votes[index] = map[string]vote{}
	}
	if own, ok := w.opt.Hashes.HashAt(index); ok {
		w.votes[index][w.opt.ID] = vote{w.opt.ID, own, w.opt.Voter()}
	}
	if p != nil {
		w.votes[index][p.ID] = vote{p.ID, p.Hash, p.Voter}
	}
}

// votedIndexes returns those of the votes, the oldest first.
func (w *Watch) votedIndexes() []uint64 {
	list := make([]uint64, 0, len(w.votes))
	for index := range w.votes {
		list = append(list, index)
	}
	slices.Sort(list)
	return list
}

// judgeIndex acts on the votes at an index. w.mu is held.
func (w *Watch) judgeIndex(now time.Time, index uint64, voters, members int) error {
	votes := make([]vote, 0, len(w.votes[index]))
	for _, v := range w.votes[index] {
		votes = append(votes, v)
	}
	v := judgeVotes(voters, votes)
	own, known := w.votes[index][w.opt.ID]
	switch {
	case v.split:
		w.stopWrites(index, votes)
	case v.decided && known && own.hash != v.right:
		return w.fenceNode(&Fence{At: now, Index: index, Own: own.hash.String(), Majority: v.right.String()})
	case v.decided && index >= w.badAt:
		w.noteDecided(index, v, now, len(votes) == members)
	}
	return nil
}

// stopWrites stops writes until a later comparison has a majority.
func (w *Watch) stopWrites(index uint64, votes []vote) {
	if index < w.badAt || index == w.badAt && w.bad != nil {
		return
	}
	slices.SortFunc(votes, func(a, b vote) int { return strings.Compare(a.id, b.id) })
	var list strings.Builder
	for _, v := range votes {
		fmt.Fprintf(&list, ", %s has %s", v.id, v.hash)
	}
	w.bad, w.badAt = fmt.Errorf("%w: at index %d%s; nothing is written until they agree. Find the node that is right (bursar operator check), "+
		"and empty the others or restore a snapshot", ErrDiverged, index, list.String()), index
	w.opt.Log.Error("the states of the nodes differ: the cluster only reads", "error", w.bad)
}

// noteDecided notes that a majority agrees at an index.
func (w *Watch) noteDecided(index uint64, v verdict, now time.Time, whole bool) {
	if w.bad != nil {
		w.opt.Log.Info("a majority of the nodes has the same state again", "index", index)
		w.bad = nil
	}
	if len(v.wrong) > 0 && !slices.Equal(v.wrong, w.wrong) {
		w.opt.Log.Error("the state of a member differs from that of the majority; it must stop", "members", v.wrong, "index", index)
	}
	w.badAt, w.wrong = index, v.wrong
	if whole && len(v.wrong) == 0 {
		w.good = now
	}
}

// fenceNode stops this node for good.
func (w *Watch) fenceNode(f *Fence) error {
	if err := f.raiseFence(w.opt.Dir); err != nil {
		w.opt.Log.Error("it cannot be noted that this node must not start again", "error", err)
	}
	err := f.fenceError(w.opt.Dir)
	w.opt.Log.Error("this node stops", "error", err)
	w.out = err
	return err
}

// Check returns an error that wraps [ErrDiverged] or [ErrFenced] while nothing
// may be written.
func (w *Watch) Check() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.out, w.bad)
}

// Readable returns an error that wraps [ErrFenced] once nothing may be read.
func (w *Watch) Readable() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out
}

// WatchFacts are what a node knows of the states of all.
type WatchFacts struct {
	// Diverged is set while states differ and none has a majority.
	Diverged error
	// Wrong are the members that differ from the majority, by id.
	Wrong []string
	// Equal is when all members were last found to have the same state; zero for
	// never.
	Equal time.Time
}

// Facts returns what is known of the states of all members.
func (w *Watch) Facts() WatchFacts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return WatchFacts{Diverged: w.bad, Wrong: slices.Clone(w.wrong), Equal: w.good}
}
