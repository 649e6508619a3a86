package setting

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/slurm/sacct"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// Sacct is how sacct is called.
type Sacct struct {
	Path     string
	Conf     string // slurm.conf; "": as sacct finds it
	Clusters []string
	Ignore   []string
	Timeout  time.Duration
}

// ReadSacct reads sacct, slurm_conf, clusters, timeout and ignore_stderr.
func ReadSacct(cfg *sdk.Config) Sacct {
	s := Sacct{
		Path:     cfg.String("sacct", "/usr/bin/sacct"),
		Conf:     cfg.String("slurm_conf", ""),
		Clusters: Names(cfg, "clusters"),
		Ignore:   cfg.Strings("ignore_stderr", nil),
		Timeout:  Duration(cfg, "timeout", 5*time.Minute, time.Second, 24*time.Hour),
	}
	Absolute(cfg, "sacct", s.Path)
	if s.Conf != "" {
		Absolute(cfg, "slurm_conf", s.Conf)
	}
	if slices.Contains(s.Ignore, "") {
		cfg.Errorf("ignore_stderr", "an empty text would hide every error")
	}
	return s
}

// Client returns what asks this sacct.
func (s *Sacct) Client() *sacct.Client {
	return &sacct.Client{Path: s.Path, SlurmConf: s.Conf, Clusters: s.Clusters, Timeout: s.Timeout, Ignore: s.Ignore}
}

// SeveralClusters reports whether ids need the cluster's name.
func (s *Sacct) SeveralClusters() bool {
	return len(s.Clusters) > 1 || (len(s.Clusters) == 1 && strings.EqualFold(s.Clusters[0], "all"))
}

// ReadEarliest reads earliest; zero: all that there is.
func ReadEarliest(cfg *sdk.Config) time.Time {
	t := cfg.Time("earliest", time.Time{})
	if !t.IsZero() && t.Unix() < 0 {
		cfg.Errorf("earliest", "Slurm has no jobs before 1970")
	}
	return t
}

// Absolute reports a path that is not absolute.
func Absolute(cfg *sdk.Config, name, path string) {
	if !filepath.IsAbs(path) {
		cfg.Errorf(name, "%q is no absolute path", path)
	}
}

// Duration reads a duration from least to most.
func Duration(cfg *sdk.Config, name string, def, least, most time.Duration) time.Duration {
	d := cfg.Duration(name, def)
	if d < least || d > most {
		cfg.Errorf(name, "%s is out of range; allowed is %s to %s", d, least, most)
	}
	return d
}

// Names reads a list of names of Slurm's; they go to sacct in a list with commas.
func Names(cfg *sdk.Config, key string) []string {
	list := cfg.Strings(key, nil)
	for i, s := range list {
		if s == "" || strings.ContainsAny(s, ", \t\n") {
			cfg.ElementErrorf(key, i, "%q is no name", s)
		}
	}
	return list
}
