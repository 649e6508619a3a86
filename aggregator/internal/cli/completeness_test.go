package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// daysAnswer is what a server says of 60 days of two sources, of which one lacks
// runs on two days.
func daysAnswer() string {
	var days []string
	first := time.Date(2026, 1, 10, 0, 0, 0, 0, time.UTC)
	for _, source := range []string{"head1/slurm/nemo", "head2/receiver/\\u001b[2J"} {
		for i := range 60 {
			state, missing, numbers := "ok", 0, `"runs":100,"stored":90,"filtered":7,"quarantined":3,"shared":0,"skipped":0,"deleted":0`
			switch {
			case source != "head1/slurm/nemo":
				state, numbers = "unchecked", `"runs":null,"stored":5,"filtered":null,"quarantined":null,"shared":null,"skipped":null,"deleted":0`
			case i == 59:
				state = "open"
			case i == 40 || i == 41:
				state, missing = "missing", 4
			case i == 50:
				state = "surplus"
			}
			days = append(days, fmt.Sprintf(`{"source":"%s","day":%q,"state":%q,%s,"missing":%d,"surplus":0,"unread":0,"counted_at":null}`,
				source, first.AddDate(0, 0, i).Format(time.DateOnly), state, numbers, missing))
		}
	}
	return `{"window":{"from":"2026-01-10T00:00:00Z","to":"2026-03-11T00:00:00Z"},"days":[` + strings.Join(days, ",") + `],"missing":8,"stretches":[` +
		`{"agent":"head1","source":"head1/slurm/nemo","from":"2026-02-19T00:00:00Z","to":"2026-02-21T00:00:00Z","days":2,"missing":8,"lost":6,"unread":1,"shared":1,"do":"bursar-agent recollect -source slurm/nemo -from 2026-02-19 -to 2026-02-21"}]}`
}

func TestDaysAreShownWithWhatIsMissingAndHowToCollectItAgain(t *testing.T) {
	answer := daysAnswer()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	s := shell{env: map[string]string{"BURSAR_ADDR": srv.URL}}
	for name, args := range map[string][]string{
		"completeness.table": nil, "completeness.csv": {"-format", "csv"}, "completeness-all.table": {"-all"}, "completeness-calendar.table": {"-calendar"},
	} {
		code, out, errs := s.bursar(t.Context(), append([]string{"completeness"}, args...)...)
		if code != 0 {
			t.Errorf("%v: %d %s", args, code, errs)
		}
		golden(t, name, out+"---\n"+errs)
	}
	if code, _, errs := s.bursar(t.Context(), "completeness", "-check"); code != 2 || !strings.Contains(errs, "8 runs are missing") || !strings.Contains(errs, "recollect -source slurm/nemo -from 2026-02-19 -to 2026-02-21") {
		t.Error(code, errs)
	}
	answer = `{"window":{},"days":[],"missing":0,"stretches":[]}`
	if code, _, errs := s.bursar(t.Context(), "completeness", "-check"); code != 0 || !strings.Contains(errs, "No source is known yet") {
		t.Error(code, errs)
	}
}
