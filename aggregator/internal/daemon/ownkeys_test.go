package daemon

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// ownKeysConf names users and groups by keys of their own.
const ownKeysConf = `
aggregator {
  name     = "agg1"
  data_dir = "data"
}
directory {
  user_key  = "owner"
  group_key = "account"
}
project "bell" {
  groups = ["chemists"]
  pi     = "boss"
}
`

const ownRecords = `[
{"record_id":"one","meta":{"account":["chemists"],"owner":["alice"]},"components":[{"name":"Cores","amount":8,"scores":[]},{"name":"TotalCPU","amount":8,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-02T00:00:00Z"},
{"record_id":"two","meta":{"account":["biologists"],"owner":["bob"]},"components":[{"name":"Cores","amount":4,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-02T00:00:00Z"}]`

func TestDirectory_KeysOfItsOwn_NameUsersAndGroupsInPagesAndReports(t *testing.T) {
	g := configured(t, ownKeysConf, access.Rules{})
	all := g.ready()
	g.push(all, ownRecords)
	await(t, "the configuration", func() bool {
		_, text := ask(t, all, g.tls, "GET", "/v1/directory")
		return strings.Contains(text, `"user":"owner"`)
	})
	const feb = "period=2026-02"
	for _, c := range []struct{ path, has, not string }{
		{"/v1/reports", `"keys":{"user":"owner","group":"account"}`, "user_id"},
		{"/v1/reports/usage?" + feb, "biologists", "group_id"},
		{"/v1/reports/usage?by=owner&" + feb, "alice", "group_id"},
		{"/v1/reports/summary?" + feb, "alice", "user_id"},
		{"/v1/reports/efficiency?" + feb, "alice", "user_id"},
		{"/v1/reports/statement?of=account%3Dchemists&" + feb, "alice", "bob"},
		{"/v1/reports/statement?of=owner%3Dalice&" + feb, "In which groups", "biologists"},
		{"/v1/reports/statement?of=project%3Dbell&" + feb, `"one"`, `"two"`},
		{"/v1/reports/person?user=alice&" + feb, "chemists", "biologists"},
		{"/v1/reports/projects?" + feb, "bob", "user_id"},
		{"/v1/reports/centre?" + feb, "biologists", "group_id"},
		{"/ui/overview?in=all", "two", "user_id"},
		{"/ui/me?user=alice&" + feb, "chemists", "biologists"},
		{"/ui/projects?" + feb, "alice", "user_id"},
		{"/ui/centre?" + feb, "biologists", "group_id"},
		{"/ui/usage?window=2026-02", "biologists", "group_id"},
		{"/ui/usage?window=2026-02&where[account]=chemists", "alice", "bob"},
		{"/ui/reports?report=usage&" + feb, "biologists", "group_id"},
		{"/ui/records?group=chemists", `id=one"`, `id=two"`},
		{"/ui/records?find=account%3Dchemists", "group=chemists", `id=two"`},
		{"/ui/record?id=one", "/ui/records?group=chemists", "?key=owner"},
	} {
		status, text := ask(t, all, g.tls, "GET", c.path)
		if status != http.StatusOK || !strings.Contains(text, c.has) || strings.Contains(text, c.not) {
			at := max(0, strings.Index(text, c.not)-300)
			t.Errorf("%s: %d, has %q: %v, has %q: %v: %.900s", c.path, status, c.has, strings.Contains(text, c.has), c.not, strings.Contains(text, c.not), text[at:])
		}
	}
	token, _ := g.bearer(enrol.Scope{Roles: identity.Read.String(), Person: "alice"}, time.Hour, time.Now())
	if status, text := ask(t, g.stranger(), g.tls, "GET", "/ui/me?"+feb, token); status != http.StatusOK || !strings.Contains(text, "chemists") || strings.Contains(text, "biologists") {
		t.Errorf("the own usage: %d %.900s", status, text)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.tls+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", strings.TrimPrefix(token, "Authorization: "))
	resp, err := g.stranger().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if to := resp.Header.Get("Location"); to != "/ui/me" {
		t.Errorf("the first page of a person is %q", to)
	}
}
