package cli

import (
	"cmp"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// usageAnswer is an answer of GET /v1/usage.
type usageAnswer struct {
	v1.Usage

	unit string // that was asked for
}

// usageNotes are what people must know of an answer to read its table rightly.
func (u *usageAnswer) usageNotes() []string {
	notes := []string{view.WindowNote(u.Window.From, u.Window.To, u.ComparedWith, u.Zone, u.Credit)}
	if u.ComparedWith != nil && u.Bucket != "" {
		notes = append(notes, "The table has the difference without -bucket.")
	}
	if len(u.Groups) == 0 {
		notes = append(notes, "Nothing ran in that time.")
	}
	return append(notes, view.UsageNotes(&u.Usage, u.unit)...)
}

// usageTable is the answer for people, with bars where a terminal has room for them.
func (u *usageAnswer) usageTable(width int) *table {
	t := newTable(u.tableHead()...)
	var lengths []*json.Number // what the bars show
	for g := range u.Groups {
		for b := range u.Labels {
			if u.isEmptyLine(g, b) {
				continue
			}
			t.addRow(u.groupRow(g, b)...)
			if m := u.barMeasure(); m != nil {
				lengths = append(lengths, m.Values[g*len(u.Labels)+b])
			}
		}
	}
	if n := width - totalWidth(t.fitWidths(width)) - len(gap); n >= leastBar && len(lengths) == len(t.rows) {
		t.addBars(lengths, min(n, mostBar))
	}
	if len(t.rows) > 1 {
		t.addRow(u.totalRow(len(t.head))...)
	}
	return t
}

// barMeasure is the measure of the bars and of the comparison: the first component.
func (u *usageAnswer) barMeasure() *v1.Measure {
	for i := range u.Measures {
		if u.Measures[i].Component != "" {
			return &u.Measures[i]
		}
	}
	if len(u.Measures) == 0 {
		return nil
	}
	return &u.Measures[0]
}

func (u *usageAnswer) tableHead() []string {
	var head []string
	for _, key := range u.By {
		head = append(head, strings.ToUpper(strings.TrimSuffix(key, "_id")))
	}
	if u.Bucket != "" {
		head = append(head, strings.ToUpper(string(u.Bucket)))
	}
	for i := range u.Measures {
		m, leave := &u.Measures[i], ""
		if i > 0 && m != u.barMeasure() {
			leave = "?"
		}
		head = append(head, leave+">"+measureTitle(m))
		if u.hasComparison(m) {
			head = append(head, "?>BEFORE", ">CHANGE")
		}
	}
	return head
}

// hasComparison reports whether lines have a column of the other window, which is compared as a whole:
// of one measure, since more have no room.
func (u *usageAnswer) hasComparison(m *v1.Measure) bool {
	return u.ComparedWith != nil && u.Bucket == "" && m == u.barMeasure()
}

// measureTitle is a measure with its unit, such as Memory MiB-hours.
func measureTitle(m *v1.Measure) string {
	name := m.Name
	if m.Component == "" {
		name = strings.ToUpper(name)
	}
	switch {
	case m.Kind == "worth" && !strings.EqualFold(string(m.Unit), m.Name):
		name += " " + string(m.Unit)
	case m.Component != "" || m.Kind == "capacity":
		name = strings.TrimSpace(name + " " + m.UnitText())
	}
	return name
}

// isEmptyLine reports whether a line of several would be empty.
func (u *usageAnswer) isEmptyLine(g, b int) bool {
	if len(u.Labels) == 1 || len(u.By) == 0 {
		return false
	}
	return !slices.ContainsFunc(u.Measures, func(m v1.Measure) bool { v := m.Values[g*len(u.Labels)+b]; return v != nil && floatOrZero(*v) != 0 })
}

func (u *usageAnswer) groupRow(g, b int) []string {
	cells := view.GroupValues(&u.Groups[g], len(u.By))
	if u.Bucket != "" {
		cells = append(cells, view.PartialLabel(&u.Usage, b))
	}
	for i := range u.Measures {
		m := &u.Measures[i]
		cells = append(cells, measureText(m, m.Values[g*len(u.Labels)+b]))
		if u.hasComparison(m) {
			cells = append(cells, measureText(m, m.Compared.Before[g]), figureAs(report.Change, m.Compared.Relative[g]))
		}
	}
	return cells
}

func (u *usageAnswer) totalRow(columns int) []string {
	cells := make([]string, len(u.By))
	if u.Bucket != "" {
		cells = append(cells, "")
	}
	if len(cells) > 0 {
		cells[0] = "TOTAL"
	}
	for i := range u.Measures {
		cells = append(cells, measureText(&u.Measures[i], u.Measures[i].Total))
		if u.hasComparison(&u.Measures[i]) {
			cells = append(cells, totalBefore(&u.Measures[i])...)
		}
	}
	for len(cells) < columns {
		cells = append(cells, "")
	}
	return cells
}

// totalBefore is the other window of all groups, and the difference to it, of what can be
// added up.
func totalBefore(m *v1.Measure) []string {
	if m.Component == "" || m.Kind == "ratio" || m.Kind == "mean" || m.Total == nil {
		return []string{"", ""}
	}
	before := new(big.Rat)
	for _, n := range m.Compared.Before {
		if r := v1.Figure(n).Number(); r != nil {
			before.Add(before, r)
		}
	}
	total := v1.Figure(m.Total).Number()
	if before.Sign() == 0 || total == nil {
		return []string{view.Number(m.Unit, v1.Rat(before)), "-"}
	}
	relative := new(big.Rat).Quo(total, before)
	return []string{view.Number(m.Unit, v1.Rat(before)), v1.Show(report.Change, v1.Rat(relative.Sub(relative, big.NewRat(1, 1))))}
}

// measureText writes a figure of a measure for people.
func measureText(m *v1.Measure, n *json.Number) string {
	if m.Kind == "mean" && n != nil {
		return view.Runtime(int64(math.Round(floatOrZero(*n))))
	}
	return figureAs(view.MeasureKind(m), n, m.Unit)
}

// figureAs is a figure of a kind of column, in a unit if there is one; "-" for none.
func figureAs(kind string, n *json.Number, unit ...v1.Text) string {
	if n == nil {
		return "-"
	}
	return v1.ShowIn(kind, string(cmp.Or(unit...)), v1.Figure(n))
}

// Bars have at least and at most as many columns.
const (
	leastBar = 8
	mostBar  = 40
)

// addBars adds a column with a bar for each row, the longest of a width.
func (t *table) addBars(values []*json.Number, width int) {
	longest := 0.0
	for _, v := range values {
		if v != nil {
			longest = max(longest, floatOrZero(*v))
		}
	}
	t.head, t.look = append(t.head, ""), append(t.look, column{leave: true})
	for i, v := range values {
		text := ""
		if v != nil && longest > 0 && floatOrZero(*v) > 0 {
			text = blockBar(floatOrZero(*v)/longest, width)
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
