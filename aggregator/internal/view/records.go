package view

import (
	"fmt"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Records lists records, whose groups and users are values of the meta keys group and user.
func Records(list []v1.FullRecord, group, user string) List {
	l := List{Name: "records", Title: "Records", Empty: "No record matches.", Columns: []Column{
		idColumn("record"), textColumn("site").fitted(IfAny | LeaveOut), textColumn("group").fitted(IfAny), textColumn("user").fitted(IfAny), textColumn("job").fitted(IfAny | LeaveOut), textColumn("components").fitted(CutFirst),
		timeColumn("start").fitted(LeaveOut), timeColumn("stop"), newColumn("duration", "runtime"), stateColumn("state").fitted(IfAny | LeaveOut), textColumn("exit_code").fitted(IfAny | LeaveOut),
	}}
	negative := 0
	for i := range list {
		r := &list[i]
		if r.Negative {
			negative++
		}
		runtime := knownCount(r.Runtime)
		if r.StopTime.IsZero() {
			runtime = v1.Words("running")
		}
		l.addCells(textCell(r.RecordID), metaCell(r, "site_id"), metaCell(r, group), metaCell(r, user), metaCell(r, "job_name", "job"), textCell(componentsText(r.Components)),
			timeCell(r.StartTime), timeCell(r.StopTime), runtime, textCell(r.State), textCell(ExitText(r)))
	}
	switch {
	case negative == 1:
		l.addNote("1 record stops before it starts; its usage is zero.")
	case negative > 1:
		l.addNote("%s stop before they start; their usage is zero.", Plural(negative, "record"))
	}
	return l
}

// metaCell has the values of the first of the keys that a record has.
func metaCell(r *v1.FullRecord, keys ...string) v1.Cell {
	for _, key := range keys {
		switch values := r.Meta[key]; len(values) {
		case 0:
		case 1:
			return textCell(values[0])
		default:
			return textCell(v1.JoinList(values...))
		}
	}
	return v1.Cell{}
}

// componentsText has the amounts of components with their units.
func componentsText(list []v1.FullComponent) string {
	var parts []string
	for _, c := range list {
		parts = append(parts, c.Name+" "+strings.TrimSpace(Count(c.Amount)+"\u202f"+v1.AmountUnit(c.Name)))
	}
	return strings.Join(parts, ", ")
}

// ExitText is the exit code of a run, and the signal that ended it; "" where they are not known.
func ExitText(r *v1.FullRecord) string {
	var parts []string
	if r.ExitCode != nil && (*r.ExitCode != 0 || r.ExitSignal == nil || *r.ExitSignal == 0) {
		parts = append(parts, fmt.Sprint(*r.ExitCode))
	}
	if r.ExitSignal != nil && *r.ExitSignal != 0 {
		parts = append(parts, fmt.Sprint("signal ", *r.ExitSignal))
	}
	return strings.Join(parts, ", ")
}
