package hcl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/hcl"
)

// show is what a body holds, on one line.
func show(nodes []hcl.Node) string {
	var parts []string
	for _, n := range nodes {
		part := n.Name + " = " + n.Value.String()
		if n.Block {
			part = strings.Join(append(append([]string{n.Name}, n.Labels...), show(n.Children)), " ")
		} else if n.Expression != "" {
			part = n.Name + " = " + n.Expression
		}
		parts = append(parts, part)
	}
	return "{ " + strings.Join(parts, "; ") + " }"
}

const treeSource = `
name   = "a"
count  = 9007199254740993
ratio  = 0.1
on     = true
off    = null
token  = env("BURSAR_TEST")
list   = ["x", 2, [true], "${env("BURSAR_TEST")}!"]
map    = { b = 1, a = { c = upper("d") } }
made   = [for i in range(2) : "n${i}"]
group "atlas" "x" {
  params = ["part_atlas"]
}
group "atlas" "x" {
}
last = 1e3
`

func TestTreeKeepsOrderTypesAndPlaces(t *testing.T) {
	t.Setenv("BURSAR_TEST", "s3cret")
	file, diags := hcl.Parse("x.hcl", []byte(treeSource))
	tree, more := hcl.Evaluate(file.Body, file.Context())
	diags.Extend(more)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := `{ name = "a"; count = 9007199254740993; ratio = 0.1; on = true; off = null; token = ***; ` +
		`list = ["x", 2, [true], ***]; map = {"a" = {"c" = "D"}, "b" = 1}; made = ["n0", "n1"]; ` +
		`group atlas x { params = ["part_atlas"] }; group atlas x {  }; last = 1000 }`
	if d := cmp.Diff(want, show(tree.Nodes)); d != "" {
		t.Error(d)
	}
	if got := fmt.Sprintf("%v %+v %#v %s", tree, tree.Nodes, tree, tree.Nodes[5].Value); strings.Contains(got, "s3cret") {
		t.Error(got)
	}
	place := func(r hcl.Range) string {
		return fmt.Sprintf("%s:%d:%d-%d", r.Filename, r.Start.Line, r.Start.Column, r.End.Column)
	}
	list := tree.Nodes[6].Value
	for _, c := range []struct{ got, want string }{
		{place(tree.Nodes[0].Range), "x.hcl:2:1-13"},
		{place(tree.Nodes[0].Value.Range), "x.hcl:2:10-13"},
		{place(list.List[1].Range), "x.hcl:8:16-17"},
		{place(list.List[2].List[0].Range), "x.hcl:8:20-24"},
		{place(tree.Nodes[7].Value.Map[0].Value.Map[0].Value.Range), "x.hcl:9:29-39"},
		{place(tree.Nodes[8].Value.List[1].Range), "x.hcl:10:10-39"},
		{place(tree.Nodes[9].Range), "x.hcl:11:1-18"},
		{place(tree.Nodes[9].Children[0].Range), "x.hcl:12:3-26"},
	} {
		if c.got != c.want {
			t.Errorf("%s, want %s", c.got, c.want)
		}
	}
	if !list.Sensitive || list.List[0].Sensitive || !list.List[3].Sensitive || list.List[3].Str != "s3cret!" {
		t.Errorf("sensitive: %v", list)
	}
	if d := cmp.Diff(map[string]any{"a": map[string]any{"c": "D"}, "b": int64(1)}, tree.Nodes[7].Value.Interface()); d != "" {
		t.Error(d)
	}
}

func TestTreeReportsAllProblems(t *testing.T) {
	file, diags := hcl.Parse("x.hcl", []byte("a = nope\nb = { x = 1, x = 2 }\nc {\n  d = [1, uper(\"x\")]\n}\ne = 1e400\nf = { (null) = 1 }\ng = file(\"none\")\n"))
	_, more := hcl.Evaluate(file.Body, file.Context())
	diags.Extend(more)
	for _, want := range []string{
		"x.hcl:1:5: Variables not allowed", "x.hcl:2:14: duplicate key; x is already set at x.hcl:2:7", "x.hcl:4:11: unknown function uper(); did you mean",
		"x.hcl:6:5: invalid value; the number is too large", "x.hcl:7:7: invalid key", "x.hcl:8:5: file() failed; file none does not exist",
	} {
		if !strings.Contains(diags.Error(), want) {
			t.Errorf("no %q in\n%s", want, diags.Error())
		}
	}
	if len(diags) != 6 {
		t.Errorf("%d problems:\n%v", len(diags), diags.Error())
	}
}
