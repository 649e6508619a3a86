package api_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// pageOf is an answer of /v1/records.
type pageOf struct {
	Records []struct {
		ID  string `json:"record_id"`
		Seq uint64 `json:"seq"`
	} `json:"records"`
	Next *string `json:"next"`
}

// feed is an answer of /v1/changes.
type feed struct {
	Changes []struct {
		Seq    uint64          `json:"seq"`
		ID     string          `json:"record_id"`
		Record json.RawMessage `json:"record"`
	} `json:"changes"`
	Last uint64 `json:"last"`
}

func simple(id string, minute int) string {
	return fmt.Sprintf(`{"record_id":"%s","components":[],"start_time":"2024-01-01T00:00:00Z","stop_time":"2024-01-01T%02d:%02d:00Z"}`, id, minute/60, minute%60)
}

func TestPagingGivesEveryRecordOnceWhileOthersAreAdded(t *testing.T) {
	for _, order := range []string{"", "sort_by[desc]=stop_time", "sort_by[asc]=record_id", "sort_by[desc]=runtime", "order=change", "open=false&sort_by[asc]=start_time", "order=-runtime", "order=meta.user_id", "order=-meta.user_id", "order=component.Cores", "order=-component.Cores", "order=-used.Cores"} {
		t.Run(order, func(t *testing.T) {
			rg := newRig(t)
			for i := range 50 {
				rg.add(simple(fmt.Sprintf("r%02d", i), i/3)) // many are equal
			}
			seen, query := map[string]int{}, "limit=7&"+order
			for page := 0; ; page++ {
				var p pageOf
				rg.get("/v1/records?"+query, &p)
				for _, r := range p.Records {
					seen[r.ID]++
				}
				if p.Next == nil {
					break
				}
				rg.add(simple(fmt.Sprintf("new%02da", page), page), simple(fmt.Sprintf("new%02db", page), 20-page))
				query = "limit=7&" + order + "&cursor=" + *p.Next
			}
			for i := range 50 {
				if id := fmt.Sprintf("r%02d", i); seen[id] != 1 {
					t.Errorf("%s came %d times", id, seen[id])
				}
			}
			for id, n := range seen {
				if n > 1 {
					t.Errorf("%s came %d times", id, n)
				}
			}
		})
	}
}

func TestRequestsBelowV1ThatMakeNoSenseAreProblems(t *testing.T) {
	rg := newRig(t)
	rg.add(bob)
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/v1/records?foo=1", 400, "unknown field"},
		{"GET", "/v1/records?limit=0", 400, "want a whole number of 1 or more"},
		{"GET", "/v1/agents?agent=h1", 400, "unknown field `agent`"},
		{"GET", "/v1/records/r2?version=1", 400, "unknown field"},
		{"GET", "/v1/records?limit=10001", 400, "at most 10000"},
		{"GET", "/v1/records?cursor=nonsense", 400, "cursor"},
		{"GET", "/v1/records?open=maybe", 400, "open"},
		{"GET", "/v1/records?order=change&sort_by[asc]=runtime", 400, "sort_by"},
		{"GET", "/v1/records?order=meta.", 400, "invalid order"},
		{"GET", "/v1/records?order=user_id", 400, "meta.KEY"},
		{"GET", "/v1/records?ran_to=tomorrow", 400, "ran_to"},
		{"GET", "/v1/records?format=xml", 400, "format"},
		{"GET", "/v1/records?after=-1", 400, "after"},
		{"GET", "/v1/records?format=json&format=csv", 400, "format given more than once"},
		{"GET", "/v1/records/nobody", 404, "nobody"},
		{"GET", "/v1/records/%20", 400, "blank"},
		{"DELETE", "/v1/records/nobody", 404, "nobody"},
		{"POST", "/v1/records/nobody:undelete", 404, "nobody"},
		{"POST", "/v1/records/r2", 405, "POST"},
		{"PUT", "/v1/records", 405, "PUT"},
		{"GET", "/v1/changes?after=99", 400, "the feed ends at 1"},
		{"GET", "/v1/changes?after=x", 400, "after"},
		{"GET", "/v1/changes?limit=0", 400, "limit"},
		{"GET", "/v1/changes?meta[a][c][0]=b", 400, "unknown field"},
		{"GET", "/v1/changes?limit=1&limit=2", 400, "more than once"},
		{"GET", "/v1/nowhere", 404, "openapi.yaml"},
		{"GET", "/v1/", 404, "openapi.yaml"},
		{"GET", "/v1/quarantine/a/b/c/d", 404, "a/b/c"},
		{"DELETE", "/v1/quarantine/a/b/c/d", 404, "a/b/c"},
		{"POST", "/v1/quarantine/a/b/c/d:retry", 404, "a/b/c"},
		{"POST", "/v1/status", 405, "POST"},
	} {
		a := rg.do(c.method, c.path, "")
		var p struct {
			Status int
			Detail string
		}
		if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.status != c.status || p.Status != c.status || !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s %s: %v, want %d and %q", c.method, c.path, a, c.status, c.want)
		}
		if got := a.header.Get("Content-Type"); got != "application/problem+json" {
			t.Errorf("%s %s: %s", c.method, c.path, got)
		}
	}
}

func TestRecordsCanBeHadAsNDJSONAndCSV(t *testing.T) {
	rg := newRig(t)
	menu(rg)
	rg.add(`{"record_id":"q\",\n;","meta":{"k":["a,\"b\""]},"components":[],"start_time":"2025-01-01T00:00:00Z"}`)
	lines := rg.do("GET", "/v1/records?format=ndjson&meta[site][c][0]=x", "")
	if diff := cmp.Diff([]string{"a", "c"}, idsOf(t, lines.body)); diff != "" || lines.header.Get("Content-Type") != "application/x-ndjson" {
		t.Error(diff, lines)
	}
	a := rg.do("GET", "/v1/records?open=true&sort_by[asc]=start_time", "", "Accept: text/csv")
	table, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		strings.Split("record_id,start_time,stop_time,runtime,submit_time,wait,state,exit_code,exit_signal,origin,rank,group,k,site,Cores,GPUs", ","),
		{"e", "2024-01-01T00:30:00Z", "", "", "", "", "", "", "", "pushed", "pushed", "g2", "", "y", "", "1"},
		{"c", "2024-01-01T02:00:00Z", "", "", "", "", "", "", "", "pushed", "pushed", "", "", "x", "8", ""},
		{"q\",\n;", "2025-01-01T00:00:00Z", "", "", "", "", "", "", "", "pushed", "pushed", "", `a\,"b"`, "", "", ""},
	}
	if diff := cmp.Diff(want, table); diff != "" || a.header.Get("Content-Type") != "text/csv; charset=utf-8" {
		t.Error(diff)
	}
	if a := rg.do("GET", "/v1/records?format=csv&record_id=nobody", ""); a.status != 200 || strings.Count(a.body, "\n") != 1 {
		t.Error(a)
	}
}

func TestTheFeedSaysEveryChangeOnceAndWhatIsGone(t *testing.T) {
	rg := newRig(t)
	rg.add(alice, bob, simple("r3", 1))
	rg.want("PUT", "/record", `{"record_id":"r2","components":[],"stop_time":"2023-02-24T01:00:00Z"}`, 200, "")
	rg.want("DELETE", "/v1/records/r3", "", 204, "")
	state, after := map[string]bool{}, uint64(0)
	for {
		var f feed
		rg.get(fmt.Sprintf("/v1/changes?limit=1&after=%d", after), &f)
		for _, c := range f.Changes {
			if c.Seq <= after {
				t.Errorf("%d after %d", c.Seq, after)
			}
			state[c.ID] = string(c.Record) != "null"
		}
		if f.Last == after {
			break
		}
		after = f.Last
	}
	if diff := cmp.Diff(map[string]bool{"r1": true, "r2": true, "r3": false}, state); diff != "" {
		t.Error(diff)
	}
	rg.add(simple("r4", 1))
	var f feed
	rg.get(fmt.Sprintf("/v1/changes?after=%d", after), &f)
	if len(f.Changes) != 1 || f.Changes[0].ID != "r4" {
		t.Error(f)
	}
}

func TestADeletedRecordStaysDeletedUntilItIsUndeleted(t *testing.T) {
	rg := newRig(t)
	const id = "a/b%20c#:undelete"
	const path = "/v1/records/a/b%2520c%23:undelete"
	post := strings.Replace(bob, "r2", id, 1)
	rg.steps([]step{
		{"POST", "/record", post, 200, "", ""},
		{"DELETE", path, "", 204, "", ""},
		{"DELETE", path, "", 204, "", ""},
		{"GET", "/records", "", 200, "", ""},
		{"POST", "/record", post, 500, "RECORD_EXISTS", ""},
		{"PUT", "/record", `{"record_id":"` + id + `","components":[],"stop_time":"2023-02-24T01:00:00Z"}`, 404, "Updating unknown record " + id + " not possible.", ""},
	})
	var entry struct{ Deleted bool }
	if rg.get(path, &entry); !entry.Deleted {
		t.Error("not marked")
	}
	rg.steps([]step{
		{"POST", path + ":undelete", "", 204, "", ""},
		{"GET", "/records", "", 200, "", ""},
		{"POST", "/record", post, 200, "", ""},
		{"POST", path + ":undelete", "", 204, "", ""},
		{"GET", "/records", "", 200, strings.Replace(bobShown, "r2", id, 1) + "\n", ""},
	})
}

func TestWritesBelowV1ThatCannotBeDoneNowAreAnswered(t *testing.T) {
	rg := newRig(t, impatient)
	rg.add(bob)
	for want, err := range map[string]error{"nothing was done": api.ErrNotNow, "outcome unknown": errors.New("lost")} {
		rg.node.change(func(n *node) { n.fault = func(store.Command) error { return err } })
		if a := rg.do("DELETE", "/v1/records/r2", ""); a.status != 503 || !strings.Contains(a.body, want) {
			t.Error(a)
		}
	}
}

// pulls are agents that the test makes up.
type pulls struct {
	list    []api.AgentStatus
	retried []string
	fails   error
	deaf    error // why no leader says how they are
}

func (p *pulls) Agents(context.Context) ([]api.AgentStatus, error) { return p.list, p.deaf }

func (p *pulls) Retry(_ context.Context, q *store.Quarantined) error {
	p.retried = append(p.retried, q.Source.String()+" "+q.ID+" "+string(q.Raw))
	return p.fails
}

// pulled fills a store with what came from an agent: two records, of which one
// conflicts with a pushed one, a stop that waits, and two quarantined jobs.
func pulled(t *testing.T, p *pulls, more ...change) *rig {
	t.Helper()
	rg := newRig(t, append(more, func(o *api.Options, _ *store.Options) { o.Agents = p })...)
	rg.add(bob)
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	at, err := record.ParseTime("2023-02-24T00:30:00Z")
	if err != nil {
		t.Fatal(err)
	}
	put := func(id string) record.Write {
		return record.Write{Op: record.OpPut, ID: id, Origin: source, Rank: record.RankScheduler, Version: record.Version{Ended: true, Observed: int64(at)},
			Record: &record.Record{ID: id, Start: at, Stop: at + record.Hour, Submit: record.None, State: "FAILED", Exit: record.Exit{Known: true, Code: 1, Signal: 9}}}
	}
	waiting := record.Write{Op: record.OpStop, ID: "w1", Origin: record.Pushed, Rank: record.RankPush, Version: record.Version{Ended: true, Observed: int64(at)}, Stop: at}
	_, err = rg.node.Write(context.Background(), &store.IngestCommand{
		Agent: "head1", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 6, After: store.Chain{6}, Now: at,
		Writes: []record.Write{put("r2"), put("s1"), waiting},
		Quarantine: []store.Quarantined{
			{Source: source, ID: "42/a", Reason: "mapping", Message: "no such key", Raw: []byte("raw \xff\x00")},
			{Source: record.Origin{Agent: "head1"}, ID: "x", Reason: "validation", Message: "blank", Raw: []byte(`{"record_id":" "}`)},
		},
		Watermarks: []store.Watermark{{Source: source, CompleteTo: at}},
		Gaps: []store.Gap{
			{Source: source, From: at - record.Hour, To: at, Reason: "sacct knows nothing before"},
			{Source: record.Origin{Agent: "head1"}, From: record.None, To: at, Reason: "the frames 1 to 9 are gone"},
			{Source: record.Origin{Agent: "head0"}, From: record.None, To: record.None, Reason: "lost"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rg
}

func TestAgents_ListEverySourceOfWhichTheAgentSpeaks(t *testing.T) {
	rg := pulled(t, &pulls{list: []api.AgentStatus{{
		Name: "head2", Connected: true,
		States:  map[string]string{"slurm/new": "failed", "nomad/first": "configuring", "receiver/idle": "collecting", "slurm/empty": "silent"},
		Failing: map[string]string{"slurm/new": "it hangs", "slurm/empty": "nothing sent", "slurm/other": "no sacct"},
	}}})
	var list struct {
		Agents []struct {
			Name    string
			Sources []struct{ Type, Label, State, Error string }
		}
	}
	rg.get("/v1/agents", &list)
	for _, a := range list.Agents {
		if a.Name != "head2" {
			continue
		}
		want := "[{nomad first configuring } {receiver idle collecting } {slurm empty silent nothing sent} {slurm new failed it hangs} {slurm other  no sacct}]"
		if got := fmt.Sprint(a.Sources); got != want {
			t.Error(got)
		}
		return
	}
	t.Errorf("%+v", list)
}

func TestOperatorsSeeAgentsCountersConflictsAndWaitingStops(t *testing.T) {
	contact := time.Date(2024, 1, 1, 0, 0, 0, 123000, time.UTC)
	rg := pulled(t, &pulls{list: []api.AgentStatus{
		{Name: "head1", Address: "h1:7070", Connected: true, LastContact: contact, Behind: 7},
		{Name: "head2", Address: "h2:7070", Error: "refused", Remedy: "mv b b.damaged"},
	}})
	var agents struct {
		Agents []struct {
			Name, Error    string
			Connected      bool
			Cursor, Behind uint64
			Gaps           int
			LastContact    *string `json:"last_contact"`
			Sources        []struct {
				Label      string
				Gaps       int
				CompleteTo *string `json:"complete_to"`
				Counts     struct {
					Pulled, Quarantined int64
					Conserved           bool
				}
			}
		}
	}
	rg.get("/v1/agents", &agents)
	if len(agents.Agents) != 3 || agents.Agents[1].Error != "refused" || agents.Agents[1].LastContact != nil {
		t.Fatalf("%+v", agents)
	}
	head1 := agents.Agents[0]
	if head1.Cursor != 6 || head1.Behind != 7 || *head1.LastContact != "2024-01-01T00:00:00.000123Z" || len(head1.Sources) != 2 || head1.Gaps != 2 {
		t.Errorf("%+v", head1)
	}
	for _, s := range head1.Sources {
		if !s.Counts.Conserved {
			t.Errorf("%+v", s)
		}
		if s.Label == "nemo" && (s.CompleteTo == nil || s.Counts.Pulled != 3 || s.Counts.Quarantined != 1 || s.Gaps != 1) {
			t.Errorf("%+v", s)
		}
	}
	var entries struct {
		Conflicts, Waiting []struct {
			ID       string `json:"record_id"`
			Holdings []struct {
				Origin string
				Stop   *string `json:"waiting_stop"`
			}
		}
	}
	rg.get("/v1/conflicts", &entries)
	if len(entries.Conflicts) != 1 || entries.Conflicts[0].ID != "r2" || len(entries.Conflicts[0].Holdings) != 2 {
		t.Errorf("%+v", entries.Conflicts)
	}
	rg.get("/v1/waiting", &entries)
	if len(entries.Waiting) != 1 || entries.Waiting[0].ID != "w1" || entries.Waiting[0].Holdings[0].Stop == nil {
		t.Errorf("%+v", entries.Waiting)
	}
	var status struct {
		Version                         string
		Records, Quarantined, Conflicts int
		Waiting                         int `json:"waiting_stops"`
	}
	a := rg.get("/v1/status", &status)
	if status.Version != "test" || status.Records != 2 || status.Quarantined != 2 || status.Conflicts != 1 || status.Waiting != 1 || a.header.Get("X-Bursar-Index") != "2" {
		t.Errorf("%+v %v", status, a.header)
	}
	if a := rg.do("GET", "/v1/counters", ""); !strings.Contains(a.body, `"source":"head1/slurm/nemo"`) {
		t.Error(a)
	}
	if a := rg.do("GET", "/v1/records/s1", ""); !strings.Contains(a.body, `"exit_code":1,"exit_signal":9`) || !strings.Contains(a.body, `"origin":"head1/slurm/nemo"`) {
		t.Error(a)
	}
}

func TestGapsAreListedBySourceAndAgent(t *testing.T) {
	rg := pulled(t, &pulls{})
	type gap struct {
		Agent, Reason string
		Type          string `json:"source_type"`
		From, To      *string
		Noticed       *string
	}
	var all, some struct {
		Gaps []gap
		More bool
	}
	rg.get("/v1/gaps", &all)
	if len(all.Gaps) != 3 || all.More {
		t.Fatalf("%+v", all)
	}
	for _, g := range all.Gaps {
		if g.Noticed == nil || g.Reason == "" {
			t.Errorf("%+v", g)
		}
	}
	rg.get("/v1/gaps?agent=head1", &some)
	if len(some.Gaps) != 2 || some.Gaps[0].Type != "" || some.Gaps[0].From != nil || some.Gaps[1].Type != "slurm" || *some.Gaps[1].From != "2023-02-23T23:30:00Z" || *some.Gaps[1].To != "2023-02-24T00:30:00Z" {
		t.Errorf("%+v", some)
	}
	for _, query := range []string{"agent=a&agent=b", "source=x", "%zz"} {
		if a := rg.do("GET", "/v1/gaps?"+query, ""); a.status != 400 {
			t.Error(query, a)
		}
	}
}

func TestQuarantinedJobsCanBeSeenRetriedAndDropped(t *testing.T) {
	p := &pulls{}
	rg := pulled(t, p)
	var list struct {
		Quarantine []struct{ ID string }
		More       bool
	}
	if rg.get("/v1/quarantine", &list); len(list.Quarantine) != 2 || list.More {
		t.Errorf("%+v", list)
	}
	const job, pushed = "/v1/quarantine/head1/slurm/nemo/42%2Fa", "/v1/quarantine/head1/-/-/x"
	var one struct{ Raw, Reason string }
	if rg.get(job, &one); one.Raw != "raw \uFFFD\x00" || one.Reason != "mapping" {
		t.Errorf("%+v", one)
	}
	if rg.get(pushed, &one); one.Raw != `{"record_id":" "}` {
		t.Errorf("%+v", one)
	}
	if a := rg.do("POST", job+":retry", ""); a.status != 202 {
		t.Error(a)
	}
	if diff := cmp.Diff([]string{"head1/slurm/nemo 42/a raw \xff\x00"}, p.retried); diff != "" {
		t.Error(diff)
	}
	p.fails = errors.New("line 3: no such key")
	if a := rg.do("POST", job+":retry", ""); a.status != 409 || !strings.Contains(a.body, "line 3: no such key") {
		t.Error(a)
	}
	rg.want("DELETE", job, "", 204, "")
	if a := rg.do("DELETE", job, ""); a.status != 404 {
		t.Error(a)
	}
	if rg.get("/v1/quarantine", &list); len(list.Quarantine) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestTheDescriptionIsServed(t *testing.T) {
	rg := newRig(t)
	if a := rg.do("GET", "/v1/openapi.yaml", ""); a.status != 200 || !strings.HasPrefix(a.body, "openapi: 3.1.0\n") || a.header.Get("Content-Type") != "application/yaml" {
		t.Error(a)
	}
	if a := rg.do("HEAD", "/v1/status", ""); a.status != 200 || a.body != "" {
		t.Error(a)
	}
}

func TestGaugesHaveAuditorsNamesAndLabels(t *testing.T) {
	rg := newRig(t)
	g := api.NewGauges(api.GaugeOptions{Reader: access.Reader{Source: rg.node}, Site: "site", Group: "group", User: "user_id"}, rg.registry)
	gauges := func() []string {
		var list []string
		for line := range strings.Lines(rg.do("GET", "/metrics", "").body) {
			if strings.Contains(line, "num_records") {
				list = append(list, strings.TrimSpace(line))
			}
		}
		return list
	}
	if got := gauges(); got != nil {
		t.Errorf("before the first count: %v", got)
	}
	menu(rg)
	for range 2 {
		if err := g.Refresh(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"# HELP num_records_database Number of records in the Auditor database",
			"# TYPE num_records_database gauge",
			"num_records_database 6",
			"# HELP num_records_database_per_group Number of records in the Auditor database",
			"# TYPE num_records_database_per_group gauge",
			`num_records_database_per_group{group_id="g1"} 2`,
			`num_records_database_per_group{group_id="g2"} 2`,
			"# HELP num_records_database_per_site Number of records in the Auditor database",
			"# TYPE num_records_database_per_site gauge",
			`num_records_database_per_site{site="x"} 2`,
			`num_records_database_per_site{site="y"} 2`,
		}
		if diff := cmp.Diff(want, gauges()); diff != "" {
			t.Error(diff)
		}
	}
	rg.node.change(func(n *node) { n.deaf = errors.New("no quorum") })
	if err := g.Refresh(context.Background()); err == nil || len(gauges()) == 0 {
		t.Error("the former counts are gone:", err)
	}
	rg.node.change(func(n *node) { n.deaf = nil })
	rg.want("DELETE", "/v1/records/a", "", 204, "")
	if err := g.Refresh(context.Background()); err != nil || !strings.Contains(strings.Join(gauges(), " "), `{site="x"} 1`) {
		t.Error(gauges(), err)
	}
}

// files are the configuration that a server of the tests accepts: what is not bad.
type files struct{}

func (files) Acceptable(d *clusterconfig.Document) error {
	if strings.Contains(string(d.Settings), "bad") {
		return errors.New("this is bad")
	}
	return nil
}

func (files) Files() []api.ConfigFiles {
	return []api.ConfigFiles{{Node: "agg1", Differs: true}}
}

func TestTheConfigurationIsReplacedByWhoeverHasSeenIt(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Config = files{} })
	const none = `{"digest":null,"committed_by":null,"committed_at":null,"document":{"format":3,"settings":{}},"nodes":[{"node":"agg1","digest":"0000000000000000000000000000000000000000000000000000000000000000","differs":true}]}` + "\n"
	rg.want("GET", "/v1/config", "", 200, none)
	const one, two = `{"format":3,"settings":{"one":{}}}`, `{"format":3,"settings":{"two":{}}}`
	for _, c := range []struct {
		replaces, body string
		status         int
	}{
		{"0", one, 409},
		{"", `{"format":3,"settings":{"bad":{}}}`, 400},
		{"", one, 200},
		{"", two, 409},
		{digestOf(t, two), two, 409},
		{digestOf(t, one), two, 200},
	} {
		if a := rg.do("PUT", "/v1/config?replaces="+c.replaces, c.body); a.status != c.status {
			t.Errorf("%s in the place of %q: %v, want %d", c.body, c.replaces, a, c.status)
		}
	}
	if a := rg.do("GET", "/v1/config", ""); !strings.Contains(a.body, digestOf(t, two)) || !strings.Contains(a.body, `"committed_by":"bursar"`) {
		t.Error(a)
	}
	rg.node.change(func(n *node) { n.fault = func(store.Command) error { return errors.New("lost") } })
	if a := rg.do("PUT", "/v1/config?replaces="+digestOf(t, two), one); a.status != 503 {
		t.Error(a)
	}
}

func digestOf(t *testing.T, text string) string {
	t.Helper()
	d, err := clusterconfig.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest().String()
}
