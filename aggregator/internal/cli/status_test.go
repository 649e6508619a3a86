package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// statusAnswer is a status with a verdict.
func statusAnswer(state, findings, agents string) string {
	node := `{"name":"agg%d","role":%q,"voter":true,"heard":%v,"behind":%d,"version":"1.2.3","disk_free_bytes":%d,"disk_size_bytes":100,"certificate_until":"2026-0%d-20T00:00:00Z"}`
	nodes := fmt.Sprintf(node, 1, "leader", true, 0, 55, 6) + "," + fmt.Sprintf(node, 2, "follower", true, 3, 9, 5) + "," + fmt.Sprintf(node, 3, "follower", false, 0, 44, 7)
	return `{"version":"1.2.3","cluster":"CLUSTER","cluster_version":1,"index":42,"term":2,"hash":"00","records":20000,"last_change":20001,"quarantined":1,"conflicts":2,"waiting_stops":0,"confirmed":true,` +
		`"agents":[` + agents + `],"node":"agg1","state":"` + state + `","findings":[` + findings + `],"nodes":[` + nodes + `],"last_snapshot":"2026-02-28T03:00:00Z"}`
}

func oneFinding(severity, what, do, since string) string {
	text := fmt.Sprintf(`{"severity":%q,"id":"x","about":"","what":%q,"do":%q,"since":%s}`, severity, what, do, since)
	return strings.ReplaceAll(text, `\x`, `\u00`) // Go's way to write it, and JSON's
}

// serving answers /v1/status.
func serving(t *testing.T, answer string) shell {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
}

func TestStatusSaysInTenLinesWhatToDoFirst(t *testing.T) {
	full := oneFinding("critical", "the disk of agg2 is nearly full: the node neither leads nor pulls (9.0 % of 100 GiB free)", "bursar operator disk free-ballast   # on agg2, gives 256 MiB of room", `"2026-03-01T09:00:00Z"`)
	for _, c := range []struct {
		name, state string
		findings    []string
		code        int
		first       string
	}{
		{"healthy", "healthy", nil, 0, "Healthy."},
		{"notice", "healthy", []string{oneFinding("notice", "1 stop waits", "look", "null")}, 0, "Healthy."},
		{"one", "failing", []string{full}, 2, "Needs attention: the disk of agg2 is nearly full: the node neither leads nor pulls (9.0 % of 100 GiB free), for 3 h."},
		{"many", "failing", []string{
			full, oneFinding("critical", "node agg3 at agg3:8701 is not heard", "ssh", `"2026-03-01T11:30:00Z"`), oneFinding("warning", "1 job is in quarantine", "x", `"2026-01-01T00:00:00Z"`),
			oneFinding("warning", "a \u001b[31mtrick", "x", "null"), oneFinding("warning", "another", "x", "null"),
		}, 2, "5 problems; most urgent: the disk of agg2 is nearly full"},
	} {
		s := serving(t, statusAnswer(c.state, strings.Join(c.findings, ","), ""))
		code, out, errs := s.bursar(t.Context(), "status")
		lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
		if code != c.code || errs != "" || len(lines) > 10 || !strings.HasPrefix(lines[0], c.first) || strings.Contains(out, "\x1b") {
			t.Errorf("%s: %d %q\n%s", c.name, code, errs, out)
		}
		golden(t, "status-"+c.name+".txt", out)
		if code, _, _ := s.bursar(t.Context(), "status", "-format", "json"); code != c.code {
			t.Errorf("%s as JSON: %d", c.name, code)
		}
		for _, s.width = range []int{50, 80, 120} {
			_, out, _ := s.bursar(t.Context(), "status")
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > s.width {
					t.Errorf("%s at %d columns: %q", c.name, s.width, line)
				}
			}
		}
	}
}

func TestStatusThatCannotTellIsAnError(t *testing.T) {
	for _, answer := range []string{`{"version":"1.0","records":5}`, `[]`} {
		s := serving(t, answer)
		if code, _, errs := s.bursar(t.Context(), "status"); code != 1 || errs == "" {
			t.Error(answer, code, errs)
		}
	}
	if code, _, errs := (shell{env: map[string]string{"BURSAR_ADDR": "http://127.0.0.1:1"}}).bursar(t.Context(), "status"); code != 1 || !strings.Contains(errs, "Does the aggregator run there?") {
		t.Error(code, errs)
	}
}

func TestTheBallastIsGivenUpByACommand(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "disk.ballast"), make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := write(t, t.TempDir(), "a.hcl", fmt.Sprintf("aggregator {\n  name     = \"a\"\n  data_dir = %q\n}\n", dir))
	if code, _, errs := (shell{}).bursar(t.Context(), "operator", "disk", "free-ballast", "-config", conf); code != 0 || !strings.Contains(errs, "3 MiB are free again") {
		t.Error(code, errs)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), "operator", "disk", "free-ballast", "-data-dir", dir); code != 2 || !strings.Contains(errs, "no ballast") {
		t.Error(code, errs)
	}
	if code, _, _ := (shell{}).bursar(t.Context(), "operator", "disk", "free-ballast", "-data-dir", filepath.Join(dir, "none")); code != 1 {
		t.Error(code)
	}
}
