package source

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/local"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestTheSourceKeepsThePromisesOfEverySource(t *testing.T) {
	plugintest.Run(t, plugintest.Options{
		Source: func() sdk.Source {
			s := New(slog.New(slog.DiscardHandler))
			t.Cleanup(func() { s.Close() })
			return s
		},
		Config: plugintest.Block("config", plugintest.Attr("listen", "127.0.0.1:0"), plugintest.Attr("allow_local_users", true)),
	})
}

func TestConfigurationProblemsNameTheirPlace(t *testing.T) {
	ca := identitytest.New(t)
	files := ca.Files(identity.Agent, "head1")
	tls := func(children ...*bursarv1.Node) *bursarv1.Node { return plugintest.Block("tls", children...) }
	for name, c := range map[string]struct {
		nodes []*bursarv1.Node
		want  string
	}{
		"everybody":        {[]*bursarv1.Node{plugintest.Attr("listen", "0.0.0.0:8000")}, "is not on loopback"},
		"local users":      {[]*bursarv1.Node{plugintest.Attr("listen", "127.0.0.1:8000")}, "allow_local_users = true"},
		"nobody's socket":  {[]*bursarv1.Node{plugintest.Attr("socket_users", []string{"no such user"})}, "not found on this machine"},
		"not an address":   {[]*bursarv1.Node{plugintest.Attr("listen", "8000")}, "is not an address"},
		"no certificates":  {[]*bursarv1.Node{tls()}, "the agent has no certificates"},
		"half a pair":      {[]*bursarv1.Node{tls(plugintest.Attr("ca", files.CA), plugintest.Attr("cert", files.Cert))}, "ca, cert and key must be set"},
		"not there":        {[]*bursarv1.Node{tls(plugintest.Attr("ca", files.CA), plugintest.Attr("cert", "/none"), plugintest.Attr("key", files.Key))}, "/none"},
		"writers":          {[]*bursarv1.Node{plugintest.Attr("writers", []string{"a"})}, "without a tls block"},
		"too large a body": {[]*bursarv1.Node{plugintest.Attr("max_body", "64MiB")}, "must be between 64KiB and 12MiB"},
		"no patience":      {[]*bursarv1.Node{plugintest.Attr("patience", "0s")}, "must be between 1s and 10m"},
		"short memory":     {[]*bursarv1.Node{plugintest.Attr("remember", "1h")}, "must be at least 24h"},
		"no kind":          {[]*bursarv1.Node{plugintest.Block("component")}, `kind must be set`},
		"another kind":     {[]*bursarv1.Node{plugintest.Block("component", plugintest.Attr("kind", "sum"))}, `"sum" is not allowed here`},
		"no component":     {[]*bursarv1.Node{plugintest.Block("component", plugintest.Attr("kind", "total"))}, "wrong number of labels on \"component\""},
		"slip":             {[]*bursarv1.Node{plugintest.Attr("lissten", "x")}, `did you mean "listen"?`},
	} {
		t.Run(name, func(t *testing.T) {
			client := plugintest.Serve(t, func() sdk.Source { return New(slog.New(slog.DiscardHandler)) })
			resp, err := client.Configure(t.Context(), &bursarv1.ConfigureRequest{Label: "x", Config: plugintest.Block("config", c.nodes...), DataDir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			var said []string
			for _, d := range resp.GetDiagnostics() {
				said = append(said, d.GetSummary()+": "+d.GetDetail())
			}
			if len(said) == 0 || !strings.Contains(strings.Join(said, "\n"), c.want) {
				t.Errorf("%q", said)
			}
		})
	}
}

func TestTheReadmeHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(Source).Describe().Settings)
}

// plugin is a source that collects, and the agent behind it.
type plugin struct {
	t      testing.TB
	source *Source
	agent  sync.Mutex
	got    []sdk.Batch
	end    func()
}

func (p *plugin) take(_ context.Context, b sdk.Batch) error {
	p.agent.Lock()
	defer p.agent.Unlock()
	p.got = append(p.got, b)
	return nil
}

func (p *plugin) checkpoint() []byte {
	p.agent.Lock()
	defer p.agent.Unlock()
	if len(p.got) == 0 {
		return nil
	}
	return p.got[len(p.got)-1].Checkpoint
}

func configured(t testing.TB, own sdk.TLSFiles, dir string, nodes ...sdk.Node) *plugin {
	t.Helper()
	nodes = append(nodes, sdk.Node{Name: "listen", Value: sdk.String("127.0.0.1:0")}, sdk.Node{Name: "allow_local_users", Value: sdk.Bool(true)})
	cfg := sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes})
	cfg.DataDir, cfg.TLS = dir, own
	p := &plugin{t: t, source: New(slog.New(slog.DiscardHandler))}
	if err := p.source.Configure(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.source.Close() })
	return p
}

// collect begins a collection and waits until it is under way.
func (p *plugin) collect() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = p.source.Collect(ctx, sdk.Start{Checkpoint: p.checkpoint()}, sdk.NewStream(nil, p.take))
	}()
	p.end = func() { cancel(); <-done }
	p.t.Cleanup(p.end)
	for range 600 {
		if p.source.queue.Ready() {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	p.t.Fatal("the collection does not begin")
}

func post(t testing.TB, client *http.Client, url, id string) (status int, text string, err error) {
	t.Helper()
	body := `{"record_id":"` + id + `","components":[],"start_time":"2024-02-24T00:27:58Z"}`
	resp, err := client.Post(url+"/record", "application/json", bytes.NewReader([]byte(body)))
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func (p *plugin) url(scheme string) string { return scheme + "://" + p.source.listener.addr.String() }

func TestComponentBlocks_AddToTheKindsOfAUDITOR(t *testing.T) {
	block := func(name, kind string) sdk.Node {
		return sdk.Node{Name: "component", Labels: []string{name}, IsBlock: true, Children: []sdk.Node{{Name: "kind", Value: sdk.String(kind)}}}
	}
	p := configured(t, sdk.TLSFiles{}, t.TempDir(), block("joules", "total"), block("UserCPU", "rate"))
	want := record.Kinds{"joules": record.Total, "UserCPU": record.Rate, "TotalCPU": record.Total, "SystemCPU": record.Total, "naive_cpu_time": record.Total}
	if diff := cmp.Diff(want, p.source.settings.kinds); diff != "" {
		t.Error(diff)
	}
}

func TestAPushBetweenTwoCollectionsWaitsForTheNext(t *testing.T) {
	p := configured(t, sdk.TLSFiles{}, t.TempDir())
	p.collect()
	url := p.url("http")
	if status, text, err := post(t, http.DefaultClient, url, "a"); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	p.end()
	answer := make(chan int, 1)
	go func() {
		status, _, _ := post(t, http.DefaultClient, url, "b")
		answer <- status
	}()
	p.collect()
	if status := <-answer; status != 200 {
		t.Error(status)
	}
	if status, text, _ := post(t, http.DefaultClient, url, "a"); status != 500 || text != "RECORD_EXISTS" {
		t.Error(status, text)
	}
}

func TestWhatWasAddedIsKnownAfterARestart(t *testing.T) {
	dir := t.TempDir()
	p := configured(t, sdk.TLSFiles{}, dir)
	p.collect()
	if status, text, err := post(t, http.DefaultClient, p.url("http"), "a"); status != 200 || err != nil {
		t.Fatal(status, text, err)
	}
	p.end()
	if err := p.source.Close(); err != nil {
		t.Fatal(err)
	}
	next := configured(t, sdk.TLSFiles{}, dir)
	next.got = p.got
	next.collect()
	if status, text, _ := post(t, http.DefaultClient, next.url("http"), "a"); status != 500 || text != "RECORD_EXISTS" {
		t.Error(status, text)
	}
}

func TestTheAgentsOwnCertificatesServeWhereNoneAreNamed(t *testing.T) {
	ca := identitytest.New(t)
	own := ca.Files(identity.Agent, "head1")
	p := configured(t, sdk.TLSFiles{CA: own.CA, Cert: own.Cert, Key: own.Key}, t.TempDir(), sdk.Node{Name: "tls", IsBlock: true})
	p.collect()
	writer := ca.Issue(identity.Identity{Role: identity.Client, Name: "tardis", Rights: identity.Write})
	reader := ca.Issue(identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read})
	for _, c := range []struct {
		files  identity.Files
		status int
	}{{writer, 200}, {reader, 0}} {
		if status, text, _ := post(t, ca.Client(c.files), p.url("https"), "a"); status != c.status {
			t.Error(status, text)
		}
	}
	if _, _, err := post(t, http.DefaultClient, p.url("http"), "b"); err == nil && len(p.got) > 2 {
		t.Error("plain HTTP was taken")
	}
}

func TestAWindowOfThePastHasNothing(t *testing.T) {
	p := configured(t, sdk.TLSFiles{}, t.TempDir())
	err := p.source.Collect(t.Context(), sdk.Start{Window: &sdk.Window{}}, sdk.NewStream(nil, p.take))
	if err != nil || len(p.got) > 0 || p.source.listener != nil {
		t.Error(err, p.got)
	}
}

func TestAPortThatIsStillInUseIsWaitedFor(t *testing.T) {
	former := porttest.Listen(t)
	got := make(chan error, 1)
	go func() {
		l, err := openPort(t.Context(), &settings{document: document{Listen: former.Addr().String()}}, slog.New(slog.DiscardHandler))
		if err == nil {
			l.Close()
		}
		got <- err
	}()
	former.Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

func TestSocket_ProcessesOfItsUsersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for uid, may := range map[int]bool{os.Geteuid(): true, os.Geteuid() + 1: false} {
		l, err := openPort(t.Context(), &settings{socket: path, uids: []int{uid}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(l) }()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return local.Dial(ctx, path) }}}
		resp, err := client.Get("http://localhost/health_check")
		if (err == nil) != may {
			t.Errorf("uid %d: %v", uid, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		client.CloseIdleConnections()
		server.Close()
	}
}
