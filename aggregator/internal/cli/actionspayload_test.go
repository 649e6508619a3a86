package cli_test

import (
	"slices"
	"strings"
	"testing"
)

func TestAnEffectIsFetchedByteByByte(t *testing.T) {
	s, w := acting(t, troubled())
	if code, out, errs := s.bursar(t.Context(), "actions", "payload", "apel/egi", "12", "0"); code != 0 || out != "\x00{\r\n" {
		t.Errorf("%d %q %s", code, out, errs)
	}
	if code, out, errs := s.bursar(t.Context(), "actions", "payload", "-show", "apel/egi", "12", "0"); code != 0 || !strings.HasPrefix(out, "two rows") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %q %s", code, out, errs)
	}
	if got := w.Asked(); !slices.Equal(got, []string{"GET /v1/actions/apel/egi/runs/12/effects/0", "GET /v1/actions/apel/egi/runs/12/effects/0"}) {
		t.Error(got)
	}
	for _, args := range [][]string{{"apel", "12", "0"}, {"apel/egi", "-1", "0"}, {"apel/egi", "12", "x"}, {"apel/egi", "12"}} {
		if code, _, _ := s.bursar(t.Context(), append([]string{"actions", "payload"}, args...)...); code == 0 {
			t.Errorf("%v is accepted", args)
		}
	}
}
