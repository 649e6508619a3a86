package cli_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

// 0: it worked; 1: it failed; 2: it worked and found something.
func TestExitCodes_OfEachCommand_SayErrorOrFinding(t *testing.T) {
	s, w := filled(t)
	w.Options.Actions, w.Options.Members, w.Options.Snapshots = troubled(), trioMembers(), noSnapshots{}
	w.Options.Checker = apitest.Checked{"a is 1, and the records say 2"}
	for line, want := range map[string]int{
		"version": 0, "completion bash": 0, "records": 0, "agents": 0, "gaps": 0, "conflicts": 0, "quarantine list": 0, "quarantine show head1/slurm/nemo/4711/a": 0,
		"waiting list": 0, "status": 0, "usage": 0, "budgets": 0, "prices": 0, "capacity": 0, "census": 0, "completeness": 0, "directory": 0, "subscription": 0,
		"actions list": 0, "actions history mail/monthly": 0, "actions history mail/monthly 12": 0, "actions plan priority/nemo": 0, "operator raft list-peers": 0,
		"report usage -period 2026-02": 0, "operator repair-kinds -plan": 0,

		"budgets -check": 2, "completeness -check": 2, "actions list -check": 2, "directory -unclaimed": 2, "operator check -live": 2,
		"waiting dismiss none": 2,

		"records -limit x": 1, "records extra": 1, "usage -window 2026-13": 1, "budgets none": 1, "quarantine show head1/slurm/nemo/none": 1, "actions history mail/monthly 99": 1,
		"actions history mail/monthly last": 1, "directory cats": 1, "report none": 1, "report usage -period 2031": 1, "operator raft remove none": 1, "gaps -nothing": 1,
	} {
		for _, format := range []string{"", " -format json", " -format csv"} {
			if format != "" && (want == 1 || !strings.Contains("status budgets -check completeness -check actions list -check directory -unclaimed", line)) {
				continue
			}
			if code, _, errs := s.bursar(t.Context(), strings.Fields(line+format)...); code != want {
				t.Errorf("%s%s: %d, want %d: %s", line, format, code, want, errs)
			}
		}
	}
	if code, _, errs := s.bursar(t.Context(), "quarantine", "drop", "head1/slurm/nemo/4711/a", "head1/slurm/nemo/none"); code != 2 {
		t.Errorf("one of two is dropped: %d, want 2: %s", code, errs)
	}
	for _, line := range []string{"records", "status", "usage", "budgets -check", "operator check -live", "report usage"} {
		if code, _, _ := at("http://127.0.0.1:1").bursar(t.Context(), strings.Fields(line)...); code != 1 {
			t.Errorf("%s without an aggregator: %d", line, code)
		}
	}
}
