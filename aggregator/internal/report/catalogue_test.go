package report_test

import (
	"bytes"
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

func TestAReportByNameIsTheOneOfItsOptions(t *testing.T) {
	world := autumn(t).API()
	for name, c := range map[string]struct {
		query string
		want  func() (*report.Document, error)
	}{
		"usage": {"period=2026-10&period=this-year&by=&top=0", func() (*report.Document, error) {
			return report.Usage(t.Context(), world, report.UsageOptions{Periods: []string{"2026-10", "this-year"}, Zone: "UTC", Now: now()})
		}},
		"subscription": {"period=2026-10&credit=spread", func() (*report.Document, error) {
			return report.Subscription(t.Context(), world, report.SubscriptionOptions{Periods: []string{"2026-10"}, Zone: "UTC", Now: now()})
		}},
		"utilization": {"period=2026-10", func() (*report.Document, error) {
			return report.Utilization(t.Context(), world, report.UtilizationOptions{Periods: []string{"2026-10"}, Zone: "UTC", Now: now()})
		}},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		var got, want bytes.Buffer
		for out, build := range map[*bytes.Buffer]func() (*report.Document, error){&want: c.want, &got: func() (*report.Document, error) { return report.Make(t.Context(), world, name, query, now()) }} {
			d, err := build()
			if err != nil {
				t.Fatal(name, err)
			}
			if err := d.WriteJSON(out); err != nil {
				t.Fatal(err)
			}
		}
		if got.String() != want.String() {
			t.Errorf("%s:\n%s\nwant\n%s", name, &got, &want)
		}
	}
}

// asked remembers the questions.
type asked struct {
	v1.Caller // that has no streams

	queries []url.Values
}

func (a *asked) Call(_ context.Context, _, path string, query url.Values, _, _ any) error {
	if path == "/v1/reports" { // asks for the keys
		return nil
	}
	a.queries = append(a.queries, query)
	return errors.New("enough")
}

func TestWhatAReportIsToldReachesTheQuestion(t *testing.T) {
	var a asked
	query, err := url.ParseQuery("period=2026&by=user_id&measure=Cores,GPUs&measure=people&where=group_id=a%3Db&where[site_id]=x&top=7&order=GPUs&zone=Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := report.Make(t.Context(), v1.API{Caller: &a}, "usage", query, now()); err == nil || len(a.queries) != 1 {
		t.Fatal(err, a.queries)
	}
	for key, want := range map[string]string{
		"window": "2026", "by": "user_id", "measure": "Cores,GPUs,people", "where[group_id]": "a=b", "where[site_id]": "x", "top": "7", "order": "GPUs", "zone": "Europe/Berlin",
	} {
		if got := a.queries[0].Get(key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestWhatAReportDoesNotTakeIsRefusedWithANearName(t *testing.T) {
	world := autumn(t).API()
	for _, c := range []struct {
		name, query string
		is          error
		says        string
	}{
		{"usgae", "", report.ErrUnknown, `did you mean "usage"?`},
		{"bill of fare", "", report.ErrUnknown, "there are usage, subscription"},
		{"usage", "perod=2026", report.ErrQuery, `did you mean "period"?`},
		{"usage", "period=2024&period=2025&period=2026", report.ErrQuery, "at most 2"},
		{"usage", "top=many", report.ErrQuery, "want a number"},
		{"usage", "top=-1", report.ErrQuery, "want a number"},
		{"usage", "top=1e3", report.ErrQuery, "want a number"},
		{"usage", "where=atlas", report.ErrQuery, "KEY=VALUE"},
		{"usage", "where=a=b&where[a]=c", report.ErrQuery, "more than once"},
		{"usage", "period[x]=2026", report.ErrQuery, "period[x]"},
		{"subscription", "credit=sprad", report.ErrQuery, `did you mean "spread"?`},
		{"statement", "of=user_id=alice,bob", report.ErrQuery, "a statement is of one, and user_id is \"alice,bob\""},
		{"statement", "of=user_id=", report.ErrQuery, "user_id has no value"},
		{"statement", "of=group_id=cms&top=101", report.ErrQuery, "top is 101; want a number from 1 to 100"},
		{"statement", "of=group_id=cms&top=0", report.ErrQuery, "top is 0"},
		{"statement", "of=group_id=cms&memory_per_gb=0", report.ErrQuery, "memory_per_gb is 0"},
		{"efficiency", "memory_per_gb=0", report.ErrQuery, "memory_per_gb is 0"},
		{"efficiency", "pue=0.5", report.ErrQuery, "pue is 0.5; want a number from 1 to 100"},
		{"efficiency", "carbon_per_kwh=-1", report.ErrQuery, "want a number, 0 or more"},
		{"efficiency", "kwh_per_core_hour=NaN", report.ErrQuery, "want a number, 0 or more"},
		{"utilization", "by=user_id", report.ErrQuery, "knows no"},
	} {
		query, err := url.ParseQuery(c.query)
		if err != nil {
			t.Fatal(err)
		}
		_, err = report.Make(t.Context(), world, c.name, query, now())
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s?%s: %v, want %q", c.name, c.query, err, c.says)
		}
	}
}
