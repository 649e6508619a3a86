package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Gaps lists data that sources or agents lost.
func Gaps(a v1.Gaps) List {
	l := List{Name: "gaps", Title: "Data unavailable or lost in transit", Empty: "No losses reported by sources or agents.", More: a.More, Columns: []Column{
		textColumn("agent"), textColumn("source"), timeColumn("from"), timeColumn("to"), timeColumn("noticed").fitted(LeaveOut), textColumn("reason").fitted(CutFirst),
	}}
	for _, g := range a.Gaps {
		source := ""
		if g.SourceType != "" || g.SourceLabel != "" { // else it is of the whole agent
			source = g.SourceType + "/" + g.SourceLabel
		}
		l.addCells(textCell(g.Agent), textCell(source), timeCell(g.From), timeCell(g.To), timeCell(g.Noticed), textCell(g.Reason))
	}
	return l
}
