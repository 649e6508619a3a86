package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const reported = `{"window":{"from":"2026-10-01T00:00:00Z","to":"2026-11-01T00:00:00Z"},"by":["group_id"],"records":12,
"groups":[{"values":["cms"],"others":0},{"values":["atlas\u001b[2J"],"others":0}],
"measures":[{"name":"records","kind":"count","unit":null,"totals":[3,9],"total":12},{"name":"Cores","kind":"rate","unit":"hour","totals":[10.5,1234567.890123],"total":1234578.390123}],
"complete":{"complete_to":"2026-11-02T00:00:00Z","limited":false,"open":2}}`

func TestAReportIsShownAndSaved(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := reported
		if r.URL.Query().Get("window") == "2025" {
			answer = strings.ReplaceAll(answer, "2026-1", "2025-1")
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
	code, out, errs := s.bursar(t.Context(), "report", "usage", "-period", "2026-10", "-period", "2025")
	if code != 0 {
		t.Fatal(code, errs)
	}
	golden(t, "report-usage.table", out+"---\n"+errs)
	for _, ending := range []string{"html", "csv", "json"} {
		file := filepath.Join(t.TempDir(), "r."+ending)
		if code, out, errs := s.bursar(t.Context(), "report", "usage", "-period", "2026-10", "-o", file); code != 0 || out != "" || !strings.Contains(errs, "is written") {
			t.Error(ending, code, out, errs)
		}
		text, err := os.ReadFile(file)
		start := map[string]string{"html": "<!doctype html>", "csv": "group_id,records,Cores\n", "json": "{\n  \"format\": 1,"}[ending]
		if err != nil || !strings.HasPrefix(string(text), start) {
			t.Errorf("%s: %v %.80s", ending, err, text)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "report", "usage", "-period", "1", "-period", "2", "-period", "3"); code != 1 || !strings.Contains(errs, "at most 2 periods") {
		t.Error(code, errs)
	}
}

func TestNumbersThatNoReportCanBeMadeWithAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("asked for", r.URL) }))
	t.Cleanup(srv.Close)
	s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
	for line, says := range map[string]string{
		"efficiency -jobs -1":                    "jobs is -1; want a number from 1 to 100",
		"efficiency -jobs 0":                     "-jobs is 0; want more than 0",
		"efficiency -pue NaN":                    "pue is NaN",
		"efficiency -memory-per-gb 0":            "-memory-per-gb is 0",
		"statement -of group_id=atlas -top 1000": "top is 1000; want a number from 1 to 100",
		"statement -of group_id=atlas -top 0":    "-top is 0",
	} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"report"}, strings.Fields(line)...)...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s, want %s", line, code, errs, says)
		}
	}
}

func TestFlagsWithoutEffectOnTheReportOfClusterAccountantAreRefused(t *testing.T) {
	s := shell{}
	for _, name := range []string{"by", "credit", "address"} {
		value := map[string]string{"by": "project", "credit": "stop", "address": "http://127.0.0.1:1"}[name]
		code, _, errs := s.bursar(t.Context(), "report", "subscription", "-compat", "clusteraccountant", "-accounting", "a", "-tables", "b", "-"+name, value)
		if code == 0 || !strings.Contains(errs, "-"+name+" has no meaning with -compat clusteraccountant") {
			t.Errorf("-%s: %d %s", name, code, errs)
		}
	}
}

func TestReportSubscription_ClusterAccountant_FiltersAndTables(t *testing.T) {
	s := shell{}
	const files = "../accounting/testdata/gridengine/"
	line := []string{"report", "subscription", "-compat", "clusteraccountant", "-tables", files + "tables.sql", "-period", "2012-10", "-format", "csv"}
	if code, _, errs := s.bursar(t.Context(), line...); code == 0 || !strings.Contains(errs, "no rows of the table accounting") {
		t.Errorf("%d %s", code, errs)
	}
	line = append(line, "-accounting", files+"accounting")
	for where, want := range map[string]string{"": "12.17", "group=phys1": "12.17", "group=guest": "5"} {
		code, out, errs := s.bursar(t.Context(), append(line, strings.Fields("-where " + where)[:2*min(1, len(where))]...)...)
		if code != 0 || !strings.Contains(out, want) || strings.Contains(out, "18.73") != (where == "") {
			t.Errorf("%s: %d %s\n%s", where, code, errs, out)
		}
	}
}
