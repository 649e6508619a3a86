package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Bounds of what a cluster has, so that sums over all time fit.
const (
	maxAmount = 1 << 53
	maxNodes  = 1_000_000
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
	// Zone is the time zone in which dates begin; "" is UTC.
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
	Nodes int64 `hcl:"nodes,optional"`
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

// validateClusters reports all that is wrong with clusters and their groups.
func (c *Config) validateClusters() (diags hcl.Diagnostics) {
	for i := range c.Clusters {
		diags.Extend(c.Clusters[i].validate())
	}
	diags.Extend(c.sourcesTwice())
	names := map[string]hcl.Range{}
	for i := range c.Clusters {
		names[c.Clusters[i].Name.Value] = c.Clusters[i].Name.Range
	}
	groups := map[string]hcl.Range{}
	for i := range c.ClusterGroups {
		g := &c.ClusterGroups[i]
		diags.Extend(checkClusterName(g.Name))
		if at, is := names[g.Name.Value]; is {
			diags.Add(hcl.Errorf(g.Name.Range, "a group is named as a cluster", "%q is a cluster at %s; both are asked for by their names, so give the group another one", g.Name.Value, place(at)))
		}
		groups[g.Name.Value] = g.Name.Range
		if len(g.Clusters)+len(g.Groups) == 0 {
			diags.Add(hcl.Errorf(g.Range, "an empty group", "write clusters = [\"…\"] or groups = [\"…\"]"))
		}
	}
	for i := range c.ClusterGroups {
		for _, member := range c.ClusterGroups[i].Groups {
			if _, is := groups[member.Value]; !is {
				diags.Add(hcl.Errorf(member.Range, "unknown group of clusters", "there is no cluster_group %q", member.Value))
			}
		}
		for _, member := range c.ClusterGroups[i].Clusters {
			if at, is := groups[member.Value]; is {
				diags.Add(hcl.Errorf(member.Range, "a group among clusters", "%q is a group, at %s; write it in groups", member.Value, place(at)))
			}
		}
	}
	return append(diags, c.groupCycle(groups)...)
}

// groupCycle reports groups that include one another.
func (c *Config) groupCycle(at map[string]hcl.Range) (diags hcl.Diagnostics) {
	cycle := accounting.GroupCycle(c.groups())
	if cycle == nil {
		return nil
	}
	var words []string
	for _, name := range cycle {
		words = append(words, fmt.Sprintf("%q (%s)", name, place(at[name])))
	}
	diags.Add(hcl.Errorf(at[cycle[0]], "groups that include one another", "%s includes itself by way of %s; take one of them out of groups", strings.Join(words[:1], ""), strings.Join(append(words[1:], words[0]), ", then ")))
	return diags
}

func (c *Config) groups() (list []accounting.NodeGroup) {
	for i := range c.ClusterGroups {
		g := &c.ClusterGroups[i]
		list = append(list, accounting.NodeGroup{Name: g.Name.Value, Clusters: textsOf(g.Clusters), Groups: textsOf(g.Groups)})
	}
	return list
}

// textsOf are texts without their places; nil stays nil.
func textsOf(list []hcl.String) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].Value
	}
	return out
}

// sourcesTwice reports sources that two clusters list.
func (c *Config) sourcesTwice() (diags hcl.Diagnostics) {
	first := map[string]hcl.Range{}
	for i := range c.Clusters {
		for _, s := range c.Clusters[i].Sources {
			if at, is := first[s.Value]; is {
				diags.Add(hcl.Errorf(s.Range, "a source in two places", "%s is listed at %s already; what it has would count twice", s.Value, place(at)))
			}
			first[s.Value] = s.Range
		}
	}
	return diags
}

func checkClusterName(name hcl.String) (diags hcl.Diagnostics) {
	if wrong := record.ValidateName(name.Value); wrong != "" {
		diags.Add(hcl.Errorf(name.Range, "invalid name", "%q: %s", name.Value, wrong))
	} else if strings.Contains(name.Value, ",") {
		diags.Add(hcl.Errorf(name.Range, "invalid name", "%q has a comma, which separates names in questions", name.Value))
	}
	return diags
}

func (c *Cluster) validate() hcl.Diagnostics {
	diags := checkClusterName(c.Name)
	if c.Match != nil && len(c.Match) == 0 {
		diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "no record would be of the cluster; leave match out for site_id = %q", c.Name.Value))
	}
	for _, key := range sortedKeys(c.Match) {
		if wrong := record.ValidateName(key); key == "" || wrong != "" {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "invalid meta key %q: %s", key, cmp.Or(wrong, "it is empty")))
		}
		if len(c.Match[key]) == 0 {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "match"`, "%s has no values", key))
		}
	}
	for _, s := range c.Sources {
		if err := checkSource(s.Value); err != nil {
			diags.Add(hcl.Errorf(s.Range, `invalid value in "sources"`, "%v", err))
		}
	}
	zone, err := calendar.Zone(cmp.Or(c.Zone.Value, "UTC"))
	if err != nil {
		diags.Add(hcl.Errorf(c.Zone.Range, `invalid value for "zone"`, "%v", err))
		zone = time.UTC
	}
	diags.Extend(checkFactor(c.SUFactor))
	for i := range c.Capacity {
		diags.Extend(c.Capacity[i].validate(zone))
	}
	return diags
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func checkSource(name string) error {
	if parts := strings.SplitN(name, "/", 3); len(parts) < 3 || slices.Contains(parts, "") {
		return fmt.Errorf("%q is no source; want agent/type/label, as bursar agents has them", name)
	}
	return nil
}

func checkFactor(f hcl.String) (diags hcl.Diagnostics) {
	if _, err := factor(f.Value); err != nil {
		diags.Add(hcl.Errorf(f.Range, `invalid value for "su_factor"`, "%v", err))
	}
	return diags
}

// factor reads a number in billionths; "" is 0.
func factor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, fmt.Errorf("%q is no number", text)
	}
	r.Mul(r, big.NewRat(accounting.FactorOne, 1))
	if !r.IsInt() || r.Sign() <= 0 || r.Cmp(big.NewRat(maxFactor, 1)) > 0 {
		return 0, fmt.Errorf("%s is no factor: want more than 0, at most 1000, with at most nine decimals", text)
	}
	return r.Num().Int64(), nil
}

func (c *Capacity) validate(zone *time.Location) (diags hcl.Diagnostics) {
	from, err := day(c.From.Value, zone)
	if err != nil {
		diags.Add(hcl.Errorf(c.From.Range, `invalid value for "from"`, "%v", err))
	}
	to, err := day(c.To.Value, zone)
	if err != nil {
		diags.Add(hcl.Errorf(c.To.Range, `invalid value for "to"`, "%v", err))
	}
	if from.Present() && to.Present() && to <= from && !diags.HasErrors() {
		diags.Add(hcl.Errorf(c.To.Range, `invalid value for "to"`, "%s is not after %s; to is the first day on which it is not there any more", c.To.Value, c.From.Value))
	}
	if c.Nodes < 0 || c.Nodes > maxNodes {
		diags.Add(hcl.Errorf(c.Range, `invalid value for "nodes"`, "%d is no number of nodes; want 1 to %d", c.Nodes, maxNodes))
	}
	if len(c.Components) == 0 {
		diags.Add(hcl.Errorf(c.Range, `invalid value for "components"`, "nothing is there; write for example components = { Cores = 64, Memory = 256000 } with what one node has"))
	}
	for _, name := range sortedKeys(c.Components) {
		amount := c.Components[name]
		if err := checkComponent(name, amount); err != nil {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "components"`, "%v", err))
		} else if c.Nodes > 0 && amount > maxAmount/c.Nodes {
			diags.Add(hcl.Errorf(c.Range, `invalid value in "components"`, "%d nodes with %d of %s each are more than can be counted", c.Nodes, amount, name))
		}
	}
	diags.Extend(checkFactor(c.SUFactor))
	return diags
}

func checkComponent(name string, amount int64) error {
	switch wrong := record.ValidateName(name); {
	case name == "" || wrong != "":
		return fmt.Errorf("%q is no component: %s", name, cmp.Or(wrong, "it is empty"))
	case name == accounting.SU:
		return errors.New("su follows from Cores and su_factor")
	case amount < 0 || amount > maxAmount:
		return fmt.Errorf("%s is %d; want 0 to %d", name, amount, int64(maxAmount))
	}
	return nil
}

// day reads a date, which begins by the clock of zone, or an instant; "" is
// [record.None].
func day(text string, zone *time.Location) (record.Time, error) {
	if text == "" {
		return record.None, nil
	}
	if t, err := record.ParseTime(text); err == nil {
		return t, nil
	}
	if _, err := time.Parse(time.DateOnly, text); err == nil {
		w, err := calendar.ParseWindow(text, 0, zone)
		return w.From, err
	}
	return record.None, fmt.Errorf("%q is no day and no instant; want for example 2026-03-01, or 2026-03-01T12:00:00Z", text)
}

// clusterBlocks gives clusters with the place that each has in the files, since a
// record is of the first one that takes it.
func clusterBlocks(c *Config) (list []clusterconfig.Block) {
	for i := range c.Clusters {
		cl := &c.Clusters[i]
		at := place(cl.Range)
		b := clusterconfig.Block{Type: "cluster", Labels: []string{cl.Name.Value}, At: at}
		b.Set("order", i, at)
		if cl.Match != nil {
			match := map[string][]string{}
			for key, list := range cl.Match {
				match[key] = list
			}
			b.Set("match", match, at)
		}
		if cl.Sources != nil {
			b.Set("sources", textsOf(cl.Sources), at)
		}
		setTexts(&b, at, map[string]hcl.String{"zone": cl.Zone, "su_factor": cl.SUFactor})
		for k := range cl.Capacity {
			b.Blocks = append(b.Blocks, cl.Capacity[k].block())
		}
		list = append(list, b)
	}
	return list
}

func setTexts(b *clusterconfig.Block, at string, texts map[string]hcl.String) {
	for name, text := range texts {
		if text.Value != "" {
			b.Set(name, text.Value, at)
		}
	}
}

func (c *Capacity) block() clusterconfig.Block {
	at := place(c.Range)
	b := clusterconfig.Block{Type: "capacity", At: at}
	setTexts(&b, at, map[string]hcl.String{"name": c.Name, "from": c.From, "to": c.To, "su_factor": c.SUFactor})
	b.Set("components", c.Components, at)
	if c.Nodes != 0 {
		b.Set("nodes", c.Nodes, at)
	}
	return b
}

func clusterGroupBlocks(c *Config) (list []clusterconfig.Block) {
	for i := range c.ClusterGroups {
		g := &c.ClusterGroups[i]
		at := place(g.Range)
		b := clusterconfig.Block{Type: "cluster_group", Labels: []string{g.Name.Value}, At: at}
		if g.Clusters != nil {
			b.Set("clusters", textsOf(g.Clusters), at)
		}
		if g.Groups != nil {
			b.Set("groups", textsOf(g.Groups), at)
		}
		list = append(list, b)
	}
	return list
}

// readValue reads a value of a block; what is not there is left as it is.
func readValue(b *clusterconfig.Block, name string, to any) error {
	raw, ok := b.Values[name]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, to); err != nil {
		return fmt.Errorf("%s: %s: %w", name, raw, err)
	}
	return nil
}
