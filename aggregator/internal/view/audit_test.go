package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestAudit_Entries_AreRowsAndMoreIsTold(t *testing.T) {
	wantExactList(t, view.Audit(v1.Audit{}), "time|kind|who|what|about|result|from|node\nNo entries.")
	l := view.Audit(v1.Audit{More: true, Entries: []v1.AuditEntry{
		{Time: march(12), Kind: "look", Who: "client/bob", Route: "GET /v1/usage", About: "/v1/usage user_id=alice", Result: "200", From: "10.0.0.1:9", Node: "agg1"},
		{Time: march(12), Kind: "gap", Who: "agg1"},
	}})
	wantExactList(t, l, `time|kind|who|what|about|result|from|node
2026-03-01T12:00:00Z|look|client/bob|GET /v1/usage|/v1/usage user_id=alice|200|10.0.0.1:9|agg1
2026-03-01T12:00:00Z|gap|agg1|||||`)
	if !l.More {
		t.Error("it does not say that there are more")
	}
}
