package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestImport_AJobThatEndsBeforeItStarts_IsNamed(t *testing.T) {
	s := aggregator(t)
	files, err := filepath.Glob(accountingFiles)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	const colStart, colEnd = 9, 10
	line := ""
	for l := range strings.SplitSeq(string(text), "\n") {
		if f := strings.Split(l, ":"); len(f) > colEnd && !strings.HasPrefix(l, "#") && f[colStart] < f[colEnd] {
			f[colStart], f[colEnd] = f[colEnd], f[colStart]
			line = strings.Join(f, ":")
			break
		}
	}
	file := filepath.Join(t.TempDir(), "accounting")
	if err := os.WriteFile(file, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := s.importing(t, "gridengine", "-label", "lab", file)
	if all := stdout + stderr; code != 2 || !strings.Contains(all, "is before start_time") || !strings.Contains(all, "1 went to quarantine") {
		t.Errorf("exit code %d\n%s", code, all)
	}
}

func TestStatus_APushedStopBeforeItsStart_IsNamed(t *testing.T) {
	s := aggregator(t)
	body := `{"record_id":"back","meta":{"site_id":["lab"]},"components":[{"name":"Cores","amount":4,"scores":[]}],"start_time":"2026-03-01T02:00:00Z","stop_time":"2026-03-01T01:00:00Z"}`
	resp, err := s.client().Post("http://localhost/record", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: as AUDITOR, the record is taken", resp.Status, text)
	}
	deadline := time.Now().Add(2 * time.Minute)
	for found := false; !found; time.Sleep(100 * time.Millisecond) {
		_, stdout, stderr := s.bursar(t.Context(), "status", "-format", "json")
		found = strings.Contains(stdout, "1 record of pushed: the stop is before the start") && strings.Contains(stdout, "bursar records -id back")
		if time.Now().After(deadline) {
			t.Fatal(stdout, stderr)
		}
	}
	var answer struct {
		Complete struct {
			Findings []struct{ Kind, Source, Example string }
		}
	}
	resp, err = s.client().Get("http://localhost/v1/usage?from=2026-03-01T00:00:00Z&to=2026-03-02T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || len(answer.Complete.Findings) != 1 || answer.Complete.Findings[0].Example != "back" {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, stdout, stderr := s.bursar(t.Context(), "usage", "-window", "2026-03-01"); !strings.Contains(stdout+stderr, "1 record of pushed: the stop is before the start") {
		t.Errorf("%s%s", stdout, stderr)
	}
}
