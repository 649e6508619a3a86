package view

import (
	"maps"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Tokens lists tokens, and their last use.
func Tokens(a v1.Tokens) List {
	l := List{Name: "tokens", Title: "Tokens", Empty: "No tokens.", Columns: []Column{
		idColumn("token"), textColumn("role"), textColumn("name").fitted(LeaveOut), textColumn("records").fitted(LeaveOut), stateColumn("state"), textColumn("created_by"), timeColumn("created"),
		timeColumn("expires"), timeColumn("used").fitted(LeaveOut), textColumn("used_by").fitted(LeaveOut), textColumn("from").fitted(LeaveOut),
	}}
	for i := range a.Tokens {
		t := &a.Tokens[i]
		l.addCells(textCell(t.ID), textCell(t.Role), textCell(t.Name), textCell(tokenRecords(t)), textCell(t.State), textCell(t.CreatedBy), timeCell(t.Created), timeCell(t.Expires), timeCell(t.Used), textCell(t.UsedBy), textCell(t.UsedFrom))
	}
	return l
}

// tokenRecords says which records a token shows, and how; "" for all with names.
func tokenRecords(t *v1.Token) string {
	var words []string
	if t.Person != "" {
		words = append(words, "of "+t.Person)
	}
	if t.Pseudonyms {
		words = append(words, "pseudonyms")
	}
	for _, row := range t.Rows {
		for _, key := range slices.Sorted(maps.Keys(row)) {
			words = append(words, key+"="+v1.JoinList(row[key]...))
		}
	}
	return strings.Join(words, " ")
}
