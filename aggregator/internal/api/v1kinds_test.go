package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/record"
)

// collected is an hour as a collector of AUDITOR pushes it: it cannot say kinds.
func collected(id string) string {
	return `{"record_id":"` + id + `","meta":{"site_id":["s"]},"components":[{"name":"Cores","amount":2,"scores":[]},{"name":"TotalCPU","amount":7200,"scores":[]},` +
		`{"scores":[],"amount":3600,"name":"UserCPU"},{"name":"joules","amount":10,"scores":[]}],"start_time":"2023-02-24T00:00:00Z","stop_time":"2023-02-24T01:00:00Z"}`
}

func (rg *rig) total(component string) (kind, total string) {
	rg.t.Helper()
	var sheet sheetOf
	rg.get("/v1/usage?from=2023-02-01&to=2023-03-01&measure="+component, &sheet)
	return sheet.Measures[0].Kind, sheet.Measures[0].Total.String()
}

func TestPost_CPUSecondsOfCollectors_AreTotals(t *testing.T) {
	own := auditor.Kinds(record.Kinds{"joules": record.Total, "UserCPU": record.Rate})
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Kinds = func() record.Kinds { return own } })
	rg.want("POST", "/record", collected("one"), 200, "")
	rg.add(collected("two"), strings.Replace(collected("three"), `"amount":7200`, `"amount":7200,"kind":"rate"`, 1))
	var list struct {
		Records []struct {
			ID         string `json:"record_id"`
			Components []struct{ Name, Kind string }
		}
	}
	rg.get("/v1/records", &list)
	for _, r := range list.Records {
		kinds := map[string]string{"Cores": "rate", "TotalCPU": "total", "UserCPU": "rate", "joules": "total"}
		if r.ID == "three" {
			kinds["TotalCPU"] = "rate" // the record says so
		}
		for _, c := range r.Components {
			if c.Kind != kinds[c.Name] {
				t.Errorf("%s of %s is a %s", c.Name, r.ID, c.Kind)
			}
		}
	}
	if kind, total := rg.total("joules"); kind != "total" || total != "30" {
		t.Errorf("%s %s", kind, total)
	}
	if a := rg.do("POST", "/record", strings.Replace(collected("four"), `"amount":10`, `"kind":"both","amount":10`, 1)); a.status != 400 || !strings.Contains(a.body, "unknown variant `both`") {
		t.Error(a)
	}
}

func TestRepairKinds_StoredRates_BecomeTotalsOnceAndTheRestStays(t *testing.T) {
	var kinds atomic.Pointer[record.Kinds]
	kinds.Store(&record.Kinds{}) // as before it was known that these are totals
	rg := newRig(t, func(o *api.Options, _ *store.Options) { o.Kinds = func() record.Kinds { return *kinds.Load() } })
	const many = 5100 // more than one request repairs
	list := make([]string, many)
	for i := range list {
		list[i] = collected(fmt.Sprintf("job-%d", i))
	}
	rg.add(list...)
	rg.add(strings.Replace(collected("open"), `,"stop_time":"2023-02-24T01:00:00Z"`, "", 1))
	rg.want("PUT", "/record", `{"record_id":"job-7","components":[],"stop_time":"2023-02-24T01:00:00Z"}`, 200, "")
	schedulers(t, rg, "job-0") // shown for it is what the scheduler says
	cpu := `{"component":"TotalCPU","stored":"rate","kind":"total","records":5101}`
	kinds.Store(&record.Kinds{"TotalCPU": record.Total, "Cores": record.Rate})
	rg.want("GET", "/v1/kinds", "", 200, `{"records":5101,"kinds":[`+cpu+`]}`+"\n")
	rg.want("POST", "/v1/kinds:repair?after=x", "", 400, rg.do("POST", "/v1/kinds:repair?after=x", "").body)
	repaired, after, rounds := 0, uint64(0), 0
	for more := true; more; rounds++ {
		var step struct {
			Repaired int
			After    uint64
			More     bool
		}
		rg.post(fmt.Sprintf("/v1/kinds:repair?after=%d", after), &step)
		repaired, after, more = repaired+step.Repaired, step.After, step.More
	}
	if repaired != many+1 || rounds != 2 {
		t.Errorf("%d were repaired in %d rounds", repaired, rounds)
	}
	rg.want("GET", "/v1/kinds", "", 200, `{"records":0,"kinds":[]}`+"\n")
	if a := rg.do("POST", "/v1/kinds:repair", ""); !strings.Contains(a.body, `"repaired":0`) {
		t.Error(a)
	}
	if kind, total := rg.total("TotalCPU"); kind != "total" || !strings.HasPrefix(total, "36") {
		t.Errorf("%s %s", kind, total)
	}
	if kind, _ := rg.total("UserCPU"); kind != "rate" {
		t.Errorf("what was not named became a %s", kind)
	}
	rg.withdrawn(t, "job-0")
	if a := rg.do("GET", "/v1/records/job-0", ""); !strings.Contains(a.body, `{"name":"TotalCPU","amount":7200,"kind":"total","scores":[]}`) {
		t.Errorf("what was hidden: %s", a)
	}
}

// post sends nothing and reads JSON.
func (rg *rig) post(path string, out any) {
	rg.t.Helper()
	if a := rg.do("POST", path, ""); a.status != 200 || json.Unmarshal([]byte(a.body), out) != nil {
		rg.t.Fatal(a)
	}
}

// schedulers has a scheduler say a run too.
func schedulers(t *testing.T, rg *rig, id string) {
	t.Helper()
	at, err := record.ParseTime("2023-02-24T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	rg.ingest(t, 1, record.Write{Op: record.OpPut, ID: id, Record: &record.Record{ID: id, Start: at, Stop: at + record.Hour, Submit: record.None}, Version: record.Version{Ended: true, Observed: 1}})
}

// withdrawn has it take it back.
func (rg *rig) withdrawn(t *testing.T, id string) {
	t.Helper()
	rg.ingest(t, 2, record.Write{Op: record.OpWithdraw, ID: id, Version: record.Version{Ended: true, Observed: 2}})
}

func (rg *rig) ingest(t *testing.T, frame uint64, w record.Write) {
	t.Helper()
	w.Origin, w.Rank = record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}, record.RankScheduler
	c := &store.IngestCommand{Agent: "head1", Epoch: store.Epoch{1}, From: frame, To: frame, Before: store.Chain{byte(frame - 1)}, After: store.Chain{byte(frame)}, Now: 1, Writes: []record.Write{w}}
	if frame == 1 {
		c.Begin = &store.Begin{}
	}
	result, err := rg.node.Write(context.Background(), c)
	if err != nil || !result.(store.IngestResult).Accepted {
		t.Fatalf("%+v, %v", result, err)
	}
}

func TestDismissStop_WaitingOnly(t *testing.T) {
	rg := pulled(t, &pulls{})
	rg.want("DELETE", "/v1/waiting/w1", "", 204, "")
	for _, id := range []string{"w1", "r2", "nothing"} {
		if a := rg.do("DELETE", "/v1/waiting/"+id, ""); a.status != 404 {
			t.Errorf("%s: %s", id, a)
		}
	}
	rg.want("GET", "/v1/waiting", "", 200, `{"waiting":[],"more":false}`+"\n")
	if a := rg.do("GET", "/v1/status", ""); !strings.Contains(a.body, `"waiting_stops":0`) {
		t.Error(a)
	}
}
