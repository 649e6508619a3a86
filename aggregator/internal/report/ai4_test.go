package report_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

const threeDays = "2025-03-01..2025-03-03"

// snapshots are the times at which ai4-accounting looked at the recorded cluster.
func snapshots(t *testing.T) (list []time.Time) {
	t.Helper()
	text, err := os.ReadFile("testdata/ai4/snapshots.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(text)) {
		at, err := time.Parse("2006-01-02T15:04:05", name)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, at)
	}
	return list
}

func TestTheFilesForAi4PapiAreThoseOfAi4Accounting(t *testing.T) {
	files, err := report.AI4(t.Context(), newCluster(t), report.AI4Options{Period: threeDays, Snapshots: snapshots(t), Now: fifth()})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, pattern := range []string{"summaries/*", "users/*"} {
		list, err := filepath.Glob("testdata/ai4/" + pattern)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, list...)
	}
	got := slices.Sorted(maps.Keys(files.Files))
	for i := range got {
		got[i] = "testdata/ai4/" + got[i]
	}
	if diff := cmp.Diff(want, got); diff != "" || len(want) != 14 {
		t.Errorf("%d files (-ai4 +bursar)\n%s", len(want), diff)
	}
	for _, path := range want {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(files.Files[strings.TrimPrefix(path, "testdata/ai4/")])); diff != "" {
			t.Errorf("%s (-ai4 +bursar)\n%s", path, diff)
		}
	}
	if len(files.Notes) > 0 {
		t.Error(files.Notes)
	}
}
