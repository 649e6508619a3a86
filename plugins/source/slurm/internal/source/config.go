package source

import (
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/facts"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/setting"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
)

// settings are those of the config block.
type settings struct {
	setting.Sacct
	filter

	Running      bool          `hcl:"running,optional" default:"true" doc:"send running jobs as open records"`
	Window       time.Duration `hcl:"window,optional" default:"1d" min:"1m" max:"366d" doc:"how much time one call of sacct covers in a back-fill; it grows while there are few jobs and shrinks when there are many, when sacct hangs, and when slurmdbd's MaxQueryTimeRange asks for it"`
	Overlap      time.Duration `hcl:"overlap,optional" default:"1h" max:"366d" doc:"how far every look goes back behind the last one, for runs that slurmdbd got late"`
	DeepOverlap  time.Duration `hcl:"deep_overlap,optional" default:"2d" max:"366d" doc:"the same, now and then and after a start of the agent"`
	DeepInterval time.Duration `hcl:"deep_interval,optional" default:"6h" min:"1m" max:"366d" doc:"how often to go back by deep_overlap"`
	Lag          time.Duration `hcl:"lag,optional" default:"2m" max:"24h" doc:"how long slurmctld may take to tell slurmdbd; the source says that it is complete up to so long ago"`

	Capacity          bool          `hcl:"capacity,optional" default:"true" doc:"tell what the cluster has, and learn how many shards a card has, by scontrol"`
	CapacityInterval  time.Duration `hcl:"capacity_interval,optional" default:"10m" max:"24h" doc:"how often to look"`
	Census            bool          `hcl:"census,optional" default:"true" doc:"tell how many jobs of whom run and wait, by squeue"`
	CensusInterval    time.Duration `hcl:"census_interval,optional" default:"1m" max:"24h" doc:"how often to look; a look belongs to a collection, so the source's interval bounds it too"`
	Directory         bool          `hcl:"directory,optional" default:"true" doc:"tell which users may charge which accounts, by sacctmgr"`
	DirectoryInterval time.Duration `hcl:"directory_interval,optional" default:"1h" max:"24h" doc:"how often to look"`
	Names             bool          `hcl:"names,optional" default:"true" doc:"put the names of users into the directory, by getent passwd"`

	Scontrol hcl.Absolute `hcl:"scontrol,optional" unset:"beside sacct" doc:"path of scontrol"`
	Squeue   hcl.Absolute `hcl:"squeue,optional" unset:"beside sacct" doc:"path of squeue"`
	Sacctmgr hcl.Absolute `hcl:"sacctmgr,optional" unset:"beside sacct" doc:"path of sacctmgr"`
	Getent   hcl.Absolute `hcl:"getent,optional" default:"/usr/bin/getent" doc:"path of getent"`
}

// config is the evaluated config block.
type config struct {
	settings

	forgetMissing time.Duration
	facts         map[string]time.Duration // that are told, with how often at most
}

// readConfig reads all keys; what is wrong with them is in cfg.Err.
func readConfig(cfg *sdk.Config) config {
	c := config{forgetMissing: 24 * time.Hour, facts: map[string]time.Duration{}}
	_ = cfg.Decode(&c.settings) // it is in what Err returns
	c.Sacct.Check(cfg)
	c.filter.Check(cfg)
	for name, path := range map[string]*hcl.Absolute{"scontrol": &c.Scontrol, "squeue": &c.Squeue, "sacctmgr": &c.Sacctmgr} {
		if *path == "" {
			*path = hcl.Absolute(filepath.Join(filepath.Dir(string(c.Path)), name))
		}
	}
	if c.Capacity {
		c.facts[facts.Capacity] = c.CapacityInterval
	}
	if c.Census {
		c.facts[facts.Census] = c.CensusInterval
	}
	if c.Directory {
		c.facts[facts.Directory] = c.DirectoryInterval
	}
	return c
}

// maxFactTimeout keeps a slurmctld that hangs from holding up the next look at the
// jobs for long.
const maxFactTimeout = time.Minute

func (c *config) newClient() *cluster.Client {
	return &cluster.Client{Scontrol: string(c.Scontrol), Squeue: string(c.Squeue), Sacctmgr: string(c.Sacctmgr), Getent: string(c.Getent),
		SlurmConf: string(c.Conf), Clusters: c.Clusters, Timeout: min(c.Timeout, maxFactTimeout), Ignore: c.Ignore}
}

// filter says which runs are wanted, and which nodes, queued jobs and accounts.
type filter struct{ setting.Filter }
