package run_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/hcl"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/programtest"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// plugins is a folder with plugins, built once.
var plugins string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bursar-run-")
	if err != nil {
		panic(err)
	}
	plugins = dir
	if err := programtest.Build(dir, map[string]string{"example": "plugins/source/example", "replay": "plugins/source/replay", "hostile": "plugins/host/testdata/hostile"}); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// site is a folder with plugins, certificates, jobs and a configuration.
type site struct {
	t     *testing.T
	dir   string
	log   *lines
	agent *run.Agent
	// patience and deadline are the agent's; 0: the usual ones.
	patience, deadline time.Duration

	cancel context.CancelFunc
	done   chan error
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir(), log: &lines{}}
	if err := os.Mkdir(s.path("plugins"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.install("example")
	return s
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

// install puts a new copy of the plugin in the place of the old one.
func (s *site) install(typ string) { s.installAs(typ, typ) }

func (s *site) installAs(program, typ string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(plugins, program))
	if err != nil {
		s.t.Fatal(err)
	}
	tmp := s.path("plugins/new")
	if err := programtest.WriteProgram(tmp, text); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(tmp, s.path("plugins/bursar-source-"+typ)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// configure writes the configuration: the agent's block and sources.
func (s *site) configure(extra, sources string) {
	s.write("agent.hcl", fmt.Sprintf("agent {\n name = \"a1\"\n data_dir = \"data\"\n plugin_dirs = [\"plugins\"]\n%s\n}\n%s", extra, sources))
}

// source is a source block whose jobs are in the file of the label's name.
func source(label, record string) string {
	return fmt.Sprintf(`
source "example" %q {
  interval = "100ms"
  config { path = "%s" }
  record {
    id    = "${source.label}-${job.id}"
    start = job.start
    stop  = job.stop
    %s
  }
}
`, label, "JOBS/"+label, record)
}

func (s *site) sources(list ...string) string {
	return strings.ReplaceAll(strings.Join(list, ""), "JOBS", s.dir)
}

func (s *site) load() *config.Config {
	s.t.Helper()
	cfg, diags := config.Load(s.path("agent.hcl"))
	if diags.HasErrors() {
		s.t.Fatal(diags.Error())
	}
	return cfg
}

func (s *site) plugins() run.Plugins {
	return run.Plugins{Executable: s.path("bursar-agent"), Dev: true, Deadline: s.deadline}
}

// start runs the agent until the test ends.
func (s *site) start() {
	s.t.Helper()
	ready := make(chan struct{})
	s.agent = run.New(s.load(), run.Options{
		Paths: []string{s.path("agent.hcl")}, Version: "1.2.3", Plugins: s.plugins(),
		Log: slog.New(slog.NewTextHandler(s.log, nil)), Ready: func() { close(ready) }, Patience: s.patience,
	})
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel, s.done = cancel, make(chan error, 1)
	go func() { s.done <- s.agent.Run(ctx) }()
	select {
	case <-ready:
	case err := <-s.done:
		s.t.Fatalf("%v\n%s", err, s.log)
	}
	s.t.Cleanup(s.stop)
}

func (s *site) stop() {
	if s.cancel == nil {
		return
	}
	s.cancel()
	s.cancel = nil
	if err := <-s.done; err != nil {
		s.t.Errorf("%v\n%s", err, s.log)
	}
}

// until waits for a state of a source.
func (s *site) until(name string, ok func(control.Source) bool) control.Source {
	s.t.Helper()
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		for _, x := range s.agent.Status().Sources {
			if x.Type+"/"+x.Label == name && ok(x) {
				return x
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.t.Fatalf("source %s never got there: %+v\n%s", name, s.agent.Status().Sources, s.log)
	return control.Source{}
}

func sent(n int64) func(control.Source) bool {
	return func(x control.Source) bool { return x.Counts.Records == n && x.State == "waiting" }
}

// tls makes certificates for the agent a1 and an aggregator, whose keys come back.
func (s *site) tls() (block string, aggregator *identity.Keys) {
	s.t.Helper()
	must := func(err error) {
		if err != nil {
			s.t.Fatal(err)
		}
	}
	_, err := identity.CreateCA(s.dir, "test", identity.LifetimeCA, time.Now())
	must(err)
	_, err = identity.CreateCert(s.dir, s.dir, identity.Request{Identity: identity.Identity{Role: identity.Agent, Name: "a1"}}, time.Now())
	must(err)
	files, err := identity.CreateCert(s.dir, s.dir, identity.Request{Identity: identity.Identity{Role: identity.Aggregator, Name: "agg"}}, time.Now())
	must(err)
	aggregator, err = identity.Load(files)
	must(err)
	return "listen = \"127.0.0.1:0\"\ntls {\n ca = \"ca.pem\"\n cert = \"a1.pem\"\n key = \"a1.key\"\n}\n", aggregator
}

func (s *site) dial(keys *identity.Keys) bursarv1.AgentClient {
	s.t.Helper()
	conn, err := grpc.NewClient(s.agent.Status().Listen, grpc.WithTransportCredentials(credentials.NewTLS(keys.Client(identity.Agent, "a1"))))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return bursarv1.NewAgentClient(conn)
}

// pull takes all frames and acknowledges them; it returns the ids of records.
func pull(t *testing.T, client bursarv1.AgentClient) []string {
	t.Helper()
	ctx := t.Context()
	first, err := client.Pull(ctx, &bursarv1.PullRequest{Cluster: "c"})
	if err != nil {
		t.Fatal(err)
	}
	at, err := client.Resume(ctx, &bursarv1.ResumeRequest{Cluster: "c", Epoch: first.GetEpoch()})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Pull(ctx, &bursarv1.PullRequest{Cluster: "c", Epoch: at.GetEpoch(), After: at.GetAfter(), Digest: at.GetDigest(), MaxBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Ack(ctx, &bursarv1.AckRequest{Cluster: "c", Epoch: resp.GetEpoch(), Through: resp.GetLast(), Digest: resp.GetDigest()}); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, raw := range resp.GetChunks() {
		chunk, err := frame.Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range chunk.Frames() {
			var f wire.Frame
			if err := wire.DecodeFrame(text, &f); err != nil {
				t.Fatal(err)
			}
			if f.Kind == wire.KindRecord {
				ids = append(ids, f.Record.ID)
			}
		}
	}
	return ids
}

func TestTheAgentCollectsAndServesEachJobOnceAlsoOverARestart(t *testing.T) {
	s := newSite(t)
	tls, keys := s.tls()
	s.write("ex", "1 alice 100 200\n2 bob 100 200\nodd line\n")
	s.configure(tls, s.sources(source("ex", "")))
	s.start()
	s.until("example/ex", sent(2))
	if got := pull(t, s.dial(keys)); !slices.Equal(got, []string{"ex-1", "ex-2"}) {
		t.Fatal(got)
	}
	s.stop()
	s.write("ex", "1 alice 100 200\n2 bob 100 200\nodd line\n3 carl 100 200\n")
	s.start()
	s.until("example/ex", sent(1))
	if got := pull(t, s.dial(keys)); !slices.Equal(got, []string{"ex-1", "ex-2", "ex-3"}) {
		t.Fatal(got)
	}
	if c := s.agent.Status().Buffer.Clusters; len(c) != 1 || c[0].ID != "c" || c[0].Behind != 0 {
		t.Errorf("%+v", c)
	}
	status, err := s.dial(keys).Status(t.Context(), &bursarv1.StatusRequest{})
	if err != nil || status.GetName() != "a1" || status.GetVersion() != "1.2.3" || len(status.GetSources()) != 1 || status.GetSources()[0].GetRecords() != 1 {
		t.Errorf("%v, %v", status, err)
	}
}

func TestAReloadTouchesOnlyWhatHasChanged(t *testing.T) {
	s := newSite(t)
	for _, label := range []string{"stays", "goes", "changes", "comes"} {
		s.write(label, "1 alice 100 200\n")
	}
	s.configure("", s.sources(source("stays", ""), source("goes", ""), source("changes", "")))
	s.start()
	for _, label := range []string{"stays", "goes", "changes"} {
		s.until("example/"+label, sent(1))
	}
	starts := strings.Count(s.log.String(), `msg="plugin started" source=example/stays`)
	s.configure("", s.sources(source("stays", ""), source("changes", `state = "DONE"`), source("comes", "")))
	got, err := s.agent.Reload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got.Added, got.Changed, got.Removed, got.Restart) != "[example/comes] [example/changes] [example/goes] []" {
		t.Fatalf("%+v", got)
	}
	blocks := fmt.Sprint(got.RecordBlocks)
	for _, want := range []string{"example/changes, beside the default mapping:\n  adds        state", "example/comes, "} {
		if !strings.Contains(blocks, want) {
			t.Errorf("record blocks %s lack %q", blocks, want)
		}
	}
	s.until("example/comes", sent(1))
	s.write("changes", "1 alice 100 200\n2 bob 100 200\n")
	s.until("example/changes", sent(2))
	if n := len(s.agent.Status().Sources); n != 3 {
		t.Errorf("%d sources", n)
	}
	if n := strings.Count(s.log.String(), `msg="plugin started" source=example/stays`); n != starts {
		t.Errorf("the plugin that stays was started %d times, then %d", starts, n)
	}
	if strings.Contains(s.log.String(), "collection failed") {
		t.Errorf("a reload is no failure:\n%s", s.log)
	}
}

func TestABadConfigurationIsRefusedAsAWholeAndTheOldOneStays(t *testing.T) {
	s := newSite(t)
	s.write("ex", "1 alice 100 200\n")
	s.configure("", s.sources(source("ex", "")))
	s.start()
	s.until("example/ex", sent(1))
	for name, c := range map[string]struct{ sources, want string }{
		"syntax":  {"source {", "agent.hcl"},
		"mapping": {s.sources(source("ex", "state = job.usr")), `did you mean "user"`},
		"config":  {"source \"example\" \"ex\" {\n config { pth = \"x\" }\n}", "pth"},
		"plugin":  {"source \"exmple\" \"ex\" {}", "plugin not found"},
	} {
		s.configure("", c.sources)
		if _, err := s.agent.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	s.write("ex", "1 alice 100 200\n2 bob 100 200\n")
	s.until("example/ex", sent(2))
	s.configure("listen = \"127.0.0.1:0\"\n", s.sources(source("ex", "")))
	if _, err := s.agent.Reload(t.Context()); err == nil {
		t.Error("listen without tls passed")
	}
	s.configure("metrics { listen = \"127.0.0.1:0\" }\n", s.sources(source("ex", "")))
	if got, err := s.agent.Reload(t.Context()); err != nil || !slices.Equal(got.Restart, []string{"agent.metrics"}) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAReplacedPluginBinaryIsTakenByAReload(t *testing.T) {
	s := newSite(t)
	s.write("ex", "1 alice 100 200\n")
	s.configure("", s.sources(source("ex", "")))
	s.start()
	s.until("example/ex", sent(1))
	s.install("example")
	got, err := s.agent.Reload(t.Context())
	if err != nil || !slices.Equal(got.Changed, []string{"example/ex"}) {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = s.agent.Reload(t.Context()); err != nil || len(got.Changed) > 0 {
		t.Fatalf("%+v, %v", got, err)
	}
}

func TestAPluginThatCannotStartLeavesTheOthersAlone(t *testing.T) {
	s := newSite(t)
	s.write("ex", "1 alice 100 200\n")
	s.write("plugins/bursar-source-broken", "#!/bin/sh\nexit 3\n")
	if err := os.Chmod(s.path("plugins/bursar-source-broken"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.configure("", s.sources(source("ex", ""))+"source \"broken\" \"b\" {}\nsource \"absent\" \"c\" {}\n")
	s.start()
	s.until("example/ex", sent(1))
	failed := func(x control.Source) bool { return x.State == "failed" && x.Error != "" }
	s.until("broken/b", failed)
	if x := s.until("absent/c", failed); !strings.Contains(x.Error, "plugin not found") {
		t.Errorf("error %q", x.Error)
	}
}

func TestACheckReportsProblemsOfPluginsAndFilesTogether(t *testing.T) {
	s := newSite(t)
	s.configure("lissten = \"x\"", s.sources(source("a", "state = job.usr"), "source \"example\" \"b\" {\n config { pth = 1 }\n}\n", source("c", `component "Cores" { amount = "x" }`)))
	cfg, diags := config.Load(s.path("agent.hcl"))
	_, found := run.Check(t.Context(), cfg, s.plugins())
	diags.Extend(found)
	text := diags.Error()
	for _, want := range []string{
		`agent.hcl:5:1: unknown attribute "lissten"`, `agent.hcl:15:13: unknown attribute "job.usr"`, `agent.hcl:19:11: unknown attribute "pth"; did you mean "path"?`, `path must be set here`, `agent.hcl:29:34: invalid value; expected a number`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing of %q in:\n%s", want, text)
		}
	}
	if _, err := os.Stat(s.path("data")); !errors.Is(err, os.ErrNotExist) {
		t.Error("a check made the data folder")
	}
}

func TestAnotherAgentsCertificateIsAnErrorOfTheConfiguration(t *testing.T) {
	s := newSite(t)
	tls, _ := s.tls()
	s.configure(strings.ReplaceAll(tls, "a1.", "agg."), "")
	err := run.New(s.load(), run.Options{Plugins: s.plugins(), Log: slog.New(slog.DiscardHandler)}).Run(t.Context())
	var diags hcl.Diagnostics
	if !errors.As(err, &diags) || !strings.Contains(err.Error(), "aggregator/agg") {
		t.Fatalf("error %v", err)
	}
}

func TestOrdersAreCarriedOutOrRefusedWithAReason(t *testing.T) {
	s := newSite(t)
	tls, keys := s.tls()
	s.write("ex", "1 alice 100 200\n2 bob 100 200\n")
	s.configure(tls, s.sources(source("ex", "")))
	s.start()
	s.until("example/ex", sent(2))
	client := s.dial(keys)
	order := func(req *bursarv1.OrderRequest) *bursarv1.OrderResponse {
		stream, err := client.Order(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for {
			resp, err := stream.Recv()
			if err != nil {
				t.Fatal(err)
			}
			if resp.GetDone() {
				return resp
			}
		}
	}
	recollect := &bursarv1.OrderRequest_Recollect{SourceType: "example", SourceLabel: "ex", From: 0, To: time.Now().UnixMicro()}
	if r := order(&bursarv1.OrderRequest{Order: &bursarv1.OrderRequest_Recollect_{Recollect: recollect}}); r.GetFailed() || !strings.HasPrefix(r.GetMessage(), "2 sent") {
		t.Errorf("%v", r)
	}
	for want, req := range map[string]*bursarv1.OrderRequest{
		"allows no commands": {Order: &bursarv1.OrderRequest_Command_{Command: &bursarv1.OrderRequest_Command{Name: "rm"}}},
		"unknown source":     {Order: &bursarv1.OrderRequest_Retry_{Retry: &bursarv1.OrderRequest_Retry{SourceType: "x", SourceLabel: "y"}}},
		"cannot be mapped":   {Order: &bursarv1.OrderRequest_Retry_{Retry: &bursarv1.OrderRequest_Retry{SourceType: "example", SourceLabel: "ex", Raw: []byte("odd line")}}},
		"older than":         {},
	} {
		if r := order(req); !r.GetFailed() || !strings.Contains(r.GetMessage(), want) {
			t.Errorf("%q: %v", want, r)
		}
	}
	raw := []byte(`{"run":"9","ended":true,"attributes":{"id":"9","user":"x","start":1000000,"stop":2000000}}`)
	retry := &bursarv1.OrderRequest_Retry{SourceType: "example", SourceLabel: "ex", QuarantineId: "q", Raw: raw}
	if r := order(&bursarv1.OrderRequest{Order: &bursarv1.OrderRequest_Retry_{Retry: retry}}); r.GetFailed() {
		t.Errorf("%v", r)
	}
	if got := pull(t, client); !slices.Contains(got, "ex-9") {
		t.Errorf("pulled %q", got)
	}
}

func TestMetricsShowTheSourcesAndTheBuffer(t *testing.T) {
	s := newSite(t)
	address := porttest.Free(t)
	s.write("ex", "1 alice 100 200\n")
	s.configure(fmt.Sprintf("metrics { listen = %q }\n", address), s.sources(source("ex", "")))
	s.start()
	s.until("example/ex", sent(1))
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`bursar_source_last_success_timestamp_seconds{source="example/ex"} 1.`, `bursar_source_lag_seconds{source="example/ex"} `,
		`bursar_source_records_total{source="example/ex"} 1`, `bursar_buffer_frames 2`, `bursar_buffer_bytes `, `bursar_build_info{goversion="go`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestTheControlSocketIsTheUsersAloneAndAnswers(t *testing.T) {
	s := newSite(t)
	s.write("ex", "1 alice 100 200\n")
	s.configure("", s.sources(source("ex", "")))
	client := control.NewClient(s.path("data/agent.sock"))
	defer client.Close()
	if _, err := client.Status(t.Context()); !errors.Is(err, control.ErrNotRunning) {
		t.Fatalf("error %v", err)
	}
	s.start()
	s.until("example/ex", sent(1))
	info, err := os.Stat(s.path("data/agent.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatal(info, err)
	}
	if st, err := client.Status(t.Context()); err != nil || st.Name != "a1" || len(st.Sources) != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	if _, err := client.Reload(t.Context()); err != nil {
		t.Error(err)
	}
	w := control.Recollect{Source: "ex", From: time.Unix(0, 0), To: time.Now()}
	if counts, err := client.Recollect(t.Context(), w, func(control.Step) {}); err != nil || counts.Records != 1 {
		t.Errorf("%+v, %v", counts, err)
	}
	w.Source = "xe"
	if _, err := client.Recollect(t.Context(), w, func(control.Step) {}); err == nil || !strings.Contains(err.Error(), `unknown source "xe"`) {
		t.Errorf("error %v", err)
	}
	again := run.New(s.load(), run.Options{Plugins: s.plugins(), Log: slog.New(slog.DiscardHandler)})
	if err := again.Run(t.Context()); err == nil {
		t.Error("two agents run on one buffer")
	}
}
