package main

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// collected is what a fresh source collects of a folder of snapshots.
func collected(t *testing.T, dir string) (*bursarv1.DescribeResponse, *plugintest.Collected) {
	t.Helper()
	return plugintest.CollectFresh(t, func() sdk.Source { return &source{} }, &bursarv1.ConfigureRequest{Label: "test", Config: plugintest.Block("config", plugintest.Attr("import", []any{dir}))})
}

func TestImport_UnreadableField_RunCountsWithoutIt(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	_, sound := collected(t, absolute(t, "testdata/snapshots"))
	files, err := filepath.Glob("testdata/snapshots/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	named := 0
	for range 20 {
		rare := r.IntN(4) > 0
		dir := t.TempDir()
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var snapshot map[string][]map[string]any
			if err := json.Unmarshal(text, &snapshot); err != nil {
				t.Fatal(err)
			}
			for _, namespace := range slices.Sorted(maps.Keys(snapshot)) {
				for _, job := range snapshot[namespace] {
					if rare && r.IntN(3) > 0 {
						continue
					}
					odd := []any{plugintest.Garbage(r), "16?", -3, true, []any{}, 1e300}[r.IntN(6)]
					resources, _ := job["resources"].(map[string]any)
					if keys := slices.Sorted(maps.Keys(resources)); len(keys) > 0 && r.IntN(4) > 0 {
						resources[keys[r.IntN(len(keys))]] = odd
					} else {
						job["submit_time"] = odd
					}
				}
			}
			if text, err = json.Marshal(snapshot); err == nil {
				err = os.WriteFile(filepath.Join(dir, filepath.Base(path)), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		d, got := collected(t, dir)
		named += plugintest.CheckUnread(t, d, sound, got)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	if named < 20 {
		t.Errorf("seed %d: %d values are named as unread", seed, named)
	}
}
