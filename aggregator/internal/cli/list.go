package cli

import (
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// showList makes the display of an answer that view lays out as a list.
func showList[T any](list func(T) view.List) display[T] {
	return func(answer T, _ format, c *clock) page { return listPage(list(answer), c) }
}

// listPage shows a list: with times by a clock for people, and to the digit in files.
func listPage(l view.List, c *clock) page {
	out := page{exact: exactTable(&l), notes: l.Notes, found: cutOff(l.More)}
	if len(l.Rows) > 0 || l.Empty == "" {
		out.table = listTable(&l, c)
		return out
	}
	out.notes = append([]string{l.Empty}, l.Notes...)
	return out
}

// listTable is the table of a list for people.
func listTable(l *view.List, c *clock) *table {
	var head []string
	var shown []int
	for i := range l.Columns {
		if l.Columns[i].Fit&(view.FileOnly|view.PageOnly) == 0 {
			shown, head = append(shown, i), append(head, columnSigns(&l.Columns[i])+usageHead(&l.Columns[i].DocumentTableColumn))
		}
	}
	t := newTable(head...)
	add := func(row []v1.Cell, blank string) {
		var cells []string
		for _, i := range shown {
			text := blank
			if row[i].Known() {
				text = l.ShowAt(row, i, c.zone)
				c.used = c.used || l.Columns[i].Kind == view.KindTime || l.Columns[i].Kind == view.KindAge
			}
			cells = append(cells, text)
		}
		t.addRow(cells...)
	}
	for _, row := range l.Rows {
		add(row, "-")
		t.paint = append(t.paint, map[view.Tone]string{view.Bad: "31", view.Warn: "33"}[l.RowTone(row)])
	}
	if len(l.Totals) > 0 {
		add(l.Totals, "")
	}
	return t
}

// columnSigns are the signs of [newTable] for a column.
func columnSigns(c *view.Column) (signs string) {
	switch c.Kind {
	case view.KindText, view.KindTime, view.KindAge, view.KindState, view.KindID, view.KindCommand:
	default:
		signs = ">"
	}
	if c.Fit&view.CutFirst != 0 {
		signs += "~"
	}
	if c.Fit&view.LeaveOut != 0 {
		signs += "?"
	}
	return signs
}

// exactTable is the table of a list for programs: all columns and digits, times in RFC 3339, and
// what is not known is empty.
func exactTable(l *view.List) *table {
	t := &table{exact: true}
	for i := range l.Columns {
		t.head = append(t.head, l.Columns[i].Name)
	}
	for _, row := range l.Rows {
		cells := make([]string, len(row))
		for i := range row {
			cells[i] = strings.TrimSpace(row[i].String())
		}
		t.addRow(cells...)
	}
	return t
}
