package hcl_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

type placed struct {
	Name   string       `hcl:"name,label"`
	Unit   string       `hcl:"unit,optional"`
	Amount hcl.Decimal  `hcl:"amount,optional"`
	Pace   hcl.Duration `hcl:"pace,optional"`
	Groups []string     `hcl:"groups,optional"`
	Places hcl.Places   `hcl:",places"`
}

type placedBlocks struct {
	Budgets []placed `hcl:"budget,block"`
}

func TestPlaces_OfADecodedBlock_NameHeaderLabelsAndValues(t *testing.T) {
	file, diags := hcl.Parse("a.hcl", []byte("budget \"b\" {\n  unit   = \"EUR\"\n  amount = \"x\"\n  pace   = null\n  groups = [\"a\"]\n}\n"))
	var c placedBlocks
	diags.Extend(hcl.Decode(file, &c, nil))
	p := c.Budgets[0].Places
	var got []string
	for _, name := range []string{"", "name", "unit", "amount", "pace", "groups"} {
		got = append(got, p.Errorf("budget", name, "no").Error())
	}
	want := []string{
		"a.hcl:1,1-11: invalid budget; no", `a.hcl:1,8-11: invalid value for "name"; no`, `a.hcl:2,12-17: invalid value for "unit"; no`,
		"a.hcl:1,1-11: invalid budget; no", "a.hcl:1,1-11: invalid budget; no", "a.hcl:1,1-11: invalid budget; no",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(diags) != 1 || hcl.FileLine(p["unit"]) != "a.hcl:2" || hcl.FileLine(hcl.Range{Filename: "a"}) != "a" {
		t.Error(diags, p)
	}
	budget := hcl.Members(&c)[0]
	if at := budget.Members[1].Range; budget.Range != p[""] || budget.Members[1].Name != "unit" || at != p["unit"] || budget.Members[0].Range != p[""] {
		t.Errorf("%+v", budget)
	}
}

func TestPlaces_OfABlockInJSON_NameTheBlock(t *testing.T) {
	var c placedBlocks
	if diags := hcl.DecodeJSON("log", []byte(`{"budget":[{"name":"b","unit":"EUR","groups":[]}]}`), &c); len(diags) > 0 {
		t.Fatal(diags)
	}
	p := c.Budgets[0].Places
	if at := p["unit"].Filename; at != `log budget "b"` || p[""].Filename != at || p["name"].Filename != at || p.Has("amount") || p.Has("groups") {
		t.Error(p)
	}
}
