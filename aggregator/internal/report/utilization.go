package report

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// UtilizationOptions say what a report about utilization is of.
type UtilizationOptions struct {
	Periods   []string // as in UsageOptions
	Zone      string
	Component string // what is counted: Cores, Memory, GPUs or su; "": Cores
	Bucket    string // of the series: day, week or month; "": day
	Now       time.Time
}

// utilizationEntry is the report utilization in the catalogue.
func utilizationEntry() Entry {
	return Entry{
		Report: v1.Report{Name: "utilization", Title: "Utilization", About: "Utilization of each cluster and of all, over time.", Parameters: []Param{
			periodParam(),
			textParam("component", "What is counted", "The component of which there is a capacity; without it the cores.", "", "Cores", "Memory", "GPUs", "su"),
			choiceParam("bucket", "A point for each", "How fine the course is.", "day", "week", "month"),
			zoneParam(),
		}},
		Long: `Utilization: used capacity in per cent of the capacity, for each cluster and all of
them, and over time in the first period. Capacity is reported by sources or configured
in cluster blocks.`,
		Example: "  bursar report utilization\n  bursar report utilization -period 2026-Q3 -bucket week -component GPUs -o gpus.html",
		make: func(ctx context.Context, r v1.API, q Query) (*Document, error) {
			return Utilization(ctx, r, UtilizationOptions{Periods: q.All("period"), Zone: q.One("zone"), Component: q.One("component"), Bucket: q.One("bucket"), Now: q.Now})
		},
	}
}

// Utilization says how full clusters were: what was used beside what was there, for
// each cluster and all of them, and its course over the first period. Where no capacity
// is known nothing is said, and the notes tell what was used there.
func Utilization(ctx context.Context, r v1.API, o UtilizationOptions) (*Document, error) {
	o.Periods = DefaultPeriods(o.Periods)
	if o.Bucket == "" {
		o.Bucket = "day"
	}
	zone, err := clockOf(ctx, r, &o.Zone)
	if err != nil {
		return nil, fmt.Errorf("report utilization: %w", err)
	}
	d := &Document{Format: Format, Report: "utilization", Title: "Utilization of clusters", Subject: o.Component, Made: v1.Time{Time: o.Now.UTC()}, Zone: zone.String()}
	for i, window := range o.Periods {
		a, err := o.queryWindow(ctx, r, window, "")
		if err != nil {
			return nil, err
		}
		p := windowOf(a).namedPeriod(window, zone)
		d.Periods = append(d.Periods, p)
		d.Add(clusterTable(a, i+1, p.Name))
		d.Notes = append(d.Notes, usageNotes(a, p.Name, "hour")...)
	}
	if !hasCapacity(d) {
		return nil, fmt.Errorf("%w: no capacity configured or reported for these periods; add a cluster block to the configuration: bursar capacity", ErrNothing)
	}
	series, err := o.queryWindow(ctx, r, o.Periods[0], o.Bucket)
	if err != nil {
		return nil, err
	}
	d.Add(courseTable(series, o.Bucket, d.Periods[0].Name))
	d.Notes = append(d.Notes, "Capacity counts for the time in which it was there; utilization is what was used of it, and over 100 % where more was used than is known to be there.")
	return d, d.Check()
}

func (o *UtilizationOptions) queryWindow(ctx context.Context, r v1.API, window, bucket string) (*v1.Usage, error) {
	measure := "capacity,utilization"
	if o.Component != "" {
		measure = "capacity*" + o.Component + ",utilization*" + o.Component
	}
	a, err := askUsage(ctx, r, v1.UsageQuery{Window: window, By: "cluster", Unit: "hour", Measure: measure, Zone: o.Zone, Bucket: bucket})
	if err != nil {
		return nil, fmt.Errorf("report utilization of %s: %w", window, err)
	}
	if len(a.Measures) != 2 {
		return nil, fmt.Errorf("report utilization of %s: the answer has %d measures, and 2 were asked for", window, len(a.Measures))
	}
	return a, nil
}

// hasCapacity reports whether there is a capacity in one of the tables.
func hasCapacity(d *Document) bool {
	for i := range d.Tables {
		at := d.Table(i).columnIndex("capacity")
		for _, row := range d.Tables[i].Rows {
			if n := row[at].Number(); n != nil && n.Sign() > 0 {
				return true
			}
		}
	}
	return false
}

// clusterTable is the table of a period: the two measures are the capacity and the
// utilization.
func clusterTable(a *v1.Usage, period int, name string) Table {
	capacity, used := &a.Measures[0], &a.Measures[1]
	t := Table{
		Name: fmt.Sprintf("utilization-%d", period), Title: name,
		Columns: []Column{
			{Name: "cluster", Title: "Cluster", Kind: Text},
			{Name: "capacity", Title: "Capacity", Kind: Number, Unit: capacity.UnitText(), Period: period},
			{Name: "utilization", Title: "Utilization", Kind: Ratio, Period: period},
		},
		Chart: &Chart{Kind: Bars, Label: "cluster", Values: []string{"utilization"}},
	}
	for g := range a.Groups {
		t.Rows = append(t.Rows, []Cell{v1.Words(view.GroupName(&a.Groups[g])), figureAt(capacity.Totals, g), figureAt(used.Totals, g)})
	}
	if len(t.Rows) > 1 {
		t.Totals = []Cell{v1.Words("Total"), v1.Figure(capacity.Total), v1.Figure(used.Total)}
	}
	return t
}

// courseTable is the utilization of each cluster, bucket by bucket. The values of a measure
// are of the first group's buckets, then of the second's, and so on.
func courseTable(a *v1.Usage, bucket, name string) Table {
	t := Table{
		Name: "course", Title: "By " + bucket + ", " + name,
		Columns: []Column{{Name: bucket, Title: bucket, Kind: Text}},
		Chart:   &Chart{Kind: Line, Label: bucket},
	}
	for g := range a.Groups {
		cluster := view.GroupName(&a.Groups[g])
		name := cluster
		if name == bucket { // a cluster may be called day
			name += " (cluster)"
		}
		t.Columns = append(t.Columns, Column{Name: name, Title: cluster, Kind: Ratio})
		t.Chart.Values = append(t.Chart.Values, name)
	}
	if len(a.Groups) == 0 {
		t.Chart = nil
	}
	for b := range a.Labels {
		row := []Cell{v1.Words(view.PartialLabel(a, b))}
		for g := range a.Groups {
			row = append(row, figureAt(a.Measures[1].Values, g*len(a.Labels)+b))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// figureAt is the cell of a figure of a list.
func figureAt(list []*json.Number, i int) Cell { return v1.Figure(view.At(list, i)) }
