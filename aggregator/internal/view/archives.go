package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Archives lists the months whose records were removed from the store.
func Archives(a v1.Archives) List {
	l := List{Name: "archives", Title: "Archived months", Empty: "No records were removed from the store.", Columns: []Column{
		idColumn("archive"), stateColumn("state"), numberColumn("records"), numberColumn("removed"), idColumn("location").fitted(LeaveOut | CutFirst), idColumn("manifest").fitted(LeaveOut | CutFirst),
	}}
	for i := range a.Archives {
		e := &a.Archives[i]
		l.addCells(textCell(e.Name), textCell(e.State), countCell(e.Count), countCell(e.Removed), textCell(e.Location), textCell(e.Manifest))
	}
	return l
}
