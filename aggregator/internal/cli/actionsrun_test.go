package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

func TestActionsRun_WaitsForThePlan_AndFailsWithIt(t *testing.T) {
	const ordered = "2026-11-22T12:00:00.000007Z"
	for _, c := range []struct {
		run  string // of the history, in the end
		args []string
		code int
		says string
	}{
		{`"effects":4,"notes":["r-1 has no VO"]`, nil, 0, "run 13 is planned, with 4 effects: bursar actions history apel/site 13\nr-1 has no VO"},
		{`"effects":0,"failure":"month: \"x\" is no month"`, nil, 1, `run 13 of apel/site failed: it cannot be planned: month: "x" is no month`},
		{`"effects":0,"failure":"month: \"x\" is no month"`, []string{"-detach"}, 0, "it begins"},
	} {
		var looks atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.Method == http.MethodPost:
				_, _ = io.WriteString(w, `{"message":"it begins","ordered":"`+ordered+`"}`)
			case looks.Add(1) == 1:
				_, _ = io.WriteString(w, `{"runs":[{"run":12,"ordered":"2026-11-22T12:00:00.000006Z","failure":"another one"},{"run":11,"ordered":null}]}`)
			default:
				fmt.Fprintf(w, `{"runs":[{"run":14,"ordered":null},{"run":13,"why":"order","ordered":%q,%s},{"run":12,"ordered":null}]}`, ordered, c.run)
			}
		}))
		t.Cleanup(srv.Close)
		s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
		code, _, errs := s.bursar(t.Context(), append([]string{"actions", "run", "apel/site", "month=x"}, c.args...)...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s: %d %s", c.run, code, errs)
		}
	}
}
