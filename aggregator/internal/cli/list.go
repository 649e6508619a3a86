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
	out := page{exact: exactTable(&l), found: cutOff(l.More)}
	if len(l.Rows) > 0 || l.Empty == "" {
		out.table = listTable(&l, c)
	} else {
		out.notes = append(out.notes, l.Empty)
	}
	for i := range l.Notices {
		n := &l.Notices[i]
		c.used = c.used || !n.Since.IsZero()
		out.notes = append(out.notes, n.Text(c.zone))
		if n.Do != "" {
			out.notes = append(out.notes, "do first: "+n.Do)
		}
	}
	out.notes = append(out.notes, l.Notes...)
	for i := range l.Below {
		below := listTable(&l.Below[i], c)
		below.title = l.Below[i].Title
		out.below = append(out.below, below)
	}
	return out
}

// listTable is the table of a list for people.
func listTable(l *view.List, c *clock) *table {
	var head []string
	shown := l.ShownColumns(view.FileOnly | view.PageOnly)
	for _, i := range shown {
		head = append(head, columnSigns(&l.Columns[i])+usageHead(&l.Columns[i].DocumentTableColumn))
	}
	t := newTable(head...)
	add := func(row []v1.Cell, blank string) {
		var cells []string
		for _, i := range shown {
			text := blank
			if row[i].Known() {
				text = l.ShowAt(row, i, c.zone)
				c.used = c.used || !view.TimeOf(row[i]).IsZero()
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
		t.rows[len(l.Rows)][0] = strings.ToUpper(t.rows[len(l.Rows)][0])
	}
	return t
}

// columnSigns are the signs of [newTable] for a column.
func columnSigns(c *view.Column) (signs string) {
	switch c.Kind {
	case view.KindText, view.KindTime, view.KindAge, view.KindDate, view.KindState, view.KindID, view.KindCommand:
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
			if kind := l.Columns[i].Kind; kind != view.KindTime && kind != view.KindAge || !view.TimeOf(row[i]).IsZero() {
				cells[i] = row[i].String()
			}
		}
		t.addRow(cells...)
	}
	return t
}
