package config

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
)

// Config is a whole aggregator.hcl.
type Config struct {
	// Aggregator is this node.
	Aggregator Aggregator `hcl:"aggregator,block"`
	// Agents are pulled from.
	Agents []Agent `hcl:"agent,block"`
	// Access is what clients may do.
	Access Access `hcl:"access,block,optional"`

	// Directory and what follows say to whom usage belongs.
	Directory     Directory      `hcl:"directory,block,optional"`
	People        []Person       `hcl:"person,block"`
	Projects      []Project      `hcl:"project,block"`
	HostClasses   []HostClass    `hcl:"host_class,block"`
	ServiceUnits  *ServiceUnits  `hcl:"service_units,block"`
	Contributions []Contribution `hcl:"contribution,block"`
	// Clusters are what records are of, with what they have.
	Clusters []Cluster `hcl:"cluster,block"`
	// ClusterGroups are names for several clusters.
	ClusterGroups []ClusterGroup `hcl:"cluster_group,block"`

	// Components say what the amounts are that clients push.
	Components []Component `hcl:"component,block"`

	// Prices are what usage costs, and Budgets what may be used; the whole cluster has
	// them.
	Prices  []Price  `hcl:"price,block,repeat"`
	Budgets []Budget `hcl:"budget,block"`

	// Actions are what is done with the totals; the whole cluster has them. Plugins
	// says where theirs are on this node.
	Actions []Action     `hcl:"action,block"`
	Plugins []hcl.Plugin `hcl:"plugin,block"`
}

// Aggregator is the block aggregator { … }.
type Aggregator struct {
	// Name is the node's name; its certificate carries it.
	Name hcl.String `hcl:"name"`
	// DataDir holds the state; the daemon makes it.
	DataDir hcl.Path `hcl:"data_dir"`
	// MinFree is how much space stays free on DataDir's file system: with less,
	// writes wait and reads go on. Zero is the smaller of 4 GiB and a twentieth
	// of the file system.
	MinFree hcl.Size `hcl:"min_free,optional"`
	// ClockTolerance is how far this node's clock may be from those of the other
	// nodes: further, and it neither leads nor writes. Zero is 5 s.
	ClockTolerance hcl.Duration `hcl:"clock_tolerance,optional"`
	// Ballast bounds the file that keeps room on DataDir's file system for the
	// moment at which there is none; zero is no file.
	Ballast hcl.Size `hcl:"ballast,optional"`
	// Raft says who the cluster is; nil is a cluster of this node alone.
	Raft *Raft `hcl:"raft,block"`
	// Backup says where this node puts archives of the state; nil is nowhere.
	Backup *Backup `hcl:"backup,block"`
	// API is the REST interface.
	API API `hcl:"api,block,optional"`
	// TLS are this node's certificates; nil is none.
	TLS *hcl.TLS `hcl:"tls,block"`
	// Metrics are the counts of records on /metrics.
	Metrics Metrics `hcl:"metrics,block,optional"`
	// Usage says of what sums are kept; the whole cluster has them.
	Usage Usage `hcl:"usage,block,optional"`
	// WaitingStops says what becomes of stops whose records do not come; the whole
	// cluster has it. Nil keeps them for ever.
	WaitingStops *WaitingStops `hcl:"waiting_stops,block"`
	// Compaction says when what was deleted or superseded leaves this node's disk.
	Compaction Compaction `hcl:"compaction,block,optional"`
	// Log is where the level and the format of the log are set.
	Log hcl.Log `hcl:"log,block,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Compaction is the block compaction { … }: when what was deleted or superseded leaves
// the disk. The times of the leader count, but for Files.
type Compaction struct {
	// Every is how often blocks that are mostly superseded are rewritten; zero is 1 m.
	Every hcl.Duration `hcl:"every,optional"`
	// Whole is how often all superseded records are dropped, and values are forgotten
	// that no record has; zero is 1 h.
	Whole hcl.Duration `hcl:"whole,optional"`
	// Files is how often this node rewrites its database when something was dropped, so
	// that it is in no file; zero is 1 d.
	Files hcl.Duration `hcl:"files,optional"`
}

// leastCompaction is the least of these times.
const leastCompaction = time.Second

func (c *Compaction) validate() (diags hcl.Diagnostics) {
	for _, d := range []struct {
		name string
		hcl.Duration
	}{{"every", c.Every}, {"whole", c.Whole}, {"files", c.Files}} {
		if d.Range != (hcl.Range{}) && d.Duration.Duration < leastCompaction {
			diags.Add(hcl.Errorf(d.Range, fmt.Sprintf("invalid value for %q", d.name), "%s is less than %s, and the node would do little else", d.Duration.Duration, leastCompaction))
		}
	}
	return diags
}

// API is the block api { … }: the REST interface and the pages.
type API struct {
	// Socket is the unix socket over which root and the group bursar administer this
	// node; empty is api.sock in systemd's RuntimeDirectory, or else in the data_dir.
	Socket hcl.Path `hcl:"socket,optional"`
	// Listen are the addresses without TLS. Who reaches them has the roles of
	// access.plain_role; without one they say whether the node is healthy, and no more.
	Listen []hcl.Address `hcl:"listen,optional"`
	// Hosts are names and addresses by which clients without TLS ask this node, beside
	// those of Listen, localhost, and the address that a connection came to. A request
	// for another host is refused.
	Hosts []hcl.String `hcl:"hosts,optional"`
	// TLSListen are the addresses with mutual TLS.
	TLSListen []hcl.Address `hcl:"tls_listen,optional"`
	// AllowPlainRemote lets Listen have addresses that other machines reach.
	AllowPlainRemote bool `hcl:"allow_plain_remote,optional"`
	// IgnoreRecordExists answers a POST of records that are there with 200 and a
	// warning, like AUDITOR's ignore_record_exists_error.
	IgnoreRecordExists bool `hcl:"ignore_record_exists_error,optional"`
	// MaxBody bounds the body of a request, decompressed.
	MaxBody hcl.Size `hcl:"max_body,optional"`
	// AnswerMemory is what answers may take in memory together; zero is an eighth of
	// what the process may take, from 64 MiB to 1 GiB.
	AnswerMemory hcl.Size `hcl:"answer_memory,optional"`
	// Patience is how long a write waits for the cluster before its connection
	// is broken off.
	Patience hcl.Duration `hcl:"patience,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Metrics is the block metrics { … }: AUDITOR's counts of records. An empty key
// leaves its gauge out.
type Metrics struct {
	// Frequency is how often records are counted.
	Frequency hcl.Duration `hcl:"frequency,optional"`
	// SiteKey, GroupKey and UserKey are the meta keys by whose values records
	// are counted.
	SiteKey  hcl.String `hcl:"site_meta_key,optional"`
	GroupKey hcl.String `hcl:"group_meta_key,optional"`
	UserKey  hcl.String `hcl:"user_meta_key,optional"`
}

// Agent is a block agent "name" { … }: an agent to pull from.
type Agent struct {
	// Name is what the agent's certificate says.
	Name hcl.String `hcl:"name,label"`
	// Address is where the agent listens.
	Address hcl.Address `hcl:"address"`
}

// Default is the configuration in which nothing was written: loopback only, no
// agents. Name and DataDir are empty, they have to be written.
func Default() Config {
	return Config{Aggregator: Aggregator{
		Ballast: hcl.Size{Bytes: 256 << 20},
		API: API{
			Listen:   []hcl.Address{{Host: "127.0.0.1", Port: 8000}},
			MaxBody:  hcl.Size{Bytes: 64 << 20},
			Patience: hcl.Duration{Duration: 25 * time.Second},
		},
		Metrics: Metrics{Frequency: hcl.Duration{Duration: 30 * time.Second}},
	}}
}

// SocketPath is where the unix socket is. Runtime is systemd's RuntimeDirectory; "" is
// none.
func (a *Aggregator) SocketPath(runtime string) string {
	switch {
	case a.API.Socket.Path != "":
		return a.API.Socket.Path
	case runtime != "":
		return filepath.Join(runtime, socketName)
	}
	return filepath.Join(a.DataDir.Path, socketName)
}

const socketName = "api.sock"

// Load reads the configuration from files and directories. The diagnostics hold
// every problem of the text; whether this machine has what it names is asked by
// [Config.Check]. After errors the configuration holds what could be read.
func Load(paths ...string) (*Config, *hcl.File, hcl.Diagnostics) {
	file, diags := hcl.Load(paths...)
	return decode(file, file.Context(), diags, false)
}

// LoadOffline is Load without a look at this machine: env() and file() give
// stand-ins, so that a configuration can be checked where it is written.
func LoadOffline(paths ...string) (*Config, *hcl.File, hcl.Diagnostics) {
	file, diags := hcl.Load(paths...)
	return decode(file, &hcl.EvalContext{Functions: hcl.OfflineFunctions()}, diags, true)
}

func decode(file *hcl.File, ctx *hcl.EvalContext, diags hcl.Diagnostics, offline bool) (*Config, *hcl.File, hcl.Diagnostics) {
	cfg := Default()
	diags.Extend(hcl.Decode(file, &cfg, ctx))
	if file.Broken {
		return &cfg, file, diags
	}
	diags.Extend(cfg.Directory.load(offline))
	diags.Extend(cfg.evaluateActions(ctx, file.Sources))
	diags.Extend(cfg.validate())
	return &cfg, file, diags
}
