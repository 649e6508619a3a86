// Command bursar-source-ai4 reads the snapshot files of ai4-accounting, for
// `bursar import`: what a Nomad cluster ran, as far as a look every few hours
// can know it.
package main

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// version of the plugin.
const version = "1.1.0"

func main() { sdk.ServeSource(func() sdk.Source { return &source{} }) }

type source struct {
	paths      []string
	zone       *time.Location // of submit times
	until      time.Time      // runs that begin then or later are left out; zero: none
	namespaces map[string]bool
}

// Describe implements sdk.Source.
func (s *source) Describe() sdk.Description {
	return sdk.Description{
		Type: "ai4", Version: version, Rank: sdk.RankImport, Interval: time.Hour, Attributes: attributes(), Mapping: defaultMapping,
	}
}

// Configure implements sdk.Source.
func (s *source) Configure(_ context.Context, cfg *sdk.Config) error {
	s.paths = cfg.Strings("import", nil)
	if len(s.paths) == 0 {
		cfg.Require("import")
	}
	for i, p := range s.paths {
		if p == "" || p[0] != '/' {
			cfg.ElementErrorf("import", i, "%q is not absolute", p)
		}
	}
	name := cfg.String("timezone", "UTC")
	zone, err := time.LoadLocation(name)
	if err != nil {
		cfg.Errorf("timezone", "%q is not the name of a time zone, such as \"Europe/Madrid\"", name)
	}
	s.zone, s.until = zone, cfg.Time("until", time.Time{})
	s.namespaces = nil
	for _, n := range cfg.Strings("namespaces", nil) {
		if s.namespaces == nil {
			s.namespaces = map[string]bool{}
		}
		s.namespaces[n] = true
	}
	return cfg.Err()
}

// excluded reports whether the configuration leaves a run out.
func (s *source) excluded(r *run) bool {
	return s.namespaces != nil && !s.namespaces[r.namespace] || !s.until.IsZero() && !r.start.Before(s.until)
}
