package report_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
)

func TestPrices_OfAnyTime_AreInEffectToComeOrBefore(t *testing.T) {
	w := autumn(t)
	if _, err := report.Make(t.Context(), w.API(), "prices", nil, now()); !errors.Is(err, report.ErrNothing) {
		t.Errorf("without prices: %v", err)
	}
	cheap := accounting.PriceRule{Component: "Cores", Billionths: 1e6, When: is("group_id", "cms")}
	w.Settings.Money.Lists = []accounting.PriceList{
		prices("old", "2025-01-01", "2026-01-01", 11), prices("standard", "2026-01-01", "2027-01-01", 12, cheap), prices("next", "2027-01-01", "", 13),
	}
	w.Keep()
	for at, list := range map[string]string{"2025-06-01": "old", "last-year": "old", "2027": "next", "now": "standard"} {
		rows := rowsOf(t, w, "prices", "now", url.Values{"at": {at}})
		if len(rows) == 0 || !strings.HasSuffix(rows[0], "| "+list) {
			t.Errorf("at %s: %q, want the list %s", at, rows, list)
		}
	}
	if _, err := report.Make(t.Context(), w.API(), "prices", url.Values{"at": {"2026-13"}}, now()); err == nil || !strings.Contains(err.Error(), "2026-13") {
		t.Error(err)
	}
	for table, want := range map[string][]string{
		"now":    {"Cores | 0.001 | EUR | core-hour | group_id=cms | 2026-01-01 | 2027-01-01 | standard", "Cores | 0.012 | EUR | core-hour | all | 2026-01-01 | 2027-01-01 | standard"},
		"next":   {"Cores | 0.013 | EUR | core-hour | all | 2027-01-01 | – | next"},
		"before": {"Cores | 0.011 | EUR | core-hour | all | 2025-01-01 | 2026-01-01 | old"},
	} {
		if d := cmp.Diff(want, rowsOf(t, w, "prices", table, nil)); d != "" {
			t.Errorf("%s: -want +got:\n%s", table, d)
		}
	}
}
