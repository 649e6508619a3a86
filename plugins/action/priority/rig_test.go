package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func attribute(name string, v sdk.Value) sdk.Node { return sdk.Node{Name: name, Value: v} }

func textNode(name, v string) sdk.Node { return attribute(name, sdk.String(v)) }

func list(name string, words ...string) sdk.Node { return attribute(name, sdk.Strings(words...)) }

func block(name string, labels []string, nodes ...sdk.Node) sdk.Node {
	return sdk.Node{Name: name, IsBlock: true, Labels: labels, Children: nodes}
}

// groupOf is a block of a group with its params.
func groupOf(name string, params ...string) sdk.Node {
	return block("group", []string{name}, list("params", params...))
}

// scored are components with a score.
func scored(names map[string]string) sdk.Node {
	return attribute("components", sdk.StringMap(names))
}

func cores() sdk.Node { return scored(map[string]string{"Cores": "HEPscore23"}) }

func limits(low, high int64) sdk.Node {
	return attribute("priority", sdk.Map(map[string]sdk.Value{"min": sdk.Int(low), "max": sdk.Int(high)}))
}

func configured(nodes ...sdk.Node) (*action, error) {
	a := new(action)
	return a, a.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes}))
}

func must(t testing.TB, nodes ...sdk.Node) *action {
	t.Helper()
	a, err := configured(nodes...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func at(text string) time.Time {
	when, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return when
}

// now is the time of all plans.
func now() time.Time { return at("2026-11-20T12:00:00Z") }

// run is a record of a group that began so many seconds before now and ran so long.
func run(group string, before, seconds float64, components ...record.Component) record.Record {
	start := record.FromStd(now()) - record.Time(before*1e6)
	return record.Record{
		ID: fmt.Sprintf("%s-%g-%g", group, before, seconds), Start: start, Stop: start + record.Time(seconds*1e6),
		Meta: record.Meta{{Key: "group_id", Values: []string{group, "second"}}}, Components: components,
	}
}

func component(name string, amount int64, scores ...record.Score) record.Component {
	return record.Component{Name: name, Amount: amount, Scores: scores}
}

func hepscore(v float64) record.Score { return record.Score{Name: "HEPscore23", Value: v} }

// cluster answers as the daemon does.
type cluster struct {
	records  []record.Record
	archived map[string]bool   // ids of records that only who asks for them gets
	origins  map[string]string // of records, by id; else that of a source that says nothing
	ends     map[string]string // of sources of the agent head1 and the type slurm
	asked    []string
}

func (c *cluster) data() *sdk.Data { return sdk.NewData(http.HandlerFunc(c.serve)) }

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.asked = append(c.asked, r.URL.Path+"?"+r.URL.RawQuery)
	if r.URL.Path == "/v1/agents" {
		var sources []string
		for label, end := range c.ends {
			sources = append(sources, fmt.Sprintf(`{"type":"slurm","label":%q,"complete_to":%q}`, label, end))
		}
		fmt.Fprintf(w, `{"agents":[{"name":"head1","sources":[%s]}]}`, strings.Join(append(sources, `{"type":"x","label":"y","complete_to":null}`), ","))
		return
	}
	q := r.URL.Query()
	for i := range c.records {
		rec := &c.records[i]
		if q.Get("open") != fmt.Sprint(rec.Open()) || c.archived[rec.ID] && q.Get("archived") != "true" || !passes(q.Get("start_time[lt]"), func(t record.Time) bool { return rec.Start < t }) ||
			!passes(q.Get("start_time[gte]"), func(t record.Time) bool { return rec.Start >= t }) || !passes(q.Get("stop_time[gt]"), func(t record.Time) bool { return rec.Stop > t }) {
			continue
		}
		from := record.Origin{Agent: "head1", Type: "slurm", Label: c.origins[rec.ID]}
		_, _ = w.Write(append(wire.AppendV1JSON(nil, rec, wire.V1Extra{Origin: from}), '\n'))
	}
}

func passes(text string, ok func(record.Time) bool) bool {
	if text == "" {
		return true
	}
	t, err := record.ParseTime(text)
	return err == nil && ok(t)
}

// plan makes a plan of records.
func (c *cluster) plan(t testing.TB, a *action, start sdk.PlanStart) sdk.Plan {
	t.Helper()
	if start.Now.IsZero() {
		start.Now = now()
	}
	p, err := a.Plan(t.Context(), start, c.data())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// gauges are those of a plan by name and group.
func gauges(p sdk.Plan) map[string]float64 {
	out := map[string]float64{}
	for _, g := range p.Gauges {
		out[g.Name+" "+g.Labels["group"]] = g.Value
	}
	return out
}

func notes(p sdk.Plan) string { return strings.Join(p.Notes, "\n") }
