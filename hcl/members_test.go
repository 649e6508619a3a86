package hcl_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/bursar-accounting/bursar/hcl"
)

type shelf struct {
	Name   hcl.String            `hcl:"name,label"`
	Width  hcl.Duration          `hcl:"width,optional" min:"1s"`
	Price  hcl.Decimal           `hcl:"price,optional"`
	Owner  *hcl.String           `hcl:"owner"`
	Tags   []hcl.String          `hcl:"tags,optional"`
	Match  map[string]hcl.String `hcl:"match,optional"`
	Groups hcl.Strings           `hcl:"groups,optional"`
	Count  int64                 `hcl:"count,optional"`
	Open   *bool                 `hcl:"open"`
	Parts  []struct {
		Size hcl.Size `hcl:"size"`
	} `hcl:"part,block,repeat"`
	Range hcl.Range `hcl:",def_range"`
}

type shop struct {
	At      hcl.Address `hcl:"at,optional" default:"localhost:80"`
	Shelves []shelf     `hcl:"shelf,block"`
	Till    *struct {
		Note string `hcl:"note,optional"`
	} `hcl:"till,block"`
	Door struct {
		Note string `hcl:"note,optional"`
	} `hcl:"door,block,optional"`
}

const shopFile = `shelf "b" {
  width  = "1m"
  price  = 0.50
  owner  = ""
  tags   = ["x", "y"]
  match  = { k = "v" }
  groups = "g"
  count  = 3
  open   = false
  part { size = "1KiB" }
  part { size = "2KiB" }
}
shelf "a" { count = 0 }
till {}
`

const shopJSON = `{"shelf":[{"count":3,"groups":["g"],"match":{"k":"v"},"name":"b","open":false,"owner":"","part":[{"size":"1KiB"},{"size":"2KiB"}],"price":"0.5","tags":["x","y"],"width":"1m0s"},{"name":"a"}],"till":{}}`

func openShop(t *testing.T) *shop {
	t.Helper()
	file, diags := hcl.Parse("x.hcl", []byte(shopFile))
	var s shop
	diags.Extend(hcl.Decode(file, &s, file.Context()))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return &s
}

func TestEncodeJSON_WhatIsWritten_ByItsTags(t *testing.T) {
	if d := cmp.Diff(shopJSON, string(hcl.EncodeJSON(openShop(t)))); d != "" {
		t.Error(d)
	}
}

func TestDecodeJSON_WhatWasEncoded_IsTheSame(t *testing.T) {
	var got shop
	if diags := hcl.DecodeJSON("log:", []byte(shopJSON), &got); diags.HasErrors() {
		t.Fatal(diags)
	}
	if d := cmp.Diff(shopJSON, string(hcl.EncodeJSON(&got))); d != "" {
		t.Error(d)
	}
	want := openShop(t)
	if d := cmp.Diff(want.Shelves, got.Shelves, cmpopts.IgnoreTypes(hcl.Range{}), cmp.Comparer(func(a, b hcl.Decimal) bool { return a.String() == b.String() })); d != "" {
		t.Error(d)
	}
	if got.At.Port != 80 || got.Shelves[0].Width.Range.Filename != `log: shelf "b"` {
		t.Error(got.At, got.Shelves[0].Width.Range)
	}
}

func TestDecodeJSON_WhatIsWrong_IsNamedWithItsBlock(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                                     "log:: invalid setting; not an object",
		`{"x":1}`:                                `this program does not know "x" here`,
		`{"shelf":{}}`:                           "log: shelf: invalid setting; not a list",
		`{"shelf":[{}]}`:                         "name is missing",
		`{"shelf":[{"name":"a"},{"name":"a"}]}`:  `"a" is given more than once`,
		`{"shelf":[{"name":"a","width":"1ms"}]}`: `log: shelf "a": invalid setting; width: must be at least 1s, not 1ms`,
		`{"shelf":[{"name":"a","width":{}}]}`:    "width: expected a string",
		`{"shelf":[{"name":"a","count":"x"}]}`:   "count: json: cannot unmarshal string",
		`{"shelf":[{"name":"a","count":null}]}`:  "count: it is null",
		`{"shelf":[{"name":"a","part":[{}]}]}`:   "size is missing",
		`{"till":1}`:                             "not an object",
	} {
		if err := hcl.DecodeJSON("log:", []byte(text), new(shop)).Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestMembers_OfAStructAndOfItsJSON_AreTheSame(t *testing.T) {
	file := hcl.Members(openShop(t))
	text, err := hcl.MembersOf([]byte(shopJSON), new(shop))
	if err != nil {
		t.Fatal(err)
	}
	names := func(list []hcl.Member) (out []string) {
		var walk func(within string, list []hcl.Member)
		walk = func(within string, list []hcl.Member) {
			for i := range list {
				out = append(out, within+list[i].Header()+" "+string(list[i].Value))
				walk(within+list[i].Header()+"/", list[i].Members)
			}
		}
		walk("", list)
		return out
	}
	if d := cmp.Diff(names(file), names(text), cmpopts.SortSlices(func(a, b string) bool { return a < b })); d != "" {
		t.Error(d)
	}
	if at := file[0].Members[0].Range; at.Start.Line != 8 && at.Start.Line != 1 {
		t.Error(file[0].Members[0].Name, at)
	}
}
