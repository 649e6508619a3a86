package config_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
)

// metersOf are the meters that are committed.
func metersOf(t *testing.T, c *config.Config) []accounting.Meter {
	t.Helper()
	d, err := clusterconfig.Decode(c.Shared().Encode())
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadShared(d)
	if err != nil {
		t.Fatal(err)
	}
	return s.Energy.Meters
}

// joulesText is the energy of a reading in J, to the billionth.
func joulesText(m accounting.Meter, i int) string {
	return new(big.Rat).SetFrac(m.Readings[i].Energy.Big(), big.NewInt(1e12)).FloatString(3)
}

// A reading of a regular file lasts a step, and never over the hours of a hole.
func TestMeter_RandomFile_ReadingsAreThoseOfItsRows(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	units := []string{"wh", "kwh", "mwh", "joules"}
	perUnit := map[string]int64{"wh": 3600, "kwh": 3_600_000, "mwh": 3_600_000_000, "joules": 1}
	for range 20 {
		unit := units[r.IntN(len(units))]
		begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		var want, lines []string
		holes, hole := 0, false
		for i := range 48 + r.IntN(50) {
			at := begin.Add(time.Duration(i) * time.Hour)
			switch {
			case i > 0 && r.IntN(12) == 0:
				if hole = true; r.IntN(2) == 0 {
					lines = append(lines, fmt.Sprintf("x,%s,%s", at.Format(time.DateTime), []string{"", "NaN", "null"}[r.IntN(3)]))
				}
				continue
			case hole:
				holes, hole = holes+1, false
			}
			thousandths := r.Int64N(1e9)
			lines = append(lines, fmt.Sprintf("x,%s,%d.%03d", at.Format(time.DateTime), thousandths/1000, thousandths%1000))
			joules := big.NewRat(thousandths, 1000)
			want = append(want, fmt.Sprintf("%s %s %s", at.Format(time.RFC3339), at.Add(time.Hour).Format(time.RFC3339), joules.Mul(joules, big.NewRat(perUnit[unit], 1)).FloatString(3)))
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		c, diags := withFactors(t, fmt.Sprintf("meter \"hall\" {\n path = \"co2.csv\"\n columns = { from = \"Time\", %s = \"active energy\" }\n}", unit), "other,time,Active energy\n"+strings.Join(lines, "\n"))
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		list := metersOf(t, c)
		if len(list) != 1 || list[0].Name != "hall" {
			t.Fatalf("seed %d: %v", seed, list)
		}
		var got []string
		for i, m := range list[0].Readings {
			got = append(got, fmt.Sprintf("%s %s %s", m.From, m.To, joulesText(list[0], i)))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: got\n%s\nwant\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if named := strings.Count(diags.Error(), `meter "hall" has no reading from`); named != min(holes, 10) {
			t.Fatalf("seed %d: %d holes, and the warnings are %v", seed, holes, diags.Warnings())
		}
	}
}

func TestMeter_MonthlyFile_ReadingsLastUntilTheNext(t *testing.T) {
	c, diags := withFactors(t, `meter "site" {
 path = "co2.csv"
}`, "from,kwh\n2026-01-01,100\n2026-02-01,90.5\n2026-03-01,\n")
	if diags.HasErrors() || len(diags.Warnings()) > 0 {
		t.Fatal(diags)
	}
	list := metersOf(t, c)
	if len(list) != 1 || len(list[0].Readings) != 2 || list[0].Readings[1].To.String() != "2026-03-01T00:00:00Z" || joulesText(list[0], 1) != "325800000.000" {
		t.Error(list)
	}
	_, diags = withFactors(t, `meter "site" {
 path = "co2.csv"
}`, "from,kwh\n2026-01-01,100\n2026-02-01,90.5\n")
	if text := diags.Error(); !strings.Contains(text, `the last reading of meter "site", from 2026-02-01T00:00:00Z, has no end and is left out; set step, or add a column to`) {
		t.Error(text)
	}
}

func TestMeter_Wrong_IsRefusedWithWhatItHas(t *testing.T) {
	for _, c := range []struct{ columns, text, want string }{
		{`columns = { from = "datetime" }`, "time,kwh\n", `co2.csv: column "datetime" not found: the file has time, kwh`},
		{`columns = { power = "kw" }`, "from,kw\n", `unknown column "power": use from, to, kwh, wh, mwh, joules`},
		{``, "from,kw\n", `columns of the time and of the energy not found: set columns = { from = …, kwh = … }; the file has from, kw`},
		{``, "from,kwh\n2026-01-01,-3\n", `co2.csv:2:1: wrong row; meter "site": kwh: `},
		{``, "from,kwh\nyesterday,3\n", `co2.csv:2:1: wrong row; meter "site": from "yesterday": use a date or a time, such as 2026-01-01T00:00:00Z`},
		{``, "from,to,kwh\n2026-01-01,2026-01-03,3\n2026-01-02,2026-01-04,3\n", `meter "site" has two readings for the time from 2026-01-02T00:00:00Z`},
		{``, "from,kwh\n2026-01-01,3\n2026-01-01,3\n2026-01-02,\n", `meter "site" has two readings for the time from 2026-01-01T00:00:00Z`},
		{`step = "soon"`, "from,kwh\n2026-01-01,3\n", `invalid step "soon": use a duration such as 1h or 15m, or next`},
	} {
		_, diags := withFactors(t, "meter \"site\" {\n path = \"co2.csv\"\n"+c.columns+"\n}", c.text)
		if text := diags.Error(); !diags.HasErrors() || !strings.Contains(text, c.want) {
			t.Errorf("%s is not in\n%s", c.want, text)
		}
	}
}
