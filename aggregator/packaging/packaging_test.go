// Package packaging holds what the package of the aggregator is made of. This test
// checks what needs no package.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

func TestTheConfigurationInThePackageLoadsAsItIs(t *testing.T) {
	cfg, _, diags := config.Load("aggregator.hcl")
	if len(diags) != 0 {
		t.Fatal(diags)
	}
	if cfg.Aggregator.DataDir.Path != "/var/lib/bursar" || len(cfg.Agents) != 0 {
		t.Errorf("%s, %d agents", cfg.Aggregator.DataDir.Path, len(cfg.Agents))
	}
}

func TestThePagesCanBeWritten(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "./aggregator/packaging/pages", dir)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, want := range map[string]string{
		"bursar.1.md": "## bursar quarantine list", "bursar.hcl.5.md": "tls_listen", "zsh/_bursar": "bursar", "fish/bursar.fish": "bursar",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
