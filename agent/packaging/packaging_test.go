// Package packaging holds what the package of the agent is made of. This test
// checks what needs no package.
package packaging_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/agent/internal/config"
)

func TestTheConfigurationInThePackageLoadsAsItIs(t *testing.T) {
	cfg, diags := config.Load("agent.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if cfg.Agent.DataDir.Path != "/var/lib/bursar-agent" || len(cfg.Sources) != 0 {
		t.Errorf("%s, %d sources", cfg.Agent.DataDir.Path, len(cfg.Sources))
	}
}

// TestWhatIsCommentedOutLoadsToo takes the comments away from the settings that
// are offered.
func TestWhatIsCommentedOutLoadsToo(t *testing.T) {
	text, err := os.ReadFile("agent.hcl")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "agent.hcl")
	if err := os.WriteFile(path, uncomment(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, diags := config.Load(path)
	if diags.HasErrors() || cfg.Agent.TLS == nil || len(cfg.Sources) != 2 {
		t.Fatalf("%v\n%s", diags, uncomment(text))
	}
}

// uncomment makes settings of comments that look like them.
func uncomment(text []byte) []byte {
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		bare := bytes.TrimSpace(line)
		inner, comment := bytes.CutPrefix(bare, []byte("# "))
		if comment && (bytes.Contains(inner, []byte(" = ")) || bytes.HasSuffix(inner, []byte("{")) || bytes.HasSuffix(inner, []byte("}"))) {
			out.Write(append(inner, '\n'))
			continue
		}
		out.Write(line)
	}
	return out.Bytes()
}

func TestEveryPluginHasWhatItsPackageNeeds(t *testing.T) {
	dirs, err := filepath.Glob("../../plugins/*/*/main.go")
	if err != nil || len(dirs) < 3 {
		t.Fatal(dirs, err)
	}
	for _, main := range dirs {
		readme, err := os.ReadFile(filepath.Join(filepath.Dir(main), "README.md"))
		if err != nil || !strings.HasPrefix(string(readme), "# ") {
			t.Errorf("the package of %s needs a README with a title: %v", main, err)
		}
	}
}

// A source runs below an agent, an action below an aggregator; each daemon looks into
// the folder of the package.
func TestThePackageOfAPluginNeedsTheDaemonThatRunsIt(t *testing.T) {
	cmd := exec.Command("agent/packaging/build.sh", "plugins")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	needs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, daemon, _ := strings.Cut(strings.TrimSpace(line), " ")
		needs[name] = daemon
	}
	folders, err := filepath.Glob("../../plugins/*/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, main := range folders {
		kind, typ := filepath.Base(filepath.Dir(filepath.Dir(main))), filepath.Base(filepath.Dir(main))
		want := map[string]string{"source": "bursar-agent", "action": "bursar"}[kind]
		if got := needs["bursar-"+kind+"-"+typ]; typ != "example" && got != want {
			t.Errorf("the package of %s %s needs %q, not %q", kind, typ, got, want)
		}
	}
	if needs["bursar-action-exec"] == "" || needs["bursar-action-apel"] == "" || needs["bursar-source-example"] != "" {
		t.Errorf("packages of plugins: %v", needs)
	}
	cfg, diags := config.Load("agent.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	text, err := os.ReadFile("plugin.nfpm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`deb: { depends: ["${PLUGIN_DAEMON}"] }`, `rpm: { depends: ["${PLUGIN_DAEMON}"] }`, `dst: "` + cfg.PluginDirs("/usr/bin/bursar-agent")[0] + `/${PLUGIN}"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("plugin.nfpm.yaml lacks %s", want)
		}
	}
}

func TestThePagesCanBeWritten(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command("go", "run", "./agent/packaging/pages", dir, "plugins/source/slurm")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, want := range map[string]string{
		"bursar-agent.8.md": "## bursar-agent preview", "bursar-agent.hcl.5.md": `source "slurm" "nemo"`, "bash/bursar-agent": "bursar-agent",
		"bursar-source-slurm.8.md": "# Configuration", "bursar-source-slurm.summary": "reads the runs of jobs",
		"bursar-epilog.8.md": "# Options",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
