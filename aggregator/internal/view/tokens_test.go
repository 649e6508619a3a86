package view_test

import (
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestTokens_Limits_AreWordsAndWhatWasNeverUsedIsUnknown(t *testing.T) {
	at := march(12)
	wantExactList(t, view.Tokens(v1.Tokens{}), "token|role|name|records|state|created_by|created|expires|used|used_by|from\nNo tokens.")
	wantExactList(t, view.Tokens(v1.Tokens{Tokens: []v1.Token{
		{ID: "a1", Role: "agent", State: "used", CreatedBy: "client/root", Created: at, Expires: at, Used: at, UsedBy: "head1", UsedFrom: "10.0.0.1:9"},
		{ID: "b1", Role: "read", Name: "atlas", State: "valid", CreatedBy: "client/root", Created: at, Expires: at, Person: "alice", Pseudonyms: true, Rows: v1.RowFilter{{"site_id": {"nemo"}, "group_id": {"a,b", "c"}}}},
	}}), `token|role|name|records|state|created_by|created|expires|used|used_by|from
a1|agent|||used|client/root|2026-03-01T12:00:00Z|2026-03-01T12:00:00Z|2026-03-01T12:00:00Z|head1|10.0.0.1:9
b1|read|atlas|of alice pseudonyms group_id=a\,b,c site_id=nemo|valid|client/root|2026-03-01T12:00:00Z|2026-03-01T12:00:00Z|||`)
}
