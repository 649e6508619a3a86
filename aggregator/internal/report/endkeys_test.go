package report_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// How a job ended is a key of it like those of its meta, also where a report looks at jobs one
// by one: at their waits, the largest and the latest, and those that waste.
func TestReports_OfJobsThatEndedSomehow_HaveTheirJobs(t *testing.T) {
	states := []string{"COMPLETED", "FAILED", "TIMEOUT"}
	var jobs []apitest.Job
	for i := range 9 {
		state := states[i%3]
		jobs = append(jobs, apitest.Job{
			ID: fmt.Sprint(strings.ToLower(state), i), Group: "cms", User: "ann", Submit: fmt.Sprintf("2026-10-0%dT00:00:00Z", i+1),
			Start: fmt.Sprintf("2026-10-0%dT0%d:00:00Z", i+1, 1+i%3), Stop: fmt.Sprintf("2026-10-0%dT22:00:00Z", i+1), Cores: 8, CPU: 3600, State: state,
		})
	}
	w := worldOf(t, jobs...)
	for i, state := range states {
		for name, query := range map[string]string{
			"efficiency": "where=state%3D" + state, "projects": "of=state%3D" + state, "statement": "of=state%3D" + state, "distributions": "where=state%3D" + state,
		} {
			values, err := url.ParseQuery(query + "&period=2026-10")
			if err != nil {
				t.Fatal(err)
			}
			d, err := report.Make(t.Context(), w.API(), name, values, now())
			if err != nil {
				t.Fatal(name, state, err)
			}
			for table, found := range jobsOfTables(d) {
				if want := jobsOfState(jobs, state); !slices.Equal(found, want) {
					t.Errorf("%s of %s: table %s has the jobs %q, want %q", name, state, table, found, want)
				}
			}
			if name != "distributions" && len(jobsOfTables(d)) == 0 {
				t.Errorf("%s of %s has no jobs", name, state)
			}
		}
		d, err := report.Make(t.Context(), w.API(), "efficiency", url.Values{"by": {"state"}, "period": {"2026-10"}}, now())
		if err != nil {
			t.Fatal(err)
		}
		waits := fmt.Sprint(60 * (1 + i)) // minutes, of each of its jobs
		if got := waitsOf(d, state); got != waits {
			t.Errorf("efficiency by state: %s waited for %s minutes in the median, want %s", state, got, waits)
		}
	}
}

func jobsOfState(jobs []apitest.Job, state string) (ids []string) {
	for i := range jobs {
		if jobs[i].State == state {
			ids = append(ids, jobs[i].ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// jobsOfTables are the ids in each table that has jobs.
func jobsOfTables(d *report.Document) map[string][]string {
	found := map[string][]string{}
	for i := range d.Tables {
		table := &d.Tables[i]
		at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return c.Name == "job" || c.Name == "record_id" })
		for _, row := range table.Rows {
			if at >= 0 && table.Name != "advice" { // which has one of each kind
				found[table.Name] = append(found[table.Name], row[at].String())
			}
		}
		slices.Sort(found[table.Name])
	}
	return found
}

// waitsOf is the median wait of a state.
func waitsOf(d *report.Document, state string) string {
	for i := range d.Tables {
		table := &d.Tables[i]
		at := slices.IndexFunc(table.Columns, func(c report.Column) bool { return strings.HasPrefix(c.Name, "median") })
		for _, row := range table.Rows {
			if at >= 0 && row[0].String() == state {
				return row[at].String()
			}
		}
	}
	return "nothing"
}
