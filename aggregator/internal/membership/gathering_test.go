package membership

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/racetest"
)

// simNode is a node of the simulation: what is on its disk, and what its process
// knows.
type simNode struct {
	name     string
	id       string   // on disk
	promises Promises // on disk
	founded  *Promise // on disk: what it has founded
	joined   *Promise // on disk: the cluster whose log it has got
	asks     Promise  // in memory: what it asks for now
	given    []string // in memory: who has promised that
	short    bool     // its configuration leaves out the first node
	life     int      // counts restarts; answers to an earlier life are not heard
}

func (n *simNode) fresh() bool { return n.founded == nil && n.joined == nil }

// message is a request on its way, or an answer.
type message struct {
	from, to string
	life     int    // of the asker
	toID     string // whom the asker means; a wiped node is another one
	answer   bool
	promise  Promise
	given    bool
}

// sim runs nodes over a network that loses, repeats and reorders, on machines
// that crash and lose their disks.
type sim struct {
	t     *testing.T
	r     *rand.Rand
	nodes map[string]*simNode
	peers []Listed
	wire  []message
	ids   int
	all   []Promise // everything that was ever founded and is still on a disk
	story []string
	well  bool // nothing crashes by itself, and the network loses nothing
}

func newSim(t *testing.T, seed uint64, n int) *sim {
	s := &sim{t: t, r: rand.New(rand.NewPCG(seed, 1)), nodes: map[string]*simNode{}}
	for i := range n {
		name := fmt.Sprint("agg", i+1)
		s.nodes[name] = &simNode{name: name}
		s.peers = append(s.peers, Listed{Name: name, Addr: name + ":8701"})
		s.wipe(name)
	}
	return s
}

func (s *sim) tell(format string, args ...any) {
	s.story = append(s.story, fmt.Sprintf(format, args...))
}

func (s *sim) gathering(n *simNode) *Gathering {
	raw, err := json.Marshal(n.promises) // what a disk gives back is another value
	if err != nil {
		s.t.Fatal(err)
	}
	var kept Promises
	if err := json.Unmarshal(raw, &kept); err != nil {
		s.t.Fatal(err)
	}
	return &Gathering{Me: Listed{n.name, n.id, n.name + ":8701"}, Peers: s.conf(n), Promises: kept}
}

// conf is the configuration of a node.
func (s *sim) conf(n *simNode) []Listed {
	if n.short {
		return s.peers[1:]
	}
	return s.peers
}

// edit changes the configuration of a node, which is then started again.
func (s *sim) edit(name string) {
	if name == s.peers[0].Name {
		return
	}
	n := s.nodes[name]
	n.short = !n.short
	s.restart(name)
}

// wipe gives a machine an empty disk. What only that disk held is gone.
func (s *sim) wipe(name string) {
	s.ids++
	old := s.nodes[name]
	s.nodes[name] = &simNode{name: name, id: fmt.Sprint("id", s.ids), life: old.life + 1, short: old.short}
	s.tell("%s is wiped, now %s", name, s.nodes[name].id)
}

func (s *sim) restart(name string) {
	n := s.nodes[name]
	n.asks, n.given = Promise{}, nil
	n.life++
	s.tell("%s restarts", name)
}

// hear is what a node hears of the others; some do not answer.
func (s *sim) hear(n *simNode) map[string]Hello {
	heard := map[string]Hello{}
	for _, p := range s.conf(n) {
		o := s.nodes[p.Name]
		if o == n || s.r.IntN(8) == 0 {
			continue
		}
		heard[p.Name] = Hello{Listed: Listed{o.name, o.id, p.Addr}, Fresh: o.fresh(), Configured: s.conf(o), Promise: o.promises.Held}
	}
	return heard
}

// step lets a node do what it would do next.
func (s *sim) step(n *simNode) {
	if !n.fresh() {
		s.spread(n)
		return
	}
	g := s.gathering(n)
	plan := g.Next(s.hear(n))
	if plan.Wait != "" {
		return
	}
	n.promises = g.Promises // durable before anyone is asked
	if !s.well && s.r.IntN(10) == 0 {
		s.restart(n.name) // right behind the write
		return
	}
	if !n.asks.isEqual(plan.Ask) {
		n.asks, n.given = plan.Ask, nil
		s.tell("%s (%s) asks for round %d", n.name, n.id, plan.Ask.Round)
	}
	for _, to := range plan.Ask.Nodes {
		if to.ID != n.id {
			s.send(message{from: n.name, to: to.Name, toID: to.ID, life: n.life, promise: plan.Ask})
		}
	}
}

// spread gives the log of a cluster to a node that is in its list, by its id.
func (s *sim) spread(n *simNode) {
	p := n.founded
	if p == nil {
		p = n.joined
	}
	to := p.Nodes[s.r.IntN(len(p.Nodes))]
	if o := s.nodes[to.Name]; o.id == to.ID && o.fresh() && s.r.IntN(3) == 0 {
		o.joined = p
		s.tell("%s gets the log of %s", o.name, p.Founder)
	}
}

func (s *sim) send(m message) {
	copies := s.r.IntN(3) // lost, sent, repeated
	if s.well {
		copies = 1
	}
	for range copies {
		s.wire = append(s.wire, m)
	}
}

// deliver takes any message.
func (s *sim) deliver() {
	if len(s.wire) == 0 {
		return
	}
	i := s.r.IntN(len(s.wire))
	m := s.wire[i]
	s.wire = slices.Delete(s.wire, i, i+1)
	n := s.nodes[m.to]
	if m.answer {
		s.take(n, m)
		return
	}
	if !n.fresh() {
		return
	}
	g := s.gathering(n)
	reason := g.Consider(m.from, s.nodes[m.from].id, m.promise)
	if reason == "" {
		n.promises = g.Promises
		s.tell("%s (%s) promises round %d of %s", n.name, n.id, m.promise.Round, m.promise.Founder)
	}
	if reason != "" {
		s.tell("%s refuses: %s", n.name, reason)
	}
	s.send(message{from: m.to, to: m.from, life: m.life, answer: true, promise: m.promise, given: reason == "", toID: n.id})
}

// take hears an answer, and founds when it was the last.
func (s *sim) take(n *simNode, m message) {
	if m.life != n.life || !m.promise.isEqual(n.asks) || !m.given || !n.fresh() {
		return
	}
	n.given = append(n.given, m.toID)
	g := s.gathering(n)
	if !g.MayFound(n.asks, n.given) {
		return
	}
	p := n.asks
	n.founded = &p
	s.tell("%s founds %s", n.name, describeNodes(p.Nodes))
	s.all = append(s.all, p)
	s.check()
}

// check holds every founded list that is still on a disk against the others: two
// that share a node, by its id, must be one.
func (s *sim) check() {
	var alive []Promise
	for _, p := range s.all {
		for _, n := range s.nodes {
			if (n.founded != nil && n.founded.isEqual(p)) || (n.joined != nil && n.joined.isEqual(p)) {
				alive = append(alive, p)
				break
			}
		}
	}
	for i, a := range alive {
		for _, b := range alive[i+1:] {
			if !a.isEqual(b) && share(a, b) {
				s.t.Fatalf("two clusters:\n%s\n%s\nstory:\n%s", describeNodes(a.Nodes), describeNodes(b.Nodes), strings.Join(s.story, "\n"))
			}
		}
	}
}

func share(a, b Promise) bool {
	for _, n := range a.Nodes {
		if slices.Contains(b.Nodes, n) {
			return true
		}
	}
	return false
}

func TestTwoClustersAreNeverFounded(t *testing.T) {
	founded := 0
	runs := racetest.Few(1000)
	for seed := range uint64(runs) {
		s := newSim(t, seed, 2+int(seed%4))
		for range 400 {
			name := s.peers[s.r.IntN(len(s.peers))].Name
			switch k := s.r.IntN(100); {
			case k < 40:
				s.step(s.nodes[name])
			case k < 93:
				s.deliver()
			case k < 96:
				s.restart(name)
			case k < 98 && seed%2 == 1:
				s.edit(name)
			case len(s.all) == 0: // a wipe of a member is another story
				s.wipe(name)
			}
			s.check()
		}
		if len(s.all) > 0 {
			founded++
		}
	}
	if founded < runs/2 {
		t.Errorf("only %d of %d runs founded a cluster", founded, runs)
	}
}

func TestAClusterIsFoundedOnceTheNetworkIsWell(t *testing.T) {
	for seed := range uint64(300) {
		s := newSim(t, seed, 3)
		for range 100 { // trouble
			name := s.peers[s.r.IntN(3)].Name
			switch k := s.r.IntN(20); {
			case k < 8:
				s.step(s.nodes[name])
			case k < 17:
				s.deliver()
			case k < 19:
				s.restart(name)
			case len(s.all) == 0:
				s.wipe(name)
			}
		}
		s.well = true
		for range 5000 {
			if len(s.all) > 0 {
				break
			}
			s.step(s.nodes[s.peers[s.r.IntN(3)].Name])
			s.deliver()
		}
		if len(s.all) == 0 {
			t.Fatalf("seed %d: no cluster:\n%s", seed, strings.Join(s.story, "\n"))
		}
	}
}

// trio are three nodes that have heard of each other.
func trio(first string) (*Gathering, map[string]Hello) {
	peers := []Listed{{Name: "a", Addr: "a:1"}, {Name: "b", Addr: "b:1"}, {Name: "c", Addr: "c:1"}}
	heard := map[string]Hello{}
	g := &Gathering{Peers: peers}
	for _, p := range peers {
		me := Listed{p.Name, "id-" + p.Name, p.Addr}
		if p.Name == first {
			g.Me = me
			continue
		}
		heard[p.Name] = Hello{Listed: me, Fresh: true, Configured: peers}
	}
	return g, heard
}

func TestANodeSaysWhyItWaits(t *testing.T) {
	for _, c := range []struct {
		name, me, want string
		change         func(*Gathering, map[string]Hello)
	}{
		{"one is down", "a", "c does not answer at c:1", func(_ *Gathering, h map[string]Hello) { delete(h, "c") }},
		{"not the founder", "b", "a, the first by name, founds the cluster", func(*Gathering, map[string]Hello) {}},
		{"a cluster is there", "a", "b belongs to a cluster", func(_ *Gathering, h map[string]Hello) { b := h["b"]; b.Fresh = false; h["b"] = b }},
		{"another list", "a", "raft.peers of b is another list: there a = x:1, here a = a:1", func(_ *Gathering, h map[string]Hello) {
			b := h["b"]
			b.Configured = []Listed{{Name: "a", Addr: "x:1"}}
			h["b"] = b
		}},
		{"a wrong address", "a", "at b:1, where b should be, c answers", func(_ *Gathering, h map[string]Hello) { h["b"] = h["c"] }},
		{"a copied directory", "a", "b and c have the same id", func(_ *Gathering, h map[string]Hello) { b := h["b"]; b.ID = "id-c"; h["b"] = b }},
		{"bound to another", "a", "a has promised to belong to the cluster that 0 (id-0) wanted to found", func(g *Gathering, _ map[string]Hello) {
			g.Promises.Held = Promise{"id-0", 1, []Listed{{"0", "id-0", "0:1"}}}
		}},
	} {
		g, heard := trio(c.me)
		c.change(g, heard)
		if plan := g.Next(heard); !strings.Contains(plan.Wait, c.want) {
			t.Errorf("%s: %q, want %q", c.name, plan.Wait, c.want)
		}
	}
}

func TestAPromiseIsGivenUpOnlyWhenNothingWasFounded(t *testing.T) {
	founder, heard := trio("a")
	promise := founder.Next(heard).Ask
	g, _ := trio("b")
	if reason := g.Consider("a", "", promise); reason != "" {
		t.Fatal(reason)
	}
	later := promise
	later.Round++
	renewed := Promise{"id-a2", 1, slices.Clone(promise.Nodes)}
	renewed.Nodes[0].ID = "id-a2"
	for _, c := range []struct {
		name, from, now string
		p               Promise
		refused         string
	}{
		{"the same again", "a", "", promise, ""},
		{"a later round", "a", "", later, ""},
		{"an earlier round", "a", "", promise, "is over"},
		{"somebody else", "c", "", later, "asks for the promise that a would need"},
		{"the founder with other data, it does not say so", "a", "id-a", renewed, "does not say that it is id-a2"},
		{"the founder with other data", "a", "id-a2", renewed, ""},
		{"the founder that was, late", "a", "id-a2", later, "does not say that it is id-a"},
	} {
		if reason := g.Consider(c.from, c.now, c.p); (reason == "") != (c.refused == "") || !strings.Contains(reason, c.refused) {
			t.Errorf("%s: %q, want %q", c.name, reason, c.refused)
		}
	}
	other := Promise{"id-b", 1, []Listed{g.Me}}
	if reason := g.Consider("b", "", other); !strings.Contains(reason, "another list") {
		t.Error(reason)
	}
}
