// Command bursar-source-replay reads jobs from a file of JSON lines that may
// grow and rotate, or plays the recorded cluster of bursar dev.
package main

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// version of the plugin.
const version = "1.0.0"

func main() { sdk.ServeSource(func() sdk.Source { return newSource(time.Now) }) }

// source is a file or the recorded cluster, by its configuration.
type source struct {
	now    func() time.Time
	player interface {
		collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error
	}
}

func newSource(now func() time.Time) *source { return &source{now: now} }

// Describe implements sdk.Source.
func (s *source) Describe() sdk.Description {
	return sdk.Description{
		Type: "replay", Version: version, Rank: sdk.RankScheduler, Interval: time.Minute,
		Attributes: attributes(), Mapping: mapping,
	}
}

// Configure implements sdk.Source.
func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	if cfg.Bool("recorded", false) {
		s.player = s.configureCluster(cfg)
	} else {
		s.player = s.configureFile(cfg)
	}
	return cfg.Err()
}

func (s *source) configureFile(cfg *sdk.Config) *tail {
	t := &tail{path: cfg.String("path", ""), now: s.now, batch: int(cfg.Int("batch", 1000)), fields: cfg.Wants("fields")}
	if t.path == "" {
		cfg.Require("path")
	} else if t.path[0] != '/' {
		cfg.Errorf("path", "%q is not absolute", t.path)
	}
	if t.batch < 1 || t.batch > 10000 {
		cfg.Errorf("batch", "%d is not from 1 to 10000", t.batch)
	}
	for _, name := range []string{"seed", "jobs", "history", "speed"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "this belongs to the recorded cluster: set recorded = true")
		}
	}
	return t
}

func (s *source) configureCluster(cfg *sdk.Config) *cluster {
	c := &cluster{
		seed: uint64(cfg.Int("seed", 1)), jobs: int(cfg.Int("jobs", 20000)),
		history: cfg.Duration("history", 28*24*time.Hour), speed: cfg.Float("speed", 1), now: s.now,
	}
	if c.jobs < 0 || c.jobs > 1_000_000 {
		cfg.Errorf("jobs", "%d is not from 0 to 1000000", c.jobs)
	}
	if c.history < time.Hour {
		cfg.Errorf("history", "%s is less than an hour", c.history)
	}
	if c.speed < 0.01 || c.speed > 100 {
		cfg.Errorf("speed", "%g is not from 0.01 to 100", c.speed)
	}
	for _, name := range []string{"path", "batch"} {
		if cfg.Has(name) {
			cfg.Errorf(name, "the recorded cluster has no file")
		}
	}
	return c
}

// Collect implements sdk.Source.
func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	return s.player.collect(ctx, from, out)
}
