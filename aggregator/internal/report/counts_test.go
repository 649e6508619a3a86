package report_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"net/url"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

// runsAndParts are random runs about October, of which some have records of parts too, as a
// tight parallel job of Grid Engine has one for each slave task.
func runsAndParts(rng *rand.Rand) (list []apitest.Job) {
	for n := range 1 + rng.IntN(12) {
		start := time.Date(2026, 9, 29, rng.IntN(24), 0, 0, 0, time.UTC).AddDate(0, 0, rng.IntN(34))
		stop := start.Add(time.Duration(1+rng.IntN(60)) * time.Hour)
		j := apitest.Job{
			ID: fmt.Sprintf("j%d", n), Group: []string{"cms", "atlas"}[rng.IntN(2)], User: []string{"ann", "bob", "zed"}[rng.IntN(3)], State: "COMPLETED", HS: 2,
			Submit: start.Add(-time.Minute).Format(time.RFC3339), Start: start.Format(time.RFC3339), Stop: stop.Format(time.RFC3339), Cores: 1 + rng.Int64N(64), CPU: 1 + rng.Int64N(7200),
		}
		list = append(list, j)
		for k := range max(0, rng.IntN(6)-2) {
			p := j
			p.ID, p.Meta = fmt.Sprintf("%s-%d.node", j.ID, k), map[string]string{record.PartKey: "slave"}
			if rng.IntN(3) > 0 { // some schedulers reserve for parts by themselves
				p.Cores = 0
			}
			list = append(list, p)
		}
	}
	return list
}

// TestEveryTableThatSaysJobs_AgreesWithTheObviousSlowCount counts runs, whatever records their
// parts have.
func TestEveryTableThatSaysJobs_AgreesWithTheObviousSlowCount(t *testing.T) {
	begin, end := apitest.At("2026-10-01"), apitest.At("2026-11-01")
	for seed := range uint64(racetest.Few(6)) {
		list := runsAndParts(rand.New(rand.NewPCG(seed, 24)))
		ran, began, ended := int64(0), int64(0), int64(0)
		for _, j := range list {
			if j.Meta != nil {
				continue
			}
			start, stop := apitest.At(j.Start), apitest.At(j.Stop)
			ran += one(start < end && stop > begin)
			began += one(start >= begin && start < end)
			ended += one(stop >= begin && stop < end)
		}
		w := worldOf(t, list...)
		w.Settings.Directory.Units = accounting.UnitRates{Default: new(accounting.One)}
		w.Settings.Directory.Projects = []accounting.Project{{ID: "lhc", From: record.None, To: record.None, States: []accounting.ProjectState{{From: record.None, PI: "Bell", Groups: []string{"cms"}}}}}
		w.Keep()
		for _, c := range []struct {
			report, query, table, column string
			want                         int64
		}{
			{"statement", "", "people", "jobs", ran},
			{"efficiency", "period=2026-10", "cores-1", "jobs count", ran},
			{"efficiency", "period=2026-10&by=group_id", "wait-1", "started", began},
			{"subscription", "period=2026-10&by=group_id", "subscription-1", "jobs", ran},
			{"subscription", "period=2026-10&by=project", "subscription-1", "jobs", ran},
			{"distributions", "period=2026-10", "size", "jobs", ended},
			{"distributions", "period=2026-10", "runtime", "jobs", ended},
		} {
			if c.want == 0 {
				continue
			}
			query, err := url.ParseQuery(c.query)
			if err != nil {
				t.Fatal(err)
			}
			var d *report.Document
			if c.report == "statement" {
				d, err = report.Statement(t.Context(), w.API(), report.StatementOptions{Of: map[string]string{"state": "COMPLETED"}, Period: "2026-10", Now: now()})
			} else {
				d, err = report.Make(t.Context(), w.API(), c.report, query, now())
			}
			if err != nil {
				t.Fatal(seed, c.report, err)
			}
			if got := columnSum(t, d, c.table, c.column); got.Cmp(big.NewRat(c.want, 1)) != 0 {
				t.Errorf("seed %d: %s of %s %s says %s jobs, want %d", seed, c.table, c.report, c.query, got.RatString(), c.want)
			}
		}
	}
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// columnSum is the sum of a column over the rows of a table.
func columnSum(t *testing.T, d *report.Document, table, column string) *big.Rat {
	t.Helper()
	for i := range d.Tables {
		for k, c := range d.Tables[i].Columns {
			if d.Tables[i].Name != table || c.Name != column {
				continue
			}
			sum := new(big.Rat)
			for _, row := range d.Tables[i].Rows {
				sum.Add(sum, row[k].Number())
			}
			return sum
		}
	}
	t.Errorf("no column %s in a table %s", column, table)
	return new(big.Rat)
}
