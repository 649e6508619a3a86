package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"

	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// agent is a buffer in memory that answers as an agent does. It fails at random
// when told so, before or after it has done what it was asked.
type agent struct {
	bursarv1.AgentClient

	mu      sync.Mutex
	epoch   byte
	chunks  [][]byte
	last    uint64
	digest  frame.Digest
	grown   chan struct{}
	acked   uint64
	resumed []*bursarv1.ResumeRequest
	chance  *rand.Rand    // nil: never fails
	lie     uint64        // how far behind its end an answer says that it ends
	idle    time.Duration // how long a pull waits in vain; 0: until it is cut off
	sources []*bursarv1.SourceStatus
	broken  error // what a pull fails with; nil: it does not
}

// fail has pulls fail from now on, also one that waits; nil ends that.
func (a *agent) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.broken = err
	close(a.grown)
	a.grown = make(chan struct{})
}

// Status implements bursarv1.AgentClient.
func (a *agent) Status(context.Context, *bursarv1.StatusRequest, ...grpc.CallOption) (*bursarv1.StatusResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &bursarv1.StatusResponse{Sources: a.sources}, nil
}

func newAgent(epoch byte) *agent { return &agent{epoch: epoch, grown: make(chan struct{})} }

// add appends one chunk with these frames.
func (a *agent) add(t *testing.T, frames ...*wire.Frame) {
	t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	b := frame.NewBuilder(a.last+1, a.digest)
	for _, f := range frames {
		if err := b.Append(wire.AppendFrame(nil, f)); err != nil {
			t.Fatal(err)
		}
	}
	a.last, a.digest = b.Last(), b.After()
	a.chunks = append(a.chunks, b.Finish())
	close(a.grown)
	a.grown = make(chan struct{})
}

func (a *agent) id() []byte { return append(make([]byte, 15), a.epoch) }

var errChance = errors.New("the network fails")

func (a *agent) fails() bool { return a.chance != nil && a.chance.IntN(4) == 0 }

func (a *agent) Pull(ctx context.Context, req *bursarv1.PullRequest, _ ...grpc.CallOption) (*bursarv1.PullResponse, error) {
	for {
		a.mu.Lock()
		if a.broken != nil {
			defer a.mu.Unlock()
			return nil, a.broken
		}
		if a.fails() {
			a.mu.Unlock()
			return nil, errChance
		}
		if string(req.GetEpoch()) != string(a.id()) {
			defer a.mu.Unlock()
			return &bursarv1.PullResponse{Epoch: a.id(), Resume: true, Reason: "another epoch"}, nil
		}
		for _, raw := range a.chunks {
			c, err := frame.Parse(raw)
			if err != nil {
				a.mu.Unlock()
				return nil, err
			}
			if c.Last() <= req.GetAfter() {
				continue
			}
			part, err := c.Slice(req.GetAfter())
			a.mu.Unlock()
			last := c.Last() + a.lie
			return &bursarv1.PullResponse{Epoch: a.id(), Chunks: [][]byte{part}, Last: last, Digest: c.After[:], Behind: a.last - c.Last()}, err
		}
		grown := a.grown
		a.mu.Unlock()
		if req.GetWaitMs() == 0 {
			return &bursarv1.PullResponse{Epoch: a.id(), Last: req.GetAfter(), Digest: req.GetDigest()}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-grown:
		case <-a.patience():
			return &bursarv1.PullResponse{Epoch: a.id(), Last: req.GetAfter(), Digest: req.GetDigest()}, nil
		}
	}
}

func (a *agent) patience() <-chan time.Time {
	if a.idle == 0 {
		return nil
	}
	return time.After(a.idle)
}

func (a *agent) Ack(_ context.Context, req *bursarv1.AckRequest, _ ...grpc.CallOption) (*bursarv1.AckResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if string(req.GetEpoch()) != string(a.id()) || req.GetThrough() > a.last {
		return nil, errors.New("no such position")
	}
	a.acked = max(a.acked, req.GetThrough())
	if a.fails() {
		return nil, errChance
	}
	return &bursarv1.AckResponse{}, nil
}

func (a *agent) Resume(_ context.Context, req *bursarv1.ResumeRequest, _ ...grpc.CallOption) (*bursarv1.ResumeResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.resumed = append(a.resumed, req)
	if a.fails() {
		return nil, errChance
	}
	if string(req.GetKnownEpoch()) == string(a.id()) && req.GetKnownAfter() <= a.last {
		a.acked = req.GetKnownAfter()
		return &bursarv1.ResumeResponse{Epoch: a.id(), After: req.GetKnownAfter(), Digest: req.GetKnownDigest()}, nil
	}
	return &bursarv1.ResumeResponse{Epoch: a.id(), After: 0, Digest: make([]byte, 16)}, nil
}

// log applies commands to a store, as the cluster does. It fails at random when
// told so, before or after it has applied.
type log struct {
	store  *store.Store
	mu     sync.Mutex
	index  uint64
	chance *rand.Rand
}

type done struct {
	result store.IngestResult
	err    error
}

func (d done) Wait(context.Context) (store.IngestResult, error) { return d.result, d.err }

func (l *log) Submit(_ context.Context, c *store.IngestCommand) (ingest.Pending, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.chance != nil && l.chance.IntN(6) == 0 {
		return nil, errors.New("not the leader")
	}
	l.index++
	result, err := l.store.Apply(l.index, 1, store.Encode(c))
	if l.chance != nil && l.chance.IntN(6) == 0 {
		return done{err: errors.New("the outcome is not known")}, nil
	}
	ingest, _ := result.(store.IngestResult)
	return done{ingest, err}, nil
}

func (l *log) Cursor(name string) (store.Cursor, error) {
	v, err := l.store.View()
	if err != nil {
		return store.Cursor{}, err
	}
	defer v.Close()
	return v.Cursor(name)
}

func newLog(t *testing.T) *log {
	t.Helper()
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &log{store: s}
}

func (l *log) count(t *testing.T) uint64 {
	t.Helper()
	v, err := l.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return v.Count()
}

// run starts a loop that pulls from a into l. The function ends it and checks
// that it ended well.
func run(t *testing.T, a *agent, l *log) (loop *ingest.Loop, stop func()) {
	t.Helper()
	return runWith(t, a, l, func(*ingest.Loop) {})
}

func runWith(t *testing.T, a *agent, l *log, set func(*ingest.Loop)) (loop *ingest.Loop, stop func()) {
	t.Helper()
	loop = &ingest.Loop{
		Name: "head1", Cluster: "c", Client: a, Cursors: l, Commit: l, Backoff: time.Millisecond,
		Log: slog.New(slog.DiscardHandler), Metrics: ingest.NewMetrics(prometheus.NewRegistry()),
	}
	set(loop)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loop.Run(ctx) }()
	return loop, func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}

// follow pulls until the agent's frames are all acknowledged.
func follow(t *testing.T, a *agent, l *log) {
	t.Helper()
	_, stop := run(t, a, l)
	for {
		a.mu.Lock()
		all := a.acked == a.last
		a.mu.Unlock()
		if all {
			break
		}
		time.Sleep(time.Millisecond)
	}
	stop()
}

func rec(i int) *wire.Frame {
	return &wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: record.RankScheduler, Kind: wire.KindRecord,
		Version: record.Version{Ended: true, Observed: int64(i + 1)},
		Record:  record.Record{ID: fmt.Sprint("r", i), Meta: record.Meta{}, Start: 1, Stop: record.Second, Submit: record.None}}
}

func TestEveryFrameOfAnAgentIsCommittedAndThenAcknowledged(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	for i := range 20 {
		a.add(t, rec(2*i), rec(2*i+1), &wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Kind: wire.KindCheckpoint, Checkpoint: []byte{byte(i)}})
	}
	a.add(t, &wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: record.RankScheduler, Kind: wire.KindWithdraw, ID: "r3", Version: record.Version{Ended: true, Observed: 99}},
		&wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Kind: wire.KindQuarantine, Quarantine: wire.Quarantine{ID: "q", Reason: "mapping"}},
		&wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Kind: wire.KindWatermark, Watermark: 77})
	follow(t, a, l)
	if n := l.count(t); n != 39 {
		t.Errorf("%d records, want 39", n)
	}
	c, err := l.Cursor("head1")
	if err != nil || c.Seq != a.last || len(c.Checkpoints) != 1 || c.Checkpoints[0].State[0] != 19 || c.Watermarks[0].CompleteTo != 77 {
		t.Errorf("cursor %+v, %v", c, err)
	}
}

func TestABatchLargerThanAnEntryIsCut(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	var frames []*wire.Frame
	for i := range 9000 {
		frames = append(frames, rec(i))
	}
	for len(frames) > 0 {
		n := min(1500, len(frames))
		a.add(t, frames[:n]...)
		frames = frames[n:]
	}
	follow(t, a, l)
	if n := l.count(t); n != 9000 {
		t.Errorf("%d records", n)
	}
}

func TestNothingIsLostOrDoubledWhateverFails(t *testing.T) {
	for seed := range uint64(8) {
		a, l := newAgent(1), newLog(t)
		a.chance, l.chance = rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
		for i := range 30 {
			a.add(t, rec(i))
		}
		follow(t, a, l)
		if n := l.count(t); n != 30 {
			t.Errorf("seed %d: %d records, want 30", seed, n)
		}
		v, err := l.store.View()
		if err != nil {
			t.Fatal(err)
		}
		counts, err := v.Counters()
		if err != nil || len(counts) != 1 || counts[0].Counts.Pulled != 30 || !counts[0].Counts.Conserved() {
			t.Errorf("seed %d: %+v, %v", seed, counts, err)
		}
		v.Close()
	}
}

func TestANewBufferOfAnAgentIsToldWhatTheClusterHas(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1), rec(2), &wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Kind: wire.KindCheckpoint, Checkpoint: []byte("here")})
	follow(t, a, l)
	lost := newAgent(2)
	lost.add(t, rec(2), rec(3))
	follow(t, lost, l)
	if len(lost.resumed) == 0 {
		t.Fatal("the agent was not told")
	}
	req := lost.resumed[0]
	if req.GetObserved() != 3 || req.GetKnownAfter() != 3 || len(req.GetCheckpoints()) != 1 || string(req.GetCheckpoints()[0].GetState()) != "here" {
		t.Errorf("told %v", req)
	}
	if n := l.count(t); n != 3 {
		t.Errorf("%d records, want 3", n)
	}
}

func TestAnAgentThatMisstatesWhereItsAnswerEndsIsNotBelieved(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	for i := range 5 {
		a.add(t, rec(i))
	}
	a.lie = 1
	loop, stop := run(t, a, l)
	for loop.Status().Err == nil {
		time.Sleep(time.Millisecond)
	}
	a.mu.Lock()
	a.lie = 0
	a.mu.Unlock()
	for l.count(t) != 5 {
		time.Sleep(time.Millisecond)
	}
	stop()
}

func TestLoop_AgentWithNothingNew_IsConnectedWithItsFirstAnswer(t *testing.T) {
	for name, frames := range map[string]int{"never had anything": 0, "all is committed": 3} {
		t.Run(name, func(t *testing.T) {
			a, l := newAgent(1), newLog(t)
			for i := range frames {
				a.add(t, rec(i))
			}
			follow(t, a, l)
			loop, stop := run(t, a, l) // as after a restart of this node; a pull waits until it is cut off
			defer stop()
			for !loop.Status().Connected {
				time.Sleep(time.Millisecond)
			}
			a.fail(errors.New("the agent restarts"))
			for loop.Status().Connected {
				time.Sleep(time.Millisecond)
			}
			a.fail(nil)
			for !loop.Status().Connected {
				time.Sleep(time.Millisecond)
			}
		})
	}
}

func TestASourceThatFailsIsKnownThoughItsAgentAnswers(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1))
	a.sources = []*bursarv1.SourceStatus{
		{Type: "slurm", Label: "nemo", State: "failed", Error: "sacct: exit status 1"}, {Type: "receiver", Label: "r", State: "collecting"},
		{Type: "nomad", Label: "n", State: "silent", Error: "nothing sent"}, {Type: "slurm", Label: "new", State: "configuring"},
	}
	loop, stop := run(t, a, l)
	if loop.Status().Asked {
		t.Error("an agent that was not asked yet has answered")
	}
	for loop.Status().Failing == nil {
		time.Sleep(time.Millisecond)
	}
	stop()
	if got := fmt.Sprint(loop.Status().Failing); got != "[{slurm/nemo sacct: exit status 1} {nomad/n nothing sent}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(loop.Status().Reported); got != "[{slurm/nemo failed} {receiver/r collecting} {nomad/n silent} {slurm/new configuring}]" {
		t.Error(got)
	}
}

func TestBrokenChunksChangeNothing(t *testing.T) {
	a, l := newAgent(1), newLog(t)
	a.add(t, rec(1))
	good := a.chunks[0]
	a.chunks[0] = append([]byte(nil), good...)
	a.chunks[0][len(good)-1] ^= 1
	loop, stop := run(t, a, l)
	for loop.Status().Err == nil {
		time.Sleep(time.Millisecond)
	}
	if n := l.count(t); n != 0 || loop.Status().Connected {
		t.Errorf("%d records from a broken chunk", n)
	}
	a.mu.Lock()
	a.chunks[0] = good
	a.mu.Unlock()
	for l.count(t) != 1 {
		time.Sleep(time.Millisecond)
	}
	stop()
}
