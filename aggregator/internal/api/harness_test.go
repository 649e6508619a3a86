package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
)

// node is a store with a log in memory, as the cluster would drive it.
type node struct {
	store *store.Store

	mu    sync.Mutex
	index uint64
	fault func(store.Command) error // before the command is applied
	lost  func(store.Command) error // after it was
	deaf  error                     // why it cannot be read
}

// change changes how the node behaves.
func (n *node) change(how func(*node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	how(n)
}

func (n *node) Write(_ context.Context, c store.Command) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fault != nil {
		if err := n.fault(c); err != nil {
			return nil, err
		}
	}
	n.index++
	result, err := n.store.Apply(n.index, 1, store.Encode(c))
	if err == nil && n.lost != nil {
		err = n.lost(c)
	}
	return result, err
}

func (n *node) Read(context.Context) (*store.View, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.deaf != nil {
		return nil, n.deaf
	}
	return n.store.View()
}

// View is the picture that usage is added up from.
func (n *node) View() (*store.View, error) { return n.store.View() }

// admin may do everything.
func admin(*http.Request) access.Principal { return access.Daemon() }

// rig is a server on a real connection over a real store. Every answer is
// checked against the description of the interface.
type rig struct {
	t        testing.TB
	node     *node
	url      string
	log      *locked
	server   *api.Server
	registry *prometheus.Registry
	described
}

type change func(*api.Options, *store.Options)

func newRig(t testing.TB, changes ...change) *rig {
	t.Helper()
	rg := &rig{t: t, node: &node{}, log: &locked{}, registry: prometheus.NewRegistry()}
	reader := access.Reader{Source: rg.node, Usages: sums.NewKeeper(sums.Options{Views: rg.node}, slog.New(slog.NewTextHandler(rg.log, nil)), nil)}
	opt := api.Options{
		Reader: reader, Usage: reader, Writer: rg.node, Who: admin, Version: "test", Log: slog.New(slog.NewTextHandler(rg.log, nil)),
		Metrics: promhttp.HandlerFor(rg.registry, promhttp.HandlerOpts{}),
	}
	disk := store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20}
	for _, c := range changes {
		c(&opt, &disk)
	}
	s, err := store.Open(disk)
	if err != nil {
		t.Fatal(err)
	}
	rg.node.store = s
	rg.server = api.New(opt)
	server := httptest.NewServer(rg.server)
	t.Cleanup(func() {
		server.Close()
		if err := rg.node.store.Close(); err != nil {
			t.Error(err)
		}
	})
	rg.url = server.URL
	rg.described = describe(t)
	return rg
}

// locked is a text that several goroutines write.
type locked struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// answer is what came back; err says that the connection broke.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return "broken: " + a.err.Error()
	}
	return fmt.Sprintf("%d %q", a.status, a.body)
}

// call sends a request as it stands: the path is not touched. Header lines are
// "Name: value". A body has the content type application/json unless they say
// otherwise.
func (rg *rig) call(method, path string, body io.Reader, header ...string) answer {
	rg.t.Helper()
	u, err := url.Parse(rg.url + path)
	if err != nil {
		rg.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, u.String(), body)
	if err != nil {
		rg.t.Fatal(err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text), err}
}

// do is call with a check of request and answer against the description.
func (rg *rig) do(method, path, body string, header ...string) answer {
	rg.t.Helper()
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	a := rg.call(method, path, in, header...)
	if a.err == nil {
		rg.check(rg.t, method, path, body, header, a)
	}
	return a
}

// want is do with what must come back.
func (rg *rig) want(method, path, body string, status int, text string) {
	rg.t.Helper()
	if a := rg.do(method, path, body); a.err != nil || a.status != status || a.body != text {
		rg.t.Errorf("%s %s: %v, want %d %q", method, path, a, status, text)
	}
}

// add posts records.
func (rg *rig) add(records ...string) {
	rg.t.Helper()
	rg.want("POST", "/records", "["+strings.Join(records, ",")+"]", 200, "")
}

// ids returns the record ids that a query of GET /records answers, in order.
func (rg *rig) ids(query string) []string {
	rg.t.Helper()
	a := rg.do("GET", "/records?"+query, "")
	if a.err != nil || a.status != 200 {
		rg.t.Fatalf("%s: %v", query, a)
	}
	return idsOf(rg.t, a.body)
}

func idsOf(t testing.TB, lines string) []string {
	t.Helper()
	ids := []string{}
	scan := bufio.NewScanner(strings.NewReader(lines))
	scan.Buffer(nil, 1<<20)
	for scan.Scan() {
		if id, _, ok := strings.Cut(strings.TrimPrefix(scan.Text(), `{"record_id":"`), `"`); ok && !strings.Contains(id, `\`) {
			ids = append(ids, id)
			continue
		}
		var r struct {
			ID string `json:"record_id"`
		}
		if err := json.Unmarshal(scan.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// get reads JSON.
func (rg *rig) get(path string, out any) answer {
	rg.t.Helper()
	a := rg.do("GET", path, "")
	if a.err != nil || a.status != 200 {
		rg.t.Fatalf("%s: %v", path, a)
	}
	if err := json.Unmarshal([]byte(a.body), out); err != nil {
		rg.t.Fatal(err)
	}
	return a
}
