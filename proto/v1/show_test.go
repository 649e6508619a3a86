package v1_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestShowIn_Money_RoundsTheDecimalHalfAwayFromZero(t *testing.T) {
	minor := map[string]int{"EUR": 2, "JPY": 0, "KWD": 3, "CLF": 4, "credits": 2, "": 2}
	rapid.Check(t, func(t *rapid.T) {
		currency := rapid.SampledFrom([]string{"EUR", "JPY", "KWD", "CLF", "credits", ""}).Draw(t, "currency")
		// A tenth of a step, so that halves are among them, of amounts of all sizes.
		n := rapid.OneOf(rapid.Int64Range(-200, 200), rapid.Int64()).Draw(t, "n")*10 + rapid.SampledFrom([]int64{0, 5, 4, 6}).Draw(t, "rest")
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(minor[currency]+1)), nil)
		amount := new(big.Rat).SetFrac(big.NewInt(n), scale)
		want := amount.FloatString(minor[currency])
		if strings.Trim(want, "-0.") == "" {
			want = strings.TrimPrefix(want, "-")
		}
		for _, kind := range []string{"money", "number"} {
			if kind == "number" && currency == "" {
				continue
			}
			got := v1.ShowIn(kind, currency, v1.Rat(amount))
			if got = strings.ReplaceAll(strings.Replace(got, "−", "-", 1), "\u202f", ""); got != want {
				t.Fatalf("%s %s is shown as %s, want %s", amount.FloatString(9), currency, got, want)
			}
		}
	})
}

func TestShowIn_UnitsOfUsage_AreNoMoney(t *testing.T) {
	for _, unit := range []string{"", "hour", "seconds", "SU", "su", "kWh", "kg CO2e", "kg", "core-hours", "GB-hours", "hours of one", "%", "jobs"} {
		if v1.Currency(unit) {
			t.Errorf("%q is taken for a currency", unit)
		}
	}
	n := v1.Rational("1234567.89")
	for unit, want := range map[string]string{"core-hours": "1\u202f234\u202f568", "EUR": "1\u202f234\u202f567.89"} {
		table := v1.DocumentTable{Columns: []v1.DocumentTableColumn{{Name: "unit", Kind: "text"}, {Name: "used", Kind: "number"}}}
		if got := table.Show([]v1.Cell{v1.Words(unit), v1.Rat(n)}, 1); got != want {
			t.Errorf("%s: %s, want %s", unit, got, want)
		}
	}
}
