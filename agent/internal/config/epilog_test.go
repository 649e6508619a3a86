package config_test

import (
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
)

func TestTheExampleOfEpilogsIsRight(t *testing.T) {
	cfg, diags := config.Load("../../../hcl/examples/agent-slurm-epilog.hcl")
	if diags.HasErrors() || !slices.Equal(cfg.Names(), []string{"slurm/nemo", "slurm-epilog/nemo"}) {
		t.Fatal(cfg.Names(), diags)
	}
}
