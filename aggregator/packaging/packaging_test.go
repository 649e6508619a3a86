// Package packaging holds what the package of the aggregator is made of. This test
// checks what needs no package.
package packaging_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
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

// Plugins of actions come in packages of their own, into the folder in which the
// daemon of this package looks.
func TestPluginsAreLookedForWhereTheirPackagesPutThem(t *testing.T) {
	folder := config.PluginDirs("/usr/bin/bursar")[0]
	for path, want := range map[string]string{
		"nfpm.yaml": "dst: " + folder + ", type: dir", "../../agent/packaging/plugin.nfpm.yaml": `dst: "` + folder + `/${PLUGIN}"`,
	} {
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s: %v", path, want, err)
		}
	}
}

func TestTheExamplesInThePackageLoad(t *testing.T) {
	text, err := os.ReadFile("nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`src: (hcl/examples/\S+\.hcl)`).FindAllStringSubmatch(string(text), -1)
	if len(found) < 4 {
		t.Fatal(found)
	}
	for _, f := range found {
		if _, _, diags := config.Load(filepath.Join("../..", f[1])); diags.HasErrors() {
			t.Errorf("%s: %v", f[1], diags)
		}
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
