package web_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestAmounts_Pages_ShowTheDecimalsOfTheCurrency(t *testing.T) {
	for currency, want := range map[string][]string{
		"EUR": {"1.01", "1\u202f234\u202f567.89", "100\u202f004.50", "0.01"},
		"JPY": {"1", "1\u202f234\u202f568", "100\u202f005", "0"},
		"KWD": {"1.005", "1\u202f234\u202f567.890", "100\u202f004.500", "0.005"},
	} {
		s := newSite(t)
		list := accounting.PriceList{Name: "standard", Currency: currency, From: record.None, To: record.None}
		for i, amount := range []int64{1_005_000_000, 1_234_567_890_000_000, 100_004_500_000_000, 5_000_000} {
			group := fmt.Sprintf("g%d", i)
			is := []accounting.PriceCondition{{Key: "group_id", Value: group}}
			list.Rules = append(list.Rules, accounting.PriceRule{Component: "Cores", Billionths: amount, When: is})
			s.Settings.Money.Budgets = append(s.Settings.Money.Budgets, accounting.Budget{Name: group, Scope: is, Unit: currency, Amount: accounting.Billionths(big.NewInt(amount)), Every: calendar.Year, From: record.None, To: record.None})
			s.Post(job(group, "2026-02-26", group, group, 1))
		}
		s.Settings.Money.Lists = []accounting.PriceList{list}
		s.Keep()
		s.pages.Derivation = s.Options.Derivation
		for _, path := range []string{"/ui/usage?window=2026-02&by=group_id&measure=cost", "/ui/reports?report=usage&period=2026-02&by=group_id&measure=cost", "/ui/budgets"} {
			_, body, _ := s.get(path)
			for _, text := range want {
				if !strings.Contains(body, ">"+text+"<") {
					t.Errorf("%s in %s has no %s", path, currency, text)
				}
			}
		}
		for i, text := range want {
			if _, body, _ := s.get(fmt.Sprintf("/ui/record?id=g%d", i)); !strings.Contains(body, ">"+text+"\u202f"+currency+"<") {
				t.Errorf("the record g%d has no cost of %s %s", i, text, currency)
			}
		}
	}
}
