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
