package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

// sources are the files from which testdata/format1 was committed, and more.
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

// TestSettings_CommittedByAnEarlierRelease_AreWhatTheSameFilesSay: after an upgrade no node
// differs from what is committed, and what it does is the same.
func TestSettings_CommittedByAnEarlierRelease_AreWhatTheSameFilesSay(t *testing.T) {
	digests, err := os.ReadFile("testdata/format1/digests.txt")
	if err != nil {
		t.Fatal(err)
	}
	files := sources(t)
	for line := range strings.Lines(string(digests)) {
		name, digest, _ := strings.Cut(strings.TrimSpace(line), " ")
		raw, err := os.ReadFile("testdata/format1/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		old, err := clusterconfig.DecodeCommitted(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		if former, err := clusterconfig.ParseDigest(digest); err != nil || !old.Is(former) {
			t.Error(name, "is not known by its digest of before", err)
		}
		now := load(t, files[name]).Shared()
		if d := cmp.Diff(string(now.Encode()), string(old.Document.Encode())); d != "" {
			t.Errorf("%s (-files +committed):\n%s", name, d)
		}
		if list := config.Diff(now, old.Document); len(list) > 0 {
			t.Errorf("%s: %v", name, list)
		}
		here, err := config.ReadShared(now)
		if err != nil {
			t.Fatal(name, err)
		}
		there, err := config.ReadShared(old.Document)
		if err != nil {
			t.Fatal(name, err)
		}
		if d := cmp.Diff(here.Actions, there.Actions, protocmp.Transform()); d != "" {
			t.Errorf("%s: %s", name, d)
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
