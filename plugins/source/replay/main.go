// Command bursar-source-replay reads jobs from a file of JSON lines that may
// grow and rotate, or plays the recorded cluster of bursar dev.
package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// version of the plugin.
const version = "1.0.0"

func main() { sdk.ServeSource(func() sdk.Source { return newSource(time.Now) }) }

// source is a file or the recorded cluster, by its configuration.
type source struct {
	now    func() time.Time
	player interface {
		collectJobs(ctx context.Context, from sdk.Start, out *sdk.Stream) error
		countJobs(ctx context.Context, w sdk.Window) (int64, error)
	}
}

// settings are those of the config block.
type settings struct {
	Path     hcl.Absolute  `hcl:"path,optional" unset:"required, unless recorded is set" doc:"the file"`
	Batch    int           `hcl:"batch,optional" default:"1000" min:"1" max:"10000" doc:"jobs that are handed on at once"`
	Recorded bool          `hcl:"recorded,optional" doc:"play the recorded cluster instead of reading a file; what follows is for it"`
	Seed     int64         `hcl:"seed,optional" default:"1" doc:"the same seed gives the same cluster"`
	History  time.Duration `hcl:"history,optional" default:"28d" min:"1h" doc:"how far the history goes back from the first start"`
	Jobs     int           `hcl:"jobs,optional" default:"20000" min:"0" max:"1000000" doc:"jobs of the history"`
	Missed   int           `hcl:"missed,optional" default:"0" min:"0" max:"1000" doc:"jobs of one day of the history that only a window brings, so that the completeness calendar has something to show"`
	Speed    float64       `hcl:"speed,optional" default:"1" min:"0.01" max:"100" doc:"how lively the present is; at 1 something happens every second. Set interval = \"1s\" on the source to see it"`
}

func newSource(now func() time.Time) *source { return &source{now: now} }

// Describe implements sdk.Source.
func (s *source) Describe() sdk.Description {
	return sdk.Description{
		Type: "replay", Version: version, Rank: sdk.RankScheduler, ReusesIDs: true, Interval: time.Minute,
		Attributes: jobAttributes(), Mapping: mapping, Settings: new(settings),
	}
}

// Configure implements sdk.Source.
func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	var c settings
	_ = cfg.Decode(&c) // it is in what Err returns
	if c.Recorded {
		s.player = s.configureCluster(cfg, &c)
	} else {
		s.player = s.configureFile(cfg, &c)
	}
	return cfg.Err()
}

func (s *source) configureFile(cfg *sdk.Config, c *settings) *tail {
	cfg.Require("path")
	for _, name := range []string{"seed", "jobs", "history", "missed", "speed"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "this belongs to the recorded cluster: set recorded = true")
		}
	}
	if _, err := os.Stat(string(c.Path)); c.Path != "" && errors.Is(err, fs.ErrNotExist) {
		cfg.Warnf("path", "file %s does not exist yet; collecting fails until it does", c.Path)
	}
	return &tail{path: string(c.Path), now: s.now, batch: c.Batch, fields: cfg.Wants("fields"), keys: cfg.WantedKeys}
}

func (s *source) configureCluster(cfg *sdk.Config, c *settings) *cluster {
	for _, name := range []string{"path", "batch"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "the recorded cluster has no file")
		}
	}
	return &cluster{seed: uint64(c.Seed), jobs: c.Jobs, history: c.History, missed: c.Missed, speed: c.Speed, now: s.now}
}

// Count implements sdk.Counter: the recorded cluster knows how many jobs it had. A file has
// no second route.
func (s *source) Count(ctx context.Context, w sdk.Window) (int64, error) {
	return s.player.countJobs(ctx, w)
}

// Collect implements sdk.Source.
func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	return s.player.collectJobs(ctx, from, out)
}
