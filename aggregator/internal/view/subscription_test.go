package view_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestSubscription_EachState_HasItsRatioOrWord(t *testing.T) {
	a := v1.Subscription{Unit: "kSU", Used: "100.000000000", Contributed: "50", Unclaimed: "0", Complete: v1.Complete{Limited: true}, Shares: []v1.SubscriptionShare{
		{PI: "bell", Name: "A. Bell", State: "both", Used: "75.500", ExemptUsed: "0", UsedShare: figure("0.755"), Contributed: "25", ContributionShare: figure("0.5"), Ratio: figure("1.51")},
		{PI: "turing", State: "over", Used: "14.5", ExemptUsed: "0", UsedShare: figure("0.145"), Contributed: "0", ContributionShare: figure("0")},
		{PI: "darwin", State: "under", Used: "0", ExemptUsed: "0", UsedShare: figure("0"), Contributed: "25", ContributionShare: figure("0.5")},
		{PI: "curie", State: "neither", Used: "0", ExemptUsed: "0", Contributed: "0"},
		{PI: "guests", State: "exempt", Used: "10", ExemptUsed: "10", UsedShare: figure("0.1"), Contributed: "8"},
	}}
	l := view.Subscription(a)
	if got := heads(l); got != "PI|Name|Used kSU|Exempt used|Share used|Contributed|Share contributed|Ratio|State" {
		t.Error(got)
	}
	if d := cmp.Diff([]string{"bell|A. Bell|75.5|0|0.755|25|0.5|1.51|", "turing||14.5|0|0.145|0|0||over", "darwin||0|0|0|25|0.5||under", "curie||0|0||0|||", "guests||10|10|0.1|8|||exempt"}, joinedRows(l.Rows)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	table := l.Table(time.UTC)
	if got := joinedRows([][]v1.Cell{table.Totals})[0]; got != "Total||100||50|||" || len(table.Rows) != len(a.Shares) {
		t.Errorf("document: %s, %d rows", got, len(table.Rows))
	}
	if notes := strings.Join(l.Notes, "\n"); !strings.Contains(notes, "Only records that the reader may see are included") {
		t.Error(notes)
	}
	if l = view.Subscription(v1.Subscription{}); l.Empty == "" || len(l.Rows)+len(l.Totals) > 0 {
		t.Errorf("no shares: %+v", l)
	}
}
