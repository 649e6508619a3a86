package config_test

import (
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
)

func TestEveryShippedExampleOfAnAgentLoads(t *testing.T) {
	for _, pattern := range []string{"agent*.hcl", "slurm.hcl", "replay.hcl"} {
		files, err := filepath.Glob(filepath.Join("../../../hcl/examples", pattern))
		if err != nil || len(files) == 0 {
			t.Fatal(pattern, err)
		}
		for _, file := range files {
			if cfg, diags := config.Load(file); diags.HasErrors() || len(cfg.Running()) == 0 {
				t.Errorf("%s: %d sources, %v", file, len(cfg.Running()), diags)
			}
		}
	}
}
