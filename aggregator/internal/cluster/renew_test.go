package cluster

import (
	"crypto/x509"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/raft"

	pki "github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// papers are certificates that a test renews and spoils.
type papers struct {
	generation atomic.Uint64

	mu   sync.Mutex
	next int
	ends map[int]func()
}

func (p *papers) Generation() uint64 { return p.generation.Load() }

func (p *papers) Follow(_ []*x509.Certificate, end func()) func() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends == nil {
		p.ends = map[int]func(){}
	}
	p.next++
	id := p.next
	p.ends[id] = end
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ends, id)
	}
}

// spoil ends all connections, and returns how many there were.
func (p *papers) spoil() int {
	p.mu.Lock()
	ends := slices.Collect(maps.Values(p.ends))
	p.mu.Unlock()
	for _, end := range ends {
		end()
	}
	return len(ends)
}

func (p *papers) followed() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.ends)
}

// dialledBy counts the connections of raft that a node has dialled: those of this
// generation, and those of before.
func dialledBy(s *ship) (fresh, old int) {
	now := s.trans.conf.Certificates.Generation()
	s.trans.mu.Lock()
	defer s.trans.mu.Unlock()
	for c := range s.trans.conns {
		switch {
		case c.to == Server{}:
		case c.generation == now:
			fresh++
		default:
			old++
		}
	}
	return fresh, old
}

// oldOnes counts the connections of before in the whole fleet.
func (f *fleet) oldOnes() (n int) {
	for _, s := range f.ships {
		_, old := dialledBy(s)
		n += old
	}
	return n
}

func TestConnectionsOfRaftAreMadeAnewAfterARenewalWithoutAnElectionOrAFailedProposal(t *testing.T) {
	t.Parallel()
	f := newFleetOf(t, 3, calm).found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	leader := f.leader()
	term, said := leader.Stats().Term, 10
	for range 3 {
		f.certs.generation.Add(1)
		for ; f.oldOnes() > 0; said++ {
			propose(t, leader.Node, numbered(said, said+1)[0])
		}
	}
	eventually(t, "the leader has connections of now", func() bool { fresh, _ := dialledBy(leader); return fresh >= 2 })
	f.agree(numbered(0, said), f.ships...)
	if now := leader.Stats(); now.Term != term || now.State != "Leader" {
		t.Errorf("term %d has become %d, and the leader is a %s", term, now.Term, now.State)
	}
}

func TestARenewedCertificateThatNobodyTakesLeavesTheConnectionsOfBefore(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 10)
	f.agree(numbered(0, 10), f.ships...)
	leader := f.leader()
	_, before := dialledBy(leader)
	if before > 0 {
		t.Fatal(before)
	}
	f.mu.Lock()
	for _, a := range f.ships {
		for _, b := range f.ships {
			f.cut[[2]string{a.addr, b.addr}] = true
		}
	}
	f.mu.Unlock()
	f.certs.generation.Add(1)
	eventually(t, "it is tried", func() bool {
		return leader.trans.stuck.Silent() > 3
	})
	for _, c := range numbered(10, 20) {
		propose(t, leader.Node, c)
	}
	f.heal()
	eventually(t, "they are made anew when it is taken", func() bool { return f.oldOnes() == 0 })
	f.say(20, 30)
	f.agree(numbered(0, 30), f.ships...)
}

func TestAConnectionEndsWithTheCertificateOfItsOtherEnd(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	certs := &papers{}
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "a", nil)
	keys := ca.Keys(pki.Aggregator, "agg2")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewTransport(TransportConfig{
		Listener: l, Server: keys.Server(pki.Aggregator), Client: keys.Client(pki.Aggregator, ""), ID: "b", Certificates: certs,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	out, err := b.DialPeer(t.Context(), Server{Addr: a.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	in, err := a.DialPeer(t.Context(), Server{Addr: b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	call, err := a.Raft().Dial(joinIDAndAddress("b", raft.ServerAddress(b.Addr())), dialLimit)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "all three are followed", func() bool { return certs.followed() == 3 })
	certs.spoil()
	for what, c := range map[string]net.Conn{"dialled": out, "accepted": in, "raft's": call} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("the connection that was %s lives on", what)
		}
		c.Close()
	}
	eventually(t, "nothing is followed any more", func() bool { return certs.followed() == 0 })
}
