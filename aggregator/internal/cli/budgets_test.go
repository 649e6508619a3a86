package cli_test

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// purses is a shell that asks a cluster with budgets, of which one is in service units
// that nothing says the worth of.
func purses(t *testing.T) (shell, *apitest.World) {
	t.Helper()
	s, w := filled(t)
	w.Settings.Directory.Units, w.Settings.Directory.Classes = accounting.UnitRates{}, nil
	w.Settings.Money.Budgets = append(w.Settings.Money.Budgets, accounting.Budget{
		Name: "units", Scope: []accounting.PriceCondition{{Key: "group_id", Value: "x"}}, Unit: accounting.ServiceUnits,
		Amount: accounting.Billionths(big.NewInt(7e9)), Every: calendar.Year, From: record.None, To: record.None,
	})
	w.Keep()
	return s, w
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
	s, w := purses(t)
	for line, want := range map[string]string{
		"-check": "GET /v1/budgets", "cms -check -at 2026-02": "GET /v1/budgets?at=2026-02&name=cms", "-check -format json": "GET /v1/budgets", "-check -format csv": "GET /v1/budgets",
	} {
		code, _, errs := s.bursar(t.Context(), append([]string{"budgets"}, strings.Fields(line)...)...)
		if got := w.Asked(); code != 2 || !slices.Equal(got, []string{want}) || !strings.Contains(errs, "cms") {
			t.Errorf("%s: %d %q %s", line, code, got, errs)
		}
	}
	if code, _, errs := s.bursar(t.Context(), "budgets", "-check"); code != 2 || !strings.Contains(errs, "cms, soon") {
		t.Error(code, errs)
	}
	w.Asked()
	if code, _, _ := s.bursar(t.Context(), "prices", "-at", "2025"); code != 0 || !slices.Contains(w.Asked(), "GET /v1/prices?at=2025") {
		t.Error(code)
	}
	if code, _, errs := s.bursar(t.Context(), "budgets", "a", "b"); code != 1 || errs == "" {
		t.Error(code, errs)
	}
}
