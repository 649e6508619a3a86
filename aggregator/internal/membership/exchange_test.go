package membership

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"reflect"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
)

// member is a node of a cluster whose members the test says.
type member struct {
	Node

	members []cluster.Member
}

func (m member) ID() string                { return "id-a" }
func (m member) Fresh() bool               { return false }
func (m member) IsLeader() bool            { return false }
func (m member) Leader() cluster.Leader    { return cluster.Leader{} }
func (m member) Stats() cluster.Stats      { return cluster.Stats{} }
func (m member) Members() []cluster.Member { return m.members }

func listedMember(id, addr string) cluster.Member {
	return cluster.Member{Server: cluster.Server{ID: id, Addr: addr}, Voter: true}
}

// newPeer makes the node a of a, b, and c, which knows the ids of those in the file.
func newPeer(t *testing.T, book []Listed, members ...cluster.Member) *Peer {
	t.Helper()
	b, err := OpenPeerFile(t.TempDir(), "id-a")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range book {
		if err := b.SaveNode(n); err != nil {
			t.Fatal(err)
		}
	}
	return New(Config{
		Name: "a", Peers: map[string]string{"a": "a:2", "b": "b:2", "c": "c:2"}, File: b, Node: member{members: members}, Log: slog.New(slog.DiscardHandler),
		Dial: func(context.Context, cluster.Server) (net.Conn, error) { return nil, errors.New("connection refused") },
	})
}

func TestOthers_AreTheMembersAndTheConfiguredThatAreNone(t *testing.T) {
	a, b := listedMember("id-a", "a:1"), listedMember("id-b", "b:1")
	token := listedMember("id-d", "d:1") // joined by a token
	for name, try := range map[string]struct {
		book    []Listed
		members []cluster.Member
		want    []cluster.Server
	}{
		"no cluster yet":          {nil, nil, []cluster.Server{{Addr: "b:2"}, {Addr: "c:2"}}},
		"known by id":             {[]Listed{{"b", "id-b", "b:1"}}, []cluster.Member{a, b, token}, []cluster.Server{b.Server, token.Server, {Addr: "c:2"}}},
		"not known which is b":    {nil, []cluster.Member{a, b}, []cluster.Server{b.Server, {Addr: "b:2"}, {Addr: "c:2"}}},
		"b came back as another":  {[]Listed{{"b", "id-b2", "b:2"}}, []cluster.Member{a, b}, []cluster.Server{b.Server, {Addr: "b:2"}, {Addr: "c:2"}}},
		"the cluster is this one": {nil, []cluster.Member{a}, []cluster.Server{{Addr: "b:2"}, {Addr: "c:2"}}},
	} {
		if got := newPeer(t, try.book, try.members...).otherNodes(); !reflect.DeepEqual(got, try.want) {
			t.Errorf("%s: %v, want %v", name, got, try.want)
		}
	}
}

func TestAddressOf_ConfigurationHasTheName_ElseTheList(t *testing.T) {
	p := newPeer(t, []Listed{{"b", "id-b", "b:1"}, {"d", "id-d", "d:1"}})
	for id, want := range map[string]string{"id-b": "b:2", "id-d": "x:1", "id-z": "x:1"} {
		if got := p.AddressOf(cluster.Server{ID: id, Addr: "x:1"}); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

func TestSwap_NodeThatIsNotReached_IsNotedUntilItIsHeard(t *testing.T) {
	b, c := listedMember("id-b", "b:1"), listedMember("id-c", "c:1")
	p := newPeer(t, []Listed{{"b", "id-b", "b:1"}, {"c", "id-c", "c:1"}}, b, c)
	for _, f := range []NodeFact{{Name: "b", ID: "id-b"}, {Name: "c", ID: "id-c"}} {
		p.Roster().Hear(f)
	}
	p.swapFacts(t.Context(), b.Server)
	unreached := func(id string) bool { f, _ := p.Roster().ByID(id); return f.Unreached }
	if !unreached("id-b") || unreached("id-c") {
		t.Error("a node that was not reached is not noted, or another one is")
	}
	p.Roster().Hear(NodeFact{Name: "b", ID: "id-b"}) // it has asked this node
	if unreached("id-b") {
		t.Error("a node that is heard again is still said not to be reached")
	}
}

func TestMisplaced_AreThoseThatSayAnotherAddress(t *testing.T) {
	d := listedMember("id-d", "d:1")
	p := newPeer(t, nil, listedMember("id-b", "b:1"), d)
	for _, f := range []NodeFact{
		{Name: "b", ID: "id-b", Addr: "b:2"}, {Name: "c", ID: "id-c", Addr: "c:1"}, {Name: "d", ID: "id-d", Addr: "d:2"}, {Name: "e", ID: "id-e", Addr: "e:1"},
	} {
		p.Roster().Hear(f)
	}
	want := []Misplaced{{"c", "c:2", "c:1"}, {"d", "d:1", "d:2"}}
	if got := p.Misplaced(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestHear_FactOfBeforeTheFence_IsNotTakenAfterIt(t *testing.T) {
	began := time.Date(2026, 11, 29, 10, 1, 28, 0, time.UTC)
	well := NodeFact{Name: "b", ID: "id-b", Started: began}
	fenced, again, other := well, well, well
	fenced.Fenced = "two histories"
	again.Started = began.Add(time.Second)
	other.ID = "id-b2"
	for name, try := range map[string]struct {
		heard []NodeFact
		want  NodeFact
	}{
		"an answer that was on its way":           {[]NodeFact{well, fenced, well}, fenced},
		"the process that was started after it":   {[]NodeFact{fenced, again}, again},
		"a node without data that has its name":   {[]NodeFact{fenced, other}, other},
		"the fence after all that was said of it": {[]NodeFact{well, fenced}, fenced},
	} {
		r := NewRoster(nil)
		for _, f := range try.heard {
			r.Hear(f)
		}
		got := r.Others()[0]
		if got.Seen = (time.Time{}); !reflect.DeepEqual(got, try.want) {
			t.Errorf("%s: %+v, want %+v", name, got, try.want)
		}
	}
}
