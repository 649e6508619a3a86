package cli_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// importAs has an import say of a run, which a client has pushed, that it is of another user.
func importAs(t *testing.T, s shell, id, user string) {
	t.Helper()
	c, err := client.New(client.Options{Address: s.env["BURSAR_ADDR"]})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	into, err := cli.BeginImport(t.Context(), c, &cli.ImportSource{Name: "past", Type: "slurm", Label: "past"}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	start, err := record.ParseTime("2026-03-05T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	r := record.Record{
		ID: id, Start: start, Stop: start + record.Hour, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: 2}},
		Meta: record.Meta{{Key: "group_id", Values: []string{"g1"}}, {Key: "site_id", Values: []string{"s"}}, {Key: "user_id", Values: []string{user}}},
	}
	err = into.Take(&wire.Frame{Kind: wire.KindRecord, SourceType: "slurm", SourceLabel: "past", Rank: record.RankImport, ID: id, Record: r, Version: record.Version{Ended: true, Observed: 1}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := into.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestPersonErase_NameThatIsNotShown_IsExportedAndGoesToo(t *testing.T) {
	s := aggregator(t)
	for _, post := range []string{
		`{"record_id":"job-1","meta":{"user_id":["alice"],"group_id":["g1"],"site_id":["s"],"home":["/home/erika"]},"components":[{"name":"Cores","amount":3,"scores":[]}],"start_time":"2026-03-05T00:00:00Z","stop_time":"2026-03-05T02:00:00Z"}`,
		`{"record_id":"job-2","meta":{"user_id":["alice"],"group_id":["g1"],"site_id":["s"]},"components":[],"start_time":"2026-03-05T00:00:00Z"}`,
	} {
		resp, err := s.client().Post("http://localhost/record", "application/json", strings.NewReader(post))
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(err, resp)
		}
		resp.Body.Close()
	}
	importAs(t, s, "job-1", "erika")
	importAs(t, s, "job-3", "bob")
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
	if strings.Count(exported, "\n") != 1 || strings.Count(exported, `"user_id":["erika"]`) != 1 || !strings.Contains(errs, "0 records (and 1 record of others by what is shown)") {
		t.Error(exported, errs)
	}
	if _, errs := ask(0, "person", "erase", "erika", "-plan"); !strings.Contains(errs, "0 records (and 1 record of others by what is shown), 0 quarantined jobs; keys that stay: group_id, home, site_id, user_id") {
		t.Error(errs)
	}
	if _, errs := ask(0, "person", "erase", "erika", "-as", "erased-x"); !strings.Contains(errs, "and 1 record of others now lack what was not shown") {
		t.Error(errs)
	}
	ask(2, "person", "export", "erika")
	ask(2, "person", "erase", "erika")
	if after := s.totals(t); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	all, _ := ask(0, "records", "-limit", "-1", "-format", "json")
	if strings.Count(all, "\n") != 3 || strings.Contains(all, "erika") || strings.Count(all, `"user_id":["alice"]`) != 2 || strings.Count(all, `/home/erased-x"`) != 1 || strings.Contains(all, `"job-1"`) {
		t.Error(all)
	}
	if log, _ := ask(0, "audit", "-limit", "1000", "-format", "csv"); strings.Contains(log, "erika") {
		t.Error(log)
	}
}
