//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// Member is a daemon of the site: an aggregator or an agent.
type Member struct {
	*site.Daemon

	Name string
	Disk *Disk
	Data string // its data directory, on Disk
	URL  string // of an aggregator's plain REST interface
	// Jobs is the scheduler of an agent.
	Jobs *Scheduler

	listen string // where it really listens: an aggregator's raft, an agent's gRPC
	reach  string // the proxy before it

	struck sync.Mutex // held by a fault

	pid atomic.Int64 // 0: it does not run; a connection does not wait for its end to know it

	mu    sync.Mutex
	up    bool
	since time.Time
	full  bool // its disk was, in this cycle
}

// Site is a site under test.
type Site struct {
	*site.Site

	Nodes   []*Member
	Agents  []*Member
	Network *Network

	t testing.TB

	leading sync.Mutex
	leader  *Member // that Leader found last; nil before
	led     string  // since when
}

// Plan says how large a site is.
type Plan struct {
	Nodes  int
	Agents int
	Seed   uint64
	// Liar runs the aggregators and agents with syncs that do nothing.
	Liar bool
	// Settings are HCL for every aggregator block.
	Settings string
	// Actions, when not nil, makes HCL for the file of every aggregator; the agents are
	// there, and nothing runs.
	Actions func(*Site) string
}

// NewSite makes a site; nothing runs yet. When the test fails its directory stays,
// with the data of every daemon, and is named.
func NewSite(t testing.TB, p Plan) *Site {
	t.Helper()
	dir, err := os.MkdirTemp("", "bursar-faults-")
	if err != nil {
		t.Fatal(err)
	}
	disks := filepath.Join(dir, "disks")
	s := &Site{t: t, Network: NewNetwork()}
	t.Cleanup(func() { s.removeDirs(dir, disks) })
	s.must(os.Mkdir(disks, 0o755))
	s.must(syscall.Mount("tmpfs", disks, "tmpfs", 0, "mode=755"))
	s.Site = site.NewIn(t, dir)
	for i := range p.Nodes {
		s.Nodes = append(s.Nodes, s.newMember(fmt.Sprintf("agg%d", i+1)))
	}
	for i := range p.Agents {
		a := s.newMember(fmt.Sprintf("head%d", i+1))
		a.Jobs = NewScheduler(fmt.Sprintf("lab%d", i+1), filepath.Join(dir, a.Name+".ndjson"), p.Seed+uint64(i)<<32)
		s.Agents = append(s.Agents, a)
	}
	for _, a := range s.Agents {
		s.addAgent(a)
	}
	actions := ""
	if p.Actions != nil {
		actions = p.Actions(s)
	}
	for _, n := range s.Nodes {
		s.addAggregator(n, p.Settings, actions)
	}
	s.must(os.Mkdir(filepath.Join(dir, "tmp"), 0o755))
	for _, m := range s.All() {
		m.Env = []string{"TMPDIR=" + filepath.Join(dir, "tmp")} // who is killed leaves things there
	}
	if p.Liar {
		s.dropSyncs()
	}
	return s
}

func (s *Site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// newMember makes what aggregators and agents have in common.
func (s *Site) newMember(name string) *Member {
	s.t.Helper()
	m := &Member{Name: name, Data: filepath.Join(s.Dir, name, "data"), listen: s.Address()}
	var err error
	m.Disk, err = NewDisk(filepath.Join(s.Dir, "disks", name), filepath.Join(s.Dir, name))
	s.must(err)
	proxy, err := s.Network.Proxy(name, s.Address(), m.listen, s.nameOfDialler)
	s.must(err)
	m.reach = proxy.Addr
	return m
}

// nameOfDialler names the daemon that has dialled; "" is a stranger.
func (s *Site) nameOfDialler(addr *net.TCPAddr) string {
	pids := map[int]string{}
	for _, m := range s.All() {
		if pid := m.pid.Load(); pid != 0 {
			pids[int(pid)] = m.Name
		}
	}
	return socketOwner(addr, pids)
}

// All returns aggregators and agents.
func (s *Site) All() []*Member { return append(append([]*Member{}, s.Nodes...), s.Agents...) }

func (s *Site) addAgent(m *Member) {
	m.Daemon = s.Site.Agent(site.AgentSpec{Name: m.Name, DataDir: m.Data, Listen: m.listen, Sources: m.Jobs.Source()}).Daemon
}

func (s *Site) addAggregator(m *Member, settings, actions string) {
	spec := site.NodeSpec{
		Name: m.Name, DataDir: m.Data, Listen: m.listen, Agents: map[string]string{},
		Settings: settings, API: `patience = "10s"`, Blocks: actions,
	}
	if len(s.Nodes) > 1 { // a node alone has no block raft
		for _, n := range s.Nodes {
			spec.Peers = append(spec.Peers, site.Peer(n.Name, n.reach))
		}
	}
	for _, a := range s.Agents {
		spec.Agents[a.Name] = a.reach
	}
	g := s.Site.Node(spec)
	m.Daemon, m.URL = g.Daemon, g.URL
}

// dropSyncs gives all daemons syncs that do nothing.
func (s *Site) dropSyncs() {
	via, err := Liar()
	s.must(err)
	for _, m := range s.All() {
		m.Via = via
	}
}

// Start starts the daemon when it does not run.
func (m *Member) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.up {
		return
	}
	m.Daemon.Start()
	m.pid.Store(int64(m.PID()))
	m.up, m.since = true, time.Now()
}

// Kill ends the daemon at once, when it runs. A frozen disk is thawed: no one can
// be killed in a write.
func (m *Member) Kill() {
	m.Disk.Thaw()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.Daemon.Kill()
	m.pid.Store(0)
	m.up = false
}

// Terminate ends the daemon in good order. One that was just started is given the
// time to take the signal.
func (m *Member) Terminate() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	time.Sleep(time.Until(m.since.Add(time.Second)))
	err := m.Daemon.Terminate(Recovery)
	m.pid.Store(0)
	m.up = false
	return err
}

// Cut takes the power from the daemon and its disk, and gives the disk its power
// back.
func (m *Member) Cut() error {
	_ = m.Signal(syscall.SIGSTOP) // it may have ended
	return m.Disk.Cut(func() {
		m.KillChildren() // a plugin has no file of the disk open, but its folder perhaps
		m.Kill()
	})
}

// Pause stops the daemon for a time; it does not notice.
func (m *Member) Pause(d time.Duration) {
	if m.Signal(syscall.SIGSTOP) == nil {
		time.Sleep(d)
		_ = m.Signal(syscall.SIGCONT) // it was just there
	}
}

// Ended reports whether the daemon has ended by itself.
func (m *Member) Ended() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.up && m.Daemon.Ended()
}

// removeDirs takes everything away but, after a failure, the directory with the data.
func (s *Site) removeDirs(dir, disks string) {
	s.Network.Close()
	errs := []error{os.MkdirAll(filepath.Join(dir, "kept"), 0o755)}
	for _, m := range s.All() {
		if m.Daemon != nil {
			m.Kill()
		}
		if s.t.Failed() {
			errs = append(errs, command("cp", "-a", m.Disk.Dir, filepath.Join(dir, "kept")))
		}
		errs = append(errs, m.Disk.Unmount())
	}
	errs = append(errs, syscall.Unmount(disks, syscall.MNT_DETACH))
	if s.t.Failed() {
		s.t.Logf("logs and data are kept in %s", dir)
	} else {
		errs = append(errs, os.RemoveAll(dir))
	}
	if err := errors.Join(errs...); err != nil {
		s.t.Errorf("clear up: %v", err)
	}
}
