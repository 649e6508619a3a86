package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Audit lists entries of the audit log, the newest first.
func Audit(a v1.Audit) List {
	l := List{Name: "audit", Title: "Audit log", Empty: "No entries.", More: a.More, Columns: []Column{
		timeColumn("time"), textColumn("kind"), textColumn("who"), textColumn("what"), textColumn("about").fitted(CutFirst | LeaveOut), textColumn("result"), textColumn("from").fitted(LeaveOut), textColumn("node").fitted(LeaveOut),
	}}
	for i := range a.Entries {
		e := &a.Entries[i]
		l.addCells(timeCell(e.Time), textCell(e.Kind), textCell(e.Who), textCell(e.Route), textCell(e.About), textCell(e.Result), textCell(e.From), textCell(e.Node))
	}
	return l
}
