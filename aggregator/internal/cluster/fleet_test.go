package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	pki "github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

// fleet is a cluster over real TLS on loopback, whose wires a test can cut.
type fleet struct {
	t     *testing.T
	keys  *pki.Keys
	certs *papers
	ships []*ship

	mu    sync.Mutex
	cut   map[[2]string]bool // by address, caller first
	wires map[[2]string][]net.Conn
	calm  int // see Config
	// moved are the addresses of a new configuration, by id.
	moved map[string]string
}

// ship is a node of a fleet.
type ship struct {
	*running
	fleet *fleet
	addr  string
	conf  Config
	trans *Transport
	up    bool
}

func newFleet(t *testing.T, size int) *fleet {
	t.Helper()
	return newFleetOf(t, size, 1)
}

// calm has a leader keep its term for half a minute on the busiest machine.
const calm = 10

func newFleetOf(t *testing.T, size, calm int) *fleet {
	t.Helper()
	f := &fleet{t: t, calm: calm, keys: identitytest.New(t).Keys(pki.Aggregator, "agg"), certs: &papers{}, cut: map[[2]string]bool{}, wires: map[[2]string][]net.Conn{}}
	for range size {
		f.launch()
	}
	return f
}

// found makes the first nodes founders and waits for a leader.
func (f *fleet) found(founders int) *fleet {
	f.t.Helper()
	var list []Server
	for _, s := range f.ships[:founders] {
		list = append(list, s.server())
	}
	for _, s := range f.ships[:founders] {
		if err := s.Bootstrap(list); err != nil && !errors.Is(err, ErrNotFresh) {
			f.t.Fatal(err)
		}
	}
	if err := f.ships[0].standForElection(); err != nil { // or the first election takes seconds
		f.t.Fatal(err)
	}
	f.leader()
	return f
}

// install has the leader install a backup of these commands; what is refused or unknown is tried
// again.
func (f *fleet) install(commands ...string) {
	f.t.Helper()
	dir := backup(f.t, commands...)
	eventually(f.t, "the backup is installed", func() bool {
		err := f.leader().Install(f.t.Context(), dir)
		if err != nil && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrUnknownOutcome) {
			f.t.Fatal(err)
		}
		return err == nil
	})
}

// launch adds a node with empty directories at a new address.
func (f *fleet) launch() *ship {
	f.t.Helper()
	l := porttest.Listen(f.t)
	state := &memory{}
	s := &ship{fleet: f, addr: l.Addr().String(), conf: Config{
		DataDir: f.t.TempDir(), ProgressDir: f.t.TempDir(), State: state, Images: state, Logger: testLog(f.t), Multiplier: 6, calm: f.calm, Stable: time.Millisecond, fetchPause: 50 * time.Millisecond,
	}}
	f.ships = append(f.ships, s)
	s.start(l)
	return s
}

// start opens the node on its listener.
func (s *ship) start(l net.Listener) {
	t := s.fleet.t
	t.Helper()
	id, err := Identity(s.conf.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	keys := s.fleet.keys
	s.trans, err = NewTransport(TransportConfig{
		Listener: l, Advertise: s.addr, ID: id, Server: keys.Server(pki.Aggregator), Client: keys.Client(pki.Aggregator, ""),
		Certificates: s.fleet.certs, renewEvery: 10 * time.Millisecond, Configured: s.fleet.configured,
		Logger: s.conf.Logger, dial: func(ctx context.Context, to string) (net.Conn, error) { return s.fleet.dial(ctx, s.addr, to) },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.conf.Stream = s.trans.Raft()
	s.running = run(t, s.conf)
	s.up = true
	trans := s.trans
	t.Cleanup(func() { trans.Close() })
}

// stop ends the node in an orderly manner.
func (s *ship) stop() {
	s.fleet.t.Helper()
	s.running.stop(s.fleet.t)
	s.sink()
}

// sink ends the node's network; a node that is stopped this way only is as good
// as killed.
func (s *ship) sink() {
	s.up = false
	if err := s.trans.Close(); err != nil {
		s.fleet.t.Fatal(err)
	}
}

// kill ends the node without any farewell, and takes from its state what was not
// flushed.
func (s *ship) kill() {
	s.fleet.t.Helper()
	s.sink()
	s.leadership.noticeLeader(false)
	s.closing.Store(true)
	s.haltNode(errBroken) // no farewell: Shutdown hands nothing over
	<-s.done
}

// restart opens the node again, with what its state had on disk.
func (s *ship) restart() {
	s.fleet.t.Helper()
	state := s.state.afterCrash()
	s.conf.State, s.conf.Images = state, state
	s.start(porttest.Again(s.fleet.t, s.addr))
}

// wipe gives the stopped node empty directories at its old address.
func (s *ship) wipe() {
	s.conf.DataDir = s.fleet.t.TempDir()
	s.state = &memory{}
}

func (s *ship) server() Server { return Server{ID: s.ID(), Addr: s.addr} }

func (f *fleet) dial(ctx context.Context, from, to string) (net.Conn, error) {
	way := [2]string{from, to}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cut[way] {
		return nil, fmt.Errorf("the wire from %s to %s is cut", from, to)
	}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", to)
	if err == nil {
		f.wires[way] = append(f.wires[way], c)
	}
	return c, err
}

// configured is the configuration of all nodes.
func (f *fleet) configured(id string) (name, addr string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return "agg", f.moved[id]
}

// move gives the nodes, which are stopped, addresses by a new configuration.
func (f *fleet) move(ships ...*ship) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.moved = map[string]string{}
	for _, s := range ships {
		s.addr = porttest.Free(f.t)
		f.moved[s.ID()] = s.addr
	}
}

// part cuts all wires between a node and the others.
func (f *fleet) part(s *ship) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.ships {
		for _, way := range [][2]string{{s.addr, o.addr}, {o.addr, s.addr}} {
			if o == s {
				continue
			}
			f.cut[way] = true
			for _, c := range f.wires[way] {
				c.Close()
			}
			delete(f.wires, way)
		}
	}
}

// heal mends all wires.
func (f *fleet) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.cut)
}

// promptAfter is how long no one may lead before a node is prompted.
const promptAfter = 500 * time.Millisecond

// leader waits for a node that leads for certain.
func (f *fleet) leader() *ship {
	f.t.Helper()
	var found *ship
	// Each time twice as long: an election that takes longer than the pause is
	// ended by the next one.
	turn, next := 0, time.Now().Add(promptAfter)
	eventually(f.t, "one leads", func() bool {
		if now := time.Now(); now.After(next) {
			f.prompt(turn)
			turn, next = turn+1, now.Add(promptAfter<<(turn+1))
		}
		for _, s := range f.ships {
			ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
			defer cancel()
			if s.up && s.IsLeader() && s.Linearizable(ctx) == nil {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// prompt has a node stand for election where no one leads: the timeouts are made
// for busy machines, and tests do not wait for them.
func (f *fleet) prompt(turn int) {
	up := f.up()
	if len(up) == 0 || slices.ContainsFunc(up, func(s *ship) bool { return s.IsLeader() }) {
		return
	}
	s := up[turn%len(up)]
	if slices.ContainsFunc(s.Members(), func(m Member) bool { return m.ID == s.ID() && m.Voter }) {
		_ = s.standForElection() // or another, or the timeout
	}
}

func (f *fleet) followers() []*ship {
	f.t.Helper()
	leader := f.leader()
	return slices.DeleteFunc(slices.Clone(f.ships), func(s *ship) bool { return s == leader || !s.up })
}

// say proposes numbered commands, at whoever leads; what is refused or unknown
// is said again.
func (f *fleet) say(from, to int) {
	f.t.Helper()
	for _, c := range numbered(from, to) {
		eventually(f.t, c+" is committed", func() bool {
			ctx, cancel := context.WithTimeout(f.t.Context(), 10*time.Second)
			defer cancel()
			_, err := f.leader().Propose(ctx, []byte(c))
			return err == nil
		})
	}
}

// rush proposes many numbered commands without waiting for each.
func rush(t *testing.T, n *Node, from, to int) (last Result) {
	t.Helper()
	var all []*Proposal
	for _, c := range numbered(from, to) {
		p, err := n.Submit(t.Context(), []byte(c))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, p := range all {
		var err error
		if last, err = p.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return last
}

// agree waits until the nodes have the same commands, and these at least.
func (f *fleet) agree(want []string, nodes ...*ship) {
	f.t.Helper()
	for _, s := range nodes {
		var diff string
		for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
			if diff = cmp.Diff(want, slices.Compact(s.state.commands())); diff == "" {
				break
			}
		}
		if diff != "" || s.state.repeats > 0 {
			f.t.Fatalf("%d repeats, %s", s.state.repeats, diff)
		}
	}
}

func (f *fleet) up() []*ship {
	return slices.DeleteFunc(slices.Clone(f.ships), func(s *ship) bool { return !s.up })
}

// voters waits until a cluster has so many voters and no other members, and until
// that is committed: the leader counts what it has only begun to write.
func (f *fleet) voters(want int) {
	f.t.Helper()
	eventually(f.t, fmt.Sprint(want, " voters"), func() bool {
		leader := f.leader()
		members := leader.Members()
		if len(members) != want || slices.ContainsFunc(members, func(m Member) bool { return !m.Voter }) {
			return false
		}
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		return leader.Barrier(ctx) == nil
	})
}
