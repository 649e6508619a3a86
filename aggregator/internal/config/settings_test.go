package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

// sources are files whose committed form is golden.
func sources(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, name := range append(glob(t, "testdata/*.good.hcl"), glob(t, "../../../hcl/examples/aggregator*.hcl")...) {
		out[strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".hcl"), ".good")] = name
	}
	return out
}

func load(t *testing.T, name string) *config.Config {
	t.Helper()
	c, _, diags := config.LoadOffline(name)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSettings_CommittedForm_IsGolden(t *testing.T) {
	for name, file := range sources(t) {
		got := string(load(t, file).Shared().Encode()) + "\n"
		golden := "testdata/format3/" + name + ".json"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(string(want), got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestSettings_ReadBack_SayTheSame: what is committed gives the settings that it came from.
func TestSettings_ReadBack_SayTheSame(t *testing.T) {
	for name, file := range sources(t) {
		files := load(t, file).Shared()
		decoded, err := clusterconfig.Decode(files.Encode())
		if err != nil {
			t.Fatal(name, err)
		}
		if list := config.Diff(files, decoded); len(list) > 0 || decoded.Digest() != files.Digest() {
			t.Errorf("%s: %v", name, list)
		}
	}
}

func TestDiff_NamesTheBlockAndItsLine(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.hcl")
	text := "aggregator {\n  name = \"a\"\n  data_dir = \"d\"\n}\ncluster \"x\" {\n  su_factor = \"2\"\n  capacity {\n    components = { Cores = 64 }\n  }\n}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	files := load(t, name).Shared()
	committed := &clusterconfig.Document{Settings: []byte(`{"cluster":[{"capacity":[{"components":{"Cores":32}}],"name":"x"},{"name":"y"}]}`)}
	var got []string
	for _, d := range config.Diff(files, committed) {
		got = append(got, strings.TrimPrefix(d.String(), filepath.Dir(name)+"/"))
	}
	want := []string{
		`a.hcl:6: cluster "x" has su_factor = "2" in these files and nothing in the cluster`,
		`a.hcl:7: cluster "x" capacity has components = {"Cores":64} in these files and {"Cores":32} in the cluster`,
		`cluster "y" stands in the cluster's configuration only: empty`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
