package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
)

// text writes a configuration.
func text(t *testing.T, s string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.hcl")
	if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const two = `
agent {
  name        = "head1"
  plugin_dirs = ["/opt/plugins"]
  buffer { max_size = "1GiB" }
}
plugin "source" "gridengine" { env = { A = "1" } }
source "gridengine" "katana" {
  interval = "1m"
  config {
    import = ["/old"]
    cell   = "default"
  }
}
source "gridengine" "leonardi" {}
source "slurm" "nemo" {}
`

func TestTheSourceBlockOfAnImportIsFoundByTypeAndLabel(t *testing.T) {
	for name, c := range map[string]struct{ config, typ, label, want string }{
		"by its label":            {two, "gridengine", "leonardi", "leonardi"},
		"the only one":            {two, "slurm", "", "nemo"},
		"without a configuration": {"", "gridengine", "", "gridengine"},
		"several":                 {two, "gridengine", "", "error: there are several sources \"gridengine\"; choose one by its label: katana, leonardi"},
		"another label":           {two, "gridengine", "x", "no source \"gridengine\" has the label \"x\""},
		"another type":            {two, "ai4", "", "there is no block source \"ai4\""},
		"a mistake":               {"source \"ai4\" {}", "ai4", "", "x.hcl:1"},
		"an odd label":            {"", "ai4", "a b", "use letters"},
	} {
		spec := ImportSpec{Type: c.typ, Label: c.label, Files: []string{"/f"}}
		if c.config != "" {
			spec.Config = text(t, c.config)
		}
		cfg, diags := readSettings(&spec)
		got := cfg.label
		if diags.HasErrors() {
			got = "error: " + diags.Error()
		}
		if got != c.want && (!diags.HasErrors() || !strings.Contains(got, strings.TrimPrefix(c.want, "error: "))) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestTheFilesTakeThePlaceOfThoseInTheConfiguration(t *testing.T) {
	spec := ImportSpec{Type: "gridengine", Label: "katana", Config: text(t, two), Files: []string{"/new/a", "/new/b"}}
	cfg, diags := readSettings(&spec)
	if diags.HasErrors() {
		t.Fatal(diags.Error())
	}
	var names []string
	for _, n := range cfg.tree.GetChildren() {
		names = append(names, n.GetName())
		for _, f := range n.GetValue().GetListValue().GetValues() {
			names = append(names, f.GetStringValue())
		}
	}
	if got := strings.Join(names, " "); got != "cell import /new/a /new/b" {
		t.Error(got)
	}
	if len(cfg.dirs) != 1 || cfg.dirs[0] != "/opt/plugins" || cfg.plugin.Env["A"].Value != "1" {
		t.Errorf("%v %+v", cfg.dirs, cfg.plugin)
	}
}

func TestTheShippedExamplesAreRight(t *testing.T) {
	files, err := filepath.Glob("../../../hcl/examples/import-*.hcl")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		typ := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), "import-"), ".hcl")
		cfg, diags := readSettings(&ImportSpec{Type: typ, Config: path, Files: []string{"/f"}})
		if len(diags) > 0 || cfg.record == nil {
			t.Errorf("%s: %v", path, diags)
		}
		text, err := os.ReadFile(path)
		if err != nil || string(hcl.Format(text)) != string(text) {
			t.Errorf("%s is not laid out: %v\n%s", path, err, hcl.Format(text))
		}
	}
}

func TestOnlyFilesThatAreThereAreImportedAndNamesAreNoPatterns(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, `a[1]*\`)
	if err := os.WriteFile(odd, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := absolutePaths([]string{odd, dir + "/a*"})
	if err != nil || out[1] != dir+"/a*" {
		t.Fatal(out, err)
	}
	for _, pattern := range out {
		if found, err := filepath.Glob(pattern); err != nil || len(found) != 1 || found[0] != odd {
			t.Errorf("%s finds %v, %v", pattern, found, err)
		}
	}
	if _, err := absolutePaths([]string{odd, dir + "/b"}); err == nil || !strings.Contains(err.Error(), dir+"/b") {
		t.Error(err)
	}
	if out, err := absolutePaths([]string{"import_config.go"}); err != nil || !filepath.IsAbs(out[0]) {
		t.Error(out, err)
	}
}
