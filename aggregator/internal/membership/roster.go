package membership

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Roster keeps the newest fact of every node, this one included. Its methods may
// be called by many goroutines at once.
type Roster struct {
	own func() NodeFact

	mu    sync.Mutex
	facts map[string]NodeFact // by name
}

// NewRoster makes a roster; own says what this node says of itself, nil is for
// tests that have no such node.
func NewRoster(own func() NodeFact) *Roster {
	return &Roster{own: own, facts: map[string]NodeFact{}}
}

// Own returns what this node says of itself now.
func (r *Roster) Own() NodeFact {
	if r.own == nil {
		return NodeFact{}
	}
	f := r.own()
	f.Seen = time.Now()
	return f
}

// Hear takes a fact of another node, heard now. A process that has said that it is fenced says
// nothing else after it: what comes later all the same was on its way before, and is not taken.
func (r *Roster) Hear(f NodeFact) {
	f.Seen = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.facts[f.Name]; ok && was.Fenced != "" && f.Fenced == "" && was.ID == f.ID && was.Started.Equal(f.Started) {
		return
	}
	r.facts[f.Name] = f
}

// Miss notes that the node with that id was not reached, until it is heard again.
func (r *Roster) Miss(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, f := range r.facts {
		if f.ID == id {
			f.Unreached = true
			r.facts[name] = f
		}
	}
}

// All returns the newest fact of each node, sorted by name, with when it was
// heard; this node's own is of now. Nodes that were never heard of are not among
// them.
func (r *Roster) All() []NodeFact {
	list := r.Others()
	if r.own != nil {
		list = append(list, r.Own())
	}
	slices.SortFunc(list, func(a, b NodeFact) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Others returns the newest fact of each other node, sorted by name.
func (r *Roster) Others() []NodeFact {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]NodeFact, 0, len(r.facts))
	for _, f := range r.facts {
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b NodeFact) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// ByID returns the newest fact of the node with that id, other than this one.
func (r *Roster) ByID(id string) (NodeFact, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.facts {
		if f.ID == id {
			return f, true
		}
	}
	return NodeFact{}, false
}

// keepNodes forgets the nodes for which want is false.
func (r *Roster) keepNodes(want func(NodeFact) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, f := range r.facts {
		if !want(f) {
			delete(r.facts, name)
		}
	}
}
