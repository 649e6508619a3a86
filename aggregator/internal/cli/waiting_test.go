package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// answering answers requests by method and path, and notes them.
func answering(t *testing.T, answers map[string]string) (s shell, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what := r.Method + " " + r.URL.RequestURI()
		*asked = append(*asked, what)
		answer, ok := answers[what]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, asked
}

func TestWaiting_ListsAndDismisses(t *testing.T) {
	stop := func(id, at string) string {
		return fmt.Sprintf(`{"record_id":%q,"holdings":[{"waiting_stop":%q}]}`, id, at)
	}
	list := `{"waiting":[` + stop("drone/1", "2001-01-01T00:00:00Z") + "," + stop("drone-2", "2101-01-01T00:00:00.5Z") + `],"more":false}`
	s, asked := answering(t, map[string]string{"GET /v1/waiting": list, "DELETE /v1/waiting/drone%2F1": "", "DELETE /v1/waiting/drone-2": ""})
	if code, out, errs := s.bursar(t.Context(), "waiting", "list"); code != 0 || !strings.Contains(out, "drone/1") || !strings.Contains(out, "drone-2") {
		t.Error(code, out, errs)
	}
	for args, want := range map[string]string{
		"-older 30d":      "DELETE /v1/waiting/drone%2F1",
		"-all":            "DELETE /v1/waiting/drone%2F1 DELETE /v1/waiting/drone-2",
		"drone-2 drone/1": "DELETE /v1/waiting/drone-2 DELETE /v1/waiting/drone%2F1",
	} {
		*asked = nil
		code, _, errs := s.bursar(t.Context(), append([]string{"waiting", "dismiss"}, strings.Fields(args)...)...)
		got := strings.TrimPrefix(strings.Join(*asked, " "), "GET /v1/waiting ")
		if n := strings.Count(want, "DELETE"); code != 0 || got != want || !strings.Contains(errs, fmt.Sprintf("dismissed %d of %d", n, n)) {
			t.Errorf("%s: %d %q %s", args, code, got, errs)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "waiting", "dismiss", "drone-3"); code != 2 || !strings.Contains(errs, "1 of 1 failed") {
		t.Error(code, errs)
	}
	for _, wrong := range [][]string{{}, {"-all", "-older", "30d"}, {"-all", "x"}, {"-older", "soon"}} {
		if code, _, _ := s.bursar(t.Context(), append([]string{"waiting", "dismiss"}, wrong...)...); code != 1 {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}

func TestRepairKinds_PlansAndGoesOnUntilTheEnd(t *testing.T) {
	s, asked := answering(t, map[string]string{
		"GET /v1/kinds":                   `{"records":9,"kinds":[{"component":"TotalCPU","stored":"rate","kind":"total","records":9}]}`,
		"POST /v1/kinds:repair":           `{"repaired":5,"after":500,"more":true}`,
		"POST /v1/kinds:repair?after=500": `{"repaired":4,"after":900,"more":false}`,
	})
	code, out, errs := s.bursar(t.Context(), "operator", "repair-kinds", "-plan")
	if code != 0 || !strings.Contains(out, "TotalCPU") || !strings.Contains(errs, "9 records would be changed") || len(*asked) != 1 {
		t.Error(code, out, errs, *asked)
	}
	if code, out, errs := s.bursar(t.Context(), "operator", "repair-kinds"); code != 0 || !strings.Contains(errs, "9 records were changed") {
		t.Error(code, out, errs)
	}
}
