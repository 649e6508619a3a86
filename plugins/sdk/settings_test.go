package sdk_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func at(line int) sdk.Range {
	return sdk.Range{File: "a.hcl", Start: sdk.Pos{Line: line, Column: 3, Byte: 10 * line}, End: sdk.Pos{Line: line, Column: 9, Byte: 10*line + 6}}
}

type everything struct {
	Name    string            `hcl:"name"`
	Count   int               `hcl:"count,optional" default:"7" max:"10"`
	Share   float64           `hcl:"share,optional"`
	On      bool              `hcl:"on,optional" default:"true"`
	Users   hcl.Strings       `hcl:"users,optional"`
	Env     map[string]string `hcl:"env,optional"`
	Pause   time.Duration     `hcl:"pause,optional" default:"1m"`
	Since   hcl.Time          `hcl:"since,optional"`
	Token   hcl.String        `hcl:"token,optional"`
	VO      hcl.Expression    `hcl:"vo,optional"`
	Command [][]string        `hcl:"commands,optional"`
	Groups  []struct {
		Name   string      `hcl:"name,label"`
		Params hcl.Strings `hcl:"params"`
	} `hcl:"group,block"`
}

func TestABlockIsDecodedIntoAStruct(t *testing.T) {
	c := sdk.NewConfig("x", sdk.Node{Name: "config", IsBlock: true, Range: at(1), Children: []sdk.Node{
		{Name: "name", Value: sdk.Int(7), Range: at(2)},
		{Name: "share", Value: sdk.Float(0.5), Range: at(3)},
		{Name: "on", Value: sdk.Bool(false), Range: at(4)},
		{Name: "users", Value: sdk.String("ann"), Range: at(5)},
		{Name: "env", Value: sdk.StringMap(map[string]string{"A": "b"}), Range: at(6)},
		{Name: "since", Value: sdk.String("2026-01-02"), Range: at(7)},
		{Name: "token", Value: sdk.String("hush"), Sensitive: true, Range: at(8)},
		{Name: "vo", Expression: "record.meta.voms[0]", Range: at(9)},
		{Name: "commands", Value: sdk.List(sdk.Strings("/bin/true", "-x")), Range: at(10)},
		{Name: "count", Value: sdk.Null(), Range: at(11)},
		{Name: "group", Labels: []string{"atlas"}, IsBlock: true, Range: at(12), Children: []sdk.Node{
			{Name: "params", Value: sdk.Strings("p"), Range: at(13)},
		}},
	}})
	got := everything{Share: 9, Pause: time.Hour}
	if err := c.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if got.Name != "7" || got.Count != 7 || got.Share != 0.5 || got.On || got.Pause != time.Minute || got.Since.Format(time.RFC3339) != "2026-01-02T00:00:00Z" {
		t.Errorf("%+v", got)
	}
	if got.Token.Value != "hush" || !got.Token.Sensitive || len(hcl.Refs(got.VO)) != 1 || got.VO.Range().Start.Line != 9 {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff([]any{hcl.Strings{"ann"}, map[string]string{"A": "b"}, [][]string{{"/bin/true", "-x"}}, "atlas", hcl.Strings{"p"}},
		[]any{got.Users, got.Env, got.Command, got.Groups[0].Name, got.Groups[0].Params}); d != "" {
		t.Error(d)
	}
}

func TestEveryProblemOfABlockHasItsPlaceAndNoSecret(t *testing.T) {
	c := sdk.NewConfig("x", sdk.Node{Name: "config", IsBlock: true, Range: at(1), Children: []sdk.Node{
		{Name: "count", Value: sdk.Int(11), Range: at(2)},
		{Name: "pause", Value: sdk.String("hush"), Sensitive: true, Range: at(3)},
		{Name: "users", Value: sdk.List(sdk.String("ann"), sdk.Map(nil)), Range: at(4), Elements: []sdk.Range{at(4), at(5)}},
		{Name: "nme", Value: sdk.String("x"), Range: at(6)},
		{Name: "share", Expression: "record.x", Range: at(7)},
		{Name: "group", IsBlock: true, Range: at(8)},
		{Name: "group", Labels: []string{"b"}, IsBlock: true, Range: at(9)},
	}})
	err := c.Decode(new(everything))
	c.Errorf("count", "it is odd")
	want := `a.hcl:1,3: missing attribute; name must be set here
a.hcl:2,3: invalid value for "count"; must be at most 10, not 11
a.hcl:3,3: invalid value for "pause"; the value comes from file() or env(), so it is not shown; check what they return
a.hcl:5,3: invalid value for "users"; expected a string, not a map
a.hcl:6,3: unknown attribute "nme"; did you mean "name"?
a.hcl:7,3: Variables not allowed; Variables may not be used here.
a.hcl:8,3: wrong number of labels on "group"; expected group "<name>" { … }
a.hcl:8,3: missing attribute; params must be set here
a.hcl:9,3: missing attribute; params must be set here`
	if d := cmp.Diff(want, err.Error()); d != "" {
		t.Error(d)
	}
	if err := c.Err(); strings.Contains(err.Error(), "it is odd") {
		t.Errorf("a value that cannot be read is checked again: %v", err)
	}
}
