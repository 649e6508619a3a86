package cli_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// purses serves budgets and prices out of testdata, and remembers the last query.
func purses(t *testing.T) (shell, *string) {
	t.Helper()
	query := new(string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*query = r.URL.Query().Encode()
		text, err := os.ReadFile("testdata" + strings.TrimPrefix(r.URL.Path, "/v1") + ".answer.json")
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text)
	}))
	t.Cleanup(srv.Close)
	return shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}, query
}

func TestBudgetsAndPricesAreWrittenInEveryFormat(t *testing.T) {
	s, _ := purses(t)
	for _, command := range []string{"budgets", "prices"} {
		for _, format := range []string{"table", "csv", "json"} {
			code, out, errs := s.bursar(t.Context(), command, "-format", format)
			if code != 0 {
				t.Errorf("%s -format %s: %d %s", command, format, code, errs)
			}
			if format == "table" {
				out += "--\n" + errs
			}
			golden(t, command+"."+format, out)
		}
	}
	s.width = 140
	_, out, _ := s.bursar(t.Context(), "budgets")
	golden(t, "budgets-wide.table", out)
	for _, s.width = range []int{50, 80, 100, 132, 200} {
		for _, command := range []string{"budgets", "prices"} {
			_, out, _ := s.bursar(t.Context(), command)
			for line := range strings.Lines(out) {
				if n := len([]rune(strings.TrimRight(line, "\n"))); n > s.width {
					t.Errorf("%s at %d columns: %d in %q", command, s.width, n, line)
				}
			}
		}
	}
}

func TestABudgetThatWillBeGoneIsRedOnATerminalOnly(t *testing.T) {
	s, _ := purses(t)
	if _, out, _ := s.bursar(t.Context(), "budgets"); strings.Contains(out, "\x1b") {
		t.Errorf("colours without a terminal: %q", out)
	}
	s.color = true
	_, out, _ := s.bursar(t.Context(), "budgets")
	for line := range strings.Lines(out) {
		red, gone := strings.HasPrefix(line, "\x1b[31m"), strings.Contains(line, "cms") || strings.Contains(line, "soon")
		if red != gone {
			t.Errorf("%q", line)
		}
	}
}

func TestBudgetsCanBeChecked(t *testing.T) {
	s, query := purses(t)
	for line, want := range map[string]string{
		"-check": "", "atlas -check -at last-year": "at=last-year&name=atlas", "-check -format json": "", "-check -format csv": "",
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"budgets"}, strings.Fields(line)...)...)
		if code != 2 || *query != want || !strings.Contains(errs, "cms, soon") {
			t.Errorf("%s: %d %q %s", line, code, *query, errs)
		}
	}
	if code, _, _ := s.bursar(t.Context(), "prices", "-at", "2025"); code != 0 || *query != "at=2025" {
		t.Error(code, *query)
	}
	if code, _, errs := s.bursar(t.Context(), "budgets", "a", "b"); code != 1 || errs == "" {
		t.Error(code, errs)
	}
}
