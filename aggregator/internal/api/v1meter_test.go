package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/aggregator/internal/api"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// withMeter has 10 W a core, and a meter that counted 24 kWh on 10 March and 0.001 on the 12th.
func withMeter(o *api.Options, _ *store.Options) {
	reading := func(from, to string, wh int64) sums.MeterReading {
		r := sums.MeterReading{}
		r.From, _ = record.ParseTime(from)
		r.To, _ = record.ParseTime(to)
		r.Energy, _ = sums.SumOf(wh).Times(3_600_000_000_000_000)
		return r
	}
	s := &accounting.EnergySettings{
		Measured: "Energy", Overheads: []accounting.Overhead{{From: record.MinTime, PUE: accounting.One}},
		Classes: []accounting.PowerClass{{Name: "all", Draws: []accounting.Draw{{Component: "Cores", Amount: 1, Watts: 10 * accounting.One}}}},
		Meters: []accounting.Meter{{Name: "hall", Readings: []sums.MeterReading{
			reading("2026-03-10T00:00:00Z", "2026-03-11T00:00:00Z", 24_000), reading("2026-03-12T00:00:00Z", "2026-03-13T00:00:00Z", 1),
		}}},
	}
	weights, err := s.Weights()
	if err != nil {
		panic(err)
	}
	o.Derivation = func() *usage.Derivation { return &usage.Derivation{Weights: weights} }
}

// A day without a reading is null, and so is the sum of days of which one is.
func TestUsage_Meter_JobsAndIdleAreTheMeterAndGapsAreNull(t *testing.T) {
	rg := newRig(t, withMeter)
	march(rg)
	const ask = "measure=energy,energy_metered,energy_idle"
	var about v1.Usage
	rg.get("/v1/usage?from=2026-03-10T00:00:00Z&to=2026-03-12T00:00:00Z&bucket=day&"+ask, &about)
	for i, want := range [][]string{nil, {"24", "null"}, nil} {
		for b, figure := range want {
			got := "null"
			if v := about.Measures[i].Values[b]; v != nil {
				got = v.String()
			}
			if got != figure {
				t.Errorf("%s in %s: got %s, want %s", about.Measures[i].Name, about.Labels[b], got, figure)
			}
		}
	}
	jobs, meter, idle := about.Measures[0].Values, about.Measures[1], about.Measures[2]
	if sum := v1.Rational(jobs[0].String()); sum.Add(sum, v1.Rational(idle.Values[0].String())).RatString() != "24" {
		t.Errorf("jobs and idle are %s", sum)
	}
	if meter.Totals[0] != nil || meter.Total != nil || idle.Values[1] != nil || idle.Totals[0] != nil || idle.Total != nil {
		t.Errorf("%v, %v", meter, idle)
	}
	if d := cmp.Diff([]string{"hall 2026-03-11T00:00:00Z 2026-03-12T00:00:00Z"}, gapsOf(&about)); d != "" {
		t.Error(d)
	}
}

func gapsOf(u *v1.Usage) (list []string) {
	for _, g := range u.Energy.Meter.Gaps {
		list = append(list, g.Meter+" "+g.From.String()+" "+g.To.String())
	}
	return list
}

func TestUsage_MeterByKeyOrFilter_IsRefused(t *testing.T) {
	rg := newRig(t, withMeter)
	march(rg)
	for query, want := range map[string]string{
		"measure=energy_idle&by=user_id":            "without by",
		"measure=energy_idle&where[user_id]=bob":    "without filters",
		"measure=energy_metered&meta[user_id][c]=b": "without filters",
		"measure=energy_metered&credit=stop":        "without credit=stop",
		"measure=energy_idle&wait[gte]=1000000":     "without filters",
		"measure=energy_metered&wait[gte]=1000000":  "without filters",
	} {
		a := rg.do(http.MethodGet, "/v1/usage?window=2026-03&"+query, "")
		if a.status != http.StatusBadRequest || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", query, a.status, a.body)
		}
	}
}

func TestUsage_MeterForReaderOfSomeRows_IsRefused(t *testing.T) {
	rg := newRig(t, withMeter, func(o *api.Options, _ *store.Options) {
		o.Who = func(*http.Request) access.Principal {
			return access.Principal{Rights: identity.Read, Rows: access.SomeRows(access.Grant{"group_id": {"atlas"}})}
		}
	})
	for _, measure := range []string{"energy_metered", "energy_idle"} {
		a := rg.do(http.MethodGet, "/v1/usage?window=2026-03&measure="+measure, "")
		if a.status != http.StatusForbidden || !strings.Contains(a.body, access.ErrRows.Error()) {
			t.Errorf("%s: %d %s", measure, a.status, a.body)
		}
	}
}
