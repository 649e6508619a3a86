package source

import (
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// config is the evaluated config block.
type config struct {
	setting.Sacct

	filter  filter
	running bool

	earliest      time.Time // zero: all that there is
	window        time.Duration
	overlap       time.Duration
	deepOverlap   time.Duration
	deepInterval  time.Duration
	lag           time.Duration
	forgetMissing time.Duration

	tools  tools
	facts  map[string]time.Duration // that are told, with how often at most
	people bool                     // with names
}

// tools are the paths of the commands beside sacct.
type tools struct{ scontrol, squeue, sacctmgr, getent string }

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{
		Sacct:         setting.ReadSacct(cfg),
		running:       cfg.Bool("running", true),
		earliest:      setting.ReadEarliest(cfg),
		filter:        filter{setting.ReadFilter(cfg)},
		forgetMissing: 24 * time.Hour,
	}
	c.window = setting.Duration(cfg, "window", 24*time.Hour, time.Minute, 366*24*time.Hour)
	c.overlap = setting.Duration(cfg, "overlap", time.Hour, 0, 366*24*time.Hour)
	c.deepOverlap = setting.Duration(cfg, "deep_overlap", 48*time.Hour, 0, 366*24*time.Hour)
	c.deepInterval = setting.Duration(cfg, "deep_interval", 6*time.Hour, time.Minute, 366*24*time.Hour)
	c.lag = setting.Duration(cfg, "lag", 2*time.Minute, 0, 24*time.Hour)
	c.readFacts(cfg)
	return c
}

// readFacts reads what is told beside jobs.
func (c *config) readFacts(cfg *sdk.Config) {
	dir := filepath.Dir(c.Path)
	c.tools = tools{
		scontrol: cfg.String("scontrol", filepath.Join(dir, "scontrol")),
		squeue:   cfg.String("squeue", filepath.Join(dir, "squeue")),
		sacctmgr: cfg.String("sacctmgr", filepath.Join(dir, "sacctmgr")),
		getent:   cfg.String("getent", "/usr/bin/getent"),
	}
	for name, path := range map[string]string{"scontrol": c.tools.scontrol, "squeue": c.tools.squeue, "sacctmgr": c.tools.sacctmgr, "getent": c.tools.getent} {
		if cfg.Has(name) {
			setting.Absolute(cfg, name, path)
		}
	}
	wanted := map[string]bool{capacity: cfg.Bool("capacity", true), census: cfg.Bool("census", true), directory: cfg.Bool("directory", true)}
	every := map[string]time.Duration{
		capacity:  setting.Duration(cfg, "capacity_interval", 10*time.Minute, 0, 24*time.Hour),
		census:    setting.Duration(cfg, "census_interval", time.Minute, 0, 24*time.Hour),
		directory: setting.Duration(cfg, "directory_interval", time.Hour, 0, 24*time.Hour),
	}
	c.facts = map[string]time.Duration{}
	for name, on := range wanted {
		if on {
			c.facts[name] = every[name]
		}
	}
	c.people = cfg.Bool("names", true)
}

// maxFactTimeout keeps a slurmctld that hangs from holding up the next look at the
// jobs for long.
const maxFactTimeout = time.Minute

func (c *config) cluster() *cluster.Client {
	return &cluster.Client{Scontrol: c.tools.scontrol, Squeue: c.tools.squeue, Sacctmgr: c.tools.sacctmgr, Getent: c.tools.getent,
		SlurmConf: c.Conf, Clusters: c.Clusters, Timeout: min(c.Timeout, maxFactTimeout), Ignore: c.Ignore}
}

// filter says which runs are wanted, and which nodes, queued jobs and accounts.
type filter struct{ setting.Filter }
