package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnEffectIsFetchedByteByByte(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path != "/v1/actions/apel/egi/runs/12/effects/0" {
			t.Errorf("asked for %s", r.URL.Path)
		}
		_, _ = io.WriteString(w, `{"show":"two rows\u001b\n","payload":"AHsNCg=="}`)
	}))
	t.Cleanup(srv.Close)
	s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
	if code, out, errs := s.bursar(t.Context(), "actions", "payload", "apel/egi", "12", "0"); code != 0 || out != "\x00{\r\n" {
		t.Errorf("%d %q %s", code, out, errs)
	}
	if code, out, errs := s.bursar(t.Context(), "actions", "payload", "-show", "apel/egi", "12", "0"); code != 0 || !strings.HasPrefix(out, "two rows") || strings.Contains(out, "\x1b") {
		t.Errorf("%d %q %s", code, out, errs)
	}
	for _, args := range [][]string{{"apel", "12", "0"}, {"apel/egi", "-1", "0"}, {"apel/egi", "12", "x"}, {"apel/egi", "12"}} {
		if code, _, _ := s.bursar(t.Context(), append([]string{"actions", "payload"}, args...)...); code == 0 {
			t.Errorf("%v is accepted", args)
		}
	}
}
