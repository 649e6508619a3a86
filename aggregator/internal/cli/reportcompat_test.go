package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// nomad is a shell that asks what a small Nomad cluster used on the first two days of March
// 2026: alice's module runs since six in the morning, and bob's tool waited for it until
// the evening of the second.
func nomad(t *testing.T) shell {
	t.Helper()
	w := apitest.New(t)
	module := apitest.Job{
		ID: "cloud-a1-main", Group: "imagine", User: "alice", Submit: "2026-03-01T05:59:00Z", Start: "2026-03-01T06:00:00Z", Cores: 4,
		Meta: map[string]string{"namespace": "imagine", "job": "module-a", "task": "main", "allocated": "2026-03-01T05:59:30Z"},
	}.Record()
	module.Components = append(module.Components, record.Component{Name: "MHz", Amount: 8000})
	w.Post(module, apitest.Job{
		ID: "cloud-b1-main", Group: "imagine", User: "bob\x1b[2J", Submit: "2026-03-01T12:00:00Z", Start: "2026-03-02T18:00:00Z", Stop: "2026-03-03T00:00:00Z", Cores: 2,
		Meta: map[string]string{"namespace": "../../evil", "job": "tool-b", "task": "main", "allocated": "2026-03-02T17:59:00Z"},
	}.Record())
	w.Settings.Directory.People = []accounting.Person{{ID: "alice", Name: "Alice A.", Address: "alice@example.org", Groups: []accounting.Groups{{From: record.None, Names: []string{"imagine"}}}}}
	w.Keep()
	w.Options.Now = func() time.Time { return time.Date(2026, 3, 3, 0, 0, 0, 0, time.UTC) }
	return at(w.Serve())
}

func TestASummaryIsShownAndSaved(t *testing.T) {
	s := nomad(t)
	code, out, errs := s.bursar(t.Context(), "report", "summary", "-period", "2026-03-01..2026-03-02")
	if code != 0 {
		t.Fatal(code, errs)
	}
	golden(t, "report-summary.table", out+"---\n"+errs)
	file := filepath.Join(t.TempDir(), "r.html")
	if code, out, errs := s.bursar(t.Context(), "report", "summary", "-period", "2026-03-01..2026-03-02", "-o", file); code != 0 || out != "" || !strings.Contains(errs, "is written") {
		t.Error(code, out, errs)
	}
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "alice@example.org") {
		t.Error(err, string(text))
	}
	code, out, errs = (shell{}).bursar(t.Context(), "report", "summary", "-h")
	golden(t, "report-summary.help", out+errs)
	if code != 0 {
		t.Error(code)
	}
}

func TestTheFilesForAi4PapiAreWrittenWhereItReadsThem(t *testing.T) {
	s := nomad(t)
	dir := t.TempDir()
	users := filepath.Join(dir, "users", "user-db.json")
	if err := os.MkdirAll(filepath.Dir(users), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(users, []byte(`{"zoe":{"name":"Zoë","email":"z@example.org"},"alice":{"name":"A","email":"old@example.org"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s.now = nil // noon of the first of March: two snapshots before alice, two with her
	code, out, errs := s.bursar(t.Context(), "report", "summary", "-compat", "ai4", "-period", "2026-03-01..2026-03-02", "-o", dir)
	if code != 0 || out != "" || !strings.Contains(errs, "6 files are written in "+dir) || !strings.Contains(errs, "Nomad does not allow this name") {
		t.Fatal(code, out, errs)
	}
	for name, want := range map[string]string{
		"summaries/imagine-timeseries.csv":       "date;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num;queued;running\n2026-03-01;1;2667;0;0;0;0;1\n",
		"summaries/imagine-users-agg.csv":        "owner;cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num\nalice;1;2667;0;0;0\n",
		"summaries/imagine-full-agg.csv":         "cpu_num;cpu_MHz;memory_MB;disk_MB;gpu_num\n1;2667;0;0;0\n",
		"summaries/imagine-users-agg-merged.csv": "user id;name;email;cpu_num / day;cpu_MHz / day;memory_MB / day;disk_MB / day;gpu_num / day\nalice;Alice A.;alice@example.org;1;2667;0;0;0\n",
		"users/user-db.csv":                      "user id;name;email\nalice;Alice A.;alice@example.org\nzoe;Zoë;z@example.org\n",
	} {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || string(text) != want {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	list, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil || len(list) != 6 {
		t.Error(list, err)
	}
}

func TestReportSummaryAI4_EmptyNamespaces_HaveFiles(t *testing.T) {
	s := nomad(t)
	dir, taken := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"2026-03-01T08:00:30": `{"imagine":[{"job_ID":"a"}],"listed":[]}`, // the newest
		"2026-03-01T04:00:30": `{"imagine":[{"name":"tool-x","status":"queued","owner":"zed"},{"name":"tool-y","status":"running","owner":"zed","alloc_start":null}],"gone":[]}`,
	} {
		if err := os.WriteFile(filepath.Join(taken, name+".json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "report", "summary", "-compat", "ai4", "-snapshots", taken, "-namespace", "named,imagine", "-o", dir); code != 0 {
		t.Fatal(code, errs)
	}
	list, err := filepath.Glob(filepath.Join(dir, "summaries", "*-full-agg.csv"))
	for i := range list {
		list[i] = strings.TrimSuffix(filepath.Base(list[i]), "-full-agg.csv")
	}
	if want := "imagine listed named"; err != nil || strings.Join(list, " ") != want {
		t.Errorf("files of %v, want %s: %v", list, want, err)
	}
	if series, err := os.ReadFile(filepath.Join(dir, "summaries", "imagine-timeseries.csv")); err != nil || !strings.Contains(string(series), ";queued;running\n2026-03-01;2;4000;0;0;0;2;1\n") {
		t.Errorf("two jobs wait that never ran: %s, %v", series, err)
	}
	if err := os.WriteFile(filepath.Join(taken, "2026-03-01T12:00:30.json"), []byte(`{"imagine"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := s.bursar(t.Context(), "report", "summary", "-compat", "ai4", "-snapshots", taken, "-o", dir); code == 0 || !strings.Contains(errs, "T12:00:30.json: ") {
		t.Error(code, errs)
	}
}

func TestWhatTheFilesForAi4PapiCannotBeSaysSo(t *testing.T) {
	s := nomad(t)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "users"), 0o755); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"name their directory with -o": {"-compat", "ai4"},
		"-by has no meaning":           {"-compat", "ai4", "-o", dir, "-by", "user_id"},
		"is of one -period":            {"-compat", "ai4", "-o", dir, "-period", "2026-01", "-period", "2026-02"},
		"are for -compat ai4":          {"-every", "1h"},
		"give -every or -snapshots":    {"-compat", "ai4", "-o", dir, "-every", "1h", "-snapshots", dir},
		"want from a minute to a day":  {"-compat", "ai4", "-o", dir, "-every", "1s"},
		"2025-03-01T04:00:30.json":     {"-compat", "ai4", "-o", dir, "-snapshots", dir},
		`did you mean "ai4"?`:          {"-compat", "ai3", "-o", dir},
		"-every: ":                     {"-compat", "ai4", "-o", dir, "-every", "fortnight"},
		"give it at most 2 times":      {"-period", "1", "-period", "2", "-period", "3"},
	} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"report", "summary"}, args...)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%v: %d %s, want %s", args, code, errs, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "users", "user-db.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := s.bursar(t.Context(), "report", "summary", "-compat", "ai4", "-o", dir); code == 0 || !strings.Contains(errs, "fix the file or move it away") {
		t.Error(code, errs)
	}
}

func TestTheTablesOfUsageStatsArePrinted(t *testing.T) {
	s := nomad(t)
	code, out, errs := s.bursar(t.Context(), "report", "usage", "-compat", "ai4", "-period", "2026-03-01..2026-03-02")
	if code != 0 {
		t.Fatal(code, errs)
	}
	golden(t, "report-usage-ai4.txt", out)
	file := filepath.Join(t.TempDir(), "usage.txt")
	if code, _, errs := s.bursar(t.Context(), "report", "usage", "-compat", "ai4", "-period", "2026-03-01..2026-03-02", "-o", file); code != 0 {
		t.Error(code, errs)
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != out {
		t.Error(err, string(text))
	}
	for _, args := range [][]string{{"-compat", "ai4", "-by", "job"}, {"-every", "2h"}} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"report", "usage"}, args...)...); code == 0 || !strings.Contains(errs, "-compat ai4") {
			t.Error(args, code, errs)
		}
	}
}
