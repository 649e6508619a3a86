package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAReportIsShownAndSaved(t *testing.T) {
	s, _ := filled(t)
	code, out, errs := s.bursar(t.Context(), "report", "usage", "-period", "2026-02", "-period", "2026-01")
	if code != 0 {
		t.Fatal(code, errs)
	}
	golden(t, "report-usage.table", out+"---\n"+errs)
	for _, ending := range []string{"html", "csv", "json"} {
		file := filepath.Join(t.TempDir(), "r."+ending)
		if code, out, errs := s.bursar(t.Context(), "report", "usage", "-period", "2026-02", "-o", file); code != 0 || out != "" || !strings.Contains(errs, "is written") {
			t.Error(ending, code, out, errs)
		}
		text, err := os.ReadFile(file)
		start := map[string]string{"html": "<!doctype html>", "csv": "group_id,records,Cores,", "json": "{\n  \"format\": 1,"}[ending]
		if err != nil || !strings.HasPrefix(string(text), start) {
			t.Errorf("%s: %v %.80s", ending, err, text)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "report", "usage", "-period", "1", "-period", "2", "-period", "3"); code != 1 || !strings.Contains(errs, "give it at most 2 times") {
		t.Error(code, errs)
	}
}

func TestNumbersThatNoReportCanBeMadeWithAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	s, w := filled(t)
	for line, says := range map[string]string{
		"efficiency -jobs -1":                    `jobs is "-1"; want a number, 0 or more`,
		"efficiency -jobs 0":                     "jobs is 0; want a number from 1 to 100",
		"efficiency -pue NaN":                    `pue is "NaN"`,
		"efficiency -memory-per-gb 0":            "memory_per_gb is 0",
		"statement -of group_id=atlas -top 1000": "top is 1000; want a number from 1 to 100",
		"statement -of group_id=atlas -top 0":    "top is 0; want a number from 1 to 100",
	} {
		if code, _, errs := s.bursar(t.Context(), append([]string{"report"}, strings.Fields(line)...)...); code == 0 || !strings.Contains(errs, says) {
			t.Errorf("%s: %d %s, want %s", line, code, errs, says)
		}
	}
	for _, question := range w.Asked() {
		if question != "GET /v1/reports" { // which says the keys of users and groups
			t.Error("asked for", question)
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
