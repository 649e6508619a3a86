package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Kinds lists components of records that are stored with another kind than is configured.
func Kinds(a v1.Kinds) List {
	l := List{Name: "kinds", Title: "Components stored with another kind than configured", Empty: "No records would be changed.", Columns: []Column{
		textColumn("component"), textColumn("stored"), textColumn("becomes"), numberColumn("records"),
	}}
	for _, k := range a.Kinds {
		l.addCells(textCell(k.Component), textCell(k.Stored), textCell(k.Kind), countCell(k.Records))
	}
	if len(l.Rows) > 0 {
		l.addNote("%s would be changed.", Plural(a.Records, "record"))
	}
	return l
}
