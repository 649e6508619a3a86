package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/ingest"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// importer pushes to a rig as bursar import does.
type importer struct {
	*rig

	path    string
	builder *frame.Builder
	at      int64
}

func importRig(t *testing.T, changes ...change) *rig {
	return newRig(t, append([]change{func(o *api.Options, _ *store.Options) { o.Cut = ingest.Cut }}, changes...)...)
}

func (rg *rig) begin(name string) *importer {
	rg.t.Helper()
	a := rg.do("POST", "/v1/imports/"+name, "")
	if a.err != nil || a.status != 200 {
		rg.t.Fatal(a)
	}
	_, rest, _ := strings.Cut(a.body, `"epoch":"`)
	_, observed, _ := strings.Cut(a.body, `"observed":`)
	i := &importer{rig: rg, path: "/v1/imports/" + name + "/" + rest[:32], builder: frame.NewBuilder(1, frame.Digest{})}
	if _, err := fmt.Sscan(observed, &i.at); err != nil {
		rg.t.Fatal(err, a)
	}
	return i
}

// chunk makes the next chunk: records with these ids, and for "!x" a job x in
// quarantine.
func (i *importer) chunk(ids ...string) string {
	i.t.Helper()
	for _, id := range ids {
		i.at++
		f := &wire.Frame{SourceType: "gridengine", SourceLabel: "katana", Rank: record.RankImport, Version: record.Version{Ended: true, Observed: i.at}}
		if job, failed := strings.CutPrefix(id, "!"); failed {
			f.Kind, f.Quarantine = wire.KindQuarantine, wire.Quarantine{ID: job, Reason: "mapping", Message: "no"}
		} else {
			f.Kind, f.ID = wire.KindRecord, id
			f.Record = record.Record{ID: id, Meta: record.Meta{}, Start: record.Second, Stop: 2 * record.Second, Submit: record.None}
		}
		if err := i.builder.Append(wire.AppendFrame(nil, f)); err != nil {
			i.t.Fatal(err)
		}
	}
	return string(i.builder.Finish())
}

func (i *importer) send(chunk string) answer {
	i.t.Helper()
	return i.do("POST", i.path, chunk, "Content-Type: application/octet-stream")
}

func TestAChunkOfAnImportIsCommittedOnceHoweverOftenItIsSent(t *testing.T) {
	rg := importRig(t)
	i := rg.begin("import")
	first, second := i.chunk("a", "b", "!c"), i.chunk("d")
	for n, want := range []string{`{"cursor":3,"counts":{"pulled":3,"added":2,`, `{"cursor":3,"counts":{"pulled":0,`} {
		if a := i.send(first); a.status != 200 || !strings.HasPrefix(a.body, want) || !strings.HasSuffix(a.body, `"conserved":true}}`+"\n") {
			t.Errorf("time %d: %v", n, a)
		}
	}
	if a := i.send(second); a.status != 200 || !strings.HasPrefix(a.body, `{"cursor":4,`) {
		t.Error(a)
	}
	if a := i.send(first); a.status != 200 || !strings.HasPrefix(a.body, `{"cursor":4,"counts":{"pulled":0,`) {
		t.Error(a)
	}
	if got := rg.ids("sort_by[asc]=start_time"); len(got) != 3 {
		t.Error(got)
	}
	again := rg.begin("import")
	if again.at < i.at {
		t.Errorf("the next import is told %d, which is before %d", again.at, i.at)
	}
	if a := again.send(again.chunk("a", "b", "d")); a.status != 200 || !strings.Contains(a.body, `"unchanged":3`) {
		t.Error(a)
	}
	a := rg.do("GET", "/v1/agents", "")
	if !strings.Contains(a.body, `"name":"import"`) || !strings.Contains(a.body, `"import":true`) {
		t.Error(a)
	}
	if a := rg.do("POST", "/v1/quarantine/import/gridengine/katana/c:retry", ""); a.status != http.StatusConflict || !strings.Contains(a.body, "import the file again") {
		t.Error(a)
	}
}

func TestAnImportThatIsInTheWayOfAnotherIsToldSo(t *testing.T) {
	rg := importRig(t, func(o *api.Options, _ *store.Options) { o.Agents = agentList{{Name: "head1"}} })
	old := rg.begin("import")
	chunk := old.chunk("a")
	next := rg.begin("import")
	for name, c := range map[string]struct {
		path, body string
		status     int
		text       string
	}{
		"of an import that ended":    {old.path, chunk, 409, "another one began"},
		"of none":                    {"/v1/imports/none/" + strings.Repeat("0", 32), chunk, 409, "none did"},
		"with frames left out":       {next.path, func() string { next.chunk("x"); return next.chunk("y") }(), 409, "does not continue"},
		"that is no chunk":           {next.path, "not a chunk", 400, "chunk"},
		"that is empty":              {next.path, "", 400, "chunk"},
		"that is too large":          {next.path, strings.Repeat("x", 2<<20), 413, "at most"},
		"under an agent's name":      {"/v1/imports/head1", "", 409, "is an agent"},
		"under a name that is none":  {"/v1/imports/a%20b", "", 400, "is no name"},
		"of rank scheduler":          {next.path, ranked(record.RankScheduler), 400, "has the rank scheduler"},
		"of an agent's own sequence": {next.path, ranked(0), 400, ""},
	} {
		a := rg.do("POST", c.path, c.body, "Content-Type: application/octet-stream")
		if a.err != nil || a.status != c.status || !strings.Contains(a.body, c.text) {
			t.Errorf("a chunk %s: %v, want %d %s", name, a, c.status, c.text)
		}
	}
	if got := rg.ids(""); len(got) != 0 {
		t.Error(got)
	}
}

// agentList are agents that this node pulls from.
type agentList []api.AgentStatus

func (l agentList) Agents(context.Context) ([]api.AgentStatus, error) { return l, nil }
func (agentList) Retry(context.Context, *store.Quarantined) error     { return nil }

// ranked is a chunk with one record of that rank.
func ranked(rank record.Rank) string {
	b := frame.NewBuilder(1, frame.Digest{})
	r := record.Record{ID: "r", Meta: record.Meta{}, Start: 1, Stop: 2, Submit: record.None}
	_ = b.Append(wire.AppendFrame(nil, &wire.Frame{SourceType: "a", SourceLabel: "b", Rank: rank, Kind: wire.KindRecord, ID: "r", Record: r, Version: record.Version{Observed: 1}}))
	return string(b.Finish())
}

func TestNoAgentLosesItsPlaceToAnImport(t *testing.T) {
	rg := importRig(t)
	epoch := store.Epoch{1}
	if _, err := rg.node.Write(t.Context(), &store.IngestCommand{Agent: "head1", Epoch: epoch, From: 1, Now: 1, Begin: &store.Begin{}}); err != nil {
		t.Fatal(err)
	}
	if a := rg.do("POST", "/v1/imports/head1", ""); a.status != http.StatusConflict || !strings.Contains(a.body, "is an agent") {
		t.Error(a)
	}
}

func TestAChunkThatWasNotTakenOrWhoseAnswerWasLostIsSentAgainWithoutLoss(t *testing.T) {
	rg := importRig(t, func(o *api.Options, _ *store.Options) { o.Patience = 200 * time.Millisecond })
	i := rg.begin("import")
	var ids []string
	for n := range 9000 {
		ids = append(ids, fmt.Sprintf("%d-%s", n, strings.Repeat("i", 20)))
	}
	var chunks []string
	for len(ids) > 0 {
		n := min(len(ids), 3000)
		chunks, ids = append(chunks, i.chunk(ids[:n]...)), ids[n:]
	}
	for n, lost := range []error{api.ErrNotNow, context.DeadlineExceeded, nil} {
		rg.node.change(func(node *node) {
			node.fault, node.lost = nil, nil
			if n == 0 {
				node.fault = func(store.Command) error { return lost }
			} else if lost != nil {
				node.lost = func(store.Command) error { return lost }
			}
		})
		a := i.send(chunks[0])
		if want := map[bool]int{true: 200, false: 503}[lost == nil]; a.status != want {
			t.Errorf("try %d: %v", n, a)
		}
	}
	for _, c := range chunks[1:] {
		if a := i.send(c); a.status != 200 {
			t.Error(a)
		}
	}
	if got := rg.ids(""); len(got) != 9000 {
		t.Errorf("%d records", len(got))
	}
}
