package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Common are the blocks of the whole cluster that stand beside the block aggregator.
type Common struct {
	// Zone is the time zone by whose clock days begin where no other one is written; ""
	// is UTC.
	Zone hcl.String `hcl:"zone,optional"`
	// Agents are pulled from.
	Agents []Agent `hcl:"agent,block"`
	// AgentSRV is a name of DNS that has agents as services (SRV records), such as
	// _bursar-agent._tcp.example.org: they are pulled from, too. The first label of a host
	// is the agent's name.
	AgentSRV hcl.String `hcl:"agent_srv,optional"`

	// People and what follows say to whom usage belongs.
	People        []Person       `hcl:"person,block"`
	Projects      []Project      `hcl:"project,block"`
	HostClasses   []HostClass    `hcl:"host_class,block"`
	ServiceUnits  *ServiceUnits  `hcl:"service_units,block"`
	Contributions []Contribution `hcl:"contribution,block"`
	// Clusters are what records are of, with what they have. A record is of the first
	// one that takes it.
	Clusters []Cluster `hcl:"cluster,block"`
	// ClusterGroups are names for several clusters.
	ClusterGroups []ClusterGroup `hcl:"cluster_group,block"`
	// Components say what the amounts are that clients push.
	Components []Component `hcl:"component,block"`
	// Prices are what usage costs, and Budgets what may be used.
	Prices  []accounting.PriceList `hcl:"price,block,repeat"`
	Budgets []accounting.Budget    `hcl:"budget,block"`
}

// Settings are what the whole cluster shares, as they are committed to it: every node
// obeys these, never its own files. Their tags are their JSON, see [hcl.EncodeJSON].
type Settings struct {
	Common
	Metrics      MetricKeys        `hcl:"metrics,block,optional"`
	Usage        Usage             `hcl:"usage,block,optional"`
	WaitingStops *WaitingStops     `hcl:"waiting_stops,block"`
	Retention    *Retention        `hcl:"retention,block"`
	Directory    DirectoryTables   `hcl:"directory,block,optional"`
	Energy       *EnergyTables     `hcl:"energy,block"`
	Actions      []CommittedAction `hcl:"action,block"`
}

// fileSettings are the settings of the files, as they are written.
func (c *Config) fileSettings() *Settings {
	a := &c.Aggregator
	s := &Settings{
		Common: c.Common, Metrics: a.Metrics.MetricKeys, Usage: a.Usage, WaitingStops: a.WaitingStops, Retention: a.Retention,
		Directory: DirectoryTables{DirectoryKeys: c.Directory.DirectoryKeys, Tables: c.Directory.tables, Range: c.Directory.Range},
	}
	s.Metrics.Range, s.Energy = a.Range, c.Energy.committedTables()
	for i := range c.Actions {
		s.Actions = append(s.Actions, c.Actions[i].committedAction())
	}
	return s
}

// canonical returns the settings so that those that say the same are the same: what has no
// order is sorted, and prices and budgets hold instants and conditions.
func (s *Settings) canonical() *Settings {
	out := *s
	money, _ := s.resolvedMoney()
	for i := range s.Budgets {
		money.Budgets[i].Zone = s.Budgets[i].Zone // that of the site is not written
	}
	slices.SortStableFunc(money.Lists, func(a, b accounting.PriceList) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.FromText, b.FromText))
	})
	out.Prices, out.Budgets = money.Lists, sortedBy(money.Budgets, func(b *accounting.Budget) string { return b.Name })
	out.Agents = sortedBy(s.Agents, func(a *Agent) string { return a.Name.Value })
	out.People = sortedBy(s.People, func(p *Person) string { return p.ID.Value })
	out.Projects = sortedBy(s.Projects, func(p *Project) string { return p.ID.Value })
	out.Contributions = sortedBy(s.Contributions, func(c *Contribution) string { return c.ID.Value })
	out.ClusterGroups = sortedBy(s.ClusterGroups, func(g *ClusterGroup) string { return g.Name.Value })
	out.Components = sortedBy(s.Components, func(c *Component) string { return c.Name.Value })
	out.Actions = sortedBy(s.Actions, func(a *CommittedAction) string { return a.Name().String() })
	return &out
}

func sortedBy[T any](list []T, name func(*T) string) []T {
	return slices.SortedStableFunc(slices.Values(list), func(a, b T) int { return cmp.Compare(name(&a), name(&b)) })
}

// Shared returns the part of the configuration that the cluster shares. Of a
// configuration with errors it is what could be read.
func (c *Config) Shared() *clusterconfig.Document {
	s := c.fileSettings().canonical()
	return &clusterconfig.Document{Settings: hcl.EncodeJSON(s), Written: hcl.Members(s)}
}

// Diff returns where the files of a node differ from what is committed.
func Diff(files, cluster *clusterconfig.Document) []clusterconfig.Difference {
	committed, err := hcl.MembersOf(cluster.Settings, &Settings{})
	if err != nil {
		return []clusterconfig.Difference{{Block: "the cluster's configuration", Text: "cannot be read: " + err.Error()}}
	}
	return clusterconfig.Diff(files.Written, committed)
}

// Shared is what of a configuration the whole cluster has in common: the daemon
// takes it from the log, never from its own files.
type Shared struct {
	// Agents are pulled from, by name, and so are those that DNS has as services of AgentSRV.
	Agents   []SharedAgent
	AgentSRV string
	// SiteKey, GroupKey and UserKey are those of the block metrics.
	SiteKey, GroupKey, UserKey string
	// Zone is the name of the time zone by whose clock days begin where none is named.
	Zone string
	// Dimensions are the meta keys of which sums of usage are kept, and Zones the time
	// zones of whose days; Zone is among them.
	Dimensions, Zones []string
	// Directory says to whom usage belongs.
	Directory accounting.DirectorySettings
	// Capacity is what clusters have.
	Capacity accounting.CapacityPlan
	// Money are prices and budgets.
	Money accounting.PriceSettings
	// Energy says how energy follows from records; nil is not at all.
	Energy *accounting.EnergySettings
	// Kinds are those of components that clients push, where it is written.
	Kinds record.Kinds
	// StopsExpire is after how long stops are dismissed whose records have not come;
	// zero is never.
	StopsExpire time.Duration
	// Retention says how long records keep the names of persons.
	Retention erasure.Policy
	// Actions are what is done with the totals.
	Actions []SharedAction
}

// SharedAgent is an agent to pull from.
type SharedAgent struct{ Name, Address string }

// ReadShared reads what the cluster shares. An error says that this program
// cannot do what is written there, with the block.
func ReadShared(d *clusterconfig.Document) (*Shared, error) {
	var s Settings
	diags := hcl.DecodeJSON("the cluster's configuration:", d.Settings, &s)
	if diags.HasErrors() {
		return nil, diags.Err()
	}
	out, diags := s.toShared()
	if err := diags.Err(); err != nil {
		return nil, err
	}
	for i := range s.Actions {
		a, err := s.Actions[i].sharedAction()
		if err != nil {
			return nil, fmt.Errorf("action %q: %w", s.Actions[i].Name(), err)
		}
		a.Zone = cmp.Or(a.Zone, s.Zone.Value)
		out.Actions = append(out.Actions, a)
	}
	return out, nil
}

// toShared makes of the settings what the parts of the daemon take, but for the actions, and
// reports what is wrong with them, whether they come from files or are committed.
func (s *Settings) toShared() (*Shared, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	out := &Shared{
		SiteKey: s.Metrics.SiteKey.Value, GroupKey: s.Metrics.GroupKey.Value, UserKey: s.Metrics.UserKey.Value,
		Dimensions: []string{"site_id", "group_id", "user_id"}, Zone: cmp.Or(s.Zone.Value, "UTC"), Zones: []string{"UTC"},
	}
	if _, err := calendar.Zone(s.Zone.Value); err != nil {
		diags.Add(hcl.Errorf(s.Zone.Range, `invalid value for "zone"`, "%v", err))
	}
	for i := range s.Agents {
		diags.Extend(s.Agents[i].validateAddress())
		out.Agents = append(out.Agents, SharedAgent{Name: s.Agents[i].Name.Value, Address: s.Agents[i].Address.String()})
	}
	if out.AgentSRV = s.AgentSRV.Value; out.AgentSRV != "" && strings.Trim(out.AgentSRV, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || len(out.AgentSRV) > 253 {
		diags.Add(hcl.Errorf(s.AgentSRV.Range, `invalid value for "agent_srv"`, "invalid DNS name %q; use a name like _bursar-agent._tcp.example.org", out.AgentSRV))
	}
	diags.Extend(s.Metrics.validateKeys())
	diags.Extend(s.Usage.readUsage(out))
	if !slices.Contains(out.Zones, out.Zone) {
		out.Zones = append(out.Zones, out.Zone)
	}
	if s.WaitingStops != nil {
		out.StopsExpire = s.WaitingStops.ExpireAfter.Duration
	}
	diags.Extend(s.Retention.readRetention(&s.Directory.DirectoryKeys, out))
	for i := range s.Components {
		kind, more := s.Components[i].readKind()
		diags.Extend(more)
		if out.Kinds == nil {
			out.Kinds = record.Kinds{}
		}
		out.Kinds[s.Components[i].Name.Value] = kind
	}
	diags.Extend(s.readDirectory(out))
	diags.Extend(s.readCapacity(out))
	diags.Extend(s.readMoney(out))
	diags.Extend(s.readEnergy(out))
	for i := range s.Actions {
		diags.Extend(s.Actions[i].validateSchedule())
	}
	return out, diags
}

// reader makes of blocks what the parts of the daemon take, and notes what is wrong.
type reader struct {
	diags  hcl.Diagnostics
	places map[string]hcl.Range // by what people read
	site   *time.Location       // where no zone is written; nil is UTC
	energy hcl.Range            // of the block energy
}

// siteZone is the time zone of the site; UTC where it is none, which is said elsewhere.
func (s *Settings) siteZone() *time.Location {
	zone, err := calendar.Zone(s.Zone.Value)
	if err != nil {
		return time.UTC
	}
	return zone
}

// addPlace returns a place as people read it, by which [reader.places] has it.
func (r *reader) addPlace(where hcl.Range) string {
	text := hcl.FileLine(where)
	r.places[text] = where
	return text
}

// addProblem adds what is wrong with an attribute.
func (r *reader) addProblem(name string, v hcl.String, err error) {
	if err != nil {
		r.diags.Add(hcl.Errorf(v.Range, fmt.Sprintf("invalid value for %q", name), "%v", err))
	}
}

// readZone reads a time zone; without one it is that of the site.
func (r *reader) readZone(v hcl.String) *time.Location {
	if v.Value == "" && r.site != nil {
		return r.site
	}
	zone, err := calendar.Zone(v.Value)
	if err != nil {
		r.addProblem("zone", v, err)
		return time.UTC
	}
	return zone
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

// rows are those of a table, whose texts JSON keeps as they are.
type rows [][]string

// UnmarshalJSON implements json.Unmarshaler.
func (r *rows) UnmarshalJSON(text []byte) error { return json.Unmarshal(text, (*[][]string)(r)) }
