package setting

import (
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Sacct is how sacct is called, and from when on jobs are wanted.
type Sacct struct {
	Path     hcl.Absolute  `hcl:"sacct,optional" default:"/usr/bin/sacct" doc:"path of sacct, or of a program that behaves as it does"`
	Conf     hcl.Absolute  `hcl:"slurm_conf,optional" unset:"as sacct finds it" doc:"path of slurm.conf; SLURM_CONF in the environment of the plugin does the same"`
	Clusters hcl.Strings   `hcl:"clusters,optional" unset:"slurm.conf's cluster" doc:"clusters of slurmdbd (-M), or all; with more than one the cluster becomes part of the ids"`
	Ignore   hcl.Strings   `hcl:"ignore_stderr,optional" unset:"none" doc:"ignore lines on standard error of sacct and the other commands that contain one of these texts"`
	Timeout  time.Duration `hcl:"timeout,optional" default:"5m" min:"1s" max:"24h" doc:"how long sacct may give no output before it is killed"`
	Earliest hcl.Time      `hcl:"earliest,optional" unset:"all that there is" doc:"only runs that end at this time or later, for example \"2024-01-01T00:00:00Z\""`
}

// Check reports what the types do not say.
func (s *Sacct) Check(cfg *sdk.Config) {
	checkNames(cfg, "clusters", s.Clusters)
	if slices.Contains(s.Ignore, "") {
		cfg.Errorf("ignore_stderr", "an empty text would hide every error")
	}
	if !s.Earliest.IsZero() && s.Earliest.Unix() < 0 {
		cfg.Errorf("earliest", "Slurm has no jobs before 1970")
	}
}

// Client returns what asks this sacct.
func (s *Sacct) Client() *sacct.Client {
	return &sacct.Client{Path: string(s.Path), SlurmConf: string(s.Conf), Clusters: s.Clusters, Timeout: s.Timeout, Ignore: s.Ignore}
}

// SeveralClusters reports whether ids need the cluster's name.
func (s *Sacct) SeveralClusters() bool {
	return len(s.Clusters) > 1 || (len(s.Clusters) == 1 && strings.EqualFold(s.Clusters[0], "all"))
}

// checkNames reports names that sacct cannot have in a list with commas.
func checkNames(cfg *sdk.Config, key string, list []string) {
	for i, s := range list {
		if s == "" || strings.ContainsAny(s, ", \t\n") {
			cfg.ElementErrorf(key, i, "%q is not a name", s)
		}
	}
}
