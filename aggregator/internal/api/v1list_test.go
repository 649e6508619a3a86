package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

func TestAListIsATableInTheOrderOfItsFields(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = &actions{} })
	rg.add(`{"record_id":"r,1","meta":{},"components":[],"start_time":"2026-01-01T00:00:00Z"}`)
	a := rg.do("GET", "/v1/counters?format=csv", "")
	if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "text/csv") || a.header.Get("X-Bursar-Index") == "" {
		t.Errorf("%v %v", a, a.header)
	}
	if want := "source,pulled,added,merged,unchanged,stale,withdrawn,deleted,conflicting,quarantined,conserved\npushed,1,1,0,0,0,0,0,0,0,true\n"; a.body != want {
		t.Errorf("%q, want %q", a.body, want)
	}
	a = rg.do("GET", "/v1/actions/exec/a/runs?format=csv", "", "Accept: application/json")
	if lines := strings.Split(a.body, "\n"); len(lines) != 5 || !strings.Contains(lines[1], `,"{""month"":""2026-10""}",`) || !strings.Contains(lines[1], `,"[""note""]"`) {
		t.Error(a)
	}
	if a := rg.do("GET", "/v1/gaps", "", "Accept: text/csv"); a.status != http.StatusOK || a.body != "" {
		t.Errorf("no gaps: %v", a)
	}
}

func TestATableOfAPartOfAListIsRefused(t *testing.T) {
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Actions = &actions{} })
	for path, want := range map[string]int{
		"/v1/actions/exec/a/runs?format=csv&limit=2": http.StatusUnprocessableEntity,
		"/v1/actions/exec/a/runs?format=csv&limit=3": http.StatusOK,
		"/v1/gaps?format=xml":                        http.StatusBadRequest,
		"/v1/gaps?format=csv&format=json":            http.StatusBadRequest,
		"/v1/gaps?format=csv&x=y":                    http.StatusBadRequest,
	} {
		if a := rg.call("GET", path, nil); a.status != want || want != http.StatusOK && !strings.Contains(a.body, `"detail"`) {
			t.Errorf("%s: %v", path, a)
		}
	}
}

func TestNoTextInATableIsAFormula(t *testing.T) {
	rg := newRig(t)
	c := &store.IngestCommand{
		Agent: "head1", Epoch: store.Epoch{1}, Begin: &store.Begin{}, From: 1, To: 1, After: store.Chain{1}, Now: 1e15,
		Gaps: []store.Gap{{Source: record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, From: 1e15, To: 2e15, Reason: "=HYPERLINK(1)", Noticed: 3e15}},
	}
	if _, err := rg.node.Write(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if a := rg.do("GET", "/v1/gaps?format=csv", ""); a.status != http.StatusOK || !strings.Contains(a.body, ",'=HYPERLINK(1),") {
		t.Error(a)
	}
}
