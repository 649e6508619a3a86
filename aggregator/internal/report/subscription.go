package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// SubscriptionOptions say what a report about subscriptions is of.
type SubscriptionOptions struct {
	Periods []string // as in UsageOptions
	Zone    string
	Credit  string // spread or stop; "": spread
	// Where are filters of records: key and value, as of /v1/usage.
	Where map[string]string
	By    string // pi, or a key of which the parts of the use are; "": pi
	Now   time.Time
}

// subscriptionEntry is the report subscription in the catalogue.
func subscriptionEntry() Entry {
	return Entry{
		Report: v1.Report{Name: "subscription", Title: "Subscription", About: "Usage and contributions of principal investigators, as shares, with their ratio.", Parameters: []Param{
			periodParam(),
			textParam("by", "Group by", "The principal investigators; or another key, whose parts of the service units are shown.", "pi", "pi", "project", "group_id", "user_id"),
			choiceParam("credit", "What a run used is of", "To each instant what was used in it (spread), or all of a run to its stop (stop).", "spread", "stop"),
			whereParam(), zoneParam(),
		}},
		Long: `Usage and contributions of principal investigators, as shares of all, with their
ratio. Contributors without usage are included. With -by it shows the part of each
project, group or user in the service units.`,
		Example: "  bursar report subscription\n  bursar report subscription -period 2026-Q3 -o q3.html\n  bursar report subscription -where cluster=nemo\n  bursar report subscription -by project -period 2012-10 -credit stop -format csv",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			return Subscription(ctx, r, SubscriptionOptions{Where: q.Pairs("where"), Periods: q.All("period"), Zone: q.One("zone"), Credit: q.One("credit"), By: q.One("by"), Now: q.Now})
		},
	}
}

// Subscription says how principal investigators stand: what each used and contributed,
// as shares of all, and the ratio of the two; a table with a chart for each period. It
// is ClusterAccountant's report. Who contributed and used nothing is in it too.
func Subscription(ctx context.Context, r v1.API, o SubscriptionOptions) (*Document, error) {
	o.Periods = DefaultPeriods(o.Periods)
	if o.By != "" && o.By != "pi" {
		return reportParts(ctx, r, o)
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report subscription: %w", err)
	}
	d := &Document{Format: Format, Report: "subscription", Title: "Use and contributions of principal investigators", Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	for i, window := range o.Periods {
		a, err := r.Subscription(ctx, &v1.SubscriptionQuery{Window: window, Zone: o.Zone, Credit: o.Credit, Where: o.Where})
		if err != nil {
			return nil, fmt.Errorf("report subscription of %s: %w", window, err)
		}
		p := PeriodOf(window, a.Window.From.Time, a.Window.To.Time, zone)
		d.Periods = append(d.Periods, p)
		d.Add(subscriptionTable(&a, i+1, p.Name, zone))
		d.Notes = append(d.Notes, view.Of(p.Name, view.SubscriptionNotes(&a))...)
	}
	if !slices.ContainsFunc(d.Tables, func(t v1.DocumentTable) bool { return len(t.Rows) > 0 }) {
		return nil, fmt.Errorf("%w: no principal investigator used or contributed anything in %s; projects and contributions of the directory say who they are: bursar directory", ErrNothing, strings.Join(o.Periods, " and "))
	}
	d.Notes = append(d.Notes,
		"The ratio is the share of what was used ÷ the share of what was contributed: over 100 % is more than was put in.",
		"Over: used without a contribution. Under: contributed and not used. Exempt: all projects are, and neither counts in the sums of contributions.")
	return d, d.Check()
}

func isZero(n json.Number) bool {
	c := v1.Figure(&n)
	return c.Number() == nil || c.Number().Sign() == 0
}

// subscriptionTable is the one of a period.
func subscriptionTable(a *v1.Subscription, period int, name string, zone *time.Location) Table {
	l := view.Subscription(*a)
	t := Table(l.Table(zone))
	t.Name, t.Title, t.Chart = fmt.Sprintf("subscription-%d", period), name, &Chart{Kind: Bars, Label: "pi", Values: []string{"used_share", "contribution_share"}}
	for i := range t.Columns[2:] {
		t.Columns[2+i].Period = period
	}
	return t
}
