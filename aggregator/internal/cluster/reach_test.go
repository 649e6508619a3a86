package cluster

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	pki "github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

func TestReach_ConfiguredAddressIsTriedFirstAndThatOfTheListBesideIt(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	b := newTestTransport(t, ca.Keys(pki.Aggregator, "agg2"), "b", nil)
	c := newTestTransport(t, ca.Keys(pki.Aggregator, "agg3"), "c", nil)
	keys := ca.Keys(pki.Aggregator, "agg1")
	mute := porttest.Listen(t) // takes connections and says nothing
	gone := porttest.Free(t)
	for name, try := range map[string]struct {
		configured, listed string
		fails              bool
	}{
		"only the list has one":                       {"", b.Addr(), false},
		"both are the same":                           {b.Addr(), b.Addr(), false},
		"the list is outdated":                        {b.Addr(), gone, false},
		"the list names what is no address":           {b.Addr(), "b", false},
		"the list has what is another node's by now":  {b.Addr(), c.Addr(), false},
		"the configuration is outdated":               {gone, b.Addr(), false},
		"the configuration has one that says nothing": {mute.Addr().String(), b.Addr(), false},
		"the configuration has another node's":        {c.Addr(), b.Addr(), false},
		"both are outdated":                           {gone, mute.Addr().String(), true},
		"both are another node's":                     {c.Addr(), c.Addr(), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := NewTransport(TransportConfig{
				Listener: porttest.Listen(t), Server: keys.Server(pki.Aggregator), Client: keys.Client(pki.Aggregator, ""), ID: "a",
				Configured: func(id string) (name, addr string) {
					if id != "b" || try.configured == "" {
						return "", ""
					}
					return "agg2", try.configured
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer a.Close()
			dials := map[string]func() (net.Conn, error){
				"raft": func() (net.Conn, error) {
					return a.Raft().Dial(joinIDAndAddress("b", raft.ServerAddress(try.listed)), time.Minute)
				},
				"images": func() (net.Conn, error) { return a.greetNode(t.Context(), Server{ID: "b", Addr: try.listed}, forRaft) },
				"peers":  func() (net.Conn, error) { return a.DialPeer(t.Context(), Server{ID: "b", Addr: try.listed}) },
			}
			if try.configured == "" {
				delete(dials, "peers") // without a name it is whoever answers
			}
			for use, dial := range dials {
				conn, err := dial()
				switch {
				case try.fails && (err == nil || !strings.Contains(err.Error(), try.configured) || !strings.Contains(err.Error(), try.listed)):
					t.Errorf("%s: %v", use, err)
				case !try.fails && err != nil:
					t.Errorf("%s: %v", use, err)
				case err == nil:
					if peer := conn.(*Conn).Peer.Name; peer != "agg2" {
						t.Errorf("%s: the connection is to %s", use, peer)
					}
					conn.Close()
				}
			}
			eventually(t, "no connection is left of those that came later", func() bool {
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.conns) == 0
			})
		})
	}
}

func TestReach_BothAddressesHang_EndsWithTheContext(t *testing.T) {
	t.Parallel()
	ca := identitytest.New(t)
	a := newTestTransport(t, ca.Keys(pki.Aggregator, "agg1"), "a", nil)
	a.conf.Configured = func(string) (name, addr string) { return "agg2", "configured" }
	ctx, cancel := context.WithCancel(t.Context())
	tried := make(chan string, 2)
	ended := make(chan error)
	go func() {
		_, err := a.reachNode(ctx, Server{ID: "b", Addr: "listed"}, func(ctx context.Context, addr string) (*Conn, error) {
			tried <- addr
			<-ctx.Done()
			return nil, ctx.Err()
		})
		ended <- err
	}()
	if first, second := <-tried, <-tried; first != "configured" || second != "listed" {
		t.Errorf("tried %s, then %s", first, second)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestFleet_AllAddressesChanged_ListIsOutdated_EverythingGoesOn(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 5)
	for _, s := range f.ships {
		s.stop()
	}
	f.move(f.ships...)
	for _, s := range f.ships {
		s.restart()
	}
	f.say(5, 8)
	f.agree(numbered(0, 8), f.ships...)
	f.install("a") // by the way of images
	eventually(t, "the leadership is handed over", func() bool { return f.leader().TransferLeadership(t.Context()) == nil })
	f.certs.generation.Add(1) // connections are made again
	down := f.followers()[0]
	down.stop()
	rush(t, f.leader().Node, 8, 80)
	for _, s := range f.up() {
		s.running.conf.TrailingBytes = 1
		takeSnapshot(t, s.Node)
	}
	down.restart() // it gets an image of the state
	f.agree(append([]string{"a"}, numbered(8, 80)...), f.ships...)
}

func TestReaddress_AddressOfAnotherMember_ThatOneIsMovedFirst(t *testing.T) {
	racetest.SkipRaft(t)
	t.Parallel()
	f := newFleet(t, 3).found(3)
	f.say(0, 3)
	rest := f.followers()
	for _, s := range rest {
		s.stop()
	}
	rest[0].addr, rest[1].addr = rest[1].addr, rest[0].addr
	f.mu.Lock()
	f.moved = map[string]string{rest[0].ID(): rest[0].addr, rest[1].ID(): rest[1].addr}
	f.mu.Unlock()
	for _, s := range rest {
		s.restart()
	}
	for _, s := range rest {
		eventually(t, "it has its new address", func() bool { return f.leader().Readdress(t.Context(), s.server()) == nil })
	}
	for _, m := range f.leader().Members() {
		for _, s := range f.ships {
			if m.ID == s.ID() && m.Addr != s.addr {
				t.Errorf("%s is listed at %s, and is at %s", m.ID, m.Addr, s.addr)
			}
		}
	}
	f.voters(3)
	f.say(3, 6)
	f.agree(numbered(0, 6), f.ships...)
}
