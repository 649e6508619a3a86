package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func attribute(name string, v sdk.Value) sdk.Node { return sdk.Node{Name: name, Value: v} }

func list(words ...string) sdk.Value { return sdk.Strings(words...) }

// configured is an action with attributes and blocks.
func configured(nodes ...sdk.Node) (*action, error) {
	a := new(action)
	return a, a.Configure(context.Background(), sdk.NewConfig("test", sdk.Node{Name: "config", IsBlock: true, Children: nodes}))
}

func usageBlock(nodes ...sdk.Node) sdk.Node {
	return sdk.Node{Name: "usage", IsBlock: true, Children: nodes}
}

func TestWhatIsWrongWithTheConfigurationIsTold(t *testing.T) {
	command := attribute("command", list("/bin/true"))
	for want, nodes := range map[string][]sdk.Node{
		`"command" must be set`:     {},
		"is not an absolute path":   {attribute("command", list("true"))},
		"it is empty":               {attribute("command", list())},
		"usage needs a block":       {command, attribute("input", sdk.String("usage"))},
		"says no time":              {command, attribute("input", sdk.String("usage")), usageBlock()},
		`is for input = "usage"`:    {command, usageBlock(attribute("window", sdk.String("today")))},
		"is not between 1 and":      {command, attribute("batch", sdk.Int(0))},
		"is not between 1s and":     {command, attribute("timeout", sdk.String("2h"))},
		`did you mean "changes"?`:   {command, attribute("input", sdk.String("change"))},
		`did you mean "command"?`:   {attribute("comand", list("/bin/true"))},
		`did you mean "skip_empty"`: {command, attribute("skip_emty", sdk.Bool(true))},
	} {
		if _, err := configured(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestUsageIsHandedOverRowByRow(t *testing.T) {
	a, err := configured(attribute("command", list("/bin/cat")), attribute("input", sdk.String("usage")),
		usageBlock(attribute("window", sdk.String("last-month")), attribute("by", list("group_id", "site_id")), attribute("measure", list("Cores"))))
	if err != nil {
		t.Fatal(err)
	}
	rows := `{"group":{"group_id":"g"},"others":0,"bucket":null,"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","measures":{"Cores":123456789012345678901.5}}` + "\n"
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.URL.String(); got != "/v1/usage?by=group_id%2Csite_id&measure=Cores&window=last-month" {
			t.Error(got)
		}
		fmt.Fprint(w, `{"about":{}}`+"\n"+rows)
	}))
	p, err := a.Plan(t.Context(), sdk.PlanStart{Now: time.Unix(1, 0), Arguments: map[string]string{"x": "y"}}, data)
	if err != nil || len(p.Effects) != 1 {
		t.Fatal(p, err)
	}
	want := `{"now":"1970-01-01T00:00:01Z","since":null,"arguments":{"x":"y"},"usage":[{"group":{"group_id":"g"},"from":"2026-01-01T00:00:00Z","to":"2026-02-01T00:00:00Z","measures":{"Cores":123456789012345678901.5}}]}`
	if got := string(p.Effects[0].Payload); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rows = ""
	if p, err := a.Plan(t.Context(), sdk.PlanStart{Now: time.Unix(1, 0)}, data); err != nil || len(p.Effects) != 0 || len(p.Notes) != 1 {
		t.Error(p, err)
	}
}

func TestChangesGoOnWhereTheLastRunEnded(t *testing.T) {
	a, err := configured(attribute("command", list("/bin/cat")), attribute("input", sdk.String("changes")), attribute("batch", sdk.Int(2)))
	if err != nil {
		t.Fatal(err)
	}
	asked := ""
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RawQuery
		if r.URL.Query().Get("after") == "9" {
			fmt.Fprint(w, `{"changes":[],"last":9}`)
			return
		}
		fmt.Fprint(w, `{"changes":[{"seq":8,"record_id":"a","record":null},{"seq":9,"record_id":"b","record":{}}],"last":9}`)
	}))
	p, err := a.Plan(t.Context(), sdk.PlanStart{State: []byte("7")}, data)
	if err != nil || asked != "after=7&limit=2" || string(p.State) != "9" || len(p.Effects) != 1 || !strings.Contains(string(p.Effects[0].Payload), `"changes":[{"seq":8,`) {
		t.Errorf("%s: %+v, %v", asked, p, err)
	}
	p, err = a.Plan(t.Context(), sdk.PlanStart{State: p.State}, data)
	if err != nil || len(p.Effects) != 0 || string(p.State) != "9" {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err = a.Plan(t.Context(), sdk.PlanStart{Arguments: map[string]string{"after": "x"}}, data); err == nil {
		t.Error("a position that is no number is taken")
	}
}

func TestTheExitCodeSaysHowItEnded(t *testing.T) {
	a, err := configured(attribute("command", list("/bin/x", "-a")), attribute("env", sdk.Map(map[string]sdk.Value{"A": sdk.String("b")})))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		out     sdk.Output
		err     error
		outcome sdk.Outcome
		message string
	}{
		{sdk.Output{Stdout: []byte("all\nwell")}, nil, sdk.Done, "all"},
		{sdk.Output{Status: 75, Error: []byte("busy")}, nil, sdk.Retry, "75: busy"},
		{sdk.Output{Status: 65, Stdout: []byte("bad")}, nil, sdk.Rejected, "65: bad"},
		{sdk.Output{Status: 1}, nil, sdk.Unknown, "ended with 1"},
		{sdk.Output{Status: 137}, nil, sdk.Unknown, "137"},
		{sdk.Output{}, errors.New("killed"), sdk.Unknown, "killed"},
		{sdk.Output{}, sdk.NotStarted(errors.New("no such file")), sdk.Retry, "no such file"},
	} {
		world := sdk.NewWorld(func(_ context.Context, p sdk.Program) (sdk.Output, error) {
			if strings.Join(p.Arguments, " ") != "/bin/x -a" || p.Environment["A"] != "b" || p.Environment["BURSAR_KEY"] != "k" || p.Environment["BURSAR_FENCE"] != "7" || string(p.Input) != "in" {
				t.Errorf("%+v", p)
			}
			return x.out, x.err
		})
		r := a.Execute(t.Context(), sdk.Attempt{Effect: sdk.Effect{Payload: []byte("in")}, Key: "k", Fence: 7, Number: 1}, world)
		if r.Outcome != x.outcome || !strings.Contains(r.Message, x.message) {
			t.Errorf("%+v, want %d %q", r, x.outcome, x.message)
		}
	}
}
