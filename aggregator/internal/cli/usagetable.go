package cli

import (
	"math"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageNotes are what people must know of an answer to read its table rightly; unit is that of
// time which was asked for.
func usageNotes(a *v1.Usage, unit string) []string {
	notes := []string{view.WindowNote(a.Window.From, a.Window.To, a.ComparedWith, a.Zone, a.Credit)}
	if a.ComparedWith != nil && a.Bucket != "" {
		notes = append(notes, "The table has the difference without -bucket.")
	}
	if len(a.Groups) == 0 {
		notes = append(notes, "Nothing ran in that time.")
	}
	return append(notes, view.UsageNotes(a, unit)...)
}

// usageTable is the answer for a terminal, with bars where it has room for them. What it has no
// room for is left out, the main measure and the first at last.
func usageTable(a *v1.Usage, width int) *table {
	d := view.UsageTable(a)
	var head []string
	main, first := view.MainMeasure(a), true
	for i := range d.Columns {
		c := &d.Columns[i]
		name := usageHead(c)
		if c.Kind != "text" {
			if name = ">" + name; !first && c.Name != main.Name && !strings.HasSuffix(c.Name, view.Change) {
				name = "?" + name
			}
			first = false
		}
		head = append(head, name)
	}
	t := newTable(head...)
	for _, row := range d.Rows {
		t.addRow(shownRow(&d, row)...)
	}
	if d.Chart != nil {
		at := slices.IndexFunc(d.Columns, func(c v1.DocumentTableColumn) bool { return c.Name == d.Chart.Values[0] })
		var lengths []v1.Cell
		for _, row := range d.Rows {
			lengths = append(lengths, row[at])
		}
		if n := width - totalWidth(t.fitWidths(width)) - len(gap); n >= leastBar && len(lengths) > 0 {
			t.addBars(lengths, min(n, mostBar))
		}
	}
	if d.Totals != nil {
		cells := shownRow(&d, d.Totals)
		cells[0] = strings.ToUpper(cells[0])
		for len(cells) < len(t.head) {
			cells = append(cells, "")
		}
		t.addRow(cells...)
	}
	return t
}

// usageHead is the head of a column, such as GROUP, RECORDS or Memory MiB-hours: in capitals,
// but components as they are.
func usageHead(c *v1.DocumentTableColumn) string {
	switch {
	case strings.HasSuffix(c.Name, view.Before): // the column before it says the unit
		return strings.ToUpper(c.Title)
	case c.Kind == "text", c.Title != c.Name:
		return strings.TrimSpace(strings.ToUpper(strings.TrimSuffix(c.Title, "_id")) + " " + c.Unit)
	}
	return strings.TrimSpace(c.Title + " " + c.Unit)
}

// shownRow is a row of a table for people.
func shownRow(t *v1.DocumentTable, row []v1.Cell) (cells []string) {
	for i := range row {
		cells = append(cells, t.Show(row, i))
	}
	return cells
}

// Bars have at least and at most as many columns.
const (
	leastBar = 8
	mostBar  = 40
)

// addBars adds a column with a bar for each row, the longest of a width.
func (t *table) addBars(values []v1.Cell, width int) {
	longest := 0.0
	lengths := make([]float64, len(values))
	for i, v := range values {
		if n := v.Number(); n != nil {
			lengths[i], _ = n.Float64()
			longest = max(longest, lengths[i])
		}
	}
	t.head, t.look = append(t.head, ""), append(t.look, column{leave: true})
	for i, length := range lengths {
		text := ""
		if length > 0 {
			text = blockBar(length/longest, width)
		}
		t.rows[i] = append(t.rows[i], text)
	}
}

// blockBar draws a part of a width, to an eighth of a column; the smallest part is seen.
func blockBar(part float64, width int) string {
	eighths := max(1, int(math.Round(part*float64(8*width))))
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return text
}
