package web

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// showList is a list as a page shows it, at most a number of its rows; csv is the address of all
// of them as a file.
func (p *Pages) showList(l view.List, most int, csv string) shownTable {
	out := shownTable{Name: l.Name, Title: l.Title, Caption: l.Title, Notes: l.Notes, Empty: l.Empty, CSV: csv}
	var shown []int
	for i := range l.Columns {
		c := &l.Columns[i]
		if c.Fit&view.FileOnly != 0 {
			continue
		}
		h := shownHead{Title: c.Title, Label: c.Title, Below: c.Unit}
		switch c.Kind {
		case view.KindTime:
			h.Title += " (" + p.siteZone().String() + ")"
		case view.KindText, view.KindAge, view.KindState, view.KindID, view.KindCommand:
		default:
			h.Num = true
		}
		shown, out.Head = append(shown, i), append(out.Head, h)
	}
	for _, row := range l.Rows[:min(most, len(l.Rows))] {
		cells := make([]shownCell, len(shown))
		for n, i := range shown {
			cells[n] = p.listCell(&l, row, i)
			cells[n].Label = out.Head[n].Label
		}
		out.Rows = append(out.Rows, cells)
	}
	switch left := len(l.Rows) - len(out.Rows); {
	case l.More:
		out.Part = "There are more than the server lists at once."
	case left > 0:
		out.Part = fmt.Sprintf("%s more are in the file.", view.Count(left))
	}
	return out
}

// listCell is cell i of a row of a list.
func (p *Pages) listCell(l *view.List, row []v1.Cell, i int) shownCell {
	cell := shownCell{Text: l.ShowAt(row, i, p.siteZone()), Href: p.aboutCell(l, row, i)}
	if !row[i].Known() {
		return cell
	}
	switch l.Columns[i].Kind {
	case view.KindText:
	case view.KindState:
		cell.Tone = view.ToneOf(cell.Text)
	case view.KindTime, view.KindAge:
		t := view.TimeOf(row[i])
		cell.Class, cell.Time, cell.Exact = "nowrap", t.Format(time.RFC3339), formatAge(p.currentTime().Sub(t), t)
		if l.Columns[i].Kind == view.KindAge {
			cell.Text, cell.Exact = cell.Exact, cell.Text
		}
	case view.KindID:
		cell.Class = "id"
	case view.KindCommand:
		cell.Code = true
	default:
		cell.Num, cell.Class, cell.Exact = true, "num", row[i].String()
	}
	return cell
}

// aboutCell is the page about what a cell of a list names; "" where there is none.
func (p *Pages) aboutCell(l *view.List, row []v1.Cell, i int) string {
	switch column, value := l.Columns[i].Name, row[i].String(); {
	case l.Name == "sources" && column == "source":
		return "/ui/agents"
	case column == "source_gaps" && value != "" && value != "0":
		return "#gaps"
	case l.Name == "waiting" && column == "record":
		return jobAddress(value)
	case column == "record":
		return aboutPage(p.ownKeys(), "record_id", value)
	default:
		return aboutPage(p.ownKeys(), column, value)
	}
}
