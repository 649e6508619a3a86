package config_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// withFactors loads a block energy with a file co2.csv.
func withFactors(t *testing.T, block, text string) (*config.Config, hcl.Diagnostics) {
	t.Helper()
	return withFactorFiles(t, block, map[string]string{"co2.csv": text})
}

// withFactorFiles loads a block energy beside files.
func withFactorFiles(t *testing.T, block string, files map[string]string) (*config.Config, hcl.Diagnostics) {
	t.Helper()
	dir := t.TempDir()
	files["a.hcl"] = "aggregator {\n name = \"a\"\n data_dir = \"/d\"\n}\nenergy {\n" + block + "\n}"
	defer delete(files, "a.hcl")
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, _, diags := config.Load(filepath.Join(dir, "a.hcl"))
	return c, diags
}

// factorsOf are the factors that are committed.
func factorsOf(t *testing.T, c *config.Config) []accounting.CO2Factor {
	t.Helper()
	d, err := clusterconfig.Decode(c.Shared().Encode())
	if err != nil {
		t.Fatal(err)
	}
	s, err := config.ReadShared(d)
	if err != nil {
		t.Fatal(err)
	}
	return s.Energy.Factors
}

// gramsAt is the factor at a time, in millionths; negative where there is none.
func gramsAt(list []accounting.CO2Factor, at record.Time) int64 {
	grams := int64(-1)
	for _, f := range list {
		if f.From <= at {
			if grams = f.Grams; f.To.Present() && f.To <= at {
				grams = -1
			}
		}
	}
	return grams
}

// A value of a regular file holds for a step, and never for the hours of another row.
func TestFactors_RegularFileWithHoles_HoursOfHolesAreUnknown(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 15 {
		step := []time.Duration{15 * time.Minute, 30 * time.Minute, time.Hour}[r.IntN(3)]
		begin := time.Date(2026, 3, 1, r.IntN(24), 0, 0, 0, time.UTC)
		n := 60 + r.IntN(100)
		want := make([]int64, n+4) // by step
		var lines []string
		missing, from := time.Duration(0), -1 // the last value before a hole
		for i := range want {
			want[i] = -1
			first, last := i == 0, i == n-1
			switch kind := r.IntN(20); {
			case i >= n:
				continue
			case kind == 0 && !first && !last: // no row
				continue
			case kind == 1 && !first && !last: // no value
				lines = append(lines, begin.Add(time.Duration(i)*step).Format(time.DateTime)+",x,"+[]string{"", "NaN", "null"}[r.IntN(3)])
				continue
			}
			want[i] = r.Int64N(900_000_000)
			lines = append(lines, fmt.Sprintf("%s,x,%d.%06d", begin.Add(time.Duration(i)*step).Format(time.DateTime), want[i]/1_000_000, want[i]%1_000_000))
			if from >= 0 {
				missing += time.Duration(i-from-1) * step
			}
			from = i
		}
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		c, diags := withFactors(t, `zone = "DE"
 factor_file {
  path    = "co2.csv"
  zone    = "DE"
  columns = { from = "datetime_utc", g_per_kwh = "Carbon intensity" }
 }`, "datetime_utc,source,carbon intensity\n"+strings.Join(lines, "\n"))
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		list := factorsOf(t, c)
		for i, want := range want {
			for _, at := range []time.Time{begin.Add(time.Duration(i) * step), begin.Add(time.Duration(i+1)*step - time.Microsecond)} {
				if got := gramsAt(list, record.Time(at.UnixMicro())); got != want {
					t.Fatalf("seed %d: at %s: got %d, want %d", seed, at, got, want)
				}
			}
		}
		if warned := len(diags.Warnings()) > 0; warned != (missing > 0) {
			t.Fatalf("seed %d: %s are missing, and the warnings are %v", seed, missing, diags.Warnings())
		}
	}
}

func TestFactors_Gaps_AreNamedWithZoneTimeAndHours(t *testing.T) {
	var hours []string
	for h := range 48 {
		if h != 5 && h != 20 && h != 21 {
			hours = append(hours, fmt.Sprintf("DE,2026-03-%02dT%02d:00:00Z,300", 1+h/24, h%24))
		}
	}
	_, diags := withFactors(t, `factors = ["co2.csv"]`, "zone,from,g_per_kwh\n"+strings.Join(hours, "\n"))
	text := diags.Error()
	for _, want := range []string{
		`co2.csv:7:1: warning: gap in factors; zone "DE" has no factor from 2026-03-01T05:00:00Z to 2026-03-01T06:00:00Z (1 hour)`,
		`co2.csv:21:1: warning: gap in factors; zone "DE" has no factor from 2026-03-01T20:00:00Z to 2026-03-01T22:00:00Z (2 hours)`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is not in\n%s", want, text)
		}
	}
	// 20 holes of half an hour: ten are named, and the others counted.
	hours = nil
	for h := range 400 {
		if h%20 != 10 {
			hours = append(hours, "DE,"+time.Date(2026, 3, 1, 0, 30*h, 0, 0, time.UTC).Format(time.RFC3339)+",300")
		}
	}
	_, diags = withFactors(t, `factors = ["co2.csv"]`, "zone,from,g_per_kwh\n"+strings.Join(hours, "\n"))
	if list := diags.Warnings(); len(list) != 11 || !strings.Contains(list[10].Error(), "10 more gaps, 5 hours in all") || !strings.Contains(list[0].Error(), "(0.5 hours)") {
		t.Error(list)
	}
}

func TestFactors_YearlyAndDated_HoldUntilTheNext(t *testing.T) {
	at := func(year int) record.Time {
		return record.Time(time.Date(year, 7, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	}
	const owid = "Entity,Code,Year,Carbon intensity of electricity - gCO2/kWh\nASEAN (Ember),,2022,572.52\nGermany,DEU,2021,402.0683594\nGermany,DEU,2022,\nGermany,DEU,2023,371.1\nFrance,FRA,2023,56\n"
	for name, c := range map[string]struct{ block, text string }{
		"owid by name": {`factor_file {
  path   = "co2.csv"
  format = "owid"
  entity = "Germany"
  zone   = "DE"
 }`, owid},
		"owid by code": {`factor_file {
  path   = "co2.csv"
  format = "owid"
  entity = "DEU"
  zone   = "DE"
 }`, strings.Replace(owid, " - gCO2/kWh", " per kWh", 1)},
		"plain": {`factors = ["co2.csv"]`, "zone,from,g_per_kwh\nDE,2021-01-01,402.068359\nDE,2022-01-01,\nDE,2023-01-01,371.1\nFR,2023-01-01,56\n"},
	} {
		cfg, diags := withFactors(t, c.block, c.text)
		if diags.HasErrors() {
			t.Fatal(name, diags.Err())
		}
		list := factorsOf(t, cfg)
		list = slices.DeleteFunc(list, func(f accounting.CO2Factor) bool { return f.Zone != "DE" })
		var got []int64
		for year := 2020; year < 2030; year += 1 + year/2024*5 {
			got = append(got, gramsAt(list, at(year)))
		}
		if want := []int64{-1, 402_068_359, -1, 371_100_000, 371_100_000}; !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
		if text := diags.Error(); !strings.Contains(text, `zone "DE" has no factor from 2022-01-01T00:00:00Z to 2023-01-01T00:00:00Z (8760 hours)`) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestFactorFile_Step_IsThatOfTheBlock(t *testing.T) {
	const text = "time,g\n2026-03-01 00:00,300\n2026-03-01 03:00,400\n"
	for step, want := range map[string]int64{"": 300_000_000, "next": 300_000_000, "1h": -1} {
		c, diags := withFactors(t, fmt.Sprintf("factor_file {\n path = \"co2.csv\"\n zone = \"DE\"\n step = %q\n columns = { from = \"time\", g_per_kwh = \"g\" }\n}", step), text)
		if diags.HasErrors() {
			t.Fatal(diags.Err())
		}
		if got := gramsAt(factorsOf(t, c), record.Time(time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC).UnixMicro())); got != want {
			t.Errorf("step %q: got %d, want %d", step, got, want)
		}
	}
}

func TestFactorFile_Wrong_IsRefusedWithWhatItHas(t *testing.T) {
	for _, c := range []struct{ block, text, want string }{
		{`columns = { from = "datetime" }`, "time,g_per_kwh\n", `co2.csv: column "datetime" not found: the file has time, g_per_kwh`},
		{`columns = { when = "time" }`, "time,g_per_kwh\n", `unknown column "when": use zone, from, to, g_per_kwh`},
		{`zone = "DE"`, "time,g_per_kwh\n", `set columns = { from = …, g_per_kwh = … }; the file has time, g_per_kwh`},
		{``, "from,g_per_kwh\n", "set either zone, of all rows, or columns.zone"},
		{`format = "owid"`, "Entity,Code,Year,x\n", "format owid needs the column Entity and entity"},
		{`zone = "DE"`, "zone,from,g_per_kwh\nGermany,2026-01-01,300\n", `zone "DE" not found: the first row has "Germany"`},
		{"format = \"owid\"\n entity = \"Germny\"\n zone = \"DE\"", "Entity,Code,Year,Carbon intensity of electricity\nGermany,DEU,2023,3\n", `entity "Germny" not found`},
		{"zone = \"DE\"\n step = \"soon\"", "from,g_per_kwh\n2026-01-01,300\n", `invalid step "soon"`},
		{`zone = "DE"`, "from,g_per_kwh\n2026-01-01,300\nyesterday,3\n", "co2.csv:3"},
		{`zone = "DE"`, "from,g_per_kwh\n2026-01-01,many\n", "g_per_kwh"},
	} {
		_, diags := withFactors(t, "factor_file {\n path = \"co2.csv\"\n"+c.block+"\n}", c.text)
		if err := diags.Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %q: got %v, want %q", c.block, c.text, err, c.want)
		}
	}
}

func TestFactors_OverlapsAndSecondZones_AreNamedWithLines(t *testing.T) {
	for name, c := range map[string]struct {
		block, text string
		want        []string
	}{
		"overlap": {`factors = ["co2.csv"]`, "zone,from,to,g_per_kwh\nDE,2026-01-01,2026-02-01,300\n\nDE,2026-01-15,,310\n", []string{
			`co2.csv:4:1: warning: overlapping factors; zone "DE" has two factors from 2026-01-15T00:00:00Z to 2026-02-01T00:00:00Z (408 hours), here and in co2.csv:2: CO2 of that time is not known`,
		}},
		"twice": {`factors = ["co2.csv"]`, "zone,from,g_per_kwh\nDE,2026-01-01,300\nDE,2026-01-01,310\n", []string{
			`co2.csv:3:1: warning: overlapping factors; zone "DE" has two factors from 2026-01-01T00:00:00Z on, here and in co2.csv:2`,
		}},
		"two files": {"factors = [\"co2.csv\"]\n factor_file {\n path = \"co2.csv\"\n zone = \"DE\"\n}", "zone,from,to,g_per_kwh\nDE,2026-01-01,2026-01-02,300\n", []string{
			`co2.csv:2:1: warning: overlapping factors; zone "DE" has two factors from 2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z (24 hours), here and in co2.csv:2`,
		}},
		"second zone": {`factors = ["co2.csv"]`, "zone,from,g_per_kwh\nDE,2026-01-01,300\nFR,2026-02-01,40\nDE,2026-03-01,310\n", []string{
			`co2.csv:3:1: warning: second zone; co2.csv: 1 row of zone "FR" beside "DE" is left out: CO2 of that time is not known where "DE" has no row for it`,
			`co2.csv:4:1: warning: gap in factors; zone "DE" has no factor from 2026-02-01T00:00:00Z to 2026-03-01T00:00:00Z (672 hours)`,
		}},
		"beside zone of the block": {"factor_file {\n path = \"co2.csv\"\n zone = \"DE\"\n}", "zone,from,g_per_kwh\nDE,2026-01-01,300\nFR,2026-01-01,40\nFR,2027-01-01,41\nDE,2027-01-01,310\n", []string{
			`co2.csv:3:1: warning: second zone; co2.csv: 2 rows of zone "FR" beside "DE" are left out`,
		}},
		"two zones that are used": {"factors = [\"co2.csv\"]\n class \"lyon\" {\n match = { site_id = [\"lyon\"] }\n zone = \"FR\"\n}", "zone,from,g_per_kwh\nDE,2026-01-01,300\nFR,2026-02-01,40\nES,2026-03-01,41\n", []string{
			`co2.csv:4:1: warning: second zone; co2.csv: 1 row of zone "ES", which neither the site nor a class has, is not used`,
		}},
	} {
		_, diags := withFactors(t, "zone = \"DE\"\n "+c.block, c.text)
		if err := diags.Err(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		list := diags.Warnings()
		if len(list) != len(c.want) {
			t.Errorf("%s: got %v", name, list)
		}
		for _, want := range c.want {
			if !strings.Contains(diags.Error(), want) {
				t.Errorf("%s: %s is not in\n%s", name, want, diags.Error())
			}
		}
	}
}

// modelRow is a row of a file of factors, in hours.
type modelRow struct {
	zone     string
	from, to int // to is 0 where the row has none
	grams    int64
}

// end is where the row of a zone ends: with its own end, or where another row of its file, or a
// factor of any file, begins.
func (r modelRow) end(files [][]modelRow, file int, zone string) int {
	end := 1_000
	if r.to > 0 {
		return r.to
	}
	for i, rows := range files {
		for _, o := range rows {
			if o.from > r.from && (i == file || o.zone == zone && o.grams >= 0) {
				end = min(end, o.from)
			}
		}
	}
	return end
}

// What is committed has for each hour what a plain look at all rows has for it: the factor that
// alone holds then, or none.
func TestFactors_RandomOverlapsAndZones_HoursAreThoseOfAPlainLook(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	instant := func(hour int) time.Time { return begin.Add(time.Duration(hour) * time.Hour) }
	for range 60 {
		isHourly := r.IntN(2) == 0
		hours := 60
		files := make([][]modelRow, 1+r.IntN(2))
		for i := range files {
			row := func(from, to int) {
				m := modelRow{"DE", from, to, r.Int64N(900_000_000)}
				switch r.IntN(25) {
				case 0:
					m.zone = "FR"
				case 1:
					m.grams = -1
				}
				files[i] = append(files[i], m)
			}
			if !isHourly {
				for range 1 + r.IntN(12) {
					from := r.IntN(hours)
					row(from, []int{0, from + 1 + r.IntN(8)}[r.IntN(2)])
				}
				continue
			}
			missing := 0
			for h := i * hours / 2; h < (i+1)*hours/2+2; h++ { // two files have two hours both
				times := []int{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2}[r.IntN(20)]
				if missing == 3 { // with more it would not be regular
					times = max(times, 1)
				}
				missing += max(0, 1-times)
				for range times {
					row(h, h+1)
				}
			}
		}
		config := `zone = "DE"
 factors = [`
		texts := map[string]string{}
		foreign, twice := false, false
		for i, rows := range files {
			if !slices.ContainsFunc(rows, func(m modelRow) bool { return m.zone == "DE" && m.grams >= 0 }) {
				rows = append(rows, modelRow{"DE", hours + 20, 0, 1})
				files[i] = rows
			}
			r.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			text := "zone,from,to,g_per_kwh\n"
			for _, m := range rows {
				foreign = foreign || m.zone != "DE"
				to, grams := "", ""
				if m.to > 0 && !isHourly { // of an hourly file the step is the end
					to = instant(m.to).Format(time.RFC3339)
				}
				if m.grams >= 0 {
					grams = fmt.Sprintf("%d.%06d", m.grams/1_000_000, m.grams%1_000_000)
				}
				text += fmt.Sprintf("%s,%s,%s,%s\n", m.zone, instant(m.from).Format(time.RFC3339), to, grams)
			}
			name := fmt.Sprintf("co2-%d.csv", i)
			texts[name] = text
			config += fmt.Sprintf("%q, ", name)
		}
		c, diags := withFactorFiles(t, config+"]", texts)
		if diags.HasErrors() {
			t.Fatalf("seed %d: %v\n%v", seed, diags.Err(), texts)
		}
		list := slices.DeleteFunc(factorsOf(t, c), func(f accounting.CO2Factor) bool { return f.Zone != "DE" })
		for h := range hours + 10 {
			want, holding := int64(-1), 0
			for i, rows := range files {
				for _, m := range rows {
					if m.zone == "DE" && m.grams >= 0 && m.from <= h && h < m.end(files, i, "DE") {
						want = m.grams
						holding++
					}
				}
			}
			if holding > 1 {
				want, twice = -1, true
			}
			for _, at := range []time.Time{instant(h), instant(h + 1).Add(-time.Microsecond)} {
				if got := gramsAt(list, record.Time(at.UnixMicro())); got != want {
					t.Fatalf("seed %d: at %s: got %d, want %d of\n%v", seed, at, got, want, texts)
				}
			}
		}
		text := diags.Error()
		if strings.Contains(text, "second zone") != foreign || strings.Contains(text, "overlapping factors") != twice {
			t.Fatalf("seed %d: other zones %v, overlaps %v, and the warnings are %s", seed, foreign, twice, text)
		}
	}
}
