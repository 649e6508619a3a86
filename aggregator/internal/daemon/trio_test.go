package daemon_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/daemon"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// patience is how long a test waits for what must come; the machine may be busy.
const patience = 90 * time.Second

// site is a place with several nodes of one cluster.
type site struct {
	t     *testing.T
	ca    *identitytest.CA
	dir   string
	peers map[string]string
	files map[string]identity.Files
	nodes map[string]*member
	log   slog.Handler
	tune  func(*daemon.Settings) // nil: nothing
}

// member is a node that runs.
type member struct {
	api    string
	cancel context.CancelFunc
	done   chan error
}

// newSite makes addresses and certificates for nodes that are not started yet.
func newSite(t *testing.T, names ...string) *site {
	t.Helper()
	s := &site{t: t, ca: identitytest.New(t), dir: t.TempDir(), peers: map[string]string{}, files: map[string]identity.Files{}, nodes: map[string]*member{}, log: slog.DiscardHandler}
	if os.Getenv("VERBOSE") != "" {
		s.log = slog.NewTextHandler(os.Stderr, nil)
	}
	for _, name := range names {
		s.peers[name] = porttest.Free(t)
		s.files[name] = s.ca.Files(identity.Aggregator, name)
	}
	t.Cleanup(func() {
		for name := range s.nodes {
			s.stop(name)
		}
	})
	return s
}

func (s *site) data(name string) string { return filepath.Join(s.dir, name) }

// start runs a node with the peers of the site.
func (s *site) start(names ...string) {
	s.t.Helper()
	for _, name := range names {
		s.startWith(name, s.peers)
	}
}

func (s *site) startWith(name string, peers map[string]string) {
	s.t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	set := daemon.Settings{Access: access.Rules{Plain: identity.Admin}, Name: name, DataDir: s.data(name), MinFree: 1 << 20, Plain: []net.Listener{plain}, Log: slog.New(s.log).With("at", name), Patience: patience}
	if peers != nil {
		if set.Keys, err = identity.Load(s.files[name]); err != nil {
			s.t.Fatal(err)
		}
		set.Raft.Peers = peers
		set.Raft.Listener = porttest.Again(s.t, peers[name])
	}
	if s.tune != nil {
		s.tune(&set)
	}
	a, err := daemon.Open(set)
	if err != nil {
		s.t.Fatal(name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m := &member{api: "http://" + plain.Addr().String(), cancel: cancel, done: make(chan error, 1)}
	go func() { m.done <- a.Run(ctx) }()
	s.nodes[name] = m
}

// stop ends a node in order. A node that others can replace waits for clients that keep
// their connections, to tell them that it goes.
func (s *site) stop(name string) {
	s.t.Helper()
	http.DefaultClient.CloseIdleConnections()
	m := s.nodes[name]
	delete(s.nodes, name)
	m.cancel()
	if err := <-m.done; err != nil {
		s.t.Errorf("%s: %v", name, err)
	}
}

// ended names the nodes that ended by themselves.
func (s *site) ended() (text string) {
	for name, m := range s.nodes {
		select {
		case err := <-m.done:
			m.done <- err
			text += fmt.Sprintf("; %s ended: %v", name, err)
		default:
		}
	}
	return text
}

// request asks a node once.
func (s *site) request(name, method, path, body string) (status int, header http.Header, answer string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.nodes[name].api+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(text), err
}

// post stores a record through a node, and tries again while it is not known
// whether it is stored.
func (s *site) post(name, id string) {
	s.t.Helper()
	s.until("post "+id+" to "+name, func() error {
		status, _, answer, err := s.request(name, "POST", "/record", recordJSON(id))
		if err == nil && status != 200 && answer != "RECORD_EXISTS" {
			err = fmt.Errorf("%d %s", status, answer)
		}
		return err
	})
}

func recordJSON(id string) string {
	return `{"record_id":"` + id + `","meta":{"site_id":["a"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`
}

// has waits until a node shows exactly n records.
func (s *site) has(name string, n int) {
	s.t.Helper()
	s.until(fmt.Sprintf("%s shows %d records", name, n), func() error {
		status, _, answer, err := s.request(name, "GET", "/v1/records?format=ndjson", "")
		if got := strings.Count(answer, `"record_id"`); err == nil && (status != 200 || got != n) {
			err = fmt.Errorf("%d: %d records %.200s", status, got, answer)
		}
		return err
	})
}

// until tries until what is wanted holds.
func (s *site) until(what string, try func() error) {
	s.t.Helper()
	end := time.Now().Add(patience)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("%s: %v%s", what, err, s.ended())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestThreeNodesFoundOneClusterAndAnyOfThemWritesAndReads(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	s.start("agg3", "agg1", "agg2")
	for i, name := range []string{"agg1", "agg2", "agg3"} {
		s.post(name, fmt.Sprint("r", i))
		for _, reader := range []string{"agg1", "agg2", "agg3"} {
			if status, _, answer, err := s.request(reader, "GET", fmt.Sprint("/record/r", i), ""); err != nil || status != 200 {
				t.Errorf("r%d was posted to %s, and %s answers %d %s %v", i, name, reader, status, answer, err)
			}
		}
	}
}

func TestAWipedNodeComesBackAsANewOne(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	s.start("agg1", "agg2", "agg3")
	s.post("agg1", "before")
	s.stop("agg2")
	if err := os.RemoveAll(s.data("agg2")); err != nil {
		t.Fatal(err)
	}
	s.post("agg1", "meanwhile")
	s.start("agg2")
	s.post("agg2", "after")
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.has(name, 3)
	}
}

func TestANodeAloneGrowsToThree(t *testing.T) {
	t.Parallel()
	s := newSite(t, "agg1", "agg2", "agg3")
	s.startWith("agg1", nil)
	s.post("agg1", "alone")
	s.stop("agg1")
	s.start("agg2", "agg3", "agg1")
	s.post("agg3", "grown")
	for _, name := range []string{"agg1", "agg2", "agg3"} {
		s.has(name, 2)
	}
}
