package config

import (
	"path/filepath"

	"github.com/bursar-accounting/bursar/hcl"
)

// Config is a whole aggregator.hcl.
type Config struct {
	// Aggregator is this node.
	Aggregator Aggregator `hcl:"aggregator,block"`
	Common
	// Access is what clients may do.
	Access Access `hcl:"access,block,optional"`
	// Directory says which meta keys name users, groups and hosts, and who belongs where.
	Directory Directory `hcl:"directory,block,optional"`

	// Health says what is known when this node judges the cluster.
	Health Health `hcl:"health,block,optional"`

	// Energy says how energy and CO2 follow from records; nil is not at all.
	Energy *Energy `hcl:"energy,block"`

	// Actions are what is done with the totals; the whole cluster has them. Plugins
	// says where theirs are on this node.
	Actions []Action     `hcl:"action,block"`
	Plugins []hcl.Plugin `hcl:"plugin,block"`
}

// Aggregator is the block aggregator { … }.
type Aggregator struct {
	// Name is the node's name; its certificate carries it.
	Name hcl.String `hcl:"name" match:"[A-Za-z0-9._-]{1,128}" want:"letters, digits, '.', '-' and '_', at most 128"`
	// DataDir holds the state; the daemon makes it.
	DataDir hcl.Path `hcl:"data_dir"`
	// MinFree is how much space stays free on DataDir's file system: with less,
	// writes wait and reads go on. Zero is the smaller of 4 GiB and a twentieth
	// of the file system. A node neither leads nor pulls below a tenth, and warns below
	// 15 %; at the latest below twice and three times as much as this, where it is set.
	MinFree hcl.Size `hcl:"min_free,optional"`
	// ClockTolerance is how far this node's clock may be from those of the other
	// nodes: further, and it neither leads nor writes. Zero is 5 s.
	ClockTolerance hcl.Duration `hcl:"clock_tolerance,optional" min:"100ms"`
	// Ballast bounds the file that keeps room on DataDir's file system for the
	// moment at which there is none; zero is no file.
	Ballast hcl.Size `hcl:"ballast,optional" default:"256MiB"`
	// UsageMemory is how much memory this node's sums by day may take, those of all zones
	// together. Beyond it the oldest days are only on DataDir's file system, and questions
	// about them read it; zero is 512 MiB.
	UsageMemory hcl.Size `hcl:"usage_memory,optional" min:"16MiB"`
	// Raft says who the cluster is; nil is a cluster of this node alone.
	Raft *Raft `hcl:"raft,block"`
	// Backup says where this node puts archives of the state; nil is nowhere.
	Backup *Backup `hcl:"backup,block"`
	// API is the REST interface.
	API API `hcl:"api,block,optional"`
	// TLS are this node's certificates; nil is none.
	TLS *hcl.TLS `hcl:"tls,block"`
	// Authority is the folder with ca.pem and ca.key of the cluster's authority, by which
	// this node lets machines join; empty: it lets none join.
	Authority hcl.Path `hcl:"authority,optional"`
	// Metrics are the counts of records on /metrics.
	Metrics Metrics `hcl:"metrics,block,optional"`
	// Usage says of what sums are kept; the whole cluster has them.
	Usage Usage `hcl:"usage,block,optional"`
	// WaitingStops says what becomes of stops whose records do not come; the whole
	// cluster has it. Nil keeps them for ever.
	WaitingStops *WaitingStops `hcl:"waiting_stops,block"`
	// Retention says how long records keep the names of persons; the whole cluster has it.
	// Nil keeps them for ever.
	Retention *Retention `hcl:"retention,block"`
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
	Every hcl.Duration `hcl:"every,optional" min:"1s"`
	// Keep is how long superseded records stay for those who follow the changes; zero is 36 h.
	Keep hcl.Duration `hcl:"keep,optional" min:"1s"`
	// Whole is how often all superseded records are dropped that Keep does not hold, and
	// values are forgotten that no record has; zero is 1 h.
	Whole hcl.Duration `hcl:"whole,optional" min:"1s"`
	// Files is how often this node rewrites its database when something was dropped, so
	// that it is in no file; zero is 1 d.
	Files hcl.Duration `hcl:"files,optional" min:"1s"`
}

// API is the block api { … }: the REST interface and the pages.
type API struct {
	// Socket is the unix socket over which root and the group bursar administer this
	// node; empty is api.sock in systemd's RuntimeDirectory, or else in the data_dir.
	Socket hcl.Path `hcl:"socket,optional"`
	// Listen are the addresses without TLS. Who reaches them has the roles of
	// access.plain_role; without one they say whether the node is healthy, and no more.
	Listen []hcl.Address `hcl:"listen,optional" default:"[\"127.0.0.1:8000\"]"`
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
	MaxBody hcl.Size `hcl:"max_body,optional" default:"64MiB" min:"1KiB" max:"1GiB"`
	// AnswerMemory is what answers may take in memory together; zero is an eighth of
	// what the process may take, from 64 MiB to 1 GiB.
	AnswerMemory hcl.Size `hcl:"answer_memory,optional" min:"64MiB"`
	// Patience is how long a write waits for the cluster before its connection
	// is broken off.
	Patience hcl.Duration `hcl:"patience,optional" default:"25s" min:"1ms"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
}

// Metrics is the block metrics { … }: AUDITOR's counts of records. An empty key
// leaves its gauge out.
type Metrics struct {
	// Frequency is how often records are counted.
	Frequency hcl.Duration `hcl:"frequency,optional" default:"30s" min:"1s"`
	MetricKeys
}

// MetricKeys are the meta keys by whose values records are counted.
type MetricKeys struct {
	SiteKey  hcl.String `hcl:"site_meta_key,optional"`
	GroupKey hcl.String `hcl:"group_meta_key,optional"`
	UserKey  hcl.String `hcl:"user_meta_key,optional"`
	Range    hcl.Range  `hcl:",def_range"`
}

// Agent is a block agent "name" { … }: an agent to pull from.
type Agent struct {
	// Name is what the agent's certificate says.
	Name hcl.String `hcl:"name,label" match:"[A-Za-z0-9._-]{1,128}" want:"letters, digits, '.', '-' and '_', at most 128"`
	// Address is where the agent listens.
	Address hcl.Address `hcl:"address,optional"`
	// AddressAt is where that is written.
	AddressAt hcl.Range `hcl:"address,attr_range"`
	// DialsIn says that the agent has no address, because no one reaches it: it dials in at
	// the TLS listeners of all nodes.
	DialsIn bool `hcl:"dials_in,optional"`
	// Range is the header of the block.
	Range hcl.Range `hcl:",def_range"`
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
	return decodeConfig(file, file.Context(), diags, false)
}

// LoadOffline is Load without a look at this machine: env() and file() give
// stand-ins, so that a configuration can be checked where it is written.
func LoadOffline(paths ...string) (*Config, *hcl.File, hcl.Diagnostics) {
	file, diags := hcl.Load(paths...)
	return decodeConfig(file, &hcl.EvalContext{Functions: hcl.OfflineFunctions()}, diags, true)
}

func decodeConfig(file *hcl.File, ctx *hcl.EvalContext, diags hcl.Diagnostics, offline bool) (*Config, *hcl.File, hcl.Diagnostics) {
	var cfg Config
	diags.Extend(hcl.Decode(file, &cfg, ctx))
	if file.Broken {
		return &cfg, file, diags
	}
	diags.Extend(cfg.Directory.loadFiles(offline))
	diags.Extend(cfg.Energy.loadFiles(offline))
	diags.Extend(cfg.evaluateActions(ctx, file.Sources))
	diags.Extend(cfg.validate())
	if s := cfg.Shared(); (len(cfg.Directory.tables) > 0 || cfg.Energy != nil) && !diags.HasErrors() {
		if err := s.Fits(); err != nil {
			diags.Add(hcl.Errorf(cfg.Directory.Range, "too much for a cluster", "%v", err))
		}
	}
	return &cfg, file, diags
}
