package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/plugintest"
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
		"command must be set":     {},
		"is not an absolute path": {attribute("command", list("true"))},
		"it is empty":             {attribute("command", list())},
		`is for input = "usage"`:  {command, usageBlock(attribute("window", sdk.String("today")))},
		"must be between 1s and":  {command, attribute("timeout", sdk.String("2h"))},
		`did you mean "command"?`: {attribute("comand", list("/bin/true"))},
	} {
		if _, err := configured(nodes...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestTheREADMEHasTheTableOfTheSettings(t *testing.T) {
	plugintest.Settings(t, new(action).Describe().Settings)
}

func TestWhatChangedIsPlannedForTheProgram(t *testing.T) {
	a, err := configured(attribute("command", list("/bin/cat", "-")), attribute("input", sdk.String("changes")))
	if err != nil {
		t.Fatal(err)
	}
	data := sdk.NewData(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"changes":[{"seq":8,"record_id":"a","record":null}],"last":8}`)
	}))
	p, err := a.Plan(t.Context(), sdk.PlanStart{Now: time.Unix(1, 0), State: []byte("7")}, data)
	if err != nil || len(p.Effects) != 1 || string(p.State) != "8" {
		t.Fatal(p, err)
	}
	want := `{"format":1,"now":"1970-01-01T00:00:01Z","since":null,"changes":[{"seq":8,"record_id":"a","record":null}]}`
	if e := p.Effects[0]; e.Name != "run changes=8-8" || string(e.Payload) != want || e.Show != "/bin/cat -\n"+want || e.Summary != "run the program with 1 changes, up to number 8" {
		t.Errorf("%+v", e)
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
