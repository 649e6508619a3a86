package source

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func TestAnArrayRowWithNodesIsRefusedAndCountedByBothRoutes(t *testing.T) {
	s := newSite(t)
	s.db.Columns = append(s.db.Columns, "NodeList")
	for i, state := range []string{"RUNNING", "COMPLETED", "CANCELLED by 0", "PENDING"} {
		end := -1.0
		if state == "RUNNING" || state == "PENDING" {
			end = never
		}
		s.job([]string{"10", "20", "30", "40"}[i], state, -3, -2, end, "JobID", []string{"10_[1-3]", "20_[1-3]", "30_[1-3]", "40_[1-3]"}[i], "NodeList", "n1")
	}
	s.job("50", "PENDING", -3, never, never, "JobID", "50_[1-3]", "NodeList", "None assigned", "AllocNodes", "0", "AllocTRES", "")
	s.poll(0)
	s.wantRuns()
	if len(s.refused) != 4 || s.refused[0].Run != "10_[1-3]" || !strings.Contains(s.refused[0].Message, "a start and nodes") {
		t.Errorf("refused %+v", s.refused)
	}
	n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-6 * 3600e9), To: noon()})
	if err != nil || n < 2 {
		t.Errorf("%d counted, %v", n, err)
	}
}

func TestACancelledJobWithoutNodesIsSkippedAndCountedByNoRoute(t *testing.T) {
	s := newSite(t)
	s.db.Columns = append(s.db.Columns, "NodeList")
	s.job("10", "CANCELLED by 0", -3, -2, -1, "NodeList", "None assigned", "AllocNodes", "0", "AllocTRES", "", "AllocCPUS", "12")
	s.job("11", "CANCELLED by 0", -3, -2, -1, "NodeList", "n1", "AllocCPUS", "12")
	s.poll(0)
	s.wantRuns("11")
	if s.skipped != 1 || len(s.refused) != 0 {
		t.Errorf("%d skipped, %v refused", s.skipped, s.refused)
	}
	if n, err := s.source.Count(t.Context(), sdk.Window{From: noon().Add(-6 * 3600e9), To: noon()}); err != nil || n != 1 {
		t.Errorf("%d counted, %v", n, err)
	}
}
