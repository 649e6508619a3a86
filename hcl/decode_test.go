package hcl_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/bursar-accounting/bursar/hcl"
)

type everything struct {
	S      string                    `hcl:"s,optional"`
	B      *bool                     `hcl:"b"`
	I      int                       `hcl:"i,optional"`
	U      uint16                    `hcl:"u,optional"`
	F      float64                   `hcl:"f,optional"`
	D      time.Duration             `hcl:"d,optional"`
	Ds     []hcl.Duration            `hcl:"ds,optional"`
	Nested map[string][]int          `hcl:"nested,optional"`
	Addr   netip.Addr                `hcl:"addr,optional"`
	Raw    cty.Value                 `hcl:"raw,optional"`
	Later  map[string]hcl.Expression `hcl:"later,optional"`
	Exprs  []hcl.Expression          `hcl:"exprs,optional"`
	Tree   *node                     `hcl:"node,block"`
}

type node struct {
	Name     string  `hcl:"name,label"`
	Children []*node `hcl:"node,block"`
	checked  bool
}

func (n *node) ValidateHCL() hcl.Diagnostics {
	n.checked = true
	return nil
}

func decode(src string) (everything, hcl.Diagnostics) {
	var e everything
	file, diags := hcl.Parse("x.hcl", []byte(src))
	diags.Extend(hcl.Decode(file, &e, file.Context()))
	return e, diags
}

func TestEveryFieldTypeIsDecoded(t *testing.T) {
	e, diags := decode(`
s      = upper("x")
b      = true
i      = -3
u      = "65535"
f      = 1.5
d      = "1d"
ds     = [for x in ["1s", "2s"] : x]
nested = { a = [1, 2], b = tolist([3]) }
addr   = "::1"
raw    = { k = 1 }
later  = { a = job.x, "b-c" = null }
exprs  = [job.x, 1]
node "a" {
  node "b" {
    node "c" {
    }
  }
  node "d" {
  }
}
`)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	got := fmt.Sprint(e.S, *e.B, e.I, e.U, e.F, e.D, len(e.Ds), e.Ds[1].Duration, e.Nested, e.Addr, len(e.Later), hcl.Refs(e.Later["a"]), len(e.Exprs))
	want := "Xtrue -3 65535 1.5 24h0m0s 2 2s map[a:[1 2] b:[3]] ::1 2 [job.x] 2"
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := e.Tree.Children[0].Children[0]; n.Name != "c" || !n.checked || !e.Tree.checked {
		t.Errorf("%+v", n)
	}
}

func TestWrongValuesNameTheElement(t *testing.T) {
	for _, c := range []struct{ src, err string }{
		{`u = 65536`, `x.hcl:1:5: invalid value for "u"`},
		{`u = -1`, `x.hcl:1:5: invalid value for "u"`},
		{`i = 1e30`, `x.hcl:1:5: invalid value for "i"`},
		{`nested = { a = [1, "x"] }`, `x.hcl:1:20: invalid value for "nested"; expected a number, not a string`},
		{`nested = { a = 1 }`, `x.hcl:1:16: invalid value for "nested"; expected a list, not a number`},
		{`nested = [1]`, `x.hcl:1:10: invalid value for "nested"; expected a map, not a list; did you mean { … }?`},
		{`nested = { a = [null] }`, `x.hcl:1:17: invalid value for "nested"; a value is needed here, not null`},
		{`ds = ["1s", "2"]`, `x.hcl:1:13: invalid value for "ds"; "2" has no unit`},
		{`ds = split(",", "1s,2")`, `x.hcl:1:6: invalid value for "ds"; "2" has no unit`},
		{`addr = "1.2.3"`, `x.hcl:1:8: invalid value for "addr"`},
		{`d = 5`, `x.hcl:1:5: invalid value for "d"; "5" has no unit`},
		{`later = { a = 1, a = 2 }`, `x.hcl:1:18: duplicate key; a is already set at x.hcl:1:11`},
		{`later = { (x) = 1 }`, `x.hcl:1:12: Variables not allowed`},
		{`s = {}`, `expected a string, not a map`},
		{"node \"a\" {\nnod \"b\" {}\n}", `x.hcl:2:1: unknown block "nod"; did you mean "node"?`},
	} {
		_, diags := decode(c.src)
		if !strings.Contains(diags.Error(), c.err) {
			t.Errorf("%s: %s", c.src, diags.Error())
		}
	}
}

func TestBlockIsValidatedOnlyWhenItDecoded(t *testing.T) {
	e, diags := decode(`node "a" { x = 1 }`)
	if !diags.HasErrors() || e.Tree.checked {
		t.Errorf("%v %+v", diags, e.Tree)
	}
}
