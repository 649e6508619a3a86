package report_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The percentiles of run times are compared with those of the sorted list, and the last
// cumulative share is 1.
func TestDistributions_RandomRunTimes_HaveTheirPercentiles(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // a seed that repeats
	for round := range 20 {
		var jobs []apitest.Job
		var times []time.Duration
		for i := range 1 + random.IntN(60) {
			long := time.Duration(1+random.Int64N(1<<(2+random.Int64N(18)))) * time.Second
			start := time.Date(2026, 9, 20, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.IntN(20*86400)) * time.Second)
			end := start.Add(long)
			if end.Month() != time.October {
				continue
			}
			times = append(times, long)
			jobs = append(jobs, apitest.Job{ID: fmt.Sprint(i), Group: "cms", User: "ann", Cores: 1, Start: start.Format(time.RFC3339), Stop: end.Format(time.RFC3339)})
		}
		if len(times) == 0 {
			continue
		}
		slices.Sort(times)
		d, err := report.Make(t.Context(), worldOfSource(t, "slurm", jobs...).API(), "distributions", url.Values{"period": {"2026-10"}}, now())
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Tables {
			table := &d.Tables[i]
			if !strings.HasPrefix(table.Title, "Run time") {
				continue
			}
			for percent, words := range map[int]string{50: "half ", 90: "90\u202f% "} {
				edge := parseEdge(t, table.Title, words)
				below := 0
				for _, one := range times {
					if one < edge {
						below++
					}
				}
				at := times[(len(times)*percent+99)/100-1]
				if below*100 < len(times)*percent || edge <= at {
					t.Errorf("round %d: %s: %d of %d are below %v; the percentile is %v", round, table.Title, below, len(times), edge, at)
				}
			}
			last := table.Rows[len(table.Rows)-1][3]
			if n := last.Number(); n == nil || n.RatString() != "1" {
				t.Errorf("round %d: the last cumulative share is %v", round, last)
			}
		}
	}
}

func TestDistributions_JobsInTheLastBin_AreNotBelowItsBeginning(t *testing.T) {
	t.Parallel()
	w := worldOfSource(t, "slurm",
		apitest.Job{ID: "long", Group: "cms", User: "ann", Cores: 1, Start: "2026-01-03", Stop: "2026-10-20"},
		apitest.Job{ID: "longer", Group: "cms", User: "ann", Cores: 1, Start: "2026-01-02", Stop: "2026-10-20"},
		apitest.Job{ID: "short", Group: "cms", User: "ann", Cores: 1, Start: "2026-10-03", Stop: "2026-10-03T00:30:00Z"},
	)
	d, err := report.Make(t.Context(), w.API(), "distributions", url.Values{"period": {"2026-10"}}, now())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(d.Tables, func(table v1.DocumentTable) bool {
		return strings.HasPrefix(table.Title, "Run time") && strings.Contains(table.Title, "less than half below") && strings.Contains(table.Title, "less than 90\u202f% below")
	}) {
		for i := range d.Tables {
			t.Log(d.Tables[i].Title)
		}
		t.Error("no title says that less than half are below the last bin")
	}
}

// A period of days begins with a whole day, as those of the other pages do.
func TestDistributions_PeriodOfDays_BeginsWithAWholeDay(t *testing.T) {
	t.Parallel()
	w := worldOfSource(t, "slurm", apitest.Job{ID: "a", Group: "cms", User: "ann", Cores: 1, Start: now().Add(-2 * time.Hour).Format(time.RFC3339), Stop: now().Add(-time.Hour).Format(time.RFC3339)})
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu"} {
		for period, want := range map[string]string{"": "00:00:00", "30d": "00:00:00", "7d": "00:00:00", "36h": ":00:00", "100d": "00:00:00", "101d": "00:00:00"} {
			d, err := report.Make(t.Context(), w.API(), "distributions", url.Values{"period": {period}, "zone": {zone}}, now())
			if err != nil {
				t.Fatal(err)
			}
			in, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			if from := d.Periods[0].From.In(in).Format(time.TimeOnly); !strings.HasSuffix(from, want) || !d.Periods[0].To.Equal(now()) {
				t.Errorf("%q in %s is from %s to %v", period, zone, from, d.Periods[0].To)
			}
			if cut := strings.Contains(strings.Join(d.Notes, " "), "the last 100 days"); cut != (period == "101d") {
				t.Errorf("%q in %s says of hours: %q", period, zone, d.Notes)
			}
		}
	}
}

// parseEdge returns the time that a title says after words.
func parseEdge(t *testing.T, title, words string) time.Duration {
	t.Helper()
	m := regexp.MustCompile(regexp.QuoteMeta(words) + "below ([0-9.]+)\u202f(s|min|h|d)").FindStringSubmatch(title)
	if m == nil {
		t.Fatalf("%q does not say %q", title, words)
	}
	var n float64
	if _, err := fmt.Sscan(m[1], &n); err != nil {
		t.Fatal(err)
	}
	unit := map[string]time.Duration{"s": time.Second, "min": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
	return time.Duration(n * float64(unit))
}
