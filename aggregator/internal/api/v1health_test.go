package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// judged answers with facts that the test makes up.
type judged struct{ facts health.Facts }

func (j judged) Report(context.Context) health.Report { return health.Judge(j.facts) }

func somewhat() judged {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	node := health.Node{
		Name: "agg1", ID: "id1", Address: "agg1:8701", Voter: true, Leader: true, Self: true, Seen: now, LagKnown: true, Lag: 2, Applied: 40,
		Hash: "aa", HashIndex: 39, Local: health.Local{Version: "1", CertFrom: now.AddDate(-1, 0, 0), CertEnds: now.AddDate(1, 0, 0), Disk: health.Disk{Free: 5, Size: 10, Level: health.LevelLow, Ballast: 1}},
	}
	silent := health.Node{Name: "agg2", ID: "id2", Address: "agg2:8701", Voter: true, Local: health.Local{ConfigDiffers: []string{"usage"}}}
	joins := health.Node{Name: "agg3", ID: "id3", Address: "agg3:8701", Seen: now}
	node.Backup = &health.LocalBackup{Path: "/b", Every: time.Hour, Began: now, Last: now, Bytes: 77, Error: "full", Remedy: "df", Failing: now, Failures: 3}
	return judged{health.Facts{
		Now: now, Node: "agg1", Cluster: "C", Leader: "id1", Nodes: []health.Node{node, silent, joins},
		Agents: []health.Agent{{Name: "head1", Address: "h1:7070", Connected: true, Contact: now, Behind: 7}},
		Data:   health.Data{Known: true, Index: 40, Records: 3, Quarantined: 1}, Backup: health.Backup{Known: true, Last: now},
	}}
}

type statusAnswer struct {
	State, Node, Cluster string
	Confirmed            bool
	Records              int
	Findings             []struct{ ID, Severity, What, Do string }
	Nodes                []struct {
		Name, Role string
		Heard      bool
	}
	Agents []struct{ Name string }
}

func TestTheStatusHasTheVerdict(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Health = somewhat() })
	rg.add(bob)
	var s statusAnswer
	rg.get("/v1/status", &s)
	if s.State != "failing" || s.Node != "agg1" || !s.Confirmed || s.Records != 1 || len(s.Findings) < 3 || len(s.Nodes) != 3 {
		t.Errorf("%+v", s)
	}
	if f := s.Findings[0]; f.ID != "node-silent" || f.Severity != "critical" || f.What == "" || f.Do == "" {
		t.Errorf("%+v", f)
	}
	if s.Nodes[0].Role != "leader" || s.Nodes[1].Heard || s.Nodes[2].Role != "joins" {
		t.Errorf("%+v", s.Nodes)
	}
}

func TestTheStatusIsThereWhileNobodyLeads(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		j := somewhat()
		j.facts.Leader = ""
		o.Health = j
	})
	rg.node.change(func(n *node) { n.deaf = errors.New("no leader") })
	var s statusAnswer
	rg.get("/v1/status", &s)
	if s.State != "failing" || s.Confirmed || len(s.Agents) != 0 || s.Findings[0].ID != "node-silent" {
		t.Errorf("%+v", s)
	}
	// What this node cannot read is not known, and not zero.
	for _, name := range []string{"cluster_version", "index", "term", "age_seconds", "records", "last_change", "quarantined", "conflicts", "waiting_stops"} {
		if a := rg.do("GET", "/v1/status", ""); !strings.Contains(a.body, `"`+name+`":null`) {
			t.Errorf("%s is known: %v", name, a)
		}
	}
	if a := rg.do("GET", "/v1/cluster", ""); a.status != http.StatusOK || !strings.Contains(a.body, `"leader":null`) {
		t.Error(a)
	}
}

func TestStatus_NobodyLeads_HasTheNumbersOfThisNodeAndHowOldTheyAre(t *testing.T) {
	f := &follower{age: 1500 * time.Millisecond}
	p := &pulls{list: []api.AgentStatus{{Name: "head1", Connected: true}}}
	rg := pulled(t, p, func(o *api.Options, _ *store.Options) {
		f.node, o.Health = o.Writer.(*node), somewhat()
		o.Reader = access.Reader{Source: f}
	})
	p.deaf = errors.New("no leader is known")
	v, err := rg.node.View()
	if err != nil {
		t.Fatal(err)
	}
	records, changes := fmt.Sprintf(`"records":%d`, v.Count()), fmt.Sprintf(`"last_change":%d`, v.Seq())
	if err := v.Close(); err != nil {
		t.Fatal(err)
	}
	for _, f.never = range []bool{false, true} {
		a := rg.do("GET", "/v1/status", "")
		age := `"age_seconds":1.5`
		if f.never {
			age = `"age_seconds":null`
		}
		for _, want := range []string{`"confirmed":false`, age, records, changes, `"quarantined":2`, `"waiting_stops":1`, `"name":"head1"`, `"connected":null`, `"behind":null`} {
			if !strings.Contains(a.body, want) {
				t.Errorf("never %v: no %s in %v", f.never, want, a)
			}
		}
	}
}

func TestQuarantined_OfAllSources_IsThatOfTheStatus(t *testing.T) {
	rg := pulled(t, &pulls{})
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	again := &store.IngestCommand{
		Agent: "head1", Epoch: store.Epoch{1}, Before: store.Chain{6}, From: 7, To: 8, After: store.Chain{8},
		Quarantine: []store.Quarantined{{Source: source, ID: "42/a", Reason: "mapping"}, {Source: source, ID: "43/a", Reason: "mapping"}},
	}
	for _, c := range []store.Command{again, &store.QuarantineDropCommand{Keys: []store.QuarantineKey{{Source: source, ID: "43/a"}}}} {
		if _, err := rg.node.Write(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	var status v1.Status
	rg.get("/v1/status", &status)
	sum, came := uint64(0), int64(0)
	for _, a := range status.Agents {
		for _, s := range a.Sources {
			sum, came = sum+s.Quarantined, came+s.Counts.Quarantined
		}
	}
	if status.Quarantined == nil || *status.Quarantined != 2 || sum != 2 || came != 4 {
		t.Errorf("%d are quarantined, those of all sources are %d; %d came", *status.Quarantined, sum, came)
	}
}

func TestTheClusterIsListed(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Health = somewhat() })
	a := rg.do("GET", "/v1/cluster", "")
	for _, want := range []string{`"leader":"agg1"`, `"applied_index":40`, `"behind":2`, `"heard":false,"last_contact":null,"age_seconds":null`, `"behind":null`, `"disk_level":"low"`, `"config_differs":["usage"]`, `"hash":"aa"`, `"role":"joins"`, `"last_contact":null`, `"every_seconds":3600,"last":"`, `"bytes":77,"error":"full","failing_since":"`, `"failures":3}`, `"backup":null`} {
		if !strings.Contains(a.body, want) {
			t.Errorf("no %s in %v", want, a)
		}
	}
	if a := newRig(t).do("GET", "/v1/cluster", ""); a.status != http.StatusNotFound {
		t.Error("a node that watches nothing:", a)
	}
}

func TestWhoMayNotMonitorIsToldNothingOfTheCluster(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		o.Health = somewhat()
		o.Who = func(*http.Request) access.Principal { return access.Principal{Name: "x", Rights: identity.Write} }
	})
	for _, path := range []string{"/v1/status", "/v1/cluster"} {
		if a := rg.do("GET", path, ""); a.status != http.StatusForbidden {
			t.Error(path, a)
		}
	}
}

// gate is a reader that waits until it is opened.
type gate struct {
	api.Reader

	open chan struct{}
	in   sync.WaitGroup
}

func (g *gate) Read(ctx context.Context, p access.Principal) (*access.View, error) {
	g.in.Done()
	<-g.open
	return g.Reader.Read(ctx, p)
}

func TestTooManyRequestsToV1AreRefusedAndAUDITORsAreNot(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		g.Reader, o.Reader, o.MaxInFlight, o.Registerer = o.Reader, g, 3, prometheus.NewRegistry()
		o.Health = somewhat()
	})
	var wait sync.WaitGroup
	g.in.Add(3)
	for range 3 {
		wait.Go(func() {
			if a := rg.call("GET", "/v1/agents", nil); a.status != http.StatusOK {
				t.Error(a)
			}
		})
	}
	g.in.Wait()
	g.in.Add(2)
	if a := rg.do("GET", "/v1/records", ""); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
		t.Error(a)
	}
	rg.want("POST", "/record", bob, 200, "")
	wait.Go(func() {
		if a := rg.call("GET", "/v1/status", nil); a.status != http.StatusOK {
			t.Error("an operator is not let in:", a)
		}
	})
	wait.Go(func() { rg.call("GET", "/records", nil) })
	g.in.Wait()
	close(g.open)
	wait.Wait()
	g.in.Add(1)
	if a := rg.do("GET", "/v1/agents", ""); a.status != http.StatusOK {
		t.Error("afterwards:", a)
	}
}

func TestTooManyListsOfRecordsAreRefused(t *testing.T) {
	g := &gate{open: make(chan struct{})}
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		g.Reader, o.Reader, o.MaxInFlight = o.Reader, g, 3
	})
	var wait sync.WaitGroup
	g.in.Add(3)
	for range 3 {
		wait.Go(func() {
			if a := rg.call("GET", "/records", nil); a.status != http.StatusOK {
				t.Error(a)
			}
		})
	}
	g.in.Wait()
	if a := rg.do("GET", "/records", ""); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Error(a)
	}
	close(g.open)
	wait.Wait()
	g.in.Add(1)
	if a := rg.do("GET", "/records", ""); a.status != http.StatusOK {
		t.Error("afterwards:", a)
	}
}

// TestAnswersWaitForMemoryAndAreRefusedClearly lets slots of memory run out.
func TestAnswersWaitForMemoryAndAreRefusedClearly(t *testing.T) {
	budget := store.NewBudget(64<<20, 50*time.Millisecond, nil)
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Memory = budget })
	rg.add(bob)
	paths := []string{"/records", "/v1/records", "/v1/records?format=ndjson", "/v1/changes", "/v1/records?sort_by[asc]=runtime&limit=10000"}
	whole := map[string]string{}
	for _, path := range paths {
		a := rg.do("GET", path, "")
		if whole[path] = a.body; a.status != http.StatusOK {
			t.Error(path, a)
		}
	}
	all, err := budget.Begin(t.Context(), 64<<20)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if a := rg.do("GET", path, ""); a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || !strings.Contains(a.body, "try again in a moment") {
			t.Error(path, a)
		}
	}
	all.End()
	for _, path := range paths {
		if a := rg.do("GET", path, ""); a.status != http.StatusOK || a.body != whole[path] {
			t.Error(path, a)
		}
	}
	if all, err = budget.Begin(t.Context(), 64<<20); err != nil {
		t.Error("not all was given back:", err)
	}
	all.End()
}

func TestRequestsAreMeasuredByRoute(t *testing.T) {
	registry := prometheus.NewRegistry()
	rg := newRig(t, func(o *api.Options, _ *store.Options) {
		o.Registerer = registry
		o.Extra = map[string]http.Handler{"GET /ui/agents": http.NotFoundHandler()}
	})
	rg.add(bob)
	for _, path := range []string{"/v1/records/r1", "/v1/records/r2", "/record/r1", "/nowhere/" + strings.Repeat("x", 50), "/v1/nowhere", "/ui/agents"} {
		rg.call("GET", path, nil)
	}
	rg.call("STRANGE", "/record", nil)
	rg.node.change(func(n *node) { n.fault = func(store.Command) error { return errors.New("outcome unknown") } })
	rg.call("POST", "/record", strings.NewReader(bob))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range families {
		if f.GetName() != "bursar_http_request_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() { // code, method, route
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, " ")] = true
		}
	}
	for _, want := range []string{
		"200 POST /records", "404 GET /v1/records/{id...}", "404 GET /record/{record_id}", "404 GET other", "404 GET /ui/agents", "405 other /record", "broken POST /record",
	} {
		if !got[want] {
			t.Errorf("%q is not measured: %v", want, got)
		}
	}
	if len(got) > 9 {
		t.Error("clients make metrics:", got)
	}
}
