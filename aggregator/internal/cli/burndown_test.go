package cli_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// carbonYear is a site with a year of jobs at 10 W a core and a PUE of 1.2, 0.5 g an hour of
// a core for its making, and a CO2 factor for each hour.
type carbonYear struct {
	from, now time.Time
	jobs      []apitest.Job
	factors   []int64 // millionths of a gram for a kWh, hour by hour
}

func drawCarbonYear(chance *rand.Rand) *carbonYear {
	y := &carbonYear{from: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), now: time.Date(2026, 11, 22, 13, 0, 0, 0, time.UTC)}
	hours := int(y.now.Sub(y.from).Hours())
	for range 366 * 24 {
		y.factors = append(y.factors, chance.Int64N(600e6))
	}
	for i := range 400 {
		start := y.from.Add(time.Duration(chance.IntN(hours-80))*time.Hour + time.Duration(chance.IntN(3600))*time.Second)
		stop := start.Add(time.Duration(1+chance.IntN(10*3600)) * time.Second)
		if i%40 == 0 {
			stop = stop.Add(48 * time.Hour)
		}
		y.jobs = append(y.jobs, apitest.Job{
			ID: fmt.Sprint("j", i), Group: []string{"cms", "atlas"}[min(1, i%4)], User: "ann", Cores: 1 + chance.Int64N(4),
			Start: start.Format(time.RFC3339), Stop: stop.Format(time.RFC3339), Meta: map[string]string{"host": "n1"},
		})
	}
	return y
}

func (y *carbonYear) settings(group string) accounting.Settings {
	one := accounting.One
	s := accounting.Settings{Energy: &accounting.EnergySettings{
		Overheads: []accounting.Overhead{{From: record.MinTime, PUE: one * 12 / 10}}, Zone: "DE",
		Classes: []accounting.PowerClass{{
			Name: "node", Match: []accounting.NodeMatch{{Key: "host", Values: []string{"n*"}}},
			Draws: []accounting.Draw{{Component: "Cores", Amount: 1, Watts: 10 * one, Idle: one * 4 / 10, Busy: "TotalCPU", Embodied: one * 4383 / 1000, Years: one}},
		}},
	}}
	for i, grams := range y.factors {
		s.Energy.Factors = append(s.Energy.Factors, accounting.CO2Factor{Zone: "DE", From: record.FromStd(y.from.Add(time.Duration(i) * time.Hour)), To: record.None, Grams: grams})
	}
	s.Money.Budgets = []accounting.Budget{{
		Name: "carbon", Scope: []accounting.PriceCondition{{Key: "group_id", Value: group}}, Unit: accounting.CO2Unit,
		Amount: accounting.Billionths(big.NewInt(10e9)), Every: calendar.Year, From: record.None, To: record.None,
	}}
	return s
}

// used adds up, job by job and hour by hour, the kilograms of a group up to a time.
func (y *carbonYear) used(group string, to time.Time) *big.Rat {
	sum := new(big.Rat)
	for _, j := range y.jobs {
		if j.Group != group {
			continue
		}
		end := apitest.At(j.Stop).Std()
		for from := apitest.At(j.Start).Std(); from.Before(end) && from.Before(to); {
			next := from.Truncate(time.Hour).Add(time.Hour)
			for _, t := range []time.Time{end, to} {
				if t.Before(next) {
					next = t
				}
			}
			held := new(big.Rat).Mul(big.NewRat(int64(next.Sub(from)), int64(time.Hour)), big.NewRat(j.Cores, 1))
			grams := big.NewRat(y.factors[int(from.Sub(y.from).Hours())]*12, 1e9) // of a core in an hour: 0.012 kWh
			grams.Add(grams, big.NewRat(1, 2))
			sum.Add(sum, grams.Mul(grams, held))
			from = next
		}
	}
	return sum.Quo(sum, big.NewRat(1000, 1))
}

// sameGrams compares kilograms to a twentieth of a gram: what each week has used is answered
// to the milligram.
func sameGrams(t *testing.T, what string, got, want *big.Rat) {
	t.Helper()
	if off := new(big.Rat); got == nil || off.Abs(off.Sub(got, want)).Cmp(big.NewRat(1, 20_000)) > 0 {
		t.Errorf("%s: %v kg, want %s", what, got, want.FloatString(6))
	}
}

func TestReportBudgets_CO2OfAYear_BurnsDownAsTheSlowSum(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	y := drawCarbonYear(rand.New(rand.NewPCG(seed, 10)))
	w := apitest.New(t)
	w.Options.Now = func() time.Time { return y.now }
	w.Post(apitest.Records(y.jobs...)...)
	w.Settings = y.settings("cms")
	w.Keep()
	s := at(w.Serve())
	out := map[string]string{}
	for _, format := range []string{"table", "csv", "html", "json"} {
		code, text, stderr := s.bursar(t.Context(), "report", "budgets", "-zone", "UTC", "-format", format)
		if code != 0 {
			t.Fatalf("%s: %d %s", format, code, stderr)
		}
		out[format] = text
	}
	var d v1.Document
	if err := json.Unmarshal([]byte(out["json"]), &d); err != nil {
		t.Fatal(err)
	}
	total := y.used("cms", y.now)
	standing, down := rowsOf(&d, "budgets")[0], rowsOf(&d, "burndown-1")
	used, _ := new(big.Rat).SetString(standing[4])
	sameGrams(t, "used", used, total)
	looked := 0
	for _, row := range down {
		day, err := time.Parse(time.DateOnly, row[0])
		if err != nil {
			t.Fatal(err)
		}
		if row[1] == "" || row[1] == "null" {
			continue // the forecast
		}
		left, _ := new(big.Rat).SetString(row[1])
		sameGrams(t, "left on "+row[0], left, new(big.Rat).Sub(big.NewRat(10, 1), y.used("cms", day)))
		looked++
	}
	if looked < 40 || total.Cmp(big.NewRat(1, 1)) < 0 {
		t.Errorf("%d weeks with %s kg in all: %q", looked, total.FloatString(3), down)
	}
	for format, want := range map[string][]string{
		"table": {"carbon, left of 10 kg CO2e", "Left (kg CO2e)"}, "csv": {"kg CO2e", "until,left kg CO2e,even kg CO2e,forecast kg CO2e"}, "html": {"carbon, left of 10 kg CO2e", `data-label="Left (kg CO2e)"`},
	} {
		for _, part := range want {
			if !strings.Contains(out[format], part) {
				t.Errorf("as %s %q is not in\n%.3000s", format, part, out[format])
			}
		}
	}
}
