package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
)

// reference are the records of AUDITOR's documentation: what five groups used.
func reference() *cluster {
	c := &cluster{}
	for group, seconds := range map[string]float64{"a": 1728, "b": 1776, "c": 2400, "d": 60} {
		c.records = append(c.records, run(group, hour, seconds, component("Cores", 1, hepscore(10))))
	}
	return c
}

func five() []sdk.Node {
	return []sdk.Node{cores(), limits(1, 65335), groupOf("a", "p1"), groupOf("b", "p2"), groupOf("c", "p3"), groupOf("d", "p4"), groupOf("e", "p5")}
}

func names(p sdk.Plan) (out []string) {
	for i := range p.Effects {
		out = append(out, p.Effects[i].Name)
	}
	return out
}

func TestAPlanShowsWhatEachGroupGets(t *testing.T) {
	p := reference().plan(t, must(t, five()...), sdk.PlanStart{})
	if got := names(p); !slices.Equal(got, []string{"group=a", "group=b", "group=c", "group=d", "group=e"}) {
		t.Fatal(got)
	}
	if e := p.Effects[0]; e.Summary != "priority 18931 of 1 to 65335, usage 17280, unless it is so already" ||
		e.Show != "/usr/bin/scontrol update PartitionName=p1 PriorityJobFactor=18931\nread back: /usr/bin/scontrol show partition p1\n" {
		t.Errorf("%s\n%s", e.Summary, e.Show)
	}
	want := `{"format":1,"priority":1,"commands":[["/usr/bin/scontrol","update","PartitionName=p5","PriorityJobFactor=1"]],"read":["/usr/bin/scontrol","show","partition","p5"],"pattern":"PriorityJobFactor=([0-9]+)"}`
	if got := string(p.Effects[4].Payload); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !strings.Contains(notes(p), "without usage ever: e") || p.Partial {
		t.Error(notes(p))
	}
	if g := gauges(p); len(g) != 10 || g["priority c"] != 26292 || g["resource_usage c"] != 24000 {
		t.Error(g)
	}
	p = reference().plan(t, must(t, append(five(), textNode("mode", "full_spread"))...), sdk.PlanStart{})
	if g := gauges(p); g["priority a"] != 47041 || g["priority e"] != 1 {
		t.Error(g)
	}
}

func TestWithoutAWayToReadOnlyWhatHasChangedIsSet(t *testing.T) {
	c := reference()
	a := must(t, append(five(), list("command", "/bin/set", "{1}", "{priority}"))...)
	first := c.plan(t, a, sdk.PlanStart{})
	if len(first.Effects) != 5 || !strings.HasPrefix(string(first.State), `{"format":1,"set":{"a":{"digest":"`) {
		t.Fatal(names(first), string(first.State))
	}
	second := c.plan(t, a, sdk.PlanStart{State: first.State})
	if len(second.Effects) != 0 || string(second.State) != string(first.State) || !strings.Contains(notes(second), "e: priority 1 of 1 to 65335, usage 0: set at 2026-11-20T12:00:00Z") {
		t.Fatal(names(second), notes(second))
	}
	if p := c.plan(t, a, sdk.PlanStart{State: first.State, Arguments: map[string]string{"all": "yes"}}); len(p.Effects) != 5 {
		t.Error(names(p))
	}
	if p := c.plan(t, a, sdk.PlanStart{State: first.State, Now: now().Add(24 * time.Hour)}); len(p.Effects) != 5 {
		t.Error("after a day", names(p))
	}
	c.records = append(c.records, run("e", hour, 0.00001, component("Cores", 1)), run("d", 2*hour, 100, component("Cores", 50)))
	if p := c.plan(t, a, sdk.PlanStart{State: first.State}); !slices.Equal(names(p), []string{"group=a", "group=b", "group=c", "group=d"}) {
		t.Error(names(p))
	}
	other := must(t, append(five(), list("command", "/bin/other", "{1}", "{priority}"))...)
	if p := reference().plan(t, other, sdk.PlanStart{State: first.State}); len(p.Effects) != 5 {
		t.Error("with another command", names(p))
	}
}

func TestGroupsThatAreNotMappedAreListed(t *testing.T) {
	c := &cluster{}
	for i := range 30 {
		c.records = append(c.records, run(fmt.Sprintf("other%02d", i), hour, float64(i), component("Cores", 1)))
	}
	p := c.plan(t, must(t, cores(), limits(7, 9), groupOf("a", "p")), sdk.PlanStart{})
	for _, want := range []string{"not in the mapping: other29 (29), other28 (28)", "other10 (10)", "and 9 more groups are not in the mapping", "no group of the mapping has used anything ever: all get 7"} {
		if !strings.Contains(notes(p), want) {
			t.Errorf("%q is not in\n%s", want, notes(p))
		}
	}
	if strings.Contains(notes(p), "other09") || gauges(p)["priority a"] != 7 {
		t.Error(notes(p), gauges(p))
	}
}

func TestAPlanOfManyGroupsFitsTheDaemon(t *testing.T) {
	nodes := []sdk.Node{cores(), list("command", "/bin/set", "{1}", "{priority}")}
	for i := range maxGroups {
		nodes = append(nodes, groupOf(fmt.Sprintf("group%d%s", i, strings.Repeat("x", 50)), fmt.Sprintf("p%d", i)))
	}
	c := &cluster{records: []record.Record{run("group1"+strings.Repeat("x", 50), hour, 1, component("Cores", 1<<62, hepscore(1e308)), component("Cores", 1<<62, hepscore(1e308)))}}
	a := must(t, nodes...)
	first := c.plan(t, a, sdk.PlanStart{})
	second := c.plan(t, a, sdk.PlanStart{State: first.State})
	if len(first.Effects) != maxGroups || len(second.Effects) != 0 {
		t.Error(len(first.Effects), len(second.Effects))
	}
	for _, p := range []sdk.Plan{first, second} {
		if len(p.Notes) > 100 || len(p.Gauges) > 200 {
			t.Error(len(p.Notes), len(p.Gauges))
		}
	}
	if !strings.Contains(notes(second), "and 460 more groups whose priority was set already") {
		t.Error(notes(second))
	}
}

func TestAPlanThatCannotBeMadeIsAnError(t *testing.T) {
	a := must(t, five()...)
	for what, start := range map[string]sdk.PlanStart{
		"argument":      {Arguments: map[string]string{"al": "yes"}},
		"knows 1":       {State: []byte(`{"format":2}`)},
		"cannot be rea": {State: []byte("x")},
	} {
		start.Now = now()
		if _, err := a.Plan(t.Context(), start, reference().data()); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want %q", err, what)
		}
	}
	for _, broken := range []string{"/v1/agents", "/v1/records"} {
		data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == broken {
				http.Error(w, `{"detail":"no leader"}`, http.StatusServiceUnavailable)
				return
			}
			reference().serve(w, r)
		}))
		_, err := a.Plan(t.Context(), sdk.PlanStart{Now: now()}, data)
		refusal, ok := errors.AsType[*sdk.ResponseError](err)
		if !ok || refusal.Status != 503 {
			t.Errorf("%s: %v", broken, err)
		}
	}
}
