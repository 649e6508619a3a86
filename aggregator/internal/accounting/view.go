package accounting

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// ClusterCapacity is what there is to say about a cluster.
type ClusterCapacity struct {
	Cluster

	// Configured is false for a cluster that is there because a source says what it
	// has.
	Configured bool
	// From are the sources whose word counts.
	From []record.Origin
	// Components are the names of what it has, sorted.
	Components []string
}

// List returns all clusters, in the order in which they take records.
func (c *Capacities) List() []ClusterCapacity {
	out := make([]ClusterCapacity, 0, len(c.clusters))
	for _, cl := range c.clusters {
		a := ClusterCapacity{Cluster: cl.Cluster, Configured: cl.configured, From: cl.sources}
		for name := range cl.steps {
			a.Components = append(a.Components, name)
		}
		slices.Sort(a.Components)
		out = append(out, a)
	}
	return out
}

// Groups returns the groups of clusters.
func (c *Capacities) Groups() []NodeGroup { return slices.Clone(c.groups) }

// Members returns the clusters of a group or a cluster, each once, and apart those that
// no one knows.
func (c *Capacities) Members(name string) (members, unknown []string) {
	for _, m := range c.appendMembers(nil, name) {
		if c.findCluster(m) == nil {
			unknown = append(unknown, m)
		} else {
			members = append(members, m)
		}
	}
	return members, unknown
}

// At returns how much of a component a cluster or a group has at an instant.
func (c *Capacities) At(name, component string, at record.Time) CapacityStep {
	return sumStepsAt(c.stepsOf([]string{name}, component), at)
}

// Steps returns how much of a component a cluster or a group has from an instant to
// another: at first, and whenever that changes.
func (c *Capacities) Steps(name, component string, from, to record.Time) (out []CapacityStep) {
	list := c.stepsOf([]string{name}, component)
	instants := []record.Time{from}
	for _, s := range list {
		for i := range s {
			if s[i].From > from && s[i].From < to {
				instants = append(instants, s[i].From)
			}
		}
	}
	slices.Sort(instants)
	for _, at := range slices.Compact(instants) {
		s := sumStepsAt(list, at)
		if n := len(out); n == 0 || out[n-1].Known != s.Known || out[n-1].Amount != s.Amount {
			out = append(out, s)
		}
	}
	return out
}

// sumStepsAt adds up what holds at an instant; it is known when all of it is.
func sumStepsAt(list []steps, at record.Time) CapacityStep {
	out := CapacityStep{From: at, Known: len(list) > 0}
	for _, s := range list {
		now := s.stepAt(at)
		out.Amount, out.Known = out.Amount.Add(now.Amount), out.Known && now.Known
	}
	if !out.Known {
		out.Amount = sums.Sum{}
	}
	return out
}
