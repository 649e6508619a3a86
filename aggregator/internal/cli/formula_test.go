package cli_test

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
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
	for line, answer := range map[string]string{
		"agents": "", "gaps": "", "status": "", "conflicts": "", "quarantine list": "",
		"directory": "directory.answer.json", "directory people": "directory.answer.json", "directory classes": "directory.answer.json", "directory contributions": "directory.answer.json",
		"subscription": "subscription.answer.json", "budgets": "budgets.answer.json", "prices": "prices.answer.json",
	} {
		text := []byte(routes()["GET /v1/"+strings.Fields(line)[0]])
		if answer != "" {
			var err error
			if text, err = os.ReadFile("testdata/" + answer); err != nil {
				t.Fatal(err)
			}
		}
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatal(line, err)
		}
		body, err := json.Marshal(hostile(v))
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(body)
		}))
		s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
		code, out, errs := s.bursar(t.Context(), append(strings.Fields(line), "-format", "csv")...)
		srv.Close()
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
