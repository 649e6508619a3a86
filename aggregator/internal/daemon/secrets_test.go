package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// secretWorld has the word secret in a thing of every kind, and a group "mine" beside.
const secretWorld = `
aggregator {
  name     = "agg1"
  data_dir = "data"
}
host_class "secret-class" {
  pattern   = "^secret"
  su_factor = 3
}
person "leader" { leads = ["mine"] }
person "secret-pi" { name = "Secret Person" }
project "open" {
  groups = ["mine"]
  pi     = "head"
}
project "secret-project" {
  groups = ["secret-group"]
  pi     = "secret-pi"
}
cluster "mine" {
  sources = []
  capacity { components = { Cores = 100 } }
}
cluster "secret-cluster" {
  match   = { site_id = ["secret-site"] }
  sources = []
  capacity { components = { Cores = 1000, SecretThings = 7 } }
}
cluster_group "secret-grid" { clusters = ["secret-cluster", "mine"] }
price "standard" {
  currency = "EUR"
  from     = "2020"
  per "Cores" { hour = "0.01" }
  per "Cores" {
    hour  = "0.04"
    group = "secret-group"
  }
  per "GPUs" {
    hour  = "0.05"
    group = "mine"
  }
}
budget "open" {
  project = "open"
  from    = "2020"
  to      = "2126"
  amount  = 1000
  unit    = "core-hours"
}
budget "secret-budget" {
  group  = "secret-group"
  from   = "2020"
  to     = "2126"
  amount = 1000
  unit   = "core-hours"
}
action "webhook" "secret-action" {
  schedule = "@manual"
  config { url = "http://127.0.0.1:1/secret" }
}
`

// secretRecords are one of the group mine and one of another.
const secretRecords = `[
{"record_id":"mine-1","meta":{"site_id":["mine"],"group_id":["mine"],"user_id":["me"]},"components":[{"name":"Cores","amount":8,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-02T00:00:00Z"},
{"record_id":"secret-1","meta":{"site_id":["secret-site"],"group_id":["secret-group"],"user_id":["secret-user"],"secret-key":["secret-value"]},"components":[{"name":"SecretThings","amount":1,"scores":[{"name":"SecretScore","value":2}]},{"name":"Cores","amount":8,"scores":[]}],"start_time":"2026-02-01T00:00:00Z","stop_time":"2026-02-02T00:00:00Z"}]`

// secretive is a node of the world with secrets.
func secretive(t *testing.T) *guarded {
	t.Helper()
	mine := access.SomeRows(access.Grant{"group_id": {"mine"}})
	rules := access.Rules{Clients: map[string]access.Client{}}
	for name, rights := range limited() {
		if slices.Contains(persons(), name) {
			rules.Clients[name] = access.Client{Person: name}
			oidcGroup(&rules, name, access.GroupClient{Rights: rights, Own: true})
			continue
		}
		rules.Clients[name] = access.Client{Rows: mine}
		oidcGroup(&rules, name, access.GroupClient{Rights: rights, Rows: mine})
	}
	return configured(t, secretWorld, rules)
}

// configured is a node with a configuration.
func configured(t *testing.T, text string, rules access.Rules) *guarded {
	t.Helper()
	name := filepath.Join(t.TempDir(), "aggregator.hcl")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	conf, _, diags := config.Load(name)
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	g := &guarded{t: t, ca: identitytest.New(t)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g.tls = "https://" + l.Addr().String()
	g.agg, err = Open(Settings{
		Name: "agg1", DataDir: t.TempDir(), MinFree: 1 << 20, TLS: []net.Listener{l}, Keys: g.ca.Keys(identity.Aggregator, "agg1"),
		Files: conf.Shared(), Access: rules, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- g.agg.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return g
}

// persons are of those readers who compute in the group, lead it, are its principal
// investigator.
func persons() []string { return []string{"me", "leader", "head"} }

// limited are the readers of the rows of one group: all roles that can have a filter.
func limited() map[string]identity.Rights {
	return map[string]identity.Rights{
		"some": identity.Read, "write": identity.Read | identity.Write, "monitor": identity.Read | identity.Monitor,
		"me": identity.Read, "leader": identity.Read, "head": identity.Read,
		"operate": identity.Operate, "admin": identity.Admin, "whole": identity.Read | identity.Write | identity.Monitor | identity.Operate | identity.Admin,
	}
}

// odd are a job in quarantine, conflicts of which one is hidden behind a record that the
// readers see, a stop that waits, a gap, and a source that counts: all of them secret.
func (g *guarded) odd() {
	g.t.Helper()
	at, err := record.ParseTime("2026-02-03T00:00:00Z")
	if err != nil {
		g.t.Fatal(err)
	}
	source := record.Origin{Agent: "secret-agent", Type: "slurm", Label: "secret-source"}
	write := func(op record.Op, origin record.Origin, id string) record.Write {
		w := record.Write{Op: op, ID: id, Origin: origin, Rank: record.RankImport, Version: record.Version{Ended: true, Observed: 1}, Stop: at}
		if op == record.OpPut {
			w.Record = &record.Record{ID: id, Start: at - 2*record.Hour, Stop: at, Submit: record.None, State: "secret-state", Meta: record.Meta{{Key: "group_id", Values: []string{"secret-group"}}, {Key: "user_id", Values: []string{"secret-user"}}}}
		}
		return w
	}
	stop := write(record.OpStop, record.Pushed, "secret-stop")
	stop.Rank = record.RankPush
	count := wire.Frame{SourceType: source.Type, SourceLabel: source.Label, Kind: wire.KindCount}
	count.Count = wire.Count{From: at, To: at + record.Day, Counted: 9, Records: 9, At: at + 3*record.Day}
	_, err = g.agg.replica.Write(g.t.Context(), &store.IngestCommand{
		Agent: source.Agent, Now: at, Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 7, After: store.Chain{7},
		Writes: []record.Write{write(record.OpPut, source, "secret-1"), write(record.OpPut, source, "mine-1"), stop},
		Quarantine: []store.Quarantined{{
			Source: source, ID: "secret-job", Reason: "mapping", Message: "secret-message", RecordID: "secret-2", Raw: []byte(`{"User":"secret-user"}`),
		}},
		Gaps:       []store.Gap{{Source: source, From: at, To: at + record.Hour, Reason: "secret-reason"}},
		Watermarks: []store.Watermark{{Source: source, CompleteTo: at}},
		Facts:      []store.Fact{{Kind: store.FactCount, Source: source, At: at, Data: wire.AppendFrame(nil, &count)}},
	})
	if err != nil {
		g.t.Fatal(err)
	}
}

// push stores records, when the node can.
func (g *guarded) push(all *http.Client, records string) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, g.tls+"/records", strings.NewReader(records))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		req.Body, _ = req.GetBody()
		resp, err := all.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		if err == nil && resp.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			g.t.Fatal("the records are not taken: ", err)
		}
	}
}

// sow stores the records and quarantines a job.
func (g *guarded) sow(all *http.Client) {
	g.t.Helper()
	g.push(all, secretRecords)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, text := ask(g.t, all, g.tls, "GET", "/v1/capacity"); strings.Contains(text, "secret-cluster") {
			break
		}
		if time.Now().After(deadline) {
			g.t.Fatal("the configuration does not come")
		}
	}
	g.odd()
	ask(g.t, all, g.tls, "POST", "/v1/actions/webhook/secret-action:run") // a message says why not
}

// asked are queries of a route whose answers could hold a secret: by route, and for
// all others the last ones.
func asked(path string) []string {
	window := "window=2026-02"
	usage := []string{
		window, window + "&by=group_id,site_id,user_id", window + "&by=cluster&measure=capacity,utilization", window + "&measure=capacity", window + "&measure=utilization*SecretThings",
		window + "&measure=capacity*Nothing", window + "&where[cluster]=zzz", window + "&where[cluster]=zzz&measure=utilization", window + "&where[cluster]=secret-grid", window + "&by=project,pi,host_class&measure=su,cost,Cores",
		window + "&by=nothing", window + "&where[nothing]=x", window + "&where[group_id]=zzz", window + "&meta[group_id][c]=zzz", window + "&measure=nothing", window + "&component=nothing", window + "&bucket=day&top=1&compare=previous",
	}
	switch {
	case path == "/v1/usage":
		return usage
	case path == "/ui/usage":
		return []string{"", "in=2026-02", "of=cost&in=2026-02", "of=utilization&by=cluster&in=2026-02", "of=Cores&by=cluster&in=2026-02&where[cluster]=zzz", "of=Cores&by=project&in=2026-02"}
	case strings.HasPrefix(path, "/v1/reports"), path == "/ui/reports":
		var list []string
		for _, more := range []string{"", "by=cluster", "by=group_id", "where[cluster]=zzz", "where[group_id]=zzz", "of=project=zzz", "of=group_id=mine"} {
			list = append(list, "period=2026-02&"+more)
		}
		return list
	}
	return []string{"", "record_id=secret-1", "id=secret-1", "meta[group_id][c][0]=secret-group", "limit=10", "after=0", "window=2026", "at=2026-02", "name=secret-budgez", "sort_by[desc]=stop_time"}
}

func TestRowFilter_AnyRouteRoleAndFormat_NamesNothingOfOtherRows(t *testing.T) {
	g := secretive(t)
	all := g.client(identity.Identity{Role: identity.Client, Name: "all", Rights: identity.Admin})
	g.sow(all)
	known := 0 // answers with the secret for who sees everything, so that the walk is no walk of 404s
	readers := map[string]*http.Client{}
	ways := map[string][]way{}
	seed := rand.Uint64()
	t.Log("seed", seed)
	for name, rights := range limited() {
		scope := enrol.Scope{Rows: []map[string][]string{{"group_id": {"mine"}}}}
		if slices.Contains(persons(), name) {
			scope = enrol.Scope{Person: name}
		}
		ways[name] = g.ways(name, rights, scope)
		readers[name] = anyClient(ways[name], seed)
	}
	for path, want := range map[string]string{
		"/v1/records": "mine", "/v1/usage?window=2026-02": `"records":1`, "/v1/usage?window=2026-02&by=group_id,cluster&measure=Cores,records,cost": "mine", "/v1/prices?at=2026-02": "0.05", "/v1/reports/usage?period=2026-02": "mine",
		"/v1/reports/summary?period=2026-02": "mine", "/v1/reports/efficiency?period=2026-02": "Cores", "/v1/reports/statement?period=2026-02&of=group_id=mine": "EUR", "/ui/overview": "mine", "/ui/projects?period=2026-02": "mine", "/ui/centre?period=2026-02": "mine", "/ui/usage?of=Cores&in=2026-02": "mine", "/ui/reports?report=usage&period=2026-02": "mine",
	} {
		for name, c := range readers {
			if name == "me" && strings.HasPrefix(path, "/v1/prices") {
				continue // the price is of the group, whose records this one does not see as such
			}
			if status, text := ask(g.t, c, g.tls, "GET", path); status != http.StatusOK || !strings.Contains(text, want) {
				t.Errorf("%s of what %s sees by %s: %d %.1000s", path, name, lastWay(c), status, text)
			}
		}
	}
	all.Transport.(*http.Transport).DisableKeepAlives = false
	var changes [][2]string
	for _, route := range g.someRoutes() {
		example, ok := matrix()[route]
		method, _, _ := strings.Cut(route, " ")
		if !ok || strings.HasSuffix(route, "/openapi.yaml") || strings.Contains(route, "static") {
			continue
		}
		path, _, _ := strings.Cut(example[1], "?")
		if method != http.MethodGet {
			changes = append(changes, [2]string{route, path})
			continue
		}
		paths := []string{path}
		if path == "/v1/reports/usage" {
			paths = nil
			for _, report := range []string{"usage", "summary", "subscription", "utilization", "efficiency", "statement", "person", "projects", "centre", "budgets", "prices", "distributions"} {
				paths = append(paths, "/v1/reports/"+report)
			}
		}
		if path != "/v1/reports/usage" {
			paths = secretPaths(path)
		}
		for _, path := range paths {
			queries := asked(path)
			for _, query := range queries[:racetest.Few(len(queries))] {
				for _, format := range []string{"", "&format=csv", "&format=ndjson", "&format=html"} {
					known += g.seek(all, readers, route, path, query+format)
				}
				if path == "/ui/reports" {
					for _, report := range []string{"usage", "summary", "subscription", "utilization", "efficiency", "statement", "person", "projects", "centre", "budgets", "prices", "distributions"} {
						known += g.seek(all, readers, route, path, query+"&report="+report)
					}
				}
			}
		}
	}
	if known < 100 && !racetest.Enabled { // there only some routes are asked
		t.Errorf("only %d answers to who sees everything have a secret", known)
	}
	for _, change := range changes {
		for _, path := range secretPaths(change[1]) {
			for name := range readers {
				for _, w := range ways[name] {
					if strings.HasSuffix(change[0], "/logout") && w.header != "" {
						continue // it would end the session
					}
					text := g.hidden(w.client, change[0], path, w.header)
					text = strings.ReplaceAll(text, "webhook/secret-action", "") // GET /v1/actions has the name
					if strings.Contains(text, "secret") {
						t.Errorf("%s %s by %s by %s: %.300s", change[0], path, name, w.name, text)
					}
				}
			}
		}
	}
	for name, want := range map[string]string{"me": "limited to some", "head": `"name":"open"`, "some": "limited to some"} {
		if _, text := ask(g.t, readers[name], g.tls, "GET", "/v1/budgets"); !strings.Contains(text, want) {
			t.Errorf("the budgets of %s: %s", name, text)
		}
	}
	for path, want := range map[string]string{"/v1/records": "secret-1", "/v1/quarantine": "secret-job", "/v1/waiting": "secret-stop"} {
		if _, text := ask(g.t, all, g.tls, "GET", path); !strings.Contains(text, want) {
			t.Errorf("%s: a reader of other rows has changed %s: %.500s", path, want, text)
		}
	}
}

// hidden is an answer in lower case without the names that the request itself has.
func (g *guarded) hidden(c *http.Client, route, address string, header ...string) string {
	g.t.Helper()
	_, text := ask(g.t, c, g.tls, route, address, header...)
	text = strings.ToLower(text)
	for _, said := range []string{"secret-action", "secret-agent", "secret-source", "secret-job", "secret-stop", "secret-1", "secret-group", "secret-grid", "secretthings", "secret-budgez"} {
		if strings.Contains(strings.ToLower(address), said) {
			text = strings.ReplaceAll(text, said, "")
		}
	}
	return text
}

// secretPaths are a path, and those of what is secret in its place.
func secretPaths(path string) []string {
	list := []string{path}
	if strings.Contains(path, "/exec/x") {
		list = append(list, strings.Replace(path, "/exec/x", "/webhook/secret-action", 1))
	}
	if strings.Contains(path, "/head1/slurm/nemo/1") {
		list = append(list, strings.Replace(path, "/head1/slurm/nemo/1", "/secret-agent/slurm/secret-source/secret-job", 1))
	}
	if strings.HasSuffix(path, "/x") {
		for _, id := range []string{"secret-1", "mine-1", "secret-stop"} {
			list = append(list, strings.TrimSuffix(path, "x")+id)
		}
	}
	return list
}

// seek asks as every reader; 1 when the answer to who sees all records has a secret.
// What the request itself says is no secret, and figures of the whole are for who
// monitors.
func (g *guarded) seek(all *http.Client, readers map[string]*http.Client, route, path, query string) int {
	g.t.Helper()
	address := path + "?" + strings.TrimPrefix(query, "&")
	has := func(c *http.Client) (string, bool) {
		text := g.hidden(c, route, address)
		return text, strings.Contains(text, "secret")
	}
	if _, there := has(all); !there {
		return 0
	}
	for name, c := range readers {
		figures := limited()[name].Any(identity.Monitor)
		if figures && (strings.HasPrefix(path, "/ui/actions") || access.Routes()[route].Rights&identity.Monitor != 0) && path != "/v1/capacity" && path != "/v1/prices" {
			continue
		}
		text, there := has(c)
		if figures { // GET /v1/agents and /v1/gaps name these
			text = strings.NewReplacer("secret-agent/slurm/secret-source", "", "secret-agent/pushed", "", "secret-reason", "").Replace(text)
			there = strings.Contains(text, "secret")
		}
		if there {
			at := strings.Index(text, "secret")
			g.t.Errorf("%s by %s by %s: %s", address, name, lastWay(c), fmt.Sprintf("%.300s", text[max(0, at-100):]))
		}
	}
	return 1
}
