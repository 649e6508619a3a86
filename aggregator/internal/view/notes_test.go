package view_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestBudgetNotes_WhatIsNotUsed_NamesWhatItLacks(t *testing.T) {
	for _, c := range []struct {
		unit string
		part v1.BudgetUnpriced
		want string
	}{
		{"kg CO2e", v1.BudgetUnpriced{Component: "energy", Unit: "unit", Used: "3"}, "3 kWh of energy have no CO2 factor at their time and are not in what is used."},
		{"kWh", v1.BudgetUnpriced{Component: "Cores", Unit: "hour", Used: "3"}, "3 core-hours have no known power at their time and are not in what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "Cores", Unit: "hour", Used: "3"}, "3 core-hours have no price at their time and are not in what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "energy", Unit: "unit", Used: "3"}, "3 kWh of energy have no price at their time and are not in what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "energy of Cores", Unit: "hour", Used: "3"}, "3 core-hours have no known power at their time and are not in the energy of what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "co2 of energy", Unit: "unit", Used: "3"}, "3 kWh of energy have no CO2 factor at their time and are not in the CO2 of what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "GPUs:a100", Unit: "hour", Used: "3"}, "3 GPU-hours of GPUs:a100 have no price at their time and are not in what is used."},
		{"EUR", v1.BudgetUnpriced{Component: "Memory", Unit: "hour", Used: "3"}, "3 MiB-hours of Memory have no price at their time and are not in what is used."},
	} {
		b := v1.Budget{Name: "b", Unit: c.unit, BudgetStanding: &v1.BudgetStanding{Used: new(json.Number("1")), Unpriced: []v1.BudgetUnpriced{c.part}}}
		if got := strings.Join(view.BudgetNotes([]v1.Budget{b}), "\n"); got != "Budget b: "+c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestBudgetNotes_EnergyAndCO2_SayMeasuredModelledOrUnknown(t *testing.T) {
	energy := func(total, measured, without json.Number) *v1.UsageEnergy {
		return &v1.UsageEnergy{Total: total, Measured: measured, WithoutFactor: without, DefaultPue: "0", DefaultLoad: "0"}
	}
	cores := []v1.BudgetUnpriced{{Component: "Cores", Unit: "hour", Used: "3"}}
	ungraded := []v1.BudgetUnpriced{{Component: "energy", Unit: "unit", Used: "4"}}
	for name, c := range map[string]struct {
		unit string
		b    v1.BudgetStanding
		want string
	}{
		"both":           {"kWh", v1.BudgetStanding{Used: new(json.Number("8")), Energy: energy("8", "6", "0")}, "Budget b: 6 kWh (75.0 %) of energy are measured, 2 kWh (25.0 %) are modelled."},
		"partly unknown": {"kWh", v1.BudgetStanding{Used: new(json.Number("8")), Energy: energy("8", "0", "0"), Unpriced: cores}, "Budget b: 3 core-hours have no known power at their time and are not in what is used.\nBudget b: 8 kWh of energy are modelled."},
		"unknown":        {"kWh", v1.BudgetStanding{Energy: energy("0", "0", "0"), Unpriced: cores}, "Budget b: what is used is unknown, not 0.\nBudget b: 3 core-hours have no known power at their time and are not in what is used."},
		"runs unknown":   {"kWh", v1.BudgetStanding{Used: new(json.Number("1")), Energy: energy("4", "0", "0"), Unvalued: true, Running: 1}, "Budget b: the kWh of some running records are not known yet and are not reserved.\nBudget b: 4 kWh of energy are modelled."},
		"CO2 unknown":    {"kg CO2e", v1.BudgetStanding{Energy: energy("4", "4", "4"), Unpriced: ungraded}, "Budget b: what is used is unknown, not 0.\nBudget b: 4 kWh of energy are measured.\nBudget b: 4 kWh (100 %) of energy have no CO2 factor at their time and are in no CO2."},
	} {
		b := v1.Budget{Name: "b", Unit: c.unit, BudgetStanding: &c.b}
		if got := strings.ReplaceAll(strings.Join(view.BudgetNotes([]v1.Budget{b}), "\n"), "\u202f", " "); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// everything is an answer with every condition.
func everything() *v1.Usage {
	at := func(day int) v1.Time { return v1.Time{Time: time.Date(2026, 3, day, 11, 0, 0, 0, time.UTC)} }
	some, no, quarantined := 2, false, uint64(1200)
	a := &v1.Usage{}
	a.Zone, a.By, a.Records, a.Several, a.Comparable = "Europe/Berlin", []string{"user_id"}, 1063, 1, &no
	a.Window = v1.UsageSpan{From: at(1), To: at(31)}
	a.Known = &v1.KnownSpan{From: at(2), To: at(30)}
	a.Measures = []v1.Measure{
		{Name: "GPUs", Component: "GPUs", Kind: "rate", Unit: "hour", Without: &some},
		{Name: "Cores*HEP", Component: "Cores", Score: "HEP", Kind: "weighted", Unit: "hour", Without: &some, Lacking: &v1.MeasureLacking{Total: "1234.5678"}},
		{Name: "utilization", Kind: "ratio", Shared: true, Lacking: &v1.MeasureLacking{Total: "0.5"}},
		{Name: "cost", Kind: "worth", Unit: "EUR", Unpriced: []v1.MeasureUnpriced{{Component: "Cores", Unit: "hour", Total: "3"}, {Component: "Memory", Unit: "hour", Total: "0"}}},
	}
	a.Complete = v1.Complete{Open: 1, CompleteTo: at(3), Quarantined: &quarantined}
	return a
}

func TestUsageNotes_EveryCondition_HasOneSentence(t *testing.T) {
	want := `Sums are not compared: records are not known for all of both periods.
Records are known from 2026-03-02 12:00 to 2026-03-30 13:00 Europe/Berlin; the rest of the period is unknown, not 0, and does not count in averages, utilization and comparisons.
Of 1 063 records: 2 without GPUs.
2 records have Cores but no score HEP: 1 235 core-hours are not in Cores*HEP.
0.5000 core-hours are not in utilization: no capacity configured or reported for that time and cluster; see bursar capacity.
Figures of utilization by user_id are parts of the capacity of all clusters that each row can use; rows share clusters, so each figure is a share of them. For how full clusters are, group by cluster.
3 core-hours have no price at their time and are not in cost.
1 record has more than one value of user_id; the first counts.
1 record is still open; it counts up to now, or as far as its source has reported.
Records are complete to 2026-03-03 12:00 Europe/Berlin.
1 200 jobs are quarantined and not counted; see bursar quarantine list.`
	if got := strings.ReplaceAll(strings.Join(view.UsageNotes(everything(), "hour"), "\n"), "\u202f", " "); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOf_Notes_GoOnInLowerCase(t *testing.T) {
	got := view.Of("2026", []string{"Records are complete.", "2 jobs are quarantined."})
	if want := "2026: records are complete.\n2026: 2 jobs are quarantined."; strings.Join(got, "\n") != want {
		t.Errorf("got %q", got)
	}
}

// phrases are the wordings of the notes: what of the texts of notes.go stands between figures
// and has at least four words.
func phrases(t *testing.T) (list []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "notes.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range regexp.MustCompile(`%[sdq]`).Split(text, -1) {
				if len(strings.Fields(part)) >= 4 {
					list = append(list, strings.Trim(part, " .;:,"))
				}
			}
		}
		return true
	})
	return list
}

func TestNotes_Wording_StandsOnceInTheSource(t *testing.T) {
	list := phrases(t)
	if len(list) < 25 {
		t.Fatalf("only %d phrases", len(list))
	}
	where := map[string][]string{}
	conditions := regexp.MustCompile(`\.(Lacking|Comparable|Unvalued)\b|\.Several >`)
	for _, folder := range []string{"../view", "../cli", "../web", "../report", "../compat"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "/testdata/") || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".html" {
				return err
			}
			text, err := os.ReadFile(path)
			for _, p := range list {
				for range strings.Count(strings.ToLower(string(text)), strings.ToLower(p)) {
					where[p] = append(where[p], path)
				}
			}
			if found := conditions.Find(text); found != nil && folder != "../view" {
				t.Errorf("%s reads the condition %s of an answer; package view says it", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range list {
		if len(where[p]) != 1 {
			t.Errorf("%q stands in %v, want once", p, where[p])
		}
	}
}
