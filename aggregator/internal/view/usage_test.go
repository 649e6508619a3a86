package view_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// figures are numbers of an answer; "" is null.
func figures(list ...string) (out v1.Figures) {
	for _, text := range list {
		if text == "" {
			out = append(out, nil)
			continue
		}
		out = append(out, new(json.Number(text)))
	}
	return out
}

// lines are a table for people, with what totals it has as the last line.
func lines(t *v1.DocumentTable) string {
	var out []string
	var head []string
	for _, c := range t.Columns {
		head = append(head, strings.TrimSpace(c.Title+" "+c.Unit))
	}
	out = append(out, strings.Join(head, " | "))
	rows := t.Rows
	if t.Totals != nil {
		rows = append(rows, t.Totals)
	}
	for _, row := range rows {
		var cells []string
		for i := range row {
			cells = append(cells, t.Show(row, i))
		}
		out = append(out, strings.Join(cells, " | "))
	}
	return strings.Join(out, "\n")
}

func someUsage() v1.Usage {
	atlas, cms := "atlas", "cms"
	a := v1.Usage{Labels: []string{"2026-02"}, Groups: []v1.UsageGroup{{Values: []*string{&atlas}}, {Values: []*string{&cms}}, {Others: 3}}}
	a.By = []string{"group_id"}
	a.Measures = []v1.Measure{
		{Name: "records", Kind: "count", Values: figures("3", "2", "4"), Total: new(json.Number("9"))},
		{Name: "Cores", Component: "Cores", Kind: "rate", Unit: "hour", Values: figures("10", "0.5", ""), Total: new(json.Number("10.5"))},
		{Name: "wait", Kind: "mean", Unit: "second", Values: figures("90061.6", "", "59"), Total: new(json.Number("75"))},
		{Name: "cost", Kind: "worth", Unit: "EUR", Values: figures("1234.5", "0", ""), Total: new(json.Number("1234.5"))},
	}
	return a
}

func TestUsageTable_Groups_UnknownIsNotZeroAndWaitsAreDurations(t *testing.T) {
	a := someUsage()
	table := view.UsageTable(&a)
	want := "group_id | Records | Cores core-hours | Wait | Cost EUR\n" +
		"atlas | 3 | 10 | 1-01:01:02 | 1\u202f234.50\n" +
		"cms | 2 | 0.5000 | – | 0.00\n" +
		"(3 others) | 4 | – | 00:00:59 | –\n" +
		"Total | 9 | 10.50 | 00:01:15 | 1\u202f234.50"
	if got := lines(&table); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if table.Chart == nil || table.Chart.Values[0] != "Cores" {
		t.Errorf("the chart draws %+v, want Cores, the first component", table.Chart)
	}
}

func TestUsageTable_Compared_ChangeOfTheTotalIsKnownWhereBothWindowsAre(t *testing.T) {
	for _, c := range []struct {
		comparable *bool
		relative   []string
		want       string
	}{
		{nil, []string{"-0.5", "", ""}, "atlas | 3 | 10 | 20 | −50.0\u202f%\ncms | 2 | 0.5000 | 0 | –\n(3 others) | 4 | – | 1 | –\nTotal | 9 | 10.50 | 21 | −50.0\u202f%"},
		{new(false), []string{"", "", ""}, "atlas | 3 | 10 | 20 | –\ncms | 2 | 0.5000 | 0 | –\n(3 others) | 4 | – | 1 | –\nTotal | 9 | 10.50 | 21 | –"},
	} {
		a := someUsage()
		a.Measures, a.ComparedWith, a.Comparable = a.Measures[:2], &v1.UsageSpan{}, c.comparable
		for i := range a.Measures {
			a.Measures[i].Compared = &v1.MeasureCompared{Before: figures("20", "0", "1"), Relative: figures(c.relative...)}
		}
		table := view.UsageTable(&a)
		if got, want := lines(&table), "group_id | Records | Cores core-hours | Before core-hours | Change\n"+c.want; got != want {
			t.Errorf("comparable %v: got\n%s\nwant\n%s", c.comparable, got, want)
		}
	}
}

func TestUsageTable_TotalOfLessThanNothingBefore_HasNoChange(t *testing.T) {
	a := someUsage()
	a.Measures, a.ComparedWith = a.Measures[:2], &v1.UsageSpan{}
	for i := range a.Measures {
		a.Measures[i].Compared = &v1.MeasureCompared{Before: figures("-2", "0", "0"), Relative: figures("", "", "")}
	}
	table := view.UsageTable(&a)
	if got, want := lines(&table), "Total | 9 | 10.50 | −2 | –"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant %s at its end", got, want)
	}
}

func TestUsageTable_Buckets_LeavesOutRowsWithNothing(t *testing.T) {
	a := someUsage()
	a.Bucket, a.Labels = "day", []string{"2026-02-01", "2026-02-02"}
	a.Groups, a.Measures = a.Groups[:2], []v1.Measure{{Name: "Cores", Component: "Cores", Kind: "rate", Unit: "hour", Values: figures("1", "0", "", "2"), Total: new(json.Number("3"))}}
	table := view.UsageTable(&a)
	if got, want := lines(&table), "group_id | day | Cores core-hours\natlas | 2026-02-01 | 1\ncms | 2026-02-02 | 2\nTotal |  | 3"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
