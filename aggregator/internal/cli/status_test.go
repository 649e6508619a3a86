package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// verdict is what a cluster's health is judged to be.
type verdict struct {
	state    health.State
	findings []health.Finding
	facts    health.Facts
}

func (v verdict) Report(context.Context) health.Report {
	return health.Report{State: v.state, Findings: v.findings, Facts: v.facts}
}

// trio is a cluster of three, of which agg2 is behind and has a full disk.
func trio() health.Facts {
	f := apitest.Trio()
	for i, free := range []uint64{55, 9, 44} {
		n := &f.Nodes[i]
		n.Disk.Free, n.Disk.Size, n.CertEnds = free, 100, time.Date(2026, time.Month(6-i%2), 20, 0, 0, 0, 0, time.UTC)
	}
	f.Nodes[1].Lag, f.Nodes[2].Seen = 3, time.Time{}
	f.Backup = health.Backup{Known: true, Last: time.Date(2026, 2, 28, 3, 0, 0, 0, time.UTC)}
	return f
}

func TestStatusSaysInTenLinesWhatToDoFirst(t *testing.T) {
	full := health.Finding{
		Severity: health.Critical, What: "the disk of agg2 is nearly full: the node neither leads nor pulls (9.0 % of 100 GiB free)",
		Do: "bursar operator disk free-ballast   # on agg2, gives 256 MiB of room", Since: apitest.Noon().Add(-3 * time.Hour),
	}
	silent := health.Finding{Severity: health.Critical, What: "node agg3 at agg3:8701 is not heard", Do: "ssh", Since: apitest.Noon().Add(-30 * time.Minute)}
	warning := func(what string) health.Finding { return health.Finding{Severity: health.Warning, What: what, Do: "x"} }
	for _, c := range []struct {
		name     string
		state    health.State
		findings []health.Finding
		code     int
		first    string
	}{
		{"healthy", "healthy", nil, 0, "Healthy."},
		{"notice", "healthy", []health.Finding{{Severity: health.Notice, What: "1 stop waits", Do: "look"}}, 0, "Healthy."},
		{"one", "failing", []health.Finding{full}, 2, "Needs attention: the disk of agg2 is nearly full: the node neither leads nor pulls (9.0 % of 100 GiB free), for 3 h 00 min."},
		{"many", "failing", []health.Finding{
			full, silent, warning("1 job is in quarantine"), warning("a \u001b[31mtrick"), warning("another"),
		}, 2, "5 problems; most urgent: the disk of agg2 is nearly full"},
	} {
		s, w := filled(t)
		w.Options.Health = verdict{c.state, c.findings, trio()}
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
	for _, answer := range []any{v1.Status{Version: "1.0", Records: new(uint64(5))}, []string{}} {
		s, _ := answered(t, 200, answer)
		if code, _, errs := s.bursar(t.Context(), "status"); code != 1 || errs == "" {
			t.Error(answer, code, errs)
		}
	}
	if code, _, errs := at("http://127.0.0.1:1").bursar(t.Context(), "status"); code != 1 || !strings.Contains(errs, "does the aggregator run at 127.0.0.1:1?") {
		t.Error(code, errs)
	}
}

func TestStatus_WithoutALeader_SaysWhatIsKnownAndHowOldItIs(t *testing.T) {
	alone := v1.Verdict{State: "failing", Node: "agg1", Findings: []v1.Finding{}, Nodes: []v1.Node{
		{Name: "agg1", Role: "follower", Voter: true, Self: true, Heard: true, AgeSeconds: new(0.0), Behind: new(uint64(0)), DiskFreeBytes: 1, DiskSizeBytes: 2},
		{Name: "agg2", Role: "follower", Voter: true, AgeSeconds: new(4.2), DiskFreeBytes: 1, DiskSizeBytes: 2},
		{Name: "agg3", Role: "follower", Voter: true, AgeSeconds: new(300.0), DiskFreeBytes: 1, DiskSizeBytes: 2},
	}}
	stale := alone
	stale.Nodes = []v1.Node{alone.Nodes[0], {Name: "agg2", Role: "follower", Voter: true, Heard: true, AgeSeconds: new(2.0)}, {Name: "agg3", Role: "follower", Voter: true, Heard: true, AgeSeconds: new(9.9)}}
	for name, c := range map[string]struct {
		answer v1.Status
		lines  []string
	}{
		"two of three died": {v1.Status{
			Verdict: &alone, Cluster: "C", Version: "1", Index: new(uint64(7)), Records: new(uint64(5)), Quarantined: new(0), Conflicts: new(1), WaitingStops: new(2), AgeSeconds: new(6.0),
			Agents: []v1.Agent{{Name: "head1", Error: "no leader is known"}},
		}, []string{
			"cluster     C: 1 of 3 nodes reachable (agg2 last heard 4 s ago, agg3 last heard 5 min ago), no leader, at most 0 entries behind, version 1",
			"records     5 at index 7 on this node, confirmed 6 s ago", "agents      1, which of them answer is not known without a leader",
			"issues      0 quarantined, 1 conflicts, 2 job ends without a record", "disks       agg1 50 % free, agg2 not known, agg3 not known",
		}},
		"the store cannot be read": {v1.Status{Verdict: &alone, Version: "1"}, []string{
			"records     not known", "agents      not known", "issues      not known",
		}},
		"never confirmed": {v1.Status{Verdict: &stale, Version: "1", Index: new(uint64(7)), Records: new(uint64(5))}, []string{
			"cluster     -: 3 of 3 nodes reachable (agg3 last heard 10 s ago), no leader, at most 0 entries behind, version 1",
			"records     5 at index 7 on this node, not confirmed", "agents      none",
		}},
	} {
		s, _ := answered(t, 200, c.answer)
		_, out, _ := s.bursar(t.Context(), "status")
		for _, want := range c.lines {
			if !strings.Contains(out, want+"\n") {
				t.Errorf("%s: no %q in\n%s", name, want, out)
			}
		}
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
