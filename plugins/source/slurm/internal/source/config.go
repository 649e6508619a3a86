package source

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/cluster"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/field"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/job"
	"github.com/bursar-accounting/bursar/plugins/source/slurm/internal/sacct"
)

// config is the evaluated config block.
type config struct {
	sacct    string
	conf     string
	clusters []string
	ignore   []string
	timeout  time.Duration

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
		sacct:         cfg.String("sacct", "/usr/bin/sacct"),
		conf:          cfg.String("slurm_conf", ""),
		clusters:      names(cfg, "clusters"),
		ignore:        cfg.Strings("ignore_stderr", nil),
		running:       cfg.Bool("running", true),
		earliest:      cfg.Time("earliest", time.Time{}),
		filter:        readFilter(cfg),
		forgetMissing: 24 * time.Hour,
	}
	c.timeout = duration(cfg, "timeout", 5*time.Minute, time.Second, 24*time.Hour)
	c.window = duration(cfg, "window", 24*time.Hour, time.Minute, 366*24*time.Hour)
	c.overlap = duration(cfg, "overlap", time.Hour, 0, 366*24*time.Hour)
	c.deepOverlap = duration(cfg, "deep_overlap", 48*time.Hour, 0, 366*24*time.Hour)
	c.deepInterval = duration(cfg, "deep_interval", 6*time.Hour, time.Minute, 366*24*time.Hour)
	c.lag = duration(cfg, "lag", 2*time.Minute, 0, 24*time.Hour)
	absolute(cfg, "sacct", c.sacct)
	c.readFacts(cfg)
	if c.conf != "" {
		absolute(cfg, "slurm_conf", c.conf)
	}
	if slices.Contains(c.ignore, "") {
		cfg.Errorf("ignore_stderr", "an empty text would hide every error")
	}
	if !c.earliest.IsZero() && c.earliest.Unix() < 0 {
		cfg.Errorf("earliest", "Slurm has no jobs before 1970")
	}
	return c
}

// readFacts reads what is told beside jobs.
func (c *config) readFacts(cfg *sdk.Config) {
	dir := filepath.Dir(c.sacct)
	c.tools = tools{
		scontrol: cfg.String("scontrol", filepath.Join(dir, "scontrol")),
		squeue:   cfg.String("squeue", filepath.Join(dir, "squeue")),
		sacctmgr: cfg.String("sacctmgr", filepath.Join(dir, "sacctmgr")),
		getent:   cfg.String("getent", "/usr/bin/getent"),
	}
	for name, path := range map[string]string{"scontrol": c.tools.scontrol, "squeue": c.tools.squeue, "sacctmgr": c.tools.sacctmgr, "getent": c.tools.getent} {
		if cfg.Has(name) {
			absolute(cfg, name, path)
		}
	}
	wanted := map[string]bool{capacity: cfg.Bool("capacity", true), census: cfg.Bool("census", true), directory: cfg.Bool("directory", true)}
	every := map[string]time.Duration{
		capacity:  duration(cfg, "capacity_interval", 10*time.Minute, 0, 24*time.Hour),
		census:    duration(cfg, "census_interval", time.Minute, 0, 24*time.Hour),
		directory: duration(cfg, "directory_interval", time.Hour, 0, 24*time.Hour),
	}
	c.facts = map[string]time.Duration{}
	for name, on := range wanted {
		if on {
			c.facts[name] = every[name]
		}
	}
	c.people = cfg.Bool("names", true)
}

func absolute(cfg *sdk.Config, name, path string) {
	if !filepath.IsAbs(path) {
		cfg.Errorf(name, "%q is no absolute path", path)
	}
}

func duration(cfg *sdk.Config, name string, def, least, most time.Duration) time.Duration {
	d := cfg.Duration(name, def)
	if d < least || d > most {
		cfg.Errorf(name, "%s is out of range; allowed is %s to %s", d, least, most)
	}
	return d
}

// names reads a list of names of Slurm's; they go to sacct in a list with commas.
func names(cfg *sdk.Config, key string) []string {
	list := cfg.Strings(key, nil)
	for i, s := range list {
		if s == "" || strings.ContainsAny(s, ", \t\n") {
			cfg.ElementErrorf(key, i, "%q is no name", s)
		}
	}
	return list
}

func (c *config) client() *sacct.Client {
	return &sacct.Client{Path: c.sacct, SlurmConf: c.conf, Clusters: c.clusters, Timeout: c.timeout, Ignore: c.ignore}
}

// maxFactTimeout keeps a slurmctld that hangs from holding up the next look at the
// jobs for long.
const maxFactTimeout = time.Minute

func (c *config) cluster() *cluster.Client {
	return &cluster.Client{Scontrol: c.tools.scontrol, Squeue: c.tools.squeue, Sacctmgr: c.tools.sacctmgr, Getent: c.tools.getent,
		SlurmConf: c.conf, Clusters: c.clusters, Timeout: min(c.timeout, maxFactTimeout), Ignore: c.ignore}
}

// severalClusters reports whether ids need the cluster's name.
func (c *config) severalClusters() bool {
	return len(c.clusters) > 1 || (len(c.clusters) == 1 && strings.EqualFold(c.clusters[0], "all"))
}

// filter says which runs are wanted. An empty list wants all.
type filter struct {
	partitions, users, groups, accounts []string
	states                              []string // end states, long names
}

func readFilter(cfg *sdk.Config) filter {
	f := filter{
		partitions: names(cfg, "partitions"), users: names(cfg, "users"),
		groups: names(cfg, "groups"), accounts: names(cfg, "accounts"),
	}
	for i, s := range cfg.Strings("states", nil) {
		state, ok := field.EndState(s)
		if !ok {
			cfg.ElementErrorf("states", i, "%q is no state in which a job ends; known are %s (running jobs are kept with running = true)",
				s, strings.Join(field.EndStateNames(), ", "))
		}
		f.states = append(f.states, state)
	}
	return f
}

// wants applies the filter. The state counts only of a run that has ended.
func (f *filter) wants(r *job.Run) bool {
	return among(f.partitions, r.Text("Partition")) && among(f.users, r.Text("User"), r.Text("UID")) &&
		among(f.groups, r.Text("Group"), r.Text("GID")) && among(f.accounts, r.Text("Account")) &&
		(!r.Ended() || among(f.states, r.State.Word))
}

func among(list []string, values ...string) bool {
	return len(list) == 0 || slices.ContainsFunc(values, func(v string) bool { return v != "" && slices.Contains(list, v) })
}
