package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Bounds of what a cluster has, so that sums over all time fit.
const (
	maxAmount = 1 << 53
	maxFactor = 1_000_000 * accounting.FactorOne / 1000
)

// Cluster is a block cluster "name" { … }: which records are of it, and what it has.
type Cluster struct {
	// Name is how questions name it.
	Name hcl.String `hcl:"name,label"`
	// Match is what the first values of meta keys must be: one of these, in which *
	// is any text. Nothing is site_id = the name.
	Match map[string]hcl.Strings `hcl:"match,optional"`
	// Sources are those whose word about capacity counts, as agent/type/label.
	Sources []hcl.String `hcl:"sources,optional"`
	// Zone is the time zone in which dates begin; "" is that of the site.
	Zone hcl.String `hcl:"zone,optional"`
	// SUFactor is how many service units a core is worth in an hour; "" is 1.
	SUFactor hcl.String `hcl:"su_factor,optional"`
	// Capacity is what it has; blocks add up.
	Capacity []Capacity `hcl:"capacity,block,repeat"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Capacity is a block capacity { … }: something that a cluster has for a time.
type Capacity struct {
	// Name is for people.
	Name hcl.String `hcl:"name,optional"`
	// From is the day or instant from which on it is there, and To from which on it is
	// not any more; "" is always.
	From hcl.String `hcl:"from,optional"`
	To   hcl.String `hcl:"to,optional"`
	// Components are the amounts of one node.
	Components map[string]int64 `hcl:"components"`
	// Nodes is how many there are; zero is one.
	Nodes int64 `hcl:"nodes,optional" min:"0" max:"1000000"`
	// SUFactor is that of its cores; "" is the cluster's.
	SUFactor hcl.String `hcl:"su_factor,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// ClusterGroup is a block cluster_group "name" { … }: a name for several clusters.
type ClusterGroup struct {
	// Name is how questions name it.
	Name hcl.String `hcl:"name,label"`
	// Clusters and Groups are its members.
	Clusters []hcl.String `hcl:"clusters,optional"`
	Groups   []hcl.String `hcl:"groups,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// readCapacity reads clusters and their groups.
func (s *Settings) readCapacity(to *Shared) (diags hcl.Diagnostics) {
	first := map[string]hcl.Range{} // of sources
	names := map[string]hcl.Range{}
	for i := range s.Clusters {
		c := &s.Clusters[i]
		plan, more := c.readCluster(s.siteZone())
		diags.Extend(more)
		to.Capacity.Clusters = append(to.Capacity.Clusters, plan)
		names[c.Name.Value] = c.Name.Range
		for _, source := range c.Sources {
			if at, is := first[source.Value]; is {
				diags.Add(hcl.Errorf(source.Range, "a source in two places", "%s is listed at %s already; what it has would count twice", source.Value, hcl.FileLine(at)))
			}
			first[source.Value] = source.Range
		}
	}
	groups := map[string]hcl.Range{}
	for i := range s.ClusterGroups {
		g := &s.ClusterGroups[i]
		diags.Extend(g.validate(names))
		groups[g.Name.Value] = g.Name.Range
		to.Capacity.Groups = append(to.Capacity.Groups, accounting.NodeGroup{Name: g.Name.Value, Clusters: textsOf(g.Clusters), Groups: textsOf(g.Groups)})
	}
	for i := range s.ClusterGroups {
		diags.Extend(s.ClusterGroups[i].validateMembers(groups))
	}
	if cycle := accounting.GroupCycle(to.Capacity.Groups); cycle != nil {
		diags.Add(includesItself(cycle, groups))
	}
	return diags
}

func (g *ClusterGroup) validate(clusters map[string]hcl.Range) hcl.Diagnostics {
	diags := checkClusterName(g.Name)
	if at, is := clusters[g.Name.Value]; is {
		diags.Add(hcl.Errorf(g.Name.Range, "a group is named as a cluster", "%q is a cluster at %s; both are asked for by their names, so give the group another one", g.Name.Value, hcl.FileLine(at)))
	}
	if len(g.Clusters)+len(g.Groups) == 0 {
		diags.Add(hcl.Errorf(g.Range, "an empty group", "write clusters = [\"…\"] or groups = [\"…\"]"))
	}
	return diags
}

func (g *ClusterGroup) validateMembers(groups map[string]hcl.Range) (diags hcl.Diagnostics) {
	for _, member := range g.Groups {
		if _, is := groups[member.Value]; !is {
			diags.Add(hcl.Errorf(member.Range, "unknown group of clusters", "there is no cluster_group %q", member.Value))
		}
	}
	for _, member := range g.Clusters {
		if at, is := groups[member.Value]; is {
			diags.Add(hcl.Errorf(member.Range, "a group among clusters", "%q is a group, at %s; write it in groups", member.Value, hcl.FileLine(at)))
		}
	}
	return diags
}

// includesItself reports groups that include one another.
func includesItself(cycle []string, at map[string]hcl.Range) *hcl.Diagnostic {
	words := make([]string, len(cycle))
	for i, name := range cycle {
		words[i] = fmt.Sprintf("%q (%s)", name, hcl.FileLine(at[name]))
	}
	return hcl.Errorf(at[cycle[0]], "groups that include one another", "%s includes itself by way of %s; take one of them out of groups",
		words[0], strings.Join(append(words[1:], words[0]), ", then "))
}

func checkClusterName(name hcl.String) (diags hcl.Diagnostics) {
	if wrong := record.ValidateName(name.Value); wrong != "" {
		diags.Add(hcl.Errorf(name.Range, "invalid name", "%q: %s", name.Value, wrong))
	}
	return diags
}

func (c *Cluster) readCluster(site *time.Location) (accounting.Cluster, hcl.Diagnostics) {
	r := reader{diags: checkClusterName(c.Name), site: site}
	diags := &r.diags
	out := accounting.Cluster{Name: c.Name.Value, Sources: textsOf(c.Sources)}
	if c.Match == nil {
		out.Match = []accounting.NodeMatch{{Key: "site_id", Values: []string{c.Name.Value}}}
	} else if len(c.Match) == 0 {
		diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "no record would be of the cluster; leave match out for site_id = %q", c.Name.Value))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Match)) {
		if wrong := record.ValidateName(key); key == "" || wrong != "" {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "invalid meta key %q: %s", key, cmp.Or(wrong, "it is empty")))
		}
		if len(c.Match[key]) == 0 {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "%s has no values", key))
		}
		out.Match = append(out.Match, accounting.NodeMatch{Key: key, Values: c.Match[key]})
	}
	for _, s := range c.Sources {
		if parts := strings.SplitN(s.Value, "/", 3); len(parts) < 3 || slices.Contains(parts, "") {
			diags.Add(hcl.Errorf(s.Range, `invalid value in "sources"`, "%q is not a source; expected agent/type/label, as bursar agents lists them", s.Value))
		}
	}
	zone := r.readZone(c.Zone)
	out.Factor = r.readSUFactor(c.SUFactor)
	for i := range c.Capacity {
		out.Parts = append(out.Parts, r.readPart(&c.Capacity[i], zone))
	}
	return out, r.diags
}

// readSUFactor reads a number in billionths; "" is 0.
func (r *reader) readSUFactor(text hcl.String) int64 {
	if text.Value == "" {
		return 0
	}
	n, ok := new(big.Rat).SetString(text.Value)
	if !ok {
		r.addProblem("su_factor", text, fmt.Errorf("%q is not a number", text.Value))
		return 0
	}
	n.Mul(n, big.NewRat(accounting.FactorOne, 1))
	if !n.IsInt() || n.Sign() <= 0 || n.Cmp(big.NewRat(maxFactor, 1)) > 0 {
		r.addProblem("su_factor", text, fmt.Errorf("must be more than 0 and at most 1000, with at most nine decimals, not %s", text.Value))
		return 0
	}
	return n.Num().Int64()
}

func (r *reader) readPart(c *Capacity, zone *time.Location) accounting.ClusterPart {
	diags := &r.diags
	p := accounting.ClusterPart{
		Name: c.Name.Value, From: r.readDay("from", c.From, zone), To: r.readDay("to", c.To, zone),
		Components: map[string]int64{}, Factor: r.readSUFactor(c.SUFactor),
	}
	if p.From.Present() && p.To.Present() && p.To <= p.From {
		diags.Add(hcl.Errorf(c.To.Range, `invalid value for "to"`, "%s is not after %s; to is the first day on which it is not there any more", c.To.Value, c.From.Value))
	}
	if len(c.Components) == 0 {
		diags.Add(hcl.Errorf(c.Range, `invalid value for "components"`, "nothing is there; write for example components = { Cores = 64, Memory = 256000 } with what one node has"))
	}
	nodes := max(1, c.Nodes)
	for _, name := range slices.Sorted(maps.Keys(c.Components)) {
		amount := c.Components[name]
		if err := checkComponent(name, amount); err != nil {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "components"`, "%v", err))
		} else if amount > maxAmount/nodes {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "components"`, "%d nodes with %d of %s each are more than can be counted", nodes, amount, name))
		}
		p.Components[name] = amount * nodes
	}
	return p
}

func checkComponent(name string, amount int64) error {
	switch wrong := record.ValidateName(name); {
	case name == "" || wrong != "":
		return fmt.Errorf("invalid component %q: %s", name, cmp.Or(wrong, "it is empty"))
	case name == accounting.SU:
		return errors.New("su follows from Cores and su_factor")
	case amount < 0 || amount > maxAmount:
		return fmt.Errorf("%s must be between 0 and %d, not %d", name, int64(maxAmount), amount)
	}
	return nil
}

// readDay reads a date, which begins by the clock of zone, or an instant; "" is
// [record.None].
func (r *reader) readDay(name string, text hcl.String, zone *time.Location) record.Time {
	if text.Value == "" {
		return record.None
	}
	if t, err := record.ParseTime(text.Value); err == nil {
		return t
	}
	if _, err := time.Parse(time.DateOnly, text.Value); err == nil {
		if w, err := calendar.ParseWindow(text.Value, 0, zone); err == nil {
			return w.From
		}
	}
	r.addProblem(name, text, fmt.Errorf("invalid date %q: %s", text.Value, cmp.Or(calendar.Impossible(text.Value), "use e.g. 2026-03-01 or 2026-03-01T12:00:00Z")))
	return record.None
}
