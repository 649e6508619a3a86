package view

import (
	"cmp"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Prices lists prices.
func Prices(a v1.Prices) List {
	l := List{Name: "prices", Title: "Prices", Empty: "No prices are in effect then; add a price block to the configuration.", Columns: []Column{
		textColumn("component"), exactColumn("price"), textColumn("unit").titled("Currency"), textColumn("per"), textColumn("for").fitted(CutFirst),
		dateColumn("from").fitted(LeaveOut), dateColumn("to").titled("Until").fitted(LeaveOut), textColumn("list").fitted(LeaveOut),
	}}
	for i := range a.Prices {
		p := &a.Prices[i]
		l.addCells(textCell(p.Component), v1.Figure(&p.Price), textCell(a.Currency), textCell(p.PerText()), v1.Words(cmp.Or(Conditions(p.Match), "all")),
			timeCell(p.From), timeCell(p.To), textCell(p.List))
	}
	return l
}
