package plugintest

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Options of Run. One of Source and Binary is set.
type Options struct {
	Source func() sdk.Source // served in the test's process
	Binary string            // started as a process by package host
	Type   string            // of the plugin, with Binary; that of its description otherwise
	Env    map[string]string // of the process

	// Config is a configuration with which the source finds at least two jobs that
	// ended, and the same ones whenever it is asked. Of a source that hands on what is
	// pushed only that is checked for which no one needs to push.
	Config *bursarv1.Node

	// CheckMapping returns why the default mapping, which is HCL, is no mapping
	// over the attributes. Nil: that is not checked.
	CheckMapping func(d *bursarv1.DescribeResponse) error

	// Quiet is how long a push source is listened to after its last batch; half a
	// second when zero.
	Quiet time.Duration

	// NoRewind and NoWindow say that the source's jobs cannot be had again, as
	// those of a push source.
	NoRewind, NoWindow bool
}

// longAgo reaches behind everything that a test's source has.
const longAgo = 100 * 365 * 24 * time.Hour

// Run checks every promise of a source, each as a subtest.
func Run(t *testing.T, o Options) {
	s := &suite{o: o}
	t.Run("the description is sane", s.describesItself)
	t.Run("the description stays the same", s.describesSteadily)
	t.Run("an unknown attribute is refused with its place", s.reportsUnknownAttribute)
	t.Run("Collect before Configure is refused", s.refusesUnconfigured)
	t.Run("a closed stream ends Collect", s.isFreeAfterClose)
	if s.mustDescribe(t, s.startSource(t)).GetPushed() {
		t.Run("a window of what was pushed has nothing", s.emptyWindow)
		return // there are jobs only for those who push
	}
	t.Run("jobs fit the declared attributes", s.sendsFittingValues)
	t.Run("what was acknowledged is not sent again", s.repeatsNothing)
	t.Run("a crash between batch and acknowledgement loses nothing", s.losesNothing)
	t.Run("at most one batch is sent beyond the acknowledged", s.waitsForAcks)
	if !o.NoRewind {
		t.Run("a rewind sends again", s.rewindLosesNothing)
	}
	if !o.NoWindow {
		t.Run("a window sends again and has no checkpoint", s.windowLosesNothing)
		t.Run("an empty window has no ended jobs", s.emptyWindow)
		t.Run("a source that counts has as many runs as it collects", s.countsAsCollected)
	}
}

type suite struct{ o Options }

// startSource starts a fresh source.
func (s *suite) startSource(t *testing.T) bursarv1.SourcePluginClient {
	t.Helper()
	if s.o.Binary == "" {
		return Serve(t, s.o.Source)
	}
	p, err := host.Launch(t.Context(), host.Spec{
		Kind: "source", Type: s.o.Type, Path: s.o.Binary, Env: s.o.Env, Dev: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p.Source()
}

func (s *suite) mustDescribe(t *testing.T, c bursarv1.SourcePluginClient) *bursarv1.DescribeResponse {
	t.Helper()
	d, err := c.Describe(t.Context(), &bursarv1.DescribeRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// newDaemon starts a fresh source and configures it.
func (s *suite) newDaemon(t *testing.T) *Daemon {
	t.Helper()
	c := s.startSource(t)
	r, err := c.Configure(t.Context(), &bursarv1.ConfigureRequest{
		Label: "test", Agent: "agent", Config: s.o.Config, DataDir: t.TempDir(),
	})
	if err != nil || len(r.GetDiagnostics()) > 0 {
		t.Fatalf("configure: %v %v", err, r.GetDiagnostics())
	}
	d := &Daemon{Client: c}
	if s.mustDescribe(t, c).GetPush() {
		d.Quiet = s.o.Quiet
		if d.Quiet == 0 {
			d.Quiet = 500 * time.Millisecond
		}
	}
	return d
}

func (s *suite) mustCollect(t *testing.T, d *Daemon, start sdk.Start) *Collected {
	t.Helper()
	got, err := d.Collect(t.Context(), start)
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	return got
}

// endedRuns returns the names of the runs that ended, each once.
func endedRuns(jobs []*bursarv1.Job) map[string]bool {
	out := map[string]bool{}
	for _, j := range jobs {
		if j.GetEnded() {
			out[j.GetRun()] = true
		}
	}
	return out
}

// missingKeys lists what b lacks of a.
func missingKeys(a, b map[string]bool) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(a)) {
		if !b[k] {
			out = append(out, k)
		}
	}
	return out
}

func (s *suite) describesItself(t *testing.T) {
	d := s.mustDescribe(t, s.startSource(t))
	typ := s.o.Type
	if typ == "" {
		typ = d.GetType()
	}
	if err := host.CheckDescription(typ, d); err != nil {
		t.Error(err)
	}
	if typ == "" || d.GetVersion() == "" || len(d.GetAttributes()) == 0 && !d.GetPushed() {
		t.Errorf("type %q, version %q, %d attributes", d.GetType(), d.GetVersion(), len(d.GetAttributes()))
	}
	for _, a := range d.GetAttributes() {
		if a.GetDoc() == "" {
			t.Errorf("the attribute %s has no explanation", a.GetName())
		}
	}
	if _, diags := hcl.Parse("mapping of "+d.GetType(), []byte(d.GetMapping())); diags.HasErrors() {
		t.Errorf("default mapping: %v", diags)
	}
	if s.o.CheckMapping != nil {
		if err := s.o.CheckMapping(d); err != nil {
			t.Errorf("default mapping: %v", err)
		}
	}
}

func (s *suite) describesSteadily(t *testing.T) {
	d := s.newDaemon(t)
	after, fresh := s.mustDescribe(t, d.Client), s.mustDescribe(t, s.startSource(t))
	if after.String() != fresh.String() {
		t.Errorf("before Configure: %v\nafter: %v", fresh, after)
	}
}

func (s *suite) reportsUnknownAttribute(t *testing.T) {
	const name = "no_such_attribute_at_all"
	children := append(slices.Clone(s.o.Config.GetChildren()), Attr(name, "x"))
	config := Block(s.o.Config.GetName(), children...)
	r, err := s.startSource(t).Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "test", Config: config, DataDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	want := children[len(children)-1].GetRange()
	for _, d := range r.GetDiagnostics() {
		if d.GetSeverity() == bursarv1.Diagnostic_SEVERITY_ERROR && strings.Contains(d.GetSummary()+d.GetDetail(), name) {
			if d.GetSubject().GetFile() != want.GetFile() || d.GetSubject().GetStartLine() != want.GetStartLine() {
				t.Errorf("its place is %v, not %v", d.GetSubject(), want)
			}
			return
		}
	}
	t.Errorf("diagnostics: %v", r.GetDiagnostics())
}

func (s *suite) refusesUnconfigured(t *testing.T) {
	_, err := (&Daemon{Client: s.startSource(t)}).Collect(t.Context(), sdk.Start{})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("error: %v", err)
	}
}

func (s *suite) sendsFittingValues(t *testing.T) {
	d := s.newDaemon(t)
	attributes := s.mustDescribe(t, d.Client).GetAttributes()
	got := s.mustCollect(t, d, sdk.Start{})
	if n := len(endedRuns(got.Jobs())); n < 2 {
		t.Fatalf("the configuration must yield at least two ended jobs, it gave %d", n)
	}
	for _, j := range got.Jobs() {
		if j.GetRun() == "" || len(j.GetValues()) != len(attributes) {
			t.Fatalf("run %q has %d values for %d attributes", j.GetRun(), len(j.GetValues()), len(attributes))
		}
		for i, v := range j.GetValues() {
			if !fitsType(v, attributes[i].GetType()) {
				t.Errorf("run %q: %s is %v, not %v", j.GetRun(), attributes[i].GetName(), v, attributes[i].GetType())
			}
		}
	}
}

func fitsType(v *bursarv1.Value, typ bursarv1.Type) bool {
	switch v.GetKind().(type) {
	case nil:
		return true
	case *bursarv1.Value_StringValue, *bursarv1.Value_BytesValue:
		return typ == bursarv1.Type_TYPE_STRING
	case *bursarv1.Value_IntValue:
		return typ == bursarv1.Type_TYPE_INT || typ == bursarv1.Type_TYPE_TIME || typ == bursarv1.Type_TYPE_FLOAT
	case *bursarv1.Value_FloatValue:
		return typ == bursarv1.Type_TYPE_FLOAT
	case *bursarv1.Value_BoolValue:
		return typ == bursarv1.Type_TYPE_BOOL
	case *bursarv1.Value_ListValue:
		return typ == bursarv1.Type_TYPE_LIST
	case *bursarv1.Value_MapValue:
		return typ == bursarv1.Type_TYPE_MAP
	}
	return false
}

func (s *suite) repeatsNothing(t *testing.T) {
	d := s.newDaemon(t)
	first := endedRuns(s.mustCollect(t, d, sdk.Start{}).Jobs())
	for name, d := range map[string]*Daemon{
		"the same process": d,
		"a new process":    {Client: s.newDaemon(t).Client, Checkpoint: d.Checkpoint, Quiet: d.Quiet},
	} {
		again := endedRuns(s.mustCollect(t, d, sdk.Start{}).Jobs())
		var twice []string
		for run := range again {
			if first[run] {
				twice = append(twice, run)
			}
		}
		if len(twice) > max(1, len(first)/10) { // the last few may share their time with the checkpoint
			t.Errorf("%s sends %d of %d ended runs again", name, len(twice), len(first))
		}
	}
}

// losesNothing cuts after every number of batches, and goes on with a new
// process from the last checkpoint.
func (s *suite) losesNothing(t *testing.T) {
	all := endedRuns(s.mustCollect(t, s.newDaemon(t), sdk.Start{}).Jobs())
	for limit := 1; limit <= 5; limit++ {
		d := s.newDaemon(t)
		d.Limit = limit
		got := s.mustCollect(t, d, sdk.Start{})
		safe := endedRuns(got.Jobs())
		next := s.newDaemon(t)
		next.Checkpoint = d.Checkpoint
		maps.Copy(safe, endedRuns(s.mustCollect(t, next, sdk.Start{}).Jobs()))
		if lost := missingKeys(all, safe); len(lost) > 0 {
			t.Errorf("cut after %d acknowledged batches, %d runs are lost: %.10v", limit, len(lost), lost)
		}
		if got.Cut == nil {
			return // there are no more batches
		}
	}
}

// waitsForAcks checks that a source sends at most two batches while none is acknowledged.
func (s *suite) waitsForAcks(t *testing.T) {
	d := s.newDaemon(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	stream, err := d.Client.Collect(ctx)
	if err == nil {
		err = stream.Send(d.startMessage(sdk.Start{}))
	}
	if err != nil {
		t.Fatal(err)
	}
	batches := make(chan *bursarv1.CollectResponse)
	go func() {
		defer close(batches)
		for {
			b, err := stream.Recv()
			if err != nil {
				return
			}
			batches <- b
		}
	}()
	n := 0
	for range batches {
		if n++; n == 1 {
			time.AfterFunc(200*time.Millisecond, cancel)
		}
	}
	if n > 2 {
		t.Errorf("%d batches without an acknowledgement", n)
	}
}

// isFreeAfterClose ends a Collect in its middle; the source must then be free for another.
func (s *suite) isFreeAfterClose(t *testing.T) {
	d := s.newDaemon(t)
	d.Limit = 1
	s.mustCollect(t, d, sdk.Start{})
	d.Limit = 0
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := d.Collect(ctx, sdk.Start{}); err != nil {
		t.Errorf("the next Collect: %v", err)
	}
}

func (s *suite) rewindLosesNothing(t *testing.T) {
	d := s.newDaemon(t)
	all := endedRuns(s.mustCollect(t, d, sdk.Start{}).Jobs())
	again := endedRuns(s.mustCollect(t, d, sdk.Start{Rewind: longAgo}).Jobs())
	if lost := missingKeys(all, again); len(lost) > 0 {
		t.Errorf("a rewind over everything lacks %d of %d runs: %.10v", len(lost), len(all), lost)
	}
}

func (s *suite) windowLosesNothing(t *testing.T) {
	d := s.newDaemon(t)
	all := endedRuns(s.mustCollect(t, d, sdk.Start{}).Jobs())
	w := &sdk.Window{From: time.Unix(0, 0), To: time.Now().Add(24 * time.Hour)}
	again := endedRuns(s.mustCollect(t, d, sdk.Start{Window: w}).Jobs())
	if lost := missingKeys(all, again); len(lost) > 0 {
		t.Errorf("a window over everything lacks %d of %d runs: %.10v", len(lost), len(all), lost)
	}
}

func (s *suite) emptyWindow(t *testing.T) {
	d := s.newDaemon(t)
	w := &sdk.Window{From: time.Unix(0, 0), To: time.Unix(1, 0)}
	if jobs := endedRuns(s.mustCollect(t, d, sdk.Start{Window: w}).Jobs()); len(jobs) > 0 {
		t.Errorf("%d ended runs in the first second of 1970", len(jobs))
	}
}

// countsAsCollected compares the two routes of a source that has a second one: over
// everything, over nothing, and over days.
func (s *suite) countsAsCollected(t *testing.T) {
	d := s.newDaemon(t)
	s.mustCollect(t, d, sdk.Start{}) // days are counted after collections
	all := sdk.Window{From: time.Unix(0, 0), To: time.Now().Add(24 * time.Hour)}
	n, err := d.Count(t.Context(), all)
	if status.Code(err) == codes.Unimplemented {
		t.Skip("the source does not count")
	}
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	s.countsIn(t, d, all)
	if none, err := d.Count(t.Context(), sdk.Window{From: time.Unix(0, 0), To: time.Unix(1, 0)}); err != nil || none != 0 {
		t.Errorf("%d runs counted in the first second of 1970: %v", none, err)
	}
	middle := s.halfwayTime(t, d, all, n)
	before, after := sdk.Window{From: all.From, To: middle}, sdk.Window{From: middle, To: all.To}
	if sum := s.countsIn(t, d, before) + s.countsIn(t, d, after); sum != n {
		t.Errorf("%d runs in two windows that meet at %s, %d in one", sum, middle, n)
	}
}

// countsIn returns how many runs are counted in w, which must be those that
// Collect gives.
func (s *suite) countsIn(t *testing.T, d *Daemon, w sdk.Window) int64 {
	t.Helper()
	n, err := d.Count(t.Context(), w)
	if err != nil {
		t.Fatalf("count: %v", err)
	}
	got := s.mustCollect(t, d, sdk.Start{Window: &w})
	if runs := len(endedRuns(got.Jobs())) + len(got.Refused()); int64(runs) != n {
		t.Errorf("from %s to %s: %d runs counted, %d collected", w.From, w.To, n, runs)
	}
	return n
}

// halfwayTime finds, to a few hours, when about half of n runs in w had ended.
func (s *suite) halfwayTime(t *testing.T, d *Daemon, w sdk.Window, n int64) time.Time {
	t.Helper()
	from, to := w.From.Unix(), w.To.Unix()
	for range 16 {
		at := from + (to-from)/2
		had, err := d.Count(t.Context(), sdk.Window{From: w.From, To: time.Unix(at, 0)})
		if err != nil {
			t.Fatalf("count: %v", err)
		}
		if had <= n/2 {
			from = at
		} else {
			to = at
		}
	}
	return time.Unix(to, 0).UTC()
}
