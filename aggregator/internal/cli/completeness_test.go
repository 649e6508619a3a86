package cli_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

func TestDaysAreShownWithWhatIsMissingAndHowToCollectItAgain(t *testing.T) {
	s, _ := filled(t)
	for name, args := range map[string][]string{
		"completeness.table": nil, "completeness.csv": {"-format", "csv"}, "completeness-all.table": {"-all"}, "completeness-calendar.table": {"-calendar"},
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"completeness"}, args...)...)
		if code != 0 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		golden(t, name, out+"---\n"+errs)
	}
	if code, _, errs := s.bursar(t.Context(), "completeness", "-check"); code != 2 || !strings.Contains(errs, "10 runs are missing") || !strings.Contains(errs, "recollect -source slurm/nemo -from 2026-02-18 -to 2026-02-20") {
		t.Error(code, errs)
	}
	s = at(apitest.New(t).Serve())
	if code, _, errs := s.bursar(t.Context(), "completeness", "-check"); code != 0 || !strings.Contains(errs, "No source is known yet") {
		t.Error(code, errs)
	}
}
