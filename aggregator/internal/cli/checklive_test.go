package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestARunningNodeIsAskedToCheckItself(t *testing.T) {
	answer := `{"index":7,"wrong":[]}`
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method+" "+r.URL.Path != "POST /v1/check" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
	code, _, errs := s.bursar(t.Context(), "operator", "check", "-live")
	if code != 0 || !strings.Contains(errs, "sound at index 7") {
		t.Error(code, errs)
	}
	answer = `{"index":8,"wrong":["a is 1, and the records say 2"]}`
	code, out, errs := s.bursar(t.Context(), "operator", "check", "-live")
	if code != 2 || !strings.Contains(out, "the records say 2") || !strings.Contains(errs, "differences: 1") {
		t.Error(code, out, errs)
	}
}
