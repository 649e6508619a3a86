package view_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestPrices_EachDigit_IsShown(t *testing.T) {
	l := view.Prices(v1.Prices{Currency: "EUR", Prices: []v1.Price{
		{List: "energy", Component: "Energy", Per: "unit", Price: "0.000000083", To: v1.Time{Time: day(7, 1).Add(-2 * time.Hour)}},
		{List: "standard", Component: "Cores", Per: "hour", Price: "0.0120", Match: map[string]string{"site": "x", "group_id": "atlas"}, From: day(1, 1)},
	}})
	berlin := view.Zone("Europe/Berlin")
	if d := cmp.Diff([]string{
		"Energy|0.000000083|EUR|J|all||2026-07-01|energy",
		"Cores|0.0120|EUR|core-hour|group_id=atlas site=x|2026-01-01 01:00||standard",
	}, joinedRows(l.Table(berlin).Rows)); d != "" {
		t.Errorf("document: -want +got:\n%s", d)
	}
	if got := l.ShowAt(l.Rows[0], 6, berlin) + " " + l.Rows[0][6].String() + " " + l.ShowAt(l.Rows[1], 1, berlin); got != "2026-07-01 2026-06-30T22:00:00Z 0.0120" {
		t.Error(got)
	}
	if l = view.Prices(v1.Prices{}); l.Empty == "" || len(l.Rows) > 0 {
		t.Errorf("no prices: %+v", l)
	}
}
