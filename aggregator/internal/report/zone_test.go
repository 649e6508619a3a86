package report_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/proto/record"
)

// What is asked for without a time zone is by the clock of the site, in every report and
// answer, as if its zone had been named.
func TestZone_OfTheSite_IsThatOfReportsAndAnswers(t *testing.T) {
	for _, name := range []string{"Europe/Berlin", "Pacific/Kiritimati", "America/New_York", "Asia/Kolkata"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		w := autumn(t)
		w.Settings.Money.Lists = []accounting.PriceList{prices("standard", "2026-01-01", "2026-10-15T22:00:00Z", 12), prices("standard", "2026-10-15T22:00:00Z", "", 13)}
		w.Settings.Money.Budgets = []accounting.Budget{{Name: "cms", Scope: is("group_id", "cms"), Unit: "EUR", Amount: accounting.Billionths(big.NewInt(1e12)), Every: calendar.Month, From: record.None, To: record.None}}
		w.Keep()
		ask := func(site *time.Location, do func() any) string {
			w.Options.Zone = func() *time.Location { return site }
			text, err := json.Marshal(do())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		for _, e := range report.Catalogue() {
			query := url.Values{}
			for _, p := range e.Parameters {
				if value, ok := map[string]string{"of": "group_id=cms", "job": "1", "user": "ann", "period": "2026-10"}[p.Name]; ok {
					query.Set(p.Name, value)
				}
			}
			zoned := maps.Clone(query)
			zoned.Set("zone", name)
			one := func(query url.Values) func() any {
				return func() any {
					d, err := report.Make(t.Context(), w.API(), e.Name, query, now())
					if err != nil {
						t.Fatalf("%s: %v", e.Name, err)
					}
					var out, page bytes.Buffer
					if err := errors.Join(d.WriteJSON(&out), d.WriteHTML(&page)); err != nil {
						t.Fatal(err)
					}
					if len(d.Periods) > 0 && !strings.Contains(page.String(), "October 2026: 2026-10-01 00:00 to 2026-11-01 00:00 ("+name+")") {
						t.Errorf("report %s as HTML: the period is not that of %s", e.Name, name)
					}
					return out.String()
				}
			}
			if got, want := ask(zone, one(query)), ask(time.UTC, one(zoned)); got != want || !strings.Contains(got, name) {
				t.Errorf("report %s of a site in %s:\n%s\nwant\n%s", e.Name, name, got, want)
			}
		}
		midnight := time.Date(2026, 10, 16, 0, 0, 0, 0, zone).UTC().Format(time.RFC3339)
		for _, c := range [][2]string{
			{"/v1/usage?window=2026-10&bucket=day", "/v1/usage?window=2026-10&bucket=day&zone=" + name},
			{"/v1/subscription?window=2026-10", "/v1/subscription?window=2026-10&zone=" + name},
			{"/v1/capacity?at=2026-10-16", "/v1/capacity?at=" + midnight},
			{"/v1/distributions?window=yesterday", "/v1/distributions?window=yesterday&zone=" + name},
			{"/v1/prices?at=2026-10-16", "/v1/prices?at=" + midnight},
			{"/v1/directory?at=2026-10-16", "/v1/directory?at=" + midnight},
		} {
			call := func(address string) func() any {
				return func() any {
					path, query, _ := strings.Cut(address, "?")
					values, err := url.ParseQuery(query)
					if err != nil {
						t.Fatal(err)
					}
					var out any
					if err := w.API().Caller.Call(t.Context(), "GET", path, values, nil, &out); err != nil {
						t.Fatalf("%s: %v", address, err)
					}
					return out
				}
			}
			if got, want := ask(zone, call(c[0])), ask(time.UTC, call(c[1])); got != want {
				t.Errorf("%s of a site in %s:\n%s\nwant\n%s", c[0], name, got, want)
			}
		}
	}
}
