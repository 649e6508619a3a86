package view

import (
	"fmt"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// RetentionPlan says how long names are kept, and what would be removed now, with times by the
// clock of a zone.
func RetentionPlan(a v1.RetentionPlan, zone string) List {
	l := List{Name: "retention", Title: "How long names are kept", Columns: []Column{textColumn("what"), textColumn("value").fitted(CutFirst)}}
	add := func(what, value string) { l.addCells(v1.Words(what), textCell(value)) }
	add("names", RetentionText(&a.Retention, zone))
	if drop := a.Retention.Drop; len(drop) > 0 {
		add("keys that go with them", strings.Join(drop, ", "))
	}
	if a.Retention.Archived > 0 {
		add("not removed", Plural(a.Retention.Archived, "archived record"))
	}
	if due := a.Due; due != nil {
		add("due now", fmt.Sprintf("%s of %s that stopped before %s, %s", Plural(due.Records, "record"), Plural(due.People, "user"), zonedInstant(due.Until, zone), Plural(due.Quarantined, "quarantined job")))
		add("keys that stay", strings.Join(due.Keys, ", "))
		if due.Archived > 0 {
			add("not reached", Plural(due.Archived, "archived record"))
		}
		if len(due.Archives) > 0 {
			add("files with names", "archives "+strings.Join(due.Archives, ", "))
		}
	}
	add("not reached", "backups and snapshots, logs, what actions have sent")
	return l
}

// RetentionText says how long names are kept, and when they were removed last, by the clock of
// a zone.
func RetentionText(r *v1.Retention, zone string) string {
	text := "kept for ever"
	if r.NamesMonths != nil {
		text = "kept at most " + Plural(*r.NamesMonths, "month")
	}
	if r.Last.IsZero() {
		return text + ", never removed"
	}
	text += fmt.Sprintf(", last removed %s from %s (%s in all)", zonedInstant(r.Last, zone), Plural(r.Records, "record"), Count(r.Total))
	if r.Archived > 0 {
		text += fmt.Sprintf("; %s still have them", Plural(r.Archived, "archived record"))
	}
	return text
}
