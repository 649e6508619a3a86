package sdk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

func expressions() *sdk.Config {
	at := sdk.Range{File: "a.hcl", Start: sdk.Pos{Line: 3, Column: 8}}
	return sdk.NewConfig("egi", sdk.Node{Name: "config", IsBlock: true, Children: []sdk.Node{
		{Name: "vo", Expression: "record.meta.voms[0]", Range: at},
		{Name: "host", Value: sdk.String("ce1"), Range: at},
	}})
}

func TestAnExpressionIsHandedOverAsItsText(t *testing.T) {
	c := expressions()
	text, at, ok := c.Expression("vo")
	if !ok || text != "record.meta.voms[0]" || at.Start.Line != 3 {
		t.Error(text, at, ok)
	}
	for _, name := range []string{"host", "none"} {
		if _, _, ok := c.Expression(name); ok {
			t.Errorf("%s has an expression", name)
		}
	}
	if names := c.Attributes(); !slices.Equal(names, []string{"vo", "host"}) {
		t.Error(names)
	}
}

func TestAnExpressionWhereAValueIsWantedIsAProblemWithItsPlace(t *testing.T) {
	c := expressions()
	var into struct {
		VO   string `hcl:"vo,optional" default:"default"`
		Host string `hcl:"host,optional"`
	}
	if err := c.Decode(&into); err == nil || !strings.Contains(err.Error(), "a.hcl:3,8: Variables not allowed") || into.VO != "default" || into.Host != "ce1" {
		t.Error(err, into)
	}
	var none *sdk.Body
	if none.Attributes() != nil {
		t.Error("an absent block has attributes")
	}
}
