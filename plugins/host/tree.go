package host

import (
	"fmt"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/translate"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// Tree is the tree of a config block as plugins get it.
func Tree(t hcl.Tree) *bursarv1.Node {
	return &bursarv1.Node{Name: "config", Block: true, Range: protoRange(t.Range), Children: nodesOf(t.Nodes)}
}

// EmptyTree stands for a config block that is not there.
func EmptyTree(at hcl.Range) *bursarv1.Node {
	return &bursarv1.Node{Name: "config", Block: true, Range: protoRange(at)}
}

func nodesOf(in []hcl.Node) []*bursarv1.Node {
	var out []*bursarv1.Node
	for _, n := range in {
		p := &bursarv1.Node{Name: n.Name, Labels: n.Labels, Block: n.Block, Range: protoRange(n.Range)}
		switch {
		case n.Block:
			p.Children = nodesOf(n.Children)
		case n.Expression != "":
			p.Labels, p.Range = []string{n.Expression}, protoRange(n.Value.Range)
		default:
			p.Value, p.Sensitive = valueOf(n.Value), n.Value.Sensitive
			p.Elements = elementRanges(n.Value)
		}
		out = append(out, p)
	}
	return out
}

func elementRanges(v hcl.Value) []*bursarv1.Range {
	var out []*bursarv1.Range
	for _, e := range v.List {
		out = append(out, protoRange(e.Range))
	}
	return out
}

// valueOf is a value without places.
func valueOf(v hcl.Value) *bursarv1.Value {
	out, err := translate.ValueOf(v.Interface(), nil)
	if err != nil {
		panic(fmt.Sprintf("host: a value of a configuration: %v", err)) // it holds nothing else
	}
	return out
}

func protoRange(r hcl.Range) *bursarv1.Range {
	return &bursarv1.Range{
		File:      r.Filename,
		StartLine: int32(r.Start.Line), StartColumn: int32(r.Start.Column), StartByte: int32(r.Start.Byte),
		EndLine: int32(r.End.Line), EndColumn: int32(r.End.Column), EndByte: int32(r.End.Byte),
	}
}
