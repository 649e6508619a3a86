package cli

import (
	"strings"
	"testing"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestBudgetNotes_WhatIsNotUsed_NamesWhatItLacks(t *testing.T) {
	for _, c := range []struct {
		unit string
		part v1.BudgetUnpriced
		want string
	}{
		{"kg CO2e", v1.BudgetUnpriced{Component: "energy", Unit: "unit", Used: "3"}, "3 kWh of energy have no CO2 factor and are not in what is used."},
		{"kWh", v1.BudgetUnpriced{Component: "Cores", Unit: "hour", Used: "3"}, "3 core-hours have no known power and are not in what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "Cores", Unit: "hour", Used: "3"}, "3 core-hours have no price and are not in what is used."},
	} {
		b := budget{Name: "b", Unit: c.unit, BudgetStanding: &v1.BudgetStanding{Used: "1", Unpriced: []v1.BudgetUnpriced{c.part}}}
		if got := strings.Join(b.notes(), "\n"); !strings.Contains(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
