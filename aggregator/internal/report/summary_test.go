package report_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"iter"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const threeDays = "2025-03-01..2025-03-03"

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if f := flag.Lookup("update"); f.Value.String() == "true" {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s: -want +got\n%s", name, diff)
	}
}

func summaryOf(t *testing.T, c v1.Caller, o report.SummaryOptions) *report.Document {
	t.Helper()
	o.Now = apitest.RecordedNow()
	d, err := report.Summary(t.Context(), v1.API{Caller: c}, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// place is where a table has a column.
func place(t *testing.T, table *report.Table, name string) int {
	t.Helper()
	at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("the table %s has no column %s: %+v", table.Name, name, table.Columns)
	}
	return at
}

// figure is a number of a row to so many places; 0 where there is none.
func figure(t *testing.T, table *report.Table, row []report.Cell, name string, places int) string {
	t.Helper()
	n := row[place(t, table, name)].Number()
	if n == nil {
		n = new(big.Rat)
	}
	return n.FloatString(places)
}

// truth writes a table by namespace, job and owner, and one by namespace, as the
// fixture has the truth.
func truth(t *testing.T, jobs, sums *report.Table) string {
	t.Helper()
	var out strings.Builder
	for _, ns := range []string{"ai4eosc", "imagine", "ai4life", "tutorials"} {
		fmt.Fprintln(&out, ns)
		var lines []string
		for _, row := range jobs.Rows {
			if row[0].String() != ns {
				continue
			}
			name, owner := row[1].String(), row[2].String()
			switch {
			case owner == "(none)":
				owner = "None"
			case strings.HasPrefix(name, "traefik"):
				name = "-T"
			}
			mean := row[place(t, jobs, "running")].Number()
			hours := new(big.Rat).Mul(mean, big.NewRat(72, 1)).FloatString(4)
			lines = append(lines, fmt.Sprintf("  %s  owner=%-5s%9s h  cpu %10s gpu %8s\n", name[len(name)-1:], owner, hours, figure(t, jobs, row, "Cores", 4), figure(t, jobs, row, "GPUs", 4)))
		}
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, ""))
		for _, row := range sums.Rows {
			if row[0].String() == ns {
				fmt.Fprintf(&out, "  total cpu-hours %s gpu-hours %s memory_MB-hours %s disk_MB-hours %s\n", figure(t, sums, row, "Cores", 4), figure(t, sums, row, "GPUs", 4), figure(t, sums, row, "Memory", 2), figure(t, sums, row, "Disk", 2))
			}
		}
	}
	return out.String()
}

func TestTheSummaryOfAi4sClusterIsTheTruth(t *testing.T) {
	want, err := os.ReadFile("testdata/ai4-truth.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	jobs := summaryOf(t, c, report.SummaryOptions{Periods: []string{threeDays}, By: []string{"namespace", "job", "user_id"}})
	sums := summaryOf(t, c, report.SummaryOptions{Periods: []string{threeDays}, By: []string{"namespace"}})
	if diff := cmp.Diff(string(want), truth(t, jobs.Table(0), sums.Table(0))); diff != "" {
		t.Errorf("(-truth +bursar)\n%s", diff)
	}
	usage, err := report.Usage(t.Context(), v1.API{Caller: c}, report.UsageOptions{Periods: []string{threeDays}, By: "namespace", Now: apitest.RecordedNow()})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range usage.Tables[0].Rows {
		for _, other := range sums.Tables[0].Rows {
			for _, m := range []string{"Cores", "GPUs", "Memory", "Disk", "MHz"} {
				if a, b := figure(t, usage.Table(0), row, m, 4), figure(t, sums.Table(0), other, m, 4); row[0] == other[0] && a != b {
					t.Errorf("%s %s: %s in the usage, %s in the summary", row[0], m, a, b)
				}
			}
		}
	}
	if got := figure(t, usage.Table(0), usage.Tables[0].Totals, "Cores", 4); got != "2189.6821" {
		t.Errorf("%s core-hours in total", got)
	}
}

func TestTheDaysOfASummaryAddUpToIt(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	whole := summaryOf(t, c, report.SummaryOptions{Periods: []string{threeDays}})
	tables := map[string]*report.Table{}
	for i := range whole.Tables {
		tables[whole.Tables[i].Name] = whole.Table(i)
	}
	single := map[string]*big.Rat{}
	for _, day := range []string{"2025-03-01", "2025-03-02", "2025-03-03"} {
		d := summaryOf(t, c, report.SummaryOptions{Periods: []string{day}})
		for _, row := range d.Tables[0].Rows {
			add(single, row[0].String()+" "+row[1].String(), row[place(t, d.Table(0), "Cores")], 1)
		}
	}
	daily, course := map[string]*big.Rat{}, map[string]*big.Rat{}
	for _, row := range tables["daily"].Rows {
		add(daily, row[1].String()+" "+row[2].String(), row[place(t, tables["daily"], "Cores")], 24)
	}
	for _, row := range tables["course"].Rows {
		for i, cell := range row[1:] {
			add(course, tables["course"].Columns[i+1].Title, cell, 24)
		}
	}
	groups := map[string]*big.Rat{}
	for _, row := range tables["summary"].Rows {
		n := row[place(t, tables["summary"], "Cores")]
		add(groups, row[0].String(), n, 1)
		who := row[0].String() + " " + row[1].String()
		for name, sum := range map[string]*big.Rat{"of the single days": single[who], "of the table by day": daily[who]} {
			if sum == nil || sum.FloatString(4) != n.Number().FloatString(4) {
				t.Errorf("%s: %s, and the sum %s is %v", who, n, name, sum)
			}
		}
	}
	for group, sum := range groups {
		if course[group] == nil || course[group].FloatString(4) != sum.FloatString(4) {
			t.Errorf("%s: %v, and its course adds up to %v", group, sum, course[group])
		}
	}
}

func add(sums map[string]*big.Rat, name string, c report.Cell, times int64) {
	if sums[name] == nil {
		sums[name] = new(big.Rat)
	}
	if c.Number() != nil {
		sums[name].Add(sums[name], new(big.Rat).Mul(c.Number(), big.NewRat(times, 1)))
	}
}

func TestASummaryIsWrittenInAllForms(t *testing.T) {
	d := summaryOf(t, apitest.Recorded(t, apitest.RecordedByNomad), report.SummaryOptions{Periods: []string{threeDays, "2025-02"}, Top: 8})
	for ending, write := range map[string]func(*bytes.Buffer) error{
		"json": func(b *bytes.Buffer) error { return d.WriteJSON(b) },
		"csv":  func(b *bytes.Buffer) error { return d.WriteCSV(b) },
		"html": func(b *bytes.Buffer) error { return d.WriteHTML(b) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		golden(t, "summary."+ending, b.Bytes())
	}
}

func TestASummaryOfWhatIsNotThereSaysSoAndNamesWhatIsNear(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	for _, o := range []struct {
		report.SummaryOptions
		says string
	}{
		{report.SummaryOptions{Periods: []string{"2031"}}, "no record ran in 2031"},
		{report.SummaryOptions{Periods: []string{threeDays}, Where: map[string]string{"group_id": "imagines"}}, `did you mean "imagine"?`},
	} {
		_, err := report.Summary(t.Context(), v1.API{Caller: c}, o.SummaryOptions)
		if !errors.Is(err, report.ErrNothing) || !strings.Contains(err.Error(), o.says) {
			t.Errorf("%+v: %v, want %s", o.SummaryOptions, err, o.says)
		}
	}
}

// counting counts how often a path is asked, each of which is one reading of the store.
type counting struct {
	apitest.As

	asked map[string]int
}

func (c counting) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	c.asked[path]++
	return c.As.Call(ctx, method, path, query, in, into)
}

func (c counting) Stream(ctx context.Context, path string, query url.Values) iter.Seq2[json.RawMessage, error] {
	c.asked[path]++
	return c.As.Stream(ctx, path, query)
}

func TestEfficiency_JobsOfAPeriod_AreReadOnce(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	periods := []string{"2025-03", "2025-02"}
	for _, scan := range []int{1, 2, 5, 20_000, 50_000} {
		r := counting{c, map[string]int{}}
		d, err := report.Efficiency(t.Context(), v1.API{Caller: r}, report.EfficiencyOptions{Periods: periods, Scan: scan, Now: time.Date(2025, 3, 5, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		if n := r.asked["/v1/records"]; n != len(periods) {
			t.Errorf("%d jobs: the records were read %d times in %d periods", scan, n, len(periods))
		}
		if cut := strings.Contains(strings.Join(d.Notes, "\n"), fmt.Sprintf("more than %d jobs", scan)); cut != (scan < 20) {
			t.Errorf("%d jobs: %v", scan, d.Notes)
		}
	}
}

// nameless is a reader who may not see the directory.
type nameless struct{ v1.Caller }

func (n nameless) Call(ctx context.Context, method, path string, query url.Values, in, into any) error {
	if path == "/v1/directory" {
		return &client.Problem{Status: http.StatusForbidden, Title: "no"}
	}
	return n.Caller.Call(ctx, method, path, query, in, into)
}

func TestWhoMayNotSeeTheDirectoryGetsASummaryWithoutNames(t *testing.T) {
	d := summaryOf(t, nameless{apitest.Recorded(t, apitest.RecordedByNomad)}, report.SummaryOptions{Periods: []string{threeDays}})
	if len(d.Tables) != 4 || d.Tables[0].Columns[2].Name == "name" || !slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, "Names, addresses") }) {
		t.Error(d.Tables[0].Columns, d.Notes)
	}
}

func TestGroupsThatCannotBeToldApartInAChartAreOne(t *testing.T) {
	d := summaryOf(t, apitest.Recorded(t, apitest.RecordedByNomad), report.SummaryOptions{Periods: []string{threeDays}, By: []string{"job"}})
	course := d.Tables[slices.IndexFunc(d.Tables, func(t v1.DocumentTable) bool { return t.Name == "course" })]
	if n := len(course.Columns); n != 9 || course.Columns[8].Name != "(7 others)" {
		t.Error(course.Columns)
	}
}

func TestASummaryByNameIsTheOneOfItsOptions(t *testing.T) {
	c := apitest.Recorded(t, apitest.RecordedByNomad)
	got, err := report.Make(t.Context(), v1.API{Caller: c}, "summary", url.Values{"period": {threeDays}, "by": {"namespace,user_id"}, "where[namespace]": {"imagine"}, "measure": {"Cores"}, "bucket": {"week"}, "top": {"2"}}, apitest.RecordedNow())
	if err != nil {
		t.Fatal(err)
	}
	want := summaryOf(t, c, report.SummaryOptions{Periods: []string{threeDays}, Zone: "UTC", By: []string{"namespace", "user_id"}, Where: map[string]string{"namespace": "imagine"}, Measure: []string{"Cores"}, Bucket: "week", Top: 2})
	var a, b bytes.Buffer
	if err := errors.Join(got.WriteJSON(&a), want.WriteJSON(&b)); err != nil || a.String() != b.String() || !strings.Contains(a.String(), "2025-W09") {
		t.Errorf("%v\n%s\nwant\n%s", err, &a, &b)
	}
}

func TestAPeriodMayStandBesideItself(t *testing.T) {
	d := summaryOf(t, apitest.Recorded(t, apitest.RecordedByNomad), report.SummaryOptions{Periods: []string{"2025-03-02", "2025-03-02"}, By: []string{"group_id"}})
	for _, row := range d.Tables[0].Rows {
		name := "Cores 2025-03-02 to 2025-03-02"
		if a, b := figure(t, d.Table(0), row, name, 9), figure(t, d.Table(0), row, name+" again", 9); a != b {
			t.Errorf("%s: %s and %s", row[0], a, b)
		}
	}
}
