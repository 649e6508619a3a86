package collect_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
	"github.com/bursar-accounting/bursar/agent/internal/collect"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// past is a scheduler with runs that ended at times of the past. It is asked
// without a network, so that it can live in a bubble.
type past struct {
	mu     sync.Mutex
	runs   []pastRun
	counts []*bursarv1.CountRequest // that were asked for
	fail   error                    // of Count
	slow   time.Duration            // of a window, by the hour
	every  time.Duration            // between collections; 0: a minute
	takes  uint32                   // the version that the cluster has said first; 0: 2
	hang   bool                     // Collect does
	push   bool
	chat   string // Collect sends nothing but this for ever: "empty" batches or signs that it is "alive"
}

type pastRun struct {
	id       string
	end      time.Time
	hidden   bool // Collect does not give it
	odd      bool // it fails the mapping
	excluded bool
	user     string
}

func (p *past) add(r ...pastRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs = append(p.runs, r...)
}

func (p *past) asked() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []string{}
	for i := range p.counts {
		out = append(out, time.UnixMicro(p.counts[i].GetFrom()).UTC().Format("01-02 15:04")+" "+time.UnixMicro(p.counts[i].GetTo()).UTC().Format("15:04"))
	}
	p.counts = nil
	return out
}

// in returns the runs that ended in [from, to).
func (p *past) in(from, to int64) (out []pastRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.runs {
		if at := r.end.UnixMicro(); at >= from && at < to {
			out = append(out, r)
		}
	}
	return out
}

func (p *past) Describe(context.Context, *bursarv1.DescribeRequest, ...grpc.CallOption) (*bursarv1.DescribeResponse, error) {
	out := &bursarv1.DescribeResponse{
		Type: "fake", Version: "1", Rank: 4, Interval: "1m", Push: p.push,
		Mapping: "id = \"n-${job.id}\"\nstart = job.start\nstop = job.stop\nmeta = { user = job.user }\ncomponent \"Cores\" { amount = job.cores }\n",
	}
	for _, a := range (&scheduler{}).Describe().Attributes {
		out.Attributes = append(out.Attributes, &bursarv1.Attribute{Name: a.Name, Type: bursarv1.Type(a.Type)})
	}
	return out, nil
}

func (p *past) Configure(context.Context, *bursarv1.ConfigureRequest, ...grpc.CallOption) (*bursarv1.ConfigureResponse, error) {
	return &bursarv1.ConfigureResponse{}, nil
}

// chatter waits for the next thing that Collect says, when it says nothing else for ever.
func (p *past) chatter(ctx context.Context) (chat string) {
	p.mu.Lock()
	chat = p.chat
	p.mu.Unlock()
	if chat != "" {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return chat
}

func (p *past) hung() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hang
}

// Progress says that a slow reading goes on.
func (p *past) Progress(context.Context, *bursarv1.ProgressRequest, ...grpc.CallOption) (*bursarv1.ProgressResponse, error) {
	if p.hung() {
		return &bursarv1.ProgressResponse{}, nil
	}
	return &bursarv1.ProgressResponse{Steps: map[string]uint64{"Collect": uint64(time.Now().Unix())}}, nil
}

func (p *past) Count(_ context.Context, r *bursarv1.CountRequest, _ ...grpc.CallOption) (*bursarv1.CountResponse, error) {
	p.mu.Lock()
	p.counts = append(p.counts, r)
	fail := p.fail
	p.mu.Unlock()
	if fail != nil {
		return nil, fail
	}
	return &bursarv1.CountResponse{Runs: int64(len(p.in(r.GetFrom(), r.GetTo())))}, nil
}

func (p *past) Collect(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[bursarv1.CollectRequest, bursarv1.CollectResponse], error) {
	return &pastStream{ctx: ctx, past: p}, nil
}

// pastStream gives one batch: the runs of the window, or nothing but a watermark.
type pastStream struct {
	grpc.ClientStream

	ctx   context.Context
	past  *past
	start *bursarv1.CollectRequest_Start
	given bool
}

func (s *pastStream) Send(r *bursarv1.CollectRequest) error {
	if r.GetStart() != nil {
		s.start = r.GetStart()
	}
	return nil
}

func (s *pastStream) Recv() (*bursarv1.CollectResponse, error) {
	for s.past.hung() {
		select {
		case <-s.ctx.Done():
			return nil, s.ctx.Err()
		case <-time.After(time.Second):
		}
	}
	for {
		chat := s.past.chatter(s.ctx)
		if s.ctx.Err() != nil {
			return nil, s.ctx.Err()
		}
		if chat == "empty" {
			return &bursarv1.CollectResponse{}, nil
		}
		if chat == "" {
			break
		}
	}
	if s.given {
		if s.past.push && s.start.GetWindow() == nil {
			<-s.ctx.Done()
			return nil, s.ctx.Err()
		}
		return nil, io.EOF
	}
	s.given = true
	w := s.start.GetWindow()
	if w == nil {
		return &bursarv1.CollectResponse{Checkpoint: []byte("c"), Watermark: time.Now().UnixMicro()}, nil
	}
	hours := (w.GetTo() - w.GetFrom()) / time.Hour.Microseconds()
	select {
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	case <-time.After(s.past.slow * time.Duration(hours)):
	}
	out := &bursarv1.CollectResponse{Skipped: 1}
	for _, r := range s.past.in(w.GetFrom(), w.GetTo()) {
		if !r.hidden {
			out.Jobs = append(out.Jobs, r.job())
		}
	}
	return out, nil
}

func (r *pastRun) job() *bursarv1.Job {
	cores := int64(1)
	if r.odd {
		cores = -1
	}
	return &bursarv1.Job{Run: r.id, Ended: true, Excluded: r.excluded, Values: []*bursarv1.Value{
		{Kind: &bursarv1.Value_StringValue{StringValue: r.id}}, micros(r.end.Add(-time.Minute)), micros(r.end),
		{Kind: &bursarv1.Value_StringValue{StringValue: r.user}}, {Kind: &bursarv1.Value_IntValue{IntValue: cores}},
	}}
}

func micros(t time.Time) *bursarv1.Value {
	return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: t.UnixMicro()}}
}

// auditRig is a loop that runs in a bubble, where midnight of 2000-01-01 is now.
type auditRig struct {
	t       *testing.T
	past    *past
	buffer  *buffer.Buffer
	record  string
	session *host.Session
	loop    *collect.Loop
	stop    func()
	seen    buffer.Position
}

// Plugin implements host.Sessions.
func (r *auditRig) Plugin(ctx context.Context) (*host.Session, error) {
	if r.session != nil {
		return r.session, nil
	}
	spec := host.SessionSpec{Agent: "a", Type: "fake", Label: "f"}
	if r.record != "" {
		file, diags := hcl.Parse("agent.hcl", []byte(r.record))
		if diags.HasErrors() {
			return nil, diags.Err()
		}
		spec.Record = file.Body
	}
	opened, diags, err := host.NewSession(ctx, alive{}, r.past, spec)
	r.session = opened
	return opened, errors.Join(err, diags.Err())
}

const anHour = time.Hour

func newAuditRig(t *testing.T, p *past, record string) *auditRig {
	t.Helper()
	b, err := buffer.Open(t.TempDir()+"/buffer.db", buffer.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	r := &auditRig{t: t, past: p, buffer: b, record: record, seen: buffer.Position{Epoch: b.Epoch()}}
	if _, err := b.Resume(buffer.Resume{Cluster: "c", Epoch: b.Epoch()}); err != nil {
		t.Fatal(err)
	}
	version := uint32(2)
	if p.takes != 0 {
		version = p.takes
	}
	r.takes(version)
	r.start()
	return r
}

func (r *auditRig) takes(version uint32) {
	r.t.Helper()
	if err := r.buffer.SetVersion("c", version); err != nil {
		r.t.Fatal(err)
	}
}

// start runs a loop, as after a start of the agent.
func (r *auditRig) start() {
	r.t.Helper()
	loop, err := collect.NewLoop(source, r.past.every, r.buffer, r, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	loop.SetAudit(true, 3*24*anHour)
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = loop.Run(ctx)
	}()
	r.loop, r.stop = loop, func() { cancel(); <-done }
}

func (r *auditRig) close() {
	r.stop()
	r.buffer.Close()
}

// wait lets time go by, and everything that is due happen.
func (r *auditRig) wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// counts are those that came since the last call, in a line each.
func (r *auditRig) counts() []string {
	r.t.Helper()
	out := []string{}
	for _, c := range r.frames() {
		out = append(out, fmt.Sprintf("%s: %d = %d + %d filtered + %d quarantined + %d shared", c.From.Std().Format("01-02"), c.Counted, c.Records, c.Filtered, c.Quarantined, c.Shared))
	}
	return out
}

func (r *auditRig) frames() (counts []wire.Count) {
	r.t.Helper()
	chunks, end, err := r.buffer.Read(r.seen, 1<<30)
	if err != nil {
		r.t.Fatal(err)
	}
	r.seen = end
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
			if f.Kind == wire.KindCount {
				counts = append(counts, f.Count)
			}
		}
	}
	return counts
}

func (r *auditRig) want(counts ...string) {
	r.t.Helper()
	if counts == nil {
		counts = []string{}
	}
	if diff := cmp.Diff(counts, r.counts()); diff != "" {
		r.t.Fatalf("counts at %s (-want +got):\n%s", time.Now().UTC().Format("01-02 15:04"), diff)
	}
}

// midnight is now in a bubble.
var midnight = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func TestEachPastDayIsCountedByBothRoutesOnceItIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{}
		p.add(pastRun{id: "1", end: midnight.Add(-anHour), user: "a"}, pastRun{id: "2", end: midnight.Add(-2 * anHour), excluded: true},
			pastRun{id: "3", end: midnight.Add(-3 * anHour), user: "nobody"}, pastRun{id: "4", end: midnight.Add(-4 * anHour), odd: true},
			pastRun{id: "5", end: midnight.Add(-5 * anHour), hidden: true}, pastRun{id: "6", end: midnight.Add(-30 * anHour), user: "a"},
			pastRun{id: "7", end: midnight.Add(anHour), user: "a"})
		r := newAuditRig(t, p, `when = job.user != "nobody"`)
		defer r.close()
		r.wait(anHour) // yesterday is not settled, the days before are
		r.want("12-30: 1 = 1 + 0 filtered + 0 quarantined + 0 shared", "12-29: 0 = 0 + 0 filtered + 0 quarantined + 0 shared")
		r.wait(anHour + time.Minute) // and the day before is a day old
		r.want("12-31: 5 = 1 + 2 filtered + 1 quarantined + 0 shared", "12-30: 1 = 1 + 0 filtered + 0 quarantined + 0 shared")
		r.wait(20 * anHour)
		r.want()
	})
}

func TestADayIsCountedAgainWhenItIsADayOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{}
		r := newAuditRig(t, p, "")
		defer r.close()
		r.wait(3 * anHour)
		r.frames()
		p.add(pastRun{id: "late", end: midnight.Add(-anHour), hidden: true})
		r.wait(22 * anHour)
		r.want()
		r.wait(2 * anHour) // 03:00 of the second day
		r.want("01-01: 0 = 0 + 0 filtered + 0 quarantined + 0 shared", "12-31: 1 = 0 + 0 filtered + 0 quarantined + 0 shared")
	})
}

func TestARestartCountsNoDayAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAuditRig(t, &past{}, "")
		defer r.close()
		r.wait(3 * anHour)
		if n := len(r.frames()); n != 4 {
			t.Fatalf("%d counts", n)
		}
		r.stop()
		r.past.asked()
		r.start()
		r.wait(anHour)
		if asked := r.past.asked(); len(asked) != 0 {
			t.Errorf("asked for %v", asked)
		}
		r.want()
	})
}

func TestARecollectionHasItsDaysCountedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{}
		p.add(pastRun{id: "1", end: midnight.Add(-anHour), user: "a"})
		r := newAuditRig(t, p, "")
		defer r.close()
		r.wait(3 * anHour)
		r.frames()
		w := collect.Window{From: midnight.Add(-2 * anHour), To: midnight}
		for _, plan := range []bool{true, false} {
			if _, err := r.loop.Recollect(t.Context(), w, plan, func(collect.Counts, *bursarv1.Progress) error { return nil }); err != nil {
				t.Fatal(err)
			}
			r.wait(2 * time.Minute)
			if plan {
				r.want()
			}
		}
		r.want("12-31: 1 = 1 + 0 filtered + 0 quarantined + 0 shared")
	})
}

func TestRunsThatTheMappingGivesOneIDAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{}
		for i := range 5 {
			p.add(pastRun{id: fmt.Sprint(i), end: midnight.Add(-time.Duration(i+1) * anHour), user: "a"})
		}
		r := newAuditRig(t, p, `id = "same"`)
		defer r.close()
		r.wait(3 * anHour)
		r.want("12-30: 0 = 0 + 0 filtered + 0 quarantined + 0 shared", "12-29: 0 = 0 + 0 filtered + 0 quarantined + 0 shared",
			"12-31: 5 = 1 + 0 filtered + 0 quarantined + 4 shared", "12-30: 0 = 0 + 0 filtered + 0 quarantined + 0 shared")
	})
}

func TestNoClusterIsSentACountThatItCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newAuditRig(t, &past{takes: 1}, "")
		defer r.close()
		r.wait(3 * anHour)
		r.want()
		r.takes(2)
		r.wait(2 * time.Minute)
		if n := len(r.frames()); n != 3 {
			t.Errorf("%d counts", n)
		}
	})
}

func TestASourceWithoutASecondRouteIsAskedOnceAndLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{fail: status.Error(codes.Unimplemented, "no")}
		r := newAuditRig(t, p, "")
		defer r.close()
		r.wait(5 * anHour)
		if asked := p.asked(); len(asked) != 1 {
			t.Errorf("asked for %v", asked)
		}
		r.want()
	})
}

func TestACountThatFailsIsTriedAgainLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{fail: status.Error(codes.Unknown, "slurmdbd is away")}
		r := newAuditRig(t, p, "")
		defer r.close()
		r.wait(3 * anHour)
		if n := len(p.asked()); n == 0 || n > 13 {
			t.Errorf("asked %d times in three hours", n)
		}
		p.mu.Lock()
		p.fail = nil
		p.mu.Unlock()
		r.wait(20 * time.Minute)
		if n := len(r.frames()); n != 3 {
			t.Errorf("%d counts", n)
		}
	})
}

// TestACountNeverKeepsACollectionWaiting: a day takes four minutes to read, and
// collections come every minute.
func TestACountNeverKeepsACollectionWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{slow: 10 * time.Second}
		for i := range 24 {
			p.add(pastRun{id: fmt.Sprint(i), end: midnight.Add(-time.Duration(i) * anHour).Add(-time.Minute), user: "a"})
		}
		r := newAuditRig(t, p, "")
		defer r.close()
		for range 5 * 60 {
			r.wait(time.Minute)
			if age := time.Since(r.loop.Status().LastSuccess); age > time.Minute {
				t.Fatalf("no collection for %s", age)
			}
		}
		if c := r.frames(); len(c) != 4 || c[2].Counted != 24 || c[2].Records != 24 {
			t.Errorf("%+v", c)
		}
	})
}

// TestWhatIsCountedIsWhatIsThere has runs of all kinds at random times of three
// days, and compares with a plain sum.
func TestWhatIsCountedIsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p, want := &past{every: 10 * time.Minute}, map[record.Time]wire.Count{}
		for i := range rapid.IntRange(0, 60).Draw(rt, "runs") {
			run := pastRun{
				id: fmt.Sprint(i), user: "a", end: midnight.Add(-time.Duration(rapid.Int64Range(1, 3*24*3600*1e6-1).Draw(rt, "ago")) * time.Microsecond),
				hidden: rapid.Bool().Draw(rt, "hidden"), odd: rapid.Bool().Draw(rt, "odd"), excluded: rapid.Bool().Draw(rt, "excluded"),
			}
			p.add(run)
			day := record.FromStd(run.end.Truncate(24 * anHour))
			c := want[day]
			c.Counted++
			switch {
			case run.hidden:
			case run.excluded:
				c.Filtered++
			case run.odd:
				c.Quarantined++
			default:
				c.Records++
			}
			want[day] = c
		}
		p.slow = time.Duration(rapid.IntRange(0, 60).Draw(rt, "slow")) * time.Second
		synctest.Test(t, func(t *testing.T) {
			r := newAuditRig(t, p, "")
			defer r.close()
			r.wait(3 * anHour)
			met := map[record.Time]bool{}
			for _, c := range r.frames() {
				w := want[c.From]
				w.From, w.To, w.At, w.Skipped = c.From, c.To, c.At, c.Skipped
				if diff := cmp.Diff(w, c); diff != "" {
					t.Error(diff)
				}
				met[c.From] = true
			}
			if len(met) != 3 {
				t.Errorf("%d days counted", len(met))
			}
		})
	})
}

func TestLoop_SourceThatHangsHasFailedUntilItRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &past{hang: true}
		r := newAuditRig(t, p, "")
		defer r.close()
		r.wait(3 * time.Minute)
		for range 100 {
			if s := r.loop.Status(); s.State != "failed" || !errors.Is(s.Err, host.ErrCrash) {
				t.Fatalf("%s, %v", s.State, s.Err)
			}
			r.wait(7 * time.Second)
		}
		p.mu.Lock()
		p.hang = false
		p.mu.Unlock()
		r.wait(5 * time.Minute)
		if s := r.loop.Status(); s.State != "waiting" || s.Err != nil {
			t.Errorf("%s, %v", s.State, s.Err)
		}
	})
}

// Sources that say nothing for random times, by each way of saying nothing.
func TestLoop_SourceThatSendsNothingIsSilentUntilItSends(t *testing.T) {
	for _, push := range []bool{false, true} {
		for _, chat := range []string{"alive", "empty"} {
			t.Run(fmt.Sprintf("%s, push %v", chat, push), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := &past{chat: chat, push: push}
					r := newAuditRig(t, p, "")
					defer r.close()
					began := time.Now()
					for range 100 {
						r.wait(rand.N(20 * time.Second))
						want := "collecting"
						if time.Since(began) > 2*host.StallLimit && (!push || chat == "empty") {
							want = "silent"
						}
						if s := r.loop.Status(); s.State != want || (s.Err != nil) != (s.State == "silent") || !s.LastSuccess.IsZero() {
							t.Fatalf("after %s: %s, %v", time.Since(began), s.State, s.Err)
						}
					}
					p.mu.Lock()
					p.chat = ""
					p.mu.Unlock()
					r.wait(5 * time.Second)
					if s := r.loop.Status(); s.State == "silent" || s.Err != nil || s.LastSuccess.IsZero() {
						t.Errorf("%+v", s)
					}
				})
			})
		}
	}
}
