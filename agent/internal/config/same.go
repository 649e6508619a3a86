package config

import (
	"google.golang.org/protobuf/proto"

	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// sameNode compares trees without their places.
func sameNode(a, b *bursarv1.Node) bool { return proto.Equal(withoutRanges(a), withoutRanges(b)) }

func withoutRanges(n *bursarv1.Node) *bursarv1.Node {
	out := &bursarv1.Node{Name: n.GetName(), Labels: n.GetLabels(), Value: n.GetValue(), Block: n.GetBlock(), Sensitive: n.GetSensitive()}
	for _, c := range n.GetChildren() {
		out.Children = append(out.Children, withoutRanges(c))
	}
	return out
}
