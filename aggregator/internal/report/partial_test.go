package report_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// Sums are compared only where records are known for all of both periods; a mean is of the
// known part.
func TestReports_PeriodBeforeIsPartlyUnknown_SumsAreNotCompared(t *testing.T) {
	job := func(id, day string) apitest.Job {
		return apitest.Job{
			ID: id, Group: "atlas", User: "ann", Submit: day + "T08:00:00Z", Start: day + "T10:00:00Z", Stop: day + "T20:00:00Z", Cores: 4, CPU: 3600,
			Meta: map[string]string{"project": "higgs"},
		}
	}
	october := job("c", "2026-10-10")
	october.Cores = 8
	for _, c := range []struct {
		first    string
		compared bool
	}{{"2026-08-30", true}, {"2026-09-28", false}} {
		w := worldOfSource(t, "slurm", job("a", c.first), job("b", "2026-09-29"), october)
		for name, query := range map[string]string{
			"statement": "of=group_id=atlas", "person": "user=ann", "projects": "of=group_id=atlas", "centre": "",
		} {
			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			values.Set("period", "2026-10")
			d, err := report.Make(t.Context(), w.API(), name, values, now())
			if err != nil {
				t.Fatal(name, err)
			}
			notes := strings.Join(d.Notes, "\n")
			if got := !strings.Contains(notes, "sums are not compared: records are not known for all of both periods"); got != c.compared {
				t.Errorf("%s, records from %s: %s", name, c.first, notes)
			}
			if !c.compared && !strings.Contains(notes, "records are known from 2026-09-28") {
				t.Errorf("%s, records from %s: %s", name, c.first, notes)
			}
			checkChanges(t, name+", records from "+c.first, d, c.compared)
		}
	}
}

// checkChanges checks that sums have changes where they are compared alone, and means always.
func checkChanges(t *testing.T, name string, d *report.Document, compared bool) {
	t.Helper()
	seen := 0
	for i := range d.Tables {
		table := &d.Tables[i]
		at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Kind == report.Change })
		if at < 0 {
			continue
		}
		for _, row := range table.Rows {
			mean := row[0].String() == "Mean wait" || row[0].String() == "CPU efficiency"
			if used := row[0].String() == "Cores" || row[0].String() == "ann" || row[0].String() == "atlas"; !mean && !used {
				continue
			}
			seen++
			if known := row[at].Known(); known != (compared || mean) {
				t.Errorf("%s: the change of %s in %s is %q", name, row[0], table.Name, row[at].String())
			}
		}
	}
	if seen == 0 {
		t.Errorf("%s: no changes", name)
	}
}
