package cli_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// totals are those that an erasure must leave as they are.
func (s shell) totals(t *testing.T) string {
	t.Helper()
	var all []string
	for _, by := range []string{"group_id", "site_id"} {
		code, out, errs := s.bursar(t.Context(), "usage", "-window", "2026-03", "-bucket", "day", "-by", by, "-measure", "records,started,stopped,people,Cores", "-format", "csv")
		if code != 0 {
			t.Fatal(code, errs)
		}
		all = append(all, out)
	}
	return strings.Join(all, "\n")
}

func TestPersonErase_TotalsStay_AndTheNameIsInNoAnswer(t *testing.T) {
	s := aggregator(t)
	var posts []string
	const erikas = 450
	for i := range 2 * erikas {
		user := []string{"erika", "erikason", "alice"}[min(i%2, 1)*(1+i/2%2)]
		day := 1 + i%28
		posts = append(posts, fmt.Sprintf(`{"record_id":"job-%d","meta":{"user_id":[%q],"group_id":["g%d"],"site_id":["s"],"home":["/home/%s"],"job_name":["x-%d"]},`+
			`"components":[{"name":"Cores","amount":%d,"scores":[{"name":"HEPScore23","value":1.5}]}],"start_time":"2026-03-%02dT00:00:00Z","stop_time":"2026-03-%02dT%02d:30:00Z"}`,
			i, user, i%3, user, i, 1+i%7, day, day, i%24))
	}
	resp, err := s.client().Post("http://localhost/records", "application/json", strings.NewReader("["+strings.Join(posts, ",")+"]"))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	before := s.totals(t)
	ask := func(code int, args ...string) (stdout, stderr string) {
		t.Helper()
		got, stdout, stderr := s.bursar(t.Context(), args...)
		if got != code {
			t.Fatal(args, got, stderr)
		}
		return stdout, stderr
	}
	exported, errs := ask(0, "person", "export", "erika")
	if strings.Count(exported, "\n") != erikas || strings.Contains(exported, "erikason") || !strings.Contains(errs, "backups and snapshots") {
		t.Errorf("%d lines: %s", strings.Count(exported, "\n"), errs)
	}
	if _, errs := ask(0, "person", "erase", "erika", "-plan", "-without", "job_name"); !strings.Contains(errs, "450 records, 0 quarantined jobs; keys that stay: group_id, home, site_id, user_id") {
		t.Error(errs)
	}
	ask(1, "person", "erase", "erika", "-as", "was-erika")
	ask(0, "person", "erase", "erika", "-without", "job_name")
	if _, errs := ask(2, "person", "erase", "erika"); !strings.Contains(errs, `no record has user_id "erika"`) {
		t.Error(errs)
	}
	if after := s.totals(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	all, _ := ask(0, "records", "-limit", "-1", "-format", "json")
	if n := strings.Count(all, `"user_id":["erika"]`) + strings.Count(all, `/home/erika"`); n != 0 || strings.Count(all, "\n") != 2*erikas {
		t.Errorf("%d of %d lines name her", n, strings.Count(all, "\n"))
	}
	if others := strings.Count(all, `"user_id":["erikason"]`); others != erikas/2 {
		t.Errorf("%d records of another person", others)
	}
	if n := strings.Count(all, `["erased-`); n != 2*erikas || strings.Count(all, "job_name") != erikas {
		t.Errorf("%d values are replaced; %d records have job_name", n, strings.Count(all, "job_name"))
	}
}

func TestPersonErase_ARunningJob_IsRefused(t *testing.T) {
	s := aggregator(t)
	resp, err := s.client().Post("http://localhost/record", "application/json", strings.NewReader(`{"record_id":"a","meta":{"user_id":["erika"]},"components":[],"start_time":"2026-03-01T00:00:00Z"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(err, resp)
	}
	resp.Body.Close()
	if code, _, errs := s.bursar(t.Context(), "person", "erase", "erika"); code != 1 || !strings.Contains(errs, "1 records of user_id=erika are still running") {
		t.Error(code, errs)
	}
}
