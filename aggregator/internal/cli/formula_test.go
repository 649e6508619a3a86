package cli_test

import (
	"encoding/csv"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
)

// hostile makes a formula of each text in an answer that is no time.
func hostile(v any) any {
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return v
		}
		return "=" + v
	case []any:
		for i := range v {
			v[i] = hostile(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = hostile(v[key])
		}
	}
	return v
}

// No text of an answer becomes a formula in a table that a command writes.
func TestCSV_HostileAnswers_AreNoFormulas(t *testing.T) {
	w := apitest.Filled(t)
	for _, line := range []string{
		"agents", "gaps", "status", "conflicts", "quarantine list", "directory", "directory people", "directory classes", "directory contributions", "subscription", "budgets", "prices",
	} {
		var v any
		if err := w.API().Caller.Call(t.Context(), http.MethodGet, "/v1/"+strings.Fields(line)[0], nil, nil, &v); err != nil {
			t.Fatal(line, err)
		}
		s, _ := answered(t, http.StatusOK, hostile(v))
		code, out, errs := s.bursar(t.Context(), append(strings.Fields(line), "-format", "csv")...)
		in, quoted := csv.NewReader(strings.NewReader(out)), 0
		for {
			row, err := in.Read()
			if err == io.EOF { //nolint:errorlint // it is the end
				break
			}
			if err != nil {
				t.Fatal(line, err)
			}
			for _, cell := range row {
				if strings.HasPrefix(cell, "'=") {
					quoted++
				}
				if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.ContainsAny(cell[:min(1, len(cell))], "=+-@\t\r") {
					t.Errorf("%s: the cell %q is a formula", line, cell)
				}
			}
		}
		if quoted == 0 {
			t.Errorf("%s: no text was hostile: %d %s\n%s", line, code, errs, out)
		}
	}
}
