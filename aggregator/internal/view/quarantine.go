package view

import (
	"cmp"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Quarantine lists quarantined jobs.
func Quarantine(a v1.Quarantine) List {
	l := List{Name: "quarantine", Title: "Quarantined jobs", Empty: "No quarantined jobs.", More: a.More, Columns: []Column{
		idColumn("key"), textColumn("reason"), timeColumn("last").fitted(LeaveOut), numberColumn("count").fitted(LeaveOut), textColumn("message").fitted(CutFirst),
	}}
	for i := range a.Quarantine {
		q := &a.Quarantine[i]
		l.addCells(textCell(QuarantineKey(q)), textCell(q.Reason), timeCell(q.Last), countCell(q.Count), textCell(q.Message))
	}
	return l
}

// QuarantineKey names a quarantined job on the command line; "-" stands for an empty part.
func QuarantineKey(q *v1.Quarantined) string {
	return cmp.Or(q.Agent, "-") + "/" + cmp.Or(q.SourceType, "-") + "/" + cmp.Or(q.SourceLabel, "-") + "/" + q.ID
}

// QuarantinedNotes say what cannot be done about a quarantined job, and what is not shown of it.
func QuarantinedNotes(q *v1.Quarantined) (notes []string) {
	if q.Instead != "" {
		notes = append(notes, "No agent can map it again: "+q.Instead+".")
	}
	if q.Truncated {
		notes = append(notes, "The raw input was longer; this is its beginning.")
	}
	return notes
}
