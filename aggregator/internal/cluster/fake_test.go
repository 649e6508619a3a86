package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"github.com/bursar-accounting/bursar/proto/porttest"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// The tests of several nodes mostly wait, for timeouts and for the disk.
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// memory is a State with a disk that is only as new as the last flush.
type memory struct {
	mu   sync.Mutex
	live content
	disk content
	// fail makes Apply of this command an error.
	fail string
	// repeats counts entries at or below the applied index: a broken promise.
	repeats int
	flushes int
}

type content struct {
	Index, Term uint64
	Commands    []string
}

func (c content) clone() content {
	c.Commands = slices.Clone(c.Commands)
	return c
}

var errBroken = errors.New("the disk is broken")

func (m *memory) Apply(index, term uint64, data []byte) (any, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if index <= m.live.Index {
		m.repeats++
	}
	if m.fail != "" && string(data) == m.fail {
		return nil, errBroken
	}
	m.live.Index, m.live.Term = index, term
	m.live.Commands = append(m.live.Commands, string(data))
	return len(m.live.Commands), nil
}

func (m *memory) Applied() (uint64, uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.live.Index, m.live.Term
}

func (m *memory) Flush() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.flushes++
	m.disk = m.live.clone()
	return nil
}

func (m *memory) Checkpoint(dir string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	raw, err := json.Marshal(m.live)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "content"), raw, 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "empty"), nil, 0o600))
}

func (m *memory) Restore(dir string) error {
	raw, err := os.ReadFile(filepath.Join(dir, "content"))
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live = content{}
	if err := json.Unmarshal(raw, &m.live); err != nil {
		return err
	}
	m.disk = m.live.clone()
	return nil
}

func (m *memory) RestoreAt(dir string, index, term uint64) error {
	if err := m.Restore(dir); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.live.Index, m.live.Term = index, term
	m.disk = m.live.clone()
	return nil
}

func (m *memory) CheckImage(dir string) error { return (&memory{}).Restore(dir) }

func (m *memory) commands() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.live.Commands)
}

// afterCrash is what a new process finds of m.
func (m *memory) afterCrash() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{live: m.disk.clone(), disk: m.disk.clone()}
}

// running is a node under test and the Run that serves it.
type running struct {
	*Node
	state *memory
	end   context.CancelFunc
	done  chan error
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.end()
	if err := <-r.done; err != nil {
		t.Fatalf("Run: %v", err)
	}
}

func lone(t *testing.T, dir string, state *memory) Config {
	t.Helper()
	id, err := Identity(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Config{DataDir: dir, State: state, Images: state, Bootstrap: []Server{{ID: id, Addr: "here"}}, Logger: testLog(t)}
}

func testLog(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return nil
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
}

func run(t *testing.T, conf Config, duties ...func(context.Context) error) *running {
	t.Helper()
	n, err := Open(conf)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	for _, d := range duties {
		n.OnLeader(d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{Node: n, state: conf.State.(*memory), end: cancel, done: make(chan error, 1)}
	go func() {
		err := n.Run(ctx)
		r.done <- err
		close(r.done)
	}()
	t.Cleanup(func() {
		cancel()
		<-n.ended
	})
	return r
}

// lead opens a lone node and waits until it leads.
func lead(t *testing.T, conf Config) *running {
	t.Helper()
	r := run(t, conf)
	eventually(t, "leads", r.IsLeader)
	return r
}

// patience is how long a test waits for what must come; the machine may be busy.
const patience = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatalf("never: %s", what)
}

// takeSnapshot takes one as soon as what was committed last, such as another address of a
// member, is applied: before, raft refuses.
func takeSnapshot(t *testing.T, n *Node) {
	t.Helper()
	eventually(t, "a snapshot is taken", func() bool {
		err := n.Snapshot(t.Context())
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
}

func propose(t *testing.T, n *Node, command string) Result {
	t.Helper()
	res, err := n.Propose(t.Context(), []byte(command))
	if err != nil {
		t.Fatalf("Propose(%q): %v", command, err)
	}
	return res
}

func numbered(from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		out = append(out, fmt.Sprintf("c%d", i))
	}
	return out
}

// plainStream carries raft over loopback TCP without certificates.
type plainStream struct{ net.Listener }

func (plainStream) Dial(addr raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return net.DialTimeout("tcp", string(addr), timeout)
}

func listen(t *testing.T, addr string) raft.StreamLayer {
	t.Helper()
	return plainStream{porttest.Again(t, addr)}
}

// trio is a cluster of three on loopback.
type trio struct {
	confs []Config
	nodes []*running
}

func newTrio(t *testing.T, duties ...func(context.Context) error) *trio {
	t.Helper()
	return newTrioOf(t, 1, duties...)
}

func newTrioOf(t *testing.T, calm int, duties ...func(context.Context) error) *trio {
	t.Helper()
	c := &trio{}
	var members []Server
	for range 3 {
		dir := t.TempDir()
		id, err := Identity(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := listen(t, porttest.Free(t))
		state := &memory{}
		members = append(members, Server{ID: id, Addr: s.Addr().String()})
		c.confs = append(c.confs, Config{DataDir: dir, State: state, Images: state, Stream: s, Logger: testLog(t),
			Multiplier: 5, calm: calm}) // a busy machine must not depose a leader
	}
	for i := range c.confs {
		c.confs[i].Bootstrap = members
		c.nodes = append(c.nodes, run(t, c.confs[i], duties...))
	}
	if err := c.nodes[0].standForElection(); err != nil { // or the first election takes seconds
		t.Fatal(err)
	}
	return c
}

// restart opens a stopped node again, with what its state has on disk.
func (c *trio) restart(t *testing.T, i int) {
	t.Helper()
	conf := c.confs[i]
	state := c.nodes[i].state.afterCrash()
	conf.State, conf.Images = state, state
	conf.Stream = listen(t, conf.Bootstrap[i].Addr)
	c.confs[i] = conf
	c.nodes[i] = run(t, conf)
}

func (c *trio) leader(t *testing.T) *running {
	t.Helper()
	var found *running
	eventually(t, "one leads", func() bool {
		for _, n := range c.nodes {
			if n.Linearizable(t.Context()) == nil {
				found = n
				return true
			}
		}
		return false
	})
	return found
}

func (c *trio) index(r *running) int { return slices.Index(c.nodes, r) }

func (c *trio) follower(t *testing.T) *running {
	t.Helper()
	return c.nodes[(c.index(c.leader(t))+1)%3]
}
