package accounting

import (
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// ClusterKey is the name of the derived key by whose value records are of a cluster.
const ClusterKey = "cluster"

// The components with a meaning of their own.
const (
	// Cores is that of which service units are made.
	Cores = "Cores"
	// SU is the capacity in service units: cores × factor. One core with factor 1 is
	// one service unit in an hour.
	SU = "su"
)

// FactorOne is the factor 1, in billionths.
const FactorOne = 1_000_000_000

// CapacityPlan is what the configuration says about clusters. It is not changed any more
// once it is used.
type CapacityPlan struct {
	Clusters []Cluster // a record is of the first one that takes it
	Groups   []NodeGroup
}

// Cluster is a cluster with what it has.
type Cluster struct {
	Name string
	// Match says which records are its: those whose first value of each key is as
	// the match says.
	Match []NodeMatch
	// Sources are those whose word about capacity counts, as agent/type/label; nil:
	// those of which no cluster says anything and whose records are its by the usual
	// mapping, see [Capacities].
	Sources []string
	// Factor is that of cores whose part says none, in billionths; 0 is 1.
	Factor int64
	Parts  []ClusterPart
}

// NodeMatch is a condition on the first value of a meta key.
type NodeMatch struct {
	Key string
	// Values are those of which one is wanted; * stands for any text.
	Values []string
}

// ClusterPart is something that a cluster has for a time. Parts add up.
type ClusterPart struct {
	Name string // for people; may be ""
	// From is the instant from which on it is there, and To the one from which on it
	// is not any more; [record.None] is always.
	From, To record.Time
	// Components are the amounts of it, all nodes together.
	Components map[string]int64
	// Factor is the service units of a core in an hour, in billionths; 0 is the
	// cluster's.
	Factor int64
}

// NodeGroup is a name for several clusters.
type NodeGroup struct {
	Name string
	// Clusters and Groups are its members.
	Clusters, Groups []string
}

// GroupCycle returns the names of groups each of which has the next one for a member, and
// the last one the first; nil when there are none.
func GroupCycle(groups []NodeGroup) []string {
	w := cycleSearch{groups: groups, done: map[string]bool{}}
	for i := range groups {
		if found := w.findCycle(groups[i].Name, nil); found != nil {
			return found
		}
	}
	return nil
}

type cycleSearch struct {
	groups []NodeGroup
	done   map[string]bool
}

func (w *cycleSearch) findCycle(name string, path []string) []string {
	if at := slices.Index(path, name); at >= 0 {
		return path[at:]
	}
	at := slices.IndexFunc(w.groups, func(g NodeGroup) bool { return g.Name == name })
	if at < 0 || w.done[name] {
		return nil
	}
	path = append(slices.Clip(path), name)
	for _, member := range w.groups[at].Groups {
		if found := w.findCycle(member, path); found != nil {
			return found
		}
	}
	w.done[name] = true
	return nil
}

// matchesRecord reports whether a record with these first values of keys is the cluster's.
func (c *Cluster) matchesRecord(keys, values []string, lacks []bool) bool {
	for i := range c.Match {
		m := &c.Match[i]
		at := slices.Index(keys, m.Key)
		if at < 0 || lacks[at] || !m.matchesValue(values[at]) {
			return false
		}
	}
	return len(c.Match) > 0
}

// canMatch reports whether a record can be the cluster's that has these first values of
// some keys, and whether it certainly is unless an earlier cluster takes it.
func (c *Cluster) canMatch(keys, values []string, lacks []bool) (can, certain bool) {
	certain = len(c.Match) > 0
	for i := range c.Match {
		m := &c.Match[i]
		at := slices.Index(keys, m.Key)
		if at >= 0 && (lacks[at] || !m.matchesValue(values[at])) {
			return false, false
		}
		certain = certain && at >= 0
	}
	return len(c.Match) > 0, certain
}

// matchesValue reports whether a value is one of those that are wanted.
func (m *NodeMatch) matchesValue(value string) bool {
	return slices.ContainsFunc(m.Values, func(pattern string) bool { return matchesPattern(pattern, value) })
}

// matchesPattern compares a value with a pattern in which * is any text.
func matchesPattern(pattern, value string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == value
	}
	rest, ok := strings.CutPrefix(value, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}
