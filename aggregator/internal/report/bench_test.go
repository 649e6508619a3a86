package report_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api/apitest"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

// BenchmarkProjects makes the page of projects of 30 000 jobs.
func BenchmarkProjects(b *testing.B) {
	w := apitest.Filled(b)
	for part := range 10 {
		var jobs []apitest.Job
		for i := range 3000 {
			n := part*3000 + i
			start := apitest.Noon().Add(-time.Duration(n) * 2 * time.Minute)
			jobs = append(jobs, apitest.Job{
				ID: fmt.Sprintf("bench-%d", n), Group: fmt.Sprint("g", n%12), User: fmt.Sprint("u", n%60),
				Submit: start.Add(-20 * time.Minute).Format(time.RFC3339), Start: start.Format(time.RFC3339), Stop: start.Add(time.Duration(n%3000) * time.Second).Format(time.RFC3339),
				Cores: int64(1 + n%64), Memory: 8000, CPU: int64(n % 3000), State: []string{"COMPLETED", "FAILED", "TIMEOUT"}[n%3], Meta: map[string]string{"site_id": "nemo"},
			})
		}
		w.Post(apitest.Records(jobs...)...)
	}
	w.Keep()
	for b.Loop() {
		if _, err := report.Make(b.Context(), w.API(), "projects", url.Values{"period": {"30d"}}, apitest.Noon()); err != nil {
			b.Fatal(err)
		}
	}
}
