package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
)

func TestDemo_OnAnyDay_IsAConfigurationWithoutAWord(t *testing.T) {
	dir := t.TempDir()
	aggregator := filepath.Join(dir, "aggregator.hcl")
	text := aggregatorHCL(dir, filepath.Join(dir, "api.sock"), "127.0.0.1:8000", "127.0.0.1:7070") + "access { plain_role = \"none\" }\n"
	if err := os.WriteFile(aggregator, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, day := range []string{"2026-01-01", "2026-03-31", "2026-12-31", "2028-02-29", "2034-07-15"} {
		now, err := time.Parse(time.DateOnly, day)
		if err != nil {
			t.Fatal(err)
		}
		demo, err := writeDemo(filepath.Join(dir, day), now)
		if err != nil || len(demo.agent) != 1 || len(demo.aggregator) < 5 {
			t.Fatalf("%v %+v", err, demo)
		}
		if _, _, diags := config.Load(append(demo.aggregator, aggregator)...); len(diags) > 0 {
			t.Errorf("%s: %v", day, diags)
		}
		for _, path := range append(demo.agent, demo.aggregator...) {
			if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "# Demo of bursar dev") || strings.Contains(string(text), `"@`) {
				t.Errorf("%s: %v\n%s", path, err, text)
			}
		}
	}
}

func TestDemo_FilesThatAreThere_Stay(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if _, err := writeDemo(dir, now); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "demo", "money.hcl")
	if err := os.WriteFile(path, []byte("# mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	demo, err := writeDemo(dir, now.AddDate(0, 1, 0), demoActions)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "# mine\n" {
		t.Errorf("%v %s", err, text)
	}
	for _, path := range demo.aggregator {
		if filepath.Base(path) == demoActions {
			t.Error("the action is there although it was left out")
		}
	}
}

func TestDemo_EachBlockButActions_IsReplacedByOnesOwn(t *testing.T) {
	demo, err := writeDemo(t.TempDir(), time.Now(), demoActions)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range demo.aggregator {
		file, _ := hcl.Load(path)
		for _, block := range file.Headers() {
			if !slices.Contains(demoBlocks(), block.Type) {
				t.Errorf("%s: a block %q of one's own would meet that of the demo", path, block.Type)
			}
		}
	}
}
