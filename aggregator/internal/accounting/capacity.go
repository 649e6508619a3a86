package accounting

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// siteKey is the meta key to which the mappings of sources give their label.
const siteKey = "site_id"

// Capacities are clusters with what they have. They are never changed.
//
// A source that no cluster lists is the first cluster's that takes records with its
// label as site_id; where that one lists others, the source does not count. Where
// there is none, the source is a cluster of its own, named by its label. Sources of
// one type and label are the same scheduler seen from several agents: of those the
// latest word counts. Those of other types or labels add up.
type Capacities struct {
	clusters []*cluster
	groups   []NodeGroup
	keys     []string // of all matches
	names    []string // of components
}

// cluster is a cluster with what is known of it.
type cluster struct {
	Cluster

	configured bool
	sources    []record.Origin
	facts      []CapacityFact
	steps      map[string]steps
}

// NewCapacities makes capacities of what is configured and what sources say.
func NewCapacities(p *CapacityPlan, facts []CapacityFact) *Capacities {
	c := &Capacities{groups: p.Groups}
	for i := range p.Clusters {
		c.clusters = append(c.clusters, &cluster{Cluster: p.Clusters[i], configured: true})
	}
	for i := range facts {
		if to := c.clusterOf(&facts[i]); to != nil {
			to.facts = append(to.facts, facts[i])
			if !slices.Contains(to.sources, facts[i].Source) {
				to.sources = append(to.sources, facts[i].Source)
			}
		}
	}
	for _, cl := range c.clusters {
		cl.buildSteps()
		for _, m := range cl.Match {
			c.keys = append(c.keys, m.Key)
		}
		for name := range cl.steps {
			c.names = append(c.names, name)
		}
	}
	slices.Sort(c.keys)
	c.keys = slices.Compact(c.keys)
	slices.Sort(c.names)
	c.names = slices.Compact(c.names)
	return c
}

// clusterOf returns the cluster to which a fact belongs; nil for none.
func (c *Capacities) clusterOf(f *CapacityFact) *cluster {
	name := f.Source.String()
	for _, cl := range c.clusters {
		if slices.Contains(cl.Sources, name) {
			return cl
		}
	}
	for _, cl := range c.clusters {
		if !cl.matchesRecord([]string{siteKey}, []string{f.Source.Label}, []bool{false}) {
			continue
		}
		if cl.Sources != nil {
			return nil
		}
		return cl
	}
	own := &cluster{Cluster: Cluster{Name: c.freeName(f.Source), Match: []NodeMatch{{Key: siteKey, Values: []string{f.Source.Label}}}}}
	at, _ := slices.BinarySearchFunc(c.clusters, own, func(a, b *cluster) int {
		if a.configured {
			return -1
		}
		return cmp.Compare(a.Name, b.Name)
	})
	c.clusters = slices.Insert(c.clusters, at, own)
	return own
}

// freeName is the name of a cluster that a source is.
func (c *Capacities) freeName(o record.Origin) string {
	if c.findCluster(o.Label) == nil && c.findGroup(o.Label) == nil && o.Label != "" {
		return o.Label
	}
	return o.String()
}

func (c *Capacities) findCluster(name string) *cluster {
	for _, cl := range c.clusters {
		if cl.Name == name {
			return cl
		}
	}
	return nil
}

func (c *Capacities) findGroup(name string) *NodeGroup {
	for i := range c.groups {
		if c.groups[i].Name == name {
			return &c.groups[i]
		}
	}
	return nil
}

// buildSteps makes the steps of all components.
func (c *cluster) buildSteps() {
	c.steps = map[string]steps{}
	slices.SortFunc(c.sources, record.Origin.Compare)
	names := map[string]bool{}
	for i := range c.Parts {
		for name := range c.Parts[i].Components {
			names[name] = true
		}
	}
	for i := range c.facts {
		for name := range c.facts[i].Components {
			names[name] = true
		}
	}
	delete(names, SU) // which follows
	if names[Cores] {
		names[SU] = true
	}
	for name := range names {
		c.steps[name] = c.collectHistory(name).mergeSteps()
	}
}

// collectHistory collects what is said about a component.
func (c *cluster) collectHistory(name string) *history {
	h := &history{}
	for i := range c.Parts {
		p := &c.Parts[i]
		amount, has := c.amountOf(name, p.Components, p.Factor)
		if !has {
			continue
		}
		from := p.From
		if !from.Present() {
			from = record.MinTime
		}
		h.parts = append(h.parts, change{from, amount, 1})
		if p.To.Present() {
			h.parts = append(h.parts, change{p.To, sums.Sum{}.Sub(amount), -1})
		}
	}
	h.told = c.sourceSteps(name)
	return h
}

// amountOf is how much of a component there is, as [CapacityStep] has it.
func (c *cluster) amountOf(name string, of map[string]int64, factor int64) (sums.Sum, bool) {
	if name != SU {
		n, has := of[name]
		return sums.SumOf(n), has
	}
	n, has := of[Cores]
	sum, fits := sums.SumOf(n).Times(cmp.Or(factor, c.Factor, FactorOne))
	return sum, has && fits
}

// sourceSteps is what the sources say, by type and label. What a word does not name there is
// nothing of.
func (c *cluster) sourceSteps(name string) (out [][]CapacityStep) {
	facts := slices.Clone(c.facts)
	slices.SortFunc(facts, func(a, b CapacityFact) int {
		return cmp.Or(strings.Compare(a.Source.Type, b.Source.Type), strings.Compare(a.Source.Label, b.Source.Label), cmp.Compare(a.From, b.From), a.Source.Compare(b.Source))
	})
	for i := range facts {
		f := &facts[i]
		amount, _ := c.amountOf(name, f.Components, 0)
		step := CapacityStep{From: f.From, Amount: amount, Known: true}
		if i == 0 || f.Source.Type != facts[i-1].Source.Type || f.Source.Label != facts[i-1].Source.Label {
			out = append(out, nil)
		}
		last := &out[len(out)-1]
		if n := len(*last); n > 0 && (*last)[n-1].From == step.From {
			(*last)[n-1] = step
			continue
		}
		*last = append(*last, step)
	}
	return out
}

// Keys returns the derived key [Key], if there are clusters.
func (c *Capacities) Keys() []usage.Key {
	if len(c.clusters) == 0 {
		return nil
	}
	of := func(values []string, lacks []bool, _ record.Time) (string, bool) {
		for _, cl := range c.clusters {
			if cl.matchesRecord(c.keys, values, lacks) {
				return cl.Name, true
			}
		}
		return "", false
	}
	return []usage.Key{{Name: ClusterKey, From: c.keys, Of: of}}
}

// Components returns the names of all components that a cluster has, sorted.
func (c *Capacities) Components() []string { return slices.Clone(c.names) }

// Clusters returns the names of clusters, each once: those that names are, or are
// groups of; all without names. The error says which name is of nothing.
func (c *Capacities) Clusters(names []string) ([]string, error) {
	var out []string
	if names == nil {
		for _, cl := range c.clusters {
			out = append(out, cl.Name)
		}
		return out, nil
	}
	for _, name := range names {
		if c.findCluster(name) == nil && c.findGroup(name) == nil {
			return nil, fmt.Errorf("there is no cluster and no group of clusters %q; there are %s", name, strings.Join(c.allNames(), ", "))
		}
		out = c.appendMembers(out, name)
	}
	return out, nil
}

// allNames are the names of clusters and groups.
func (c *Capacities) allNames() (list []string) {
	for _, cl := range c.clusters {
		list = append(list, cl.Name)
	}
	for i := range c.groups {
		list = append(list, c.groups[i].Name)
	}
	return list
}

// appendMembers appends the clusters that a name stands for, also those that a group names
// and that no one knows. Groups that are members of themselves end it.
func (c *Capacities) appendMembers(out []string, name string) []string {
	seen := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		g := c.findGroup(name)
		if g == nil {
			if !slices.Contains(out, name) {
				out = append(out, name)
			}
			return
		}
		if seen[name] {
			return
		}
		seen[name] = true
		for _, n := range slices.Concat(g.Clusters, g.Groups) {
			add(n)
		}
	}
	add(name)
	return out
}

// Among returns those of some clusters of which a record can pass the conditions.
func (c *Capacities) Among(clusters []string, tests []store.MetaTest) []string {
	return slices.DeleteFunc(slices.Clone(clusters), func(name string) bool {
		cl := c.findCluster(name)
		return cl != nil && !cl.mayPass(tests)
	})
}

// Within returns those of some clusters to which a record with these first values of
// keys can belong, as far as the keys are those of matches; false when none is.
func (c *Capacities) Within(clusters, keys, values []string, lacks []bool) (within []string, told bool) {
	if !slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(c.keys, key) }) {
		return clusters, false
	}
	for _, cl := range c.clusters {
		can, certain := cl.canMatch(keys, values, lacks)
		if can && slices.Contains(clusters, cl.Name) {
			within = append(within, cl.Name)
		}
		if certain {
			break
		}
	}
	return within, true
}

// mayPass reports whether a record of the cluster can pass the conditions, as far as the
// match tells.
func (c *cluster) mayPass(tests []store.MetaTest) bool {
	for i := range tests {
		for _, m := range c.Match {
			if m.Key == tests[i].Key && !m.mayPass(tests[i:i+1]) {
				return false
			}
		}
	}
	return true
}

func (m *NodeMatch) mayPass(test []store.MetaTest) bool {
	return slices.ContainsFunc(m.Values, func(value string) bool {
		return strings.Contains(value, "*") || store.MetaAllowed([][]store.MetaTest{test}, record.Meta{{Key: m.Key, Values: []string{value}}})
	})
}

// Of returns amount × microseconds of a component, from an instant to another, of
// clusters and groups: each cluster once. Of [SU] it is in billionths. False when it
// is not known of one of them, or not all the time.
func (c *Capacities) Of(clusters []string, component string, from, to record.Time) (sums.Sum, bool) {
	var sum sums.Sum
	if from >= to {
		return sum, true
	}
	known := true
	for _, s := range c.stepsOf(clusters, component) {
		part, ok := s.integral(from, to)
		sum, known = sum.Add(part), known && ok
	}
	if !known {
		return sums.Sum{}, false
	}
	return sum, true
}

// stepsOf are those of each cluster that the names stand for.
func (c *Capacities) stepsOf(names []string, component string) (list []steps) {
	var members []string
	for _, name := range names {
		members = c.appendMembers(members, name)
	}
	for _, name := range members {
		var s steps
		if cl := c.findCluster(name); cl != nil {
			s = cl.steps[component]
		}
		list = append(list, s)
	}
	return list
}

// Cuts returns the instants between two others at which one of the clusters begins or
// ceases to have anything of the component that is known.
func (c *Capacities) Cuts(clusters []string, component string, from, to record.Time) (cuts []record.Time) {
	for _, s := range c.stepsOf(clusters, component) {
		had := false
		for i := range s {
			if has := s[i].hasAmount(); has != had {
				had = has
				if s[i].From > from && s[i].From < to {
					cuts = append(cuts, s[i].From)
				}
			}
		}
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}
