package cli_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

func TestARunningNodeIsAskedToCheckItself(t *testing.T) {
	s, w := filled(t)
	w.Options.Checker = apitest.Checked{}
	code, _, errs := s.bursar(t.Context(), "operator", "check", "-live")
	if code != 0 || !strings.Contains(errs, "sound at index 7") {
		t.Error(code, errs)
	}
	w.Options.Checker = apitest.Checked{"a is 1, and the records say 2"}
	code, out, errs := s.bursar(t.Context(), "operator", "check", "-live")
	if code != 2 || !strings.Contains(out, "the records say 2") || !strings.Contains(errs, "differences: 1") {
		t.Error(code, out, errs)
	}
}
