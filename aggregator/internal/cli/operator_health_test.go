package cli_test

import (
	"net/http"
	"strings"
	"testing"
)

func TestOperatorHealth_ExitCode_SaysWhetherTheNodeAnswers(t *testing.T) {
	serves := aggregator(t)
	if code, out, errs := serves.bursar(t.Context(), "operator", "health"); code != 0 || out+errs != "" {
		t.Error(code, out, errs)
	}
	lonely, asked := answered(t, http.StatusServiceUnavailable, nil)
	if code, out, errs := lonely.bursar(t.Context(), "operator", "health"); code != 1 || out != "" || !strings.Contains(errs, "the node cannot answer requests: ") || strings.Join(asked.Asked(), " ") != "GET /health_check" {
		t.Error(code, out, errs, asked.Asked())
	}
	if code, _, errs := at("http://127.0.0.1:1").bursar(t.Context(), "operator", "health"); code != 1 || !strings.Contains(errs, "127.0.0.1:1") {
		t.Error(code, errs)
	}
}
