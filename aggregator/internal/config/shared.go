package config

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Shared is what of a configuration the whole cluster has in common: the daemon
// takes it from the log, never from its own files.
type Shared struct {
	// Agents are pulled from, by name.
	Agents []SharedAgent
	// SiteKey, GroupKey and UserKey are those of the block metrics.
	SiteKey, GroupKey, UserKey string
	// Dimensions are the meta keys of which sums of usage are kept, and Zones the time
	// zones of whose days.
	Dimensions, Zones []string
	// Directory says to whom usage belongs.
	Directory accounting.DirectorySettings
	// Capacity is what clusters have.
	Capacity accounting.CapacityPlan

	clusterOrder []int // of the files, of each cluster
	// Money are prices and budgets.
	Money accounting.PriceSettings
	// Kinds are those of components that clients push, where it is written.
	Kinds record.Kinds
	// StopsExpire is after how long stops are dismissed whose records have not come;
	// zero is never.
	StopsExpire time.Duration
	// Actions are what is done with the totals.
	Actions []SharedAction
}

// SharedAgent is an agent to pull from.
type SharedAgent struct{ Name, Address string }

// A part is a kind of block that the cluster shares: how files give it, and how
// it is read from the log.
type part struct {
	from func(*Config) []clusterconfig.Block
	read func(*Shared, *clusterconfig.Block) error
}

// parts are all of them, by the type of the block.
func parts() map[string]part {
	list := map[string]part{
		"agent":   {agentBlocks, readAgent},
		"metrics": {metricsBlocks, readMetrics},
		"usage":   {usageBlocks, readUsage},

		"cluster":       {clusterBlocks, readCluster},
		"cluster_group": {clusterGroupBlocks, readClusterGroup},
		"component":     {componentBlocks, readComponent},
		"waiting_stops": {waitingBlocks, readWaiting},
		"price":         {priceBlocks, readPrice},
		"budget":        {budgetBlocks, readBudget},
		"action":        {actionBlocks, readAction},
	}
	maps.Copy(list, directoryParts())
	return list
}

// Shared returns the part of the configuration that the cluster shares. Of a
// configuration with errors it is what could be read.
func (c *Config) Shared() *clusterconfig.Document {
	var blocks []clusterconfig.Block
	for _, p := range parts() {
		blocks = append(blocks, p.from(c)...)
	}
	return clusterconfig.New(blocks...)
}

// ReadShared reads what the cluster shares. An error says that this program
// cannot do what is written there, with the block.
func ReadShared(d *clusterconfig.Document) (*Shared, error) {
	known, s := parts(), &Shared{Dimensions: defaultDimensions(), Zones: defaultZones()}
	for i := range d.Blocks {
		b := &d.Blocks[i]
		p, ok := known[b.Type]
		if !ok {
			return nil, fmt.Errorf("this program does not know the block %s", b.Name())
		}
		if err := p.read(s, b); err != nil {
			return nil, fmt.Errorf("%s: %w", b.Name(), err)
		}
	}
	if wrong := s.checkDirectory(); wrong != nil {
		return nil, fmt.Errorf("the directory: %w", wrong)
	}
	if cycle := accounting.GroupCycle(s.Capacity.Groups); cycle != nil {
		return nil, fmt.Errorf("the groups of clusters %s include one another", strings.Join(cycle, ", "))
	}
	s.Money.GroupKey = s.Directory.GroupKey
	if _, _, err := accounting.NewPricesAndBudgets(s.Money); err != nil {
		return nil, err
	}
	return s, nil
}

// only refuses what a block holds beyond the named values.
func only(b *clusterconfig.Block, labels int, names ...string) error {
	if len(b.Labels) != labels || len(b.Blocks) > 0 {
		return fmt.Errorf("want %d labels and no blocks", labels)
	}
	for name := range b.Values {
		found := false
		for _, n := range names {
			found = found || n == name
		}
		if !found {
			return fmt.Errorf("this program does not know %q here", name)
		}
	}
	return nil
}

func agentBlocks(c *Config) (list []clusterconfig.Block) {
	for i := range c.Agents {
		a := &c.Agents[i]
		b := clusterconfig.Block{Type: "agent", Labels: []string{a.Name.Value}, At: place(a.Name.Range)}
		b.Set("address", a.Address.String(), place(a.Address.Range))
		list = append(list, b)
	}
	return list
}

func readAgent(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 1, "address"); err != nil {
		return err
	}
	if err := identity.CheckName(b.Labels[0]); err != nil {
		return err
	}
	address, err := b.Text("address")
	if err != nil {
		return err
	}
	host, port, err := hcl.ParseAddress(address)
	if err != nil || host == "" || port == 0 {
		return fmt.Errorf("%q cannot be connected to; expected host:port", address)
	}
	s.Agents = append(s.Agents, SharedAgent{Name: b.Labels[0], Address: address})
	return nil
}

// metricsBlocks gives the keys; how often a node counts is its own affair.
func metricsBlocks(c *Config) []clusterconfig.Block {
	m := &c.Aggregator.Metrics
	b := clusterconfig.Block{Type: "metrics", At: place(c.Aggregator.Range)}
	for name, key := range map[string]hcl.String{"site_meta_key": m.SiteKey, "group_meta_key": m.GroupKey, "user_meta_key": m.UserKey} {
		if key.Value != "" {
			b.Set(name, key.Value, place(key.Range))
		}
	}
	if len(b.Values) == 0 {
		return nil
	}
	return []clusterconfig.Block{b}
}

func readMetrics(s *Shared, b *clusterconfig.Block) error {
	if err := only(b, 0, "site_meta_key", "group_meta_key", "user_meta_key"); err != nil {
		return err
	}
	for name, to := range map[string]*string{"site_meta_key": &s.SiteKey, "group_meta_key": &s.GroupKey, "user_meta_key": &s.UserKey} {
		text, err := b.Text(name)
		if err != nil {
			return err
		}
		if wrong := record.ValidateName(text); text != "" && wrong != "" {
			return fmt.Errorf("%s: %s", name, wrong)
		}
		*to = text
	}
	return nil
}

func place(r hcl.Range) string {
	if r.Filename == "" {
		return ""
	}
	return r.Filename + ":" + strconv.Itoa(r.Start.Line)
}
