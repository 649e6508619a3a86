package web

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// showList is a list as a page shows it, at most a number of its rows; csv is the address of all
// of them as a file.
func (p *Pages) showList(l view.List, most int, csv string) shownTable {
	out := shownTable{Name: l.Name, Title: l.Title, Caption: l.Title, Notes: l.Notes, Notices: p.showNotices(&l), Empty: l.Empty, CSV: csv}
	shown := l.ShownColumns(view.FileOnly | view.TermOnly)
	for _, i := range shown {
		c := &l.Columns[i]
		h := shownHead{Title: c.Title, Label: c.Title, Below: c.Unit}
		switch c.Kind {
		case view.KindTime, view.KindDate:
			h.Title += " (" + p.siteZone().String() + ")"
		case view.KindText, view.KindAge, view.KindState, view.KindID, view.KindCommand:
		default:
			h.Num = true
		}
		out.Head = append(out.Head, h)
	}
	for _, row := range l.Rows[:min(most, len(l.Rows))] {
		cells := make([]shownCell, len(shown))
		for n, i := range shown {
			cells[n] = p.listCell(&l, row, i)
			cells[n].Label = out.Head[n].Label
		}
		out.Rows = append(out.Rows, cells)
	}
	for _, below := range l.Below {
		out.Lists = append(out.Lists, p.showList(below, len(below.Rows), ""))
	}
	switch left := len(l.Rows) - len(out.Rows); {
	case l.More:
		out.Part = "There are more than the server lists at once."
	case left > 0:
		out.Part = fmt.Sprintf("%s more are in the file.", view.Count(left))
	}
	return out
}

// shownNotice is a [view.Notice] as a page shows it.
type shownNotice struct {
	Tone     view.Tone
	Text, Do string
	Href     string // the page about what it is about; "": none
}

// showNotices are the notices of a list.
func (p *Pages) showNotices(l *view.List) (notices []shownNotice) {
	for i := range l.Notices {
		n := &l.Notices[i]
		shown := shownNotice{Tone: n.Tone, Text: n.Text(p.siteZone()), Do: n.Do}
		if n.Action != "" {
			shown.Href = actionAddress(n.Action, n.Run)
		}
		notices = append(notices, shown)
	}
	return notices
}

// showFacts are all cells of the first row of a list that are known.
func (p *Pages) showFacts(l *view.List) (facts []shownCell) {
	for i := range l.Columns {
		if l.Rows[0][i].Known() {
			cell := p.listCell(l, l.Rows[0], i)
			cell.Label = l.Columns[i].Title
			facts = append(facts, cell)
		}
	}
	return facts
}

// listCell is cell i of a row of a list.
func (p *Pages) listCell(l *view.List, row []v1.Cell, i int) shownCell {
	cell := shownCell{Text: l.ShowAt(row, i, p.siteZone()), Href: p.aboutCell(l, row, i)}
	if !row[i].Known() {
		return cell
	}
	switch l.Columns[i].Kind {
	case view.KindText:
		cell.Class = wrapClass(cell.Text)
	case view.KindState:
		cell.Tone = view.ToneOf(cell.Text)
	case view.KindTime, view.KindAge, view.KindDate:
		t := view.TimeOf(row[i])
		if t.IsZero() {
			break
		}
		cell.Class, cell.Time, cell.Exact = "nowrap", t.Format(time.RFC3339), formatAge(p.currentTime().Sub(t), t)
		if l.Columns[i].Kind == view.KindAge {
			cell.Text, cell.Exact = cell.Exact, cell.Text
		}
	case view.KindID:
		cell.Class = strings.TrimSpace("id " + wrapClass(cell.Text))
	case view.KindCommand:
		cell.Code = true
	case "duration":
		cell.Num, cell.Class, cell.Exact = true, "num nowrap", row[i].String()
	default:
		cell.Num, cell.Class, cell.Exact = true, "num", row[i].String()
	}
	return cell
}

// wrapClass is the class of a cell with a text: a single word stays on a line unless it is long.
func wrapClass(text string) string {
	if len(text) <= 24 && !strings.Contains(text, " ") {
		return "nowrap"
	}
	return ""
}

// aboutCell is the page about what a cell of a list names; "" where there is none.
func (p *Pages) aboutCell(l *view.List, row []v1.Cell, i int) string {
	switch column, value := l.Columns[i].Name, row[i].String(); {
	case value == "":
		return ""
	case column == "runbook" && (strings.HasPrefix(value, "https://") || strings.HasPrefix(value, "http://")):
		return value
	case column == "action" && strings.Contains(value, "/"):
		return actionAddress(value, 0)
	case column == "run" || column == "current_run":
		run, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return ""
		}
		return actionAddress(l.CellOf(row, "action").String(), run)
	case l.Name == "sources" && column == "source":
		return "/ui/agents"
	case column == "source_gaps" && value != "0":
		return "#gaps"
	case l.Name == "waiting" && column == "record":
		return jobAddress(value)
	case column == "record":
		return aboutPage(p.ownKeys(), "record_id", value)
	default:
		return aboutPage(p.ownKeys(), column, value)
	}
}
