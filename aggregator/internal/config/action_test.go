package config_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/config"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

// find is the node at a path of names.
func find(n *bursarv1.Node, path ...string) *bursarv1.Node {
	for _, c := range n.GetChildren() {
		if c.GetName() == path[0] {
			if len(path) == 1 {
				return c
			}
			return find(c, path[1:]...)
		}
	}
	return nil
}

func TestExpressionsOverTheRecordReachThePluginAsText(t *testing.T) {
	c, _, diags := config.Load("../../../hcl/examples/aggregator-apel.hcl")
	if err := diags.Err(); err != nil {
		t.Fatal(err)
	}
	shared, err := config.ReadShared(c.Shared())
	if err != nil {
		t.Fatal(err)
	}
	for what, n := range map[string]*bursarv1.Node{"this node's file": c.LocalActions()[0].Config, "the cluster's configuration": shared.Actions[0].Config} {
		host := find(n, "fields", "SubmitHost")
		if host.GetValue() != nil || len(host.GetLabels()) != 1 || host.GetLabels()[0] != `try(record.meta.headnode[0], "${record.site}-login")` {
			t.Errorf("%s: %v", what, host)
		}
		if vo := find(n, "fields", "Infrastructure"); vo.GetValue().GetStringValue() != "grid" || len(vo.GetLabels()) != 0 {
			t.Errorf("%s: %v", what, vo)
		}
	}
	if at := find(c.LocalActions()[0].Config, "fields", "SubmitHost").GetRange(); at.GetStartLine() == 0 || at.GetStartColumn() < 20 {
		t.Errorf("the place of the expression is %v", at)
	}
}
