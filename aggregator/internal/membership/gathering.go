package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Listed is a node of a list: its name, the id of its data, and its address. The
// id is empty in a list of the configuration.
type Listed struct {
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
	Addr string `json:"addr"`
}

// Promise binds a node to belong to the cluster of exactly these nodes, should
// its founder, the first of them, found it. A later round of the same founder
// takes back the earlier ones. The zero Promise is none.
type Promise struct {
	Founder string   `json:"founder"` // id
	Round   uint64   `json:"round"`
	Nodes   []Listed `json:"nodes"` // sorted by name
}

// None reports whether p is no promise.
func (p Promise) None() bool { return p.Founder == "" }

func (p Promise) isEqual(o Promise) bool {
	return p.Founder == o.Founder && p.Round == o.Round && slices.Equal(p.Nodes, o.Nodes)
}

// Hello is what a node says of itself while a cluster gathers.
type Hello struct {
	Listed

	Fresh      bool
	Leads      bool
	Cluster    string
	Configured []Listed // its configuration, without ids
	Promise    Promise
	Members    []Listed // of its cluster
}

// Promises is what a node remembers of its promises, durably.
type Promises struct {
	Held Promise `json:"held"`
	// Rounds is the last round of this node as a founder.
	Rounds uint64 `json:"rounds"`
}

// Gathering is how a node without a cluster comes to one. It has no clock, no
// disk and no network: its user tells it what was heard, makes its Promises durable
// before anyone hears of it, and founds when it says so. DESIGN.md has the
// argument why two clusters are never founded.
type Gathering struct {
	Me       Listed
	Peers    []Listed // the configuration, this node included, sorted by name, without ids
	Promises Promises
}

// Plan is what a gathering node does next: it waits for the reason given, or,
// as the founder, asks all others for the promise.
type Plan struct {
	Wait string
	Ask  Promise
}

func waitPlan(format string, args ...any) Plan { return Plan{Wait: fmt.Sprintf(format, args...)} }

// Next says what this node, which is fresh, does after it has heard from the
// others, by name; who did not answer is missing. When the plan is to ask, the
// Promises has changed: the promise binds this node too.
func (g *Gathering) Next(heard map[string]Hello) Plan {
	list := make([]Listed, 0, len(g.Peers))
	for _, p := range g.Peers {
		if p.Name == g.Me.Name {
			list = append(list, g.Me)
			continue
		}
		h, ok := heard[p.Name]
		if !ok {
			return waitPlan("%s does not answer at %s", p.Name, p.Addr)
		}
		if plan := g.judgePeer(p, h); plan.Wait != "" {
			return plan
		}
		list = append(list, Listed{p.Name, h.ID, p.Addr})
	}
	if twin := sameID(list); twin != "" {
		return waitPlan("%s: one was started from a copy of the other's data; empty one of the data directories", twin)
	}
	if first := list[0]; first.ID != g.Me.ID {
		return waitPlan("%s, the first by name, founds the cluster", first.Name)
	}
	return g.askForPromise(list)
}

// judgePeer says why this node waits for the peer p.
func (g *Gathering) judgePeer(p Listed, h Hello) Plan {
	switch {
	case h.Name != p.Name:
		return waitPlan("at %s, where %s should be, %s answers", p.Addr, p.Name, h.Name)
	case !h.Fresh:
		return waitPlan("%s belongs to a cluster, whose leader will add this node when its configuration names it", p.Name)
	case !slices.Equal(h.Configured, g.Peers):
		return waitPlan("raft.peers of %s is another list: there %s, here %s", p.Name, describeNodes(h.Configured), describeNodes(g.Peers))
	}
	return Plan{}
}

// askForPromise makes the promise of this node, the founder, for the list.
func (g *Gathering) askForPromise(list []Listed) Plan {
	held := g.Promises.Held
	switch {
	case held.Founder == g.Me.ID && slices.Equal(held.Nodes, list):
		return Plan{Ask: held}
	case !held.None() && held.Founder != g.Me.ID:
		return Plan{Wait: boundPromise(g.Me.Name, held)}
	}
	g.Promises.Rounds++
	g.Promises.Held = Promise{Founder: g.Me.ID, Round: g.Promises.Rounds, Nodes: list}
	return Plan{Ask: g.Promises.Held}
}

// boundPromise says what to do about a promise that no one takes back.
func boundPromise(name string, held Promise) string {
	return fmt.Sprintf("%s has promised to belong to the cluster that %s (%s) wanted to found: %s; if that cluster was never founded, stop %s, empty its data directory, where there is nothing yet, and start it again",
		name, held.Nodes[0].Name, held.Founder, describeNodes(held.Nodes), name)
}

// Renewed reports whether p is of a founder that has other data than the founder
// of the same name to whom this node is bound. Only the founder itself can say
// which of the two it is now: a request may be late.
func (g *Gathering) Renewed(p Promise) bool {
	held := g.Promises.Held
	return !held.None() && held.Founder != p.Founder && len(p.Nodes) > 0 && held.Nodes[0].Name == p.Nodes[0].Name
}

// Consider answers the request of the node with the name from, as its
// certificate has it, to promise p. Where p is [Gathering.Renewed], now is the id
// that the founder gave when it was asked after the request had come; otherwise it
// does not count. A promise is given when the reason is empty; the Promises may have
// changed and must be durable before the answer is sent.
func (g *Gathering) Consider(from, now string, p Promise) (reason string) {
	if reason := g.whyUnfit(from, p); reason != "" {
		return reason
	}
	held := g.Promises.Held
	switch {
	case held.None() || held.isEqual(p):
	case held.Founder == p.Founder:
		if p.Round <= held.Round {
			return fmt.Sprintf("round %d of the founder is over, this is round %d", p.Round, held.Round)
		}
	case held.Founder == g.Me.ID: // this node has founded nothing, and now never will in that round
	case g.Renewed(p) && now != p.Founder:
		return fmt.Sprintf("%s does not say that it is %s", from, p.Founder)
	case g.Renewed(p): // the data with which it could have founded are gone
	default:
		return boundPromise(g.Me.Name, held)
	}
	g.Promises.Held = p
	return ""
}

// whyUnfit says why a promise cannot be one of this node, whatever it has promised
// before.
func (g *Gathering) whyUnfit(from string, p Promise) string {
	switch {
	case len(p.Nodes) == 0 || p.Nodes[0].ID != p.Founder || p.Founder == "" || p.Round == 0:
		return "the founder is not the first of its list"
	case p.Nodes[0].Name != from:
		return fmt.Sprintf("%s asks for the promise that %s would need", from, p.Nodes[0].Name)
	case !slices.Contains(p.Nodes, g.Me):
		return fmt.Sprintf("this node, %s, is not in the list %s", describeNodes([]Listed{g.Me}), describeNodes(p.Nodes))
	case !slices.Equal(withoutIDs(p.Nodes), g.Peers):
		return fmt.Sprintf("raft.peers here is another list: %s, not %s", describeNodes(g.Peers), describeNodes(p.Nodes))
	}
	return ""
}

// MayFound reports whether this node may found the cluster of p: it still holds
// that very promise, and all others have given it.
func (g *Gathering) MayFound(p Promise, given []string) bool {
	if p.Founder != g.Me.ID || !g.Promises.Held.isEqual(p) {
		return false
	}
	for _, n := range p.Nodes {
		if n.ID != g.Me.ID && !slices.Contains(given, n.ID) {
			return false
		}
	}
	return true
}

// sameID names two nodes of the list that have one id; "" when there are none.
func sameID(list []Listed) string {
	for i, a := range list {
		for _, b := range list[i+1:] {
			if a.ID == b.ID {
				return fmt.Sprintf("%s and %s have the same id %s", a.Name, b.Name, a.ID)
			}
		}
	}
	return ""
}

// describeNodes lists nodes for people.
func describeNodes(nodes []Listed) string {
	if len(nodes) == 0 {
		return "no nodes"
	}
	words := make([]string, 0, len(nodes))
	for _, n := range nodes {
		if n.ID == "" {
			words = append(words, n.Name+" = "+n.Addr)
			continue
		}
		words = append(words, fmt.Sprintf("%s = %s (%s)", n.Name, n.Addr, n.ID))
	}
	return strings.Join(words, ", ")
}

func withoutIDs(nodes []Listed) []Listed {
	out := slices.Clone(nodes)
	for i := range out {
		out[i].ID = ""
	}
	return out
}

// sortListed sorts by name.
func sortListed(nodes []Listed) {
	slices.SortFunc(nodes, func(a, b Listed) int { return cmp.Compare(a.Name, b.Name) })
}
