package view

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// UsageTable lays an answer out: a row for each group and bucket that has something, a column
// for each key, for the bucket and for each measure, and the totals. Where the answer is
// compared, the [MainMeasure] has the other window and the change behind it, in columns whose
// names end in [Before] and [Change]: other windows are compared as a whole, so only without
// buckets. The chart draws the main measure.
func UsageTable(a *v1.Usage) v1.DocumentTable {
	t := v1.DocumentTable{Name: "usage", Title: "Usage"}
	for _, key := range a.By {
		t.Columns = append(t.Columns, v1.DocumentTableColumn{Name: key, Title: key, Kind: "text"})
	}
	if a.Bucket != "" {
		t.Columns = append(t.Columns, v1.DocumentTableColumn{Name: string(a.Bucket), Title: string(a.Bucket), Kind: "text"})
	}
	first := len(t.Columns) // of the measures
	for i := range a.Measures {
		t.Columns = append(t.Columns, measureColumns(a, &a.Measures[i])...)
	}
	for g := range a.Groups {
		for b := range a.Labels {
			row := usageRow(a, g, b)
			if len(a.Labels) == 1 || len(a.By) == 0 || slices.ContainsFunc(row[first:], isSomething) {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	if len(t.Rows) > 1 {
		t.Totals = usageTotals(a, first)
	}
	if m := MainMeasure(a); m != nil && first > 0 {
		t.Chart = &v1.DocumentTableChart{Kind: "bars", Label: t.Columns[0].Name, Values: []string{m.Name}}
	}
	return t
}

// What ends the names of the columns of a comparison.
const (
	Before = " before"
	Change = " change"
)

// MainMeasure is what a chart of an answer draws: its first component, or its first measure
// where it has none; nil without measures.
func MainMeasure(a *v1.Usage) *v1.Measure {
	if i := slices.IndexFunc(a.Measures, func(m v1.Measure) bool { return m.Component != "" }); i >= 0 {
		return &a.Measures[i]
	}
	if len(a.Measures) == 0 {
		return nil
	}
	return &a.Measures[0]
}

// MeasureColumn is the column of a measure. Its title is the name of a component as it is, and
// that of any other measure with a capital.
func MeasureColumn(m *v1.Measure) v1.DocumentTableColumn {
	title := m.Name
	if m.Component == "" {
		title = Capital(title)
	}
	return v1.DocumentTableColumn{Name: m.Name, Title: title, Kind: columnKind(m), Unit: measureUnit(m)}
}

// columnKind is [MeasureKind], and a duration for a mean wait.
func columnKind(m *v1.Measure) string {
	if m.Kind == "mean" {
		return "duration"
	}
	return MeasureKind(m)
}

// measureUnit is the unit of a measure, where its name does not say it and it is not shown as a
// duration.
func measureUnit(m *v1.Measure) string {
	if m.Kind == "mean" || m.Kind == "worth" && strings.EqualFold(string(m.Unit), m.Name) {
		return ""
	}
	return m.UnitText()
}

// measureColumns are the column of a measure, and those of its comparison.
func measureColumns(a *v1.Usage, m *v1.Measure) []v1.DocumentTableColumn {
	c := MeasureColumn(m)
	list := []v1.DocumentTableColumn{c}
	if isCompared(a, m) {
		list = append(list, v1.DocumentTableColumn{Name: m.Name + Before, Title: "Before", Kind: c.Kind, Unit: c.Unit},
			v1.DocumentTableColumn{Name: m.Name + Change, Title: "Change", Kind: "change"})
	}
	return list
}

// isCompared reports whether the table has the comparison of a measure.
func isCompared(a *v1.Usage, m *v1.Measure) bool {
	return a.ComparedWith != nil && a.Bucket == "" && m.Compared != nil && m == MainMeasure(a)
}

// isSomething reports whether a figure is known and not 0.
func isSomething(c v1.Cell) bool { return c.Number() != nil && c.Number().Sign() != 0 }

func usageRow(a *v1.Usage, g, b int) (row []v1.Cell) {
	for _, value := range GroupValues(&a.Groups[g], len(a.By)) {
		row = append(row, v1.Words(value))
	}
	if a.Bucket != "" {
		row = append(row, v1.Words(PartialLabel(a, b)))
	}
	for i := range a.Measures {
		m := &a.Measures[i]
		row = append(row, v1.Figure(At(m.Values, g*len(a.Labels)+b)))
		if isCompared(a, m) {
			row = append(row, v1.Figure(At(m.Compared.Before, g)), v1.Figure(At(m.Compared.Relative, g)))
		}
	}
	return row
}

// usageTotals are the figures of all groups and buckets; first is the column of the first
// measure.
func usageTotals(a *v1.Usage, first int) []v1.Cell {
	row := make([]v1.Cell, first)
	for i := range row {
		row[i] = v1.Words("")
	}
	if first > 0 {
		row[0] = v1.Words("Total")
	}
	for i := range a.Measures {
		m := &a.Measures[i]
		row = append(row, v1.Figure(m.Total))
		if isCompared(a, m) {
			row = append(row, totalBefore(a, m)...)
		}
	}
	return row
}

// totalBefore is the other window of all groups, and the change since: both are unknown of
// what does not add up, and the change where there was nothing before, or less, or where records are not
// known for all of both windows.
func totalBefore(a *v1.Usage, m *v1.Measure) []v1.Cell {
	unknown := []v1.Cell{v1.Figure(nil), v1.Figure(nil)}
	total := v1.Figure(m.Total).Number()
	if m.Component == "" || m.Kind == "ratio" || m.Kind == "mean" || total == nil {
		return unknown
	}
	before := sumOf(m.Compared.Before)
	if before.Sign() <= 0 || a.Comparable != nil && !*a.Comparable {
		return []v1.Cell{v1.Rat(before), v1.Figure(nil)}
	}
	change := new(big.Rat).Quo(total, before)
	return []v1.Cell{v1.Rat(before), v1.Rat(change.Sub(change, big.NewRat(1, 1)))}
}

// sumOf adds up the figures that are known.
func sumOf(list []*json.Number) *big.Rat {
	sum := new(big.Rat)
	for _, n := range list {
		if r := v1.Figure(n).Number(); r != nil {
			sum.Add(sum, r)
		}
	}
	return sum
}
