package collect_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// scheduler is a list of batches; its source's checkpoint is a position in it.
type scheduler struct {
	mu      sync.Mutex
	batches []sdk.Batch
	starts  []sdk.Start
	sent    int // batches that were acknowledged
	push    bool
	pushed  bool          // it hands on records and stops
	hold    chan struct{} // when not nil, Collect waits for it before it ends
}

func (s *scheduler) add(b ...sdk.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.batches = append(s.batches, b...)
}

func (s *scheduler) at(n int) (sdk.Batch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n >= len(s.batches) {
		return sdk.Batch{}, false
	}
	return s.batches[n], true
}

func (s *scheduler) acknowledged() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent
}

func (s *scheduler) Describe() sdk.Description {
	if s.pushed {
		return sdk.Description{Type: "fake", Version: "1.2.3", Push: s.push, Pushed: true, Rank: sdk.RankPush, Interval: time.Hour}
	}
	return sdk.Description{
		Type: "fake", Version: "1.2.3", Push: s.push, Rank: sdk.RankScheduler, Interval: time.Hour,
		Attributes: []sdk.Attribute{
			{Name: "id", Type: sdk.TypeString}, {Name: "start", Type: sdk.TypeTime}, {Name: "stop", Type: sdk.TypeTime},
			{Name: "user", Type: sdk.TypeString}, {Name: "cores", Type: sdk.TypeInt},
		},
		Mapping: "id = \"n-${job.id}\"\nstart = job.start\nstop = job.stop\nmeta = { user = job.user }\ncomponent \"Cores\" { amount = job.cores }\n",
	}
}

func (s *scheduler) Configure(_ context.Context, cfg *sdk.Config) error { return cfg.Err() }

func (s *scheduler) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	at := 0
	if len(from.Checkpoint) == 8 && from.Window == nil {
		at = int(binary.BigEndian.Uint64(from.Checkpoint))
	}
	s.mu.Lock()
	s.starts = append(s.starts, from)
	hold := s.hold
	s.mu.Unlock()
	if from.Rewind > 0 {
		at = 0
	}
	for ; ; at++ {
		b, ok := s.at(at)
		if !ok {
			break
		}
		b.Checkpoint = binary.BigEndian.AppendUint64(nil, uint64(at+1))
		if err := out.Send(ctx, b); err != nil {
			return err
		}
		s.mu.Lock()
		s.sent++
		s.mu.Unlock()
	}
	if hold != nil && from.Window == nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// job is a run of an hour; with running it has not ended.
func job(id, user string, cores int64) sdk.Job {
	return sdk.Job{Run: id, Ended: true, Values: []sdk.Value{sdk.String(id), sdk.Time(t0), sdk.Time(t0.Add(time.Hour)), sdk.String(user), sdk.Int(cores)}}
}

func running(id string) sdk.Job {
	j := job(id, "alice", 4)
	j.Ended, j.Values[2] = false, sdk.Time(time.Time{})
	return j
}

func excluded(j sdk.Job) sdk.Job {
	j.Excluded = true
	return j
}

func jobs(j ...sdk.Job) sdk.Batch { return sdk.Batch{Jobs: j} }

// rig is a buffer, a source and a loop that is collected by hand.
type rig struct {
	t      *testing.T
	path   string
	opt    buffer.Options
	buffer *buffer.Buffer
	sched  *scheduler
	record string // the record block
	loop   *collect.Loop
	seen   buffer.Position
}

var source = buffer.Source{Type: "fake", Label: "f"}

func newRig(t *testing.T, opt buffer.Options) *rig {
	t.Helper()
	r := &rig{t: t, path: filepath.Join(t.TempDir(), "buffer.db"), opt: opt, sched: &scheduler{}}
	r.opt.NoSync = true
	r.reopen()
	return r
}

// reopen is a crash of the agent and its next start.
func (r *rig) reopen() {
	r.t.Helper()
	if r.buffer != nil {
		r.buffer.Close()
	}
	b, err := buffer.Open(r.path, r.opt)
	if err != nil {
		r.t.Fatal(err)
	}
	r.buffer = b
	r.t.Cleanup(func() { b.Close() })
	if r.seen.Epoch != b.Epoch() {
		r.seen = buffer.Position{Epoch: b.Epoch()}
	}
	loop, err := collect.NewLoop(source, 0, b, r, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	r.loop = loop
}

// alive is a plugin that neither hangs nor ends.
type alive struct{}

func (alive) Ping(context.Context) error { return nil }
func (alive) Done() <-chan struct{}      { return nil }
func (alive) Err() error                 { return nil }
func (alive) Hang(error)                 {}
func (alive) Close() error               { return nil }

// Plugin implements host.Sessions.
func (r *rig) Plugin(ctx context.Context) (*host.Session, error) {
	spec := host.SessionSpec{Agent: "a", Type: "fake", Label: "f"}
	if r.record != "" {
		file, diags := hcl.Parse("agent.hcl", []byte(r.record))
		if diags.HasErrors() {
			return nil, diags.Err()
		}
		spec.Record = file.Body
	}
	client := plugintest.Serve(r.t, func() sdk.Source { return r.sched })
	opened, diags, err := host.NewSession(ctx, alive{}, client, spec)
	return opened, errors.Join(err, diags.Err())
}

func (r *rig) collect() {
	r.t.Helper()
	if err := r.loop.Once(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// frames are those that came since the last call, checkpoints left out.
func (r *rig) frames() []string {
	r.t.Helper()
	chunks, end, err := r.buffer.Read(r.seen, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	r.seen = end
	out := []string{}
	for _, raw := range chunks {
		chunk, err := frame.Parse(raw)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, text := range chunk.Frames() {
			var f wire.Frame
			if err := wire.DecodeFrame(text, &f); err != nil {
				r.t.Fatal(err)
			}
			if f.Kind != wire.KindCheckpoint {
				out = append(out, say(f))
			}
		}
	}
	return out
}

// say writes a frame in a few words.
func say(f wire.Frame) string {
	state := "open"
	if f.Version.Ended {
		state = "closed"
	}
	settles := ""
	if f.Settles != "" {
		settles = " settles " + f.Settles
	}
	switch f.Kind {
	case wire.KindRecord:
		return fmt.Sprintf("%s %s %d%s", state, f.Record.ID, f.Record.Components[0].Amount, settles)
	case wire.KindWithdraw:
		return fmt.Sprintf("withdraw %s %s%s", f.ID, state, settles)
	case wire.KindQuarantine:
		return fmt.Sprintf("quarantine %s %s", f.Quarantine.ID, f.Quarantine.Reason)
	}
	return f.Kind.String()
}

func (r *rig) want(frames ...string) {
	r.t.Helper()
	if frames == nil {
		frames = []string{}
	}
	if diff := cmp.Diff(frames, r.frames()); diff != "" {
		r.t.Fatalf("frames (-want +got):\n%s", diff)
	}
}

func TestAJobIsSentOnceAndAgainOnlyWhenTheSchedulerChangedIt(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", 4), job("2", "bob", 8)))
	r.collect()
	r.want("closed n-1 4", "closed n-2 8")
	r.sched.add(jobs(job("1", "alice", 4), job("2", "bob", 16)), jobs(job("1", "alice", 4)))
	r.collect()
	r.want("closed n-2 16")
	if c := r.loop.Status().Counts; c.Records != 3 || c.Unchanged != 2 {
		t.Errorf("counts %+v", c)
	}
}

func TestARunningJobIsSentOpenAndThenClosedAlsoOverARestart(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(running("1"), running("2")))
	r.collect()
	r.want("open n-1 4", "open n-2 4")
	r.reopen()
	r.sched.add(jobs(running("1"), job("2", "alice", 4)))
	r.collect()
	r.want("closed n-2 4")
}

func TestACloseThatIsLeftOutTakesTheOpenRecordBackAlsoOverARestart(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.record = `when = job.user != "nobody"`
	r.sched.add(jobs(running("1"), running("2"), excluded(job("3", "x", 1)), job("4", "nobody", 1)))
	r.collect()
	r.want("open n-1 4", "open n-2 4")
	r.reopen()
	r.sched.add(jobs(excluded(job("1", "alice", 4)), job("2", "nobody", 4), excluded(job("1", "alice", 4))))
	r.collect()
	r.want("withdraw n-1 closed", "withdraw n-2 closed")
	if c := r.loop.Status().Counts; c.Withdrawn != 2 || c.Unchanged != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestAChangedIDOfARunningJobTakesTheOldOneBack(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(running("1")))
	r.collect()
	r.want("open n-1 4")
	r.record = `id = "m-${job.id}"`
	r.sched.add(jobs(job("1", "alice", 4)))
	r.collect()
	r.want("withdraw n-1 closed", "closed m-1 4")
}

func TestOddOutputOfAPluginIsQuarantinedAndStopsNothing(t *testing.T) {
	r := newRig(t, buffer.Options{})
	long := job("2", "bob", 2)
	long.Run = strings.Repeat("x", 2000)
	r.sched.add(sdk.Batch{
		Jobs:    []sdk.Job{job("", "alice", 1), long, job("3", "carl", 3)},
		Refused: []sdk.Refused{{Run: "r", Message: "what is this?", Raw: []byte("\xff\x00")}},
		Skipped: 7,
	})
	r.collect()
	got := r.frames()
	if len(got) != 4 || !slices.Contains(got, "closed n-3 3") || !slices.Contains(got, "quarantine r input") {
		t.Fatal(got)
	}
	if c := r.loop.Status().Counts; c.Refused != 3 || c.Skipped != 7 || c.Records != 1 {
		t.Errorf("counts %+v", c)
	}
}

func TestAFullBufferPausesCollectionAndNothingIsLostOrDoubled(t *testing.T) {
	r := newRig(t, buffer.Options{MaxSize: 12000})
	for i := range 100 {
		r.sched.add(jobs(job(fmt.Sprint(i), "alice", 1)))
	}
	takesAll(t, r, 100)
}

// TestABatchLargerThanTheBuffer_IsTakenInPieces draws batches of all sizes.
func TestABatchLargerThanTheBuffer_IsTakenInPieces(t *testing.T) {
	for seed := range uint64(racetest.Few(4)) {
		rng := rand.New(rand.NewPCG(seed, 26))
		r := newRig(t, buffer.Options{MaxSize: 2000 + rng.Int64N(4000)})
		n := 0
		for range 3 {
			var batch sdk.Batch
			for range 1 + rng.IntN(100) {
				batch.Jobs = append(batch.Jobs, job(fmt.Sprint(n), "alice", 1))
				n++
			}
			r.sched.add(batch)
		}
		takesAll(t, r, n)
	}
}

// takesAll runs the loop, beside a cluster that acknowledges whenever it is paused, until
// all of so many jobs have come, in their order.
func takesAll(t *testing.T, r *rig, n int) {
	t.Helper()
	batches := len(r.sched.batches)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.loop.Run(ctx) }()
	defer func() { cancel(); <-done }()
	var got []string
	for len(got) < n {
		for r.loop.Status().State != "paused" && r.sched.acknowledged() < batches {
			time.Sleep(time.Millisecond)
		}
		if s := r.loop.Status(); s.State == "paused" && !errors.Is(s.Err, buffer.ErrFull) {
			t.Fatalf("paused by %v", s.Err)
		}
		got = append(got, r.frames()...)
		if err := r.buffer.Ack("c", r.seen); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range got {
		if s != fmt.Sprintf("closed n-%d 1", i) {
			t.Fatalf("frame %d is %q", i, s)
		}
	}
}

// broken fails an append before or after it is on disk.
type broken struct {
	*buffer.Buffer
	after int // appends that succeed
	late  bool
}

func (b *broken) Append(a buffer.Append) (uint64, error) {
	if b.after--; b.after >= 0 {
		return b.Buffer.Append(a)
	}
	if b.late {
		if _, err := b.Buffer.Append(a); err != nil {
			return 0, err
		}
	}
	return 0, buffer.ErrSuperseded // ends the collection as a crash would
}

func TestACrashBetweenAppendAndAcknowledgementLosesAndDoublesNothing(t *testing.T) {
	for _, late := range []bool{false, true} {
		for after := range 6 {
			r := newRig(t, buffer.Options{})
			for i := range 5 {
				r.sched.add(jobs(job(fmt.Sprint(2*i), "alice", 1), job(fmt.Sprint(2*i+1), "bob", 1)))
			}
			loop, err := collect.NewLoop(source, 0, &broken{r.buffer, after, late}, r, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancelled := make(chan struct{})
			go func() {
				defer close(cancelled)
				for r.sched.acknowledged() < min(after, 5) {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			_ = loop.Once(ctx) // the crash
			<-cancelled
			r.reopen()
			r.collect()
			got := r.frames()
			slices.Sort(got)
			if len(got) != 10 || len(slices.Compact(got)) != 10 {
				t.Errorf("late=%v after %d appends: %q", late, after, got)
			}
		}
	}
}

func TestACheckpointNeverRunsAheadOfItsRecords(t *testing.T) {
	r := newRig(t, buffer.Options{})
	for i := range 20 {
		r.sched.add(jobs(job(fmt.Sprint(i), "alice", 1)))
	}
	r.collect()
	chunks, _, err := r.buffer.Read(buffer.Position{Epoch: r.buffer.Epoch()}, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	records := uint64(0)
	for _, raw := range chunks {
		chunk, err := frame.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range chunk.Frames() {
			var f wire.Frame
			if err := wire.DecodeFrame(text, &f); err != nil {
				t.Fatal(err)
			}
			switch f.Kind {
			case wire.KindRecord:
				records++
			case wire.KindCheckpoint:
				if n := binary.BigEndian.Uint64(f.Checkpoint); n != records {
					t.Errorf("checkpoint %d behind %d records", n, records)
				}
			}
		}
	}
	start, err := r.buffer.Begin(source)
	if err != nil || binary.BigEndian.Uint64(start.Checkpoint) != records {
		t.Errorf("%v, %v", start, err)
	}
}

// forget makes the cluster remember checkpoint n of a buffer that was lost.
func (r *rig) forget(n uint64) {
	r.t.Helper()
	_, err := r.buffer.Resume(buffer.Resume{
		Cluster: "c", Epoch: r.buffer.Epoch(), Known: buffer.Position{Epoch: buffer.Epoch{1}, Seq: 9},
		Checkpoints: map[buffer.Source][]byte{source: binary.BigEndian.AppendUint64(nil, n)}, Observed: 1,
	})
	if err != nil {
		r.t.Fatal(err)
	}
}

func TestAfterAResumeTheSourceStepsBackSendsAllAgainAndTakesBackWhatIsLeftOut(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", 1), excluded(job("2", "bob", 2))))
	r.collect()
	r.want("closed n-1 1")
	r.forget(1)
	r.collect()
	r.want("closed n-1 1", "withdraw n-2 closed")
	if s := r.sched.starts; s[len(s)-1].Rewind != buffer.Overlap {
		t.Errorf("rewind %s", s[len(s)-1].Rewind)
	}
	r.collect()
	r.want()
	if s := r.sched.starts; s[len(s)-1].Rewind != 0 {
		t.Errorf("it steps back twice: %s", s[len(s)-1].Rewind)
	}
}

func TestAPushSourceStepsBackOnceAlthoughItsStreamHasNoEnd(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.push, r.sched.hold = true, make(chan struct{})
	r.sched.add(jobs(job("1", "alice", 1)))
	r.forget(0)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.loop.Once(ctx) }()
	for r.sched.acknowledged() < 1 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	if start, err := r.buffer.Begin(source); err != nil || start.Rewind != 0 {
		t.Errorf("%+v, %v", start, err)
	}
}

func TestARecollectionSendsTheWindowAgainWithdrawsAndLeavesTheCheckpointAlone(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.add(jobs(job("1", "alice", 1), job("2", "bob", 2)))
	r.collect()
	r.want("closed n-1 1", "closed n-2 2")
	before, _ := r.buffer.Begin(source)
	r.record = `when = job.user == "alice"`
	w := collect.Window{From: t0, To: t0.Add(24 * time.Hour)}
	progress := func(collect.Counts, *bursarv1.Progress) error { return nil }
	plan, err := r.loop.Recollect(t.Context(), w, true, progress)
	if err != nil {
		t.Fatal(err)
	}
	r.want()
	counts, err := r.loop.Recollect(t.Context(), w, false, progress)
	if err != nil || counts != plan || counts.Records != 1 || counts.Withdrawn != 1 {
		t.Fatalf("%+v, planned %+v, %v", counts, plan, err)
	}
	r.want("closed n-1 1 settles 1", "withdraw n-2 closed settles 2")
	if after, _ := r.buffer.Begin(source); string(after.Checkpoint) != string(before.Checkpoint) {
		t.Error("the checkpoint has moved")
	}
}

func TestARecollectionInterruptsACollectionThatGoesOnAfterwards(t *testing.T) {
	r := newRig(t, buffer.Options{})
	r.sched.push, r.sched.hold = true, make(chan struct{})
	r.sched.add(jobs(job("1", "alice", 1)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); r.loop.Run(ctx) }()
	for r.sched.acknowledged() < 1 {
		time.Sleep(time.Millisecond)
	}
	counts, err := r.loop.Recollect(t.Context(), collect.Window{From: t0, To: t0.Add(time.Hour * 2)}, false, func(collect.Counts, *bursarv1.Progress) error { return nil })
	if err != nil || counts.Records != 1 {
		t.Fatalf("%+v %v", counts, err)
	}
	r.sched.add(jobs(job("2", "bob", 2)))
	close(r.sched.hold)
	for r.sched.acknowledged() < 3 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	<-done
	r.want("closed n-1 1", "closed n-1 1 settles 1", "closed n-2 2")
}

func TestAPluginThatFailsIsTriedAgainFromItsCheckpoint(t *testing.T) {
	r := newRig(t, buffer.Options{})
	if _, err := r.buffer.Append(buffer.Append{Source: source, Frames: [][]byte{{1}}, Checkpoint: []byte("here")}); err != nil {
		t.Fatal(err)
	}
	r.record = "id = job.nothing"
	if err := r.loop.Once(t.Context()); err == nil || !strings.Contains(err.Error(), "unknown attribute") {
		t.Fatalf("error %v", err)
	}
	if start, _ := r.buffer.Begin(source); string(start.Checkpoint) != "here" {
		t.Errorf("checkpoint %q", start.Checkpoint)
	}
}
