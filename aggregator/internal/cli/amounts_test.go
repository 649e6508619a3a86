package cli_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// billed has a group for each amount in billionths of a currency, which is its cost in
// February and the amount of its budget.
func billed(t *testing.T, currency string, amounts []int64) *apitest.World {
	w := apitest.New(t)
	list := accounting.PriceList{Name: "standard", Currency: currency, From: record.None, To: record.None}
	for i, amount := range amounts {
		group := fmt.Sprintf("g%02d", i)
		is := []accounting.PriceCondition{{Key: "group_id", Value: group}}
		list.Rules = append(list.Rules, accounting.PriceRule{Component: "Cores", Billionths: amount, When: is})
		w.Settings.Money.Budgets = append(w.Settings.Money.Budgets, accounting.Budget{Name: group, Scope: is, Unit: currency, Amount: accounting.Billionths(big.NewInt(amount)), From: apitest.At("2026-02-01"), To: apitest.At("2026-03-01"), Every: calendar.None})
		w.Post(apitest.Job{ID: group, Group: group, User: group, Start: "2026-02-02T00:00:00Z", Stop: "2026-02-02T01:00:00Z", Cores: 1}.Record())
	}
	w.Settings.Money.Lists = []accounting.PriceList{list}
	w.Keep()
	return w
}

// rowOf is the line of a table that begins with a word.
func rowOf(table, word string) string {
	for line := range strings.SplitSeq(table, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), word) {
			return line
		}
	}
	return ""
}

func TestAmounts_EveryView_ShowsTheSameText(t *testing.T) {
	for currency, digits := range map[string]int{"EUR": 2, "JPY": 0, "KWD": 3} {
		step := int64(1e9)
		for range digits {
			step /= 10
		}
		amounts := []int64{1_005_000_000, 1_234_567_890_000_000, 2_500_000_000, 500_000_000, 1_000_500_000, step / 2, 100_004_500_000_000, 99_995_000_000}
		some := rapid.Custom(func(t *rapid.T) int64 { // halves of the last digit, and a millionth beside them
			return rapid.Int64Range(0, 1e13/step).Draw(t, "n")*step + step/2 + 1000*rapid.Int64Range(-1, 1).Draw(t, "beside")
		})
		for seed := range 12 {
			amounts = append(amounts, some.Example(seed))
		}
		s := at(billed(t, currency, amounts).Serve())
		say := func(args ...string) string {
			code, out, errs := s.bursar(t.Context(), args...)
			if code != 0 && code != 2 {
				t.Errorf("%q: %d %s", args, code, errs)
			}
			return out
		}
		views := map[string]string{
			"usage":   say("usage", "-window", "2026-02", "-by", "group_id", "-measure", "cost", "-top", "0"),
			"budgets": say("budgets", "-at", "2026-02-20"),
			"report":  say("report", "usage", "-period", "2026-02", "-by", "group_id", "-measure", "cost", "-top", "100"),
			"left":    say("report", "budgets"),
		}
		exact := say("usage", "-window", "2026-02", "-by", "group_id", "-measure", "cost", "-format", "csv")
		prices := say("prices", "-format", "table")
		for i, amount := range amounts {
			group, n := fmt.Sprintf("g%02d", i), big.NewRat(amount, 1e9)
			want := grouped(n.FloatString(digits))
			for name, table := range views {
				if row := rowOf(table, group); !strings.Contains(row, " "+want) {
					t.Errorf("%s of %s %s: %q, want %s", name, n.FloatString(9), currency, row, want)
				}
			}
			if whole := strings.TrimRight(strings.TrimRight(n.FloatString(6), "0"), "."); !strings.Contains(exact, ","+whole) || !strings.Contains(prices, whole) {
				t.Errorf("CSV or prices have no %s:\n%s\n%s", whole, exact, prices)
			}
			if i > 3 { // a statement takes many questions
				continue
			}
			statement := say("report", "statement", "-of", "group_id="+group, "-period", "2026-02")
			html := say("report", "statement", "-of", "group_id="+group, "-period", "2026-02", "-format", "html")
			if row := rowOf(statement, "Cost"); !strings.Contains(row, " "+want) || !strings.Contains(html, ">"+want+"<") {
				t.Errorf("statement of %s %s: %q, want %s", n.FloatString(9), currency, row, want)
			}
		}
	}
}

// grouped has thin spaces between thousands.
func grouped(text string) string {
	whole, part, point := strings.Cut(text, ".")
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "\u202f" + whole[at:]
	}
	if point {
		return whole + "." + part
	}
	return whole
}
