package plugintest

import (
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// ConfigFile is the file that the nodes of Block and Attr say they are from.
const ConfigFile = "test.hcl"

// Config is what a plugin with that label is handed when the inside of its config block is text.
// An attribute that names one of the variables is handed over as an expression.
func Config(t testing.TB, label, text string, variables ...string) *sdk.Config {
	t.Helper()
	file, diags := hcl.Parse(ConfigFile, []byte(text))
	tree, more := hcl.EvaluateLater(file.Body, file.Context(), file.Sources, variables...)
	if diags.Extend(more); diags.HasErrors() {
		t.Fatal(diags)
	}
	return sdk.ConfigOf(label, host.Tree(tree))
}

// Attr makes an attribute of a configuration. The value is a string, an integer,
// a float64, a bool, nil, a list of strings or of values, or a map from string
// to a value; anything else panics.
func Attr(name string, value any) *bursarv1.Node {
	return &bursarv1.Node{Name: name, Value: Value(value), Range: &bursarv1.Range{File: ConfigFile}}
}

// Block makes a block of a configuration with attributes and blocks in it, each
// on a line of its own, from line 1 on.
func Block(name string, children ...*bursarv1.Node) *bursarv1.Node {
	n := &bursarv1.Node{Name: name, Block: true, Range: &bursarv1.Range{File: ConfigFile}, Children: children}
	numberLines(n, 1)
	return n
}

// Labelled sets the labels of a block and returns it.
func Labelled(block *bursarv1.Node, labels ...string) *bursarv1.Node {
	block.Labels = labels
	return block
}

// numberLines gives a node and those under it their lines, and returns the next one.
func numberLines(n *bursarv1.Node, line int32) int32 {
	n.Range = &bursarv1.Range{
		File: ConfigFile, StartLine: line, StartColumn: 1, StartByte: line * 100,
		EndLine: line, EndColumn: 80, EndByte: line*100 + 79,
	}
	line++
	for _, c := range n.Children {
		line = numberLines(c, line)
	}
	return line
}

// Value makes the value of Attr.
func Value(v any) *bursarv1.Value {
	switch v := v.(type) {
	case nil:
		return &bursarv1.Value{}
	case string:
		return &bursarv1.Value{Kind: &bursarv1.Value_StringValue{StringValue: v}}
	case int:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: int64(v)}}
	case int64:
		return &bursarv1.Value{Kind: &bursarv1.Value_IntValue{IntValue: v}}
	case float64:
		return &bursarv1.Value{Kind: &bursarv1.Value_FloatValue{FloatValue: v}}
	case bool:
		return &bursarv1.Value{Kind: &bursarv1.Value_BoolValue{BoolValue: v}}
	case []string:
		return listOf(v)
	case []any:
		return listOf(v)
	case map[string]any:
		return mapOf(v)
	}
	panic(fmt.Sprintf("plugintest: no configuration value of type %T", v))
}

func listOf[T any](vs []T) *bursarv1.Value {
	list := new(bursarv1.ListValue)
	for _, v := range vs {
		list.Values = append(list.Values, Value(v))
	}
	return &bursarv1.Value{Kind: &bursarv1.Value_ListValue{ListValue: list}}
}

func mapOf(vs map[string]any) *bursarv1.Value {
	m := &bursarv1.MapValue{Values: map[string]*bursarv1.Value{}}
	for k, v := range vs {
		m.Values[k] = Value(v)
	}
	return &bursarv1.Value{Kind: &bursarv1.Value_MapValue{MapValue: m}}
}
