package compat

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
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
	for name, file := range map[string]string{"by the Nomad source": apitest.RecordedByNomad, "by the import of snapshots": apitest.RecordedByImport} {
		t.Run(name, func(t *testing.T) { compareFiles(t, apitest.Recorded(t, file)) })
	}
}

// compareFiles compares the files of three days with those of ai4-accounting.
func compareFiles(t *testing.T, c apitest.As) {
	t.Helper()
	files, err := AI4(t.Context(), v1.API{Caller: c}, AI4Options{Period: threeDays, Snapshots: snapshots(t), Now: apitest.RecordedNow()})
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

// boxes are the tables of usage_stats by their titles.
func boxes(text string) map[string]string {
	out := map[string]string{}
	for _, part := range strings.SplitAfter(text, "┘\n") {
		if title, _, ok := strings.Cut(part, "\n"); ok {
			out[title] = part
		}
	}
	return out
}

// What ai4-accounting never saw is left out: P was purged by its user before a snapshot.
func TestTheTablesOfUsageStatsAreThoseOfAi4Accounting(t *testing.T) {
	for name, c := range map[string]apitest.As{"by the Nomad source": apitest.Recorded(t, apitest.RecordedByNomad, "cloud-P1-main"), "by the import of snapshots": apitest.Recorded(t, apitest.RecordedByImport)} {
		t.Run(name, func(t *testing.T) { compareTables(t, c) })
	}
}

// compareTables compares tables with those of ai4-accounting.
func compareTables(t *testing.T, c apitest.As) {
	t.Helper()
	for _, days := range [][2]string{{"2025-03-01", "2025-03-03"}, {"2025-03-01", "2025-03-01"}, {"2025-03-02", "2025-03-02"}, {"2025-03-03", "2025-03-03"}} {
		want, err := os.ReadFile("testdata/ai4/usage_" + days[0] + "_" + days[1] + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		text, err := AI4Usage(t.Context(), v1.API{Caller: c}, AI4Options{Period: days[0] + ".." + days[1], Snapshots: snapshots(t), Now: apitest.RecordedNow()})
		if err != nil {
			t.Fatal(err)
		}
		expected := string(want)
		if days[0] == "2025-03-03" {
			// There G is listed for longer than Nomad keeps a job that is over, and u2 counts as active.
			head, tail, _ := strings.Cut(expected, "IMAGINE")
			head = strings.NewReplacer("jobs │      2", "jobs │      1", "users │      2", "users │      1").Replace(head)
			at := strings.LastIndex(tail, "Nº jobs")
			expected = head + "IMAGINE" + tail[:at] + strings.NewReplacer("      6 │", "      5 │", "      5 │", "      4 │").Replace(tail[at:])
		}
		if diff := cmp.Diff(boxes(expected), boxes(text)); diff != "" {
			t.Errorf("%v (-ai4 +bursar)\n%s", days, diff)
		}
	}
}

// ai4-accounting sums up all snapshots each time.
func TestAI4_WithoutPeriod_ReportsAllHistory(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByImport)
	given, err := AI4(t.Context(), v1.API{Caller: c}, AI4Options{Period: "2025-02-28..2025-03-05", Snapshots: snapshots(t), Now: apitest.RecordedNow()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := AI4(t.Context(), v1.API{Caller: c}, AI4Options{Snapshots: snapshots(t), Now: apitest.RecordedNow()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given.Files, all.Files); diff != "" {
		t.Errorf("of all snapshots (-given +default)\n%s", diff)
	}
	all, err = AI4(t.Context(), v1.API{Caller: c}, AI4Options{Now: apitest.RecordedNow()})
	if err != nil {
		t.Fatal(err)
	}
	series := strings.Split(string(all.Files["summaries/ai4eosc-timeseries.csv"]), "\n")
	if len(series) != 1+6+1 || !strings.HasPrefix(series[1], "2025-02-27;4;8000;") {
		t.Errorf("of each fourth hour: %d lines, the first %s", len(series), series[1])
	}
	if got, want := string(all.Files["summaries/ai4eosc-users-agg.csv"]), "owner;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num\nu1;21;42667;42667;106667;0\nu2;"; !strings.HasPrefix(got, want) {
		t.Errorf("of each fourth hour: %s", got)
	}
}

func TestAI4_NamespaceWithoutRecords_HasFiles(t *testing.T) {
	files, err := AI4(t.Context(), v1.API{Caller: apitest.Recorded(t, apitest.RecordedByNomad)}, AI4Options{Period: threeDays, Now: apitest.RecordedNow(), Namespaces: []string{"new", "imagine", "tutorials"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"timeseries":       "date;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num;queued;running\n2025-03-01;0;0;0;0;0;0;0\n2025-03-02;0;0;0;0;0;0;0\n2025-03-03;0;0;0;0;0;0;0\n",
		"users-agg":        "owner;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num\n",
		"users-agg-merged": "user id;name;email;cpu_num / day;cpu_MHz / day;memory_MB / day;disk_MB / day;gpu_num / day\n",
		"full-agg":         "owner;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num\n0;0;0;0;0;0\n",
	} {
		if got := string(files.Files["summaries/new-"+name+".csv"]); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(files.Files) != 4*4+2 {
		t.Error(slices.Sorted(maps.Keys(files.Files)))
	}
}
