// Command bursar-source-ai4 reads the snapshot files of ai4-accounting, for
// `bursar import`: what a Nomad cluster ran, as far as a look every few hours
// can know it.
package main

import (
	"context"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// version of the plugin.
const version = "1.1.0"

func main() { sdk.ServeSource(func() sdk.Source { return &source{} }) }

type source struct {
	settings

	zone *time.Location // of submit times
}

// settings are those of the config block.
type settings struct {
	Import     hcl.List[hcl.Absolute] `hcl:"import" unset:"the files of the command line" doc:"files, patterns and folders, absolute"`
	Timezone   string                 `hcl:"timezone,optional" default:"UTC" doc:"zone of the machine that took the snapshots: submit_time is in its local time. All other times are in UTC"`
	Until      hcl.Time               `hcl:"until,optional" unset:"none" doc:"leave out runs that begin at this time or later, for example \"2026-01-01T00:00:00Z\""`
	Namespaces hcl.Strings            `hcl:"namespaces,optional" unset:"all" doc:"only runs of these namespaces"`
}

// Describe implements sdk.Source.
func (s *source) Describe() sdk.Description {
	return sdk.Description{
		Type: "ai4", Version: version, Rank: sdk.RankImport, Interval: time.Hour, Attributes: jobAttributes(), Mapping: defaultMapping,
		Settings: new(settings),
	}
}

// Configure implements sdk.Source.
func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	_ = cfg.Decode(&s.settings) // it is in what Err returns
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil {
		cfg.Errorf("timezone", "%q is not the name of a time zone, such as \"Europe/Madrid\"", s.Timezone)
	}
	s.zone = zone
	return cfg.Err()
}

// isExcluded reports whether the configuration leaves a run out.
func (s *source) isExcluded(r *run) bool {
	return len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, r.namespace) || !s.Until.IsZero() && !r.start.Before(s.Until.Time)
}
