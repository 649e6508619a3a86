package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Conflicts lists the runs about whose start sources disagree, a row for what each of them reports.
func Conflicts(a v1.Conflicts) List {
	l := List{Name: "conflicts", Title: "Runs whose sources disagree about the start", Empty: "No conflicts.", More: a.More, Columns: append([]Column{idColumn("record")}, holdingColumns()...)}
	for i := range a.Conflicts {
		for k := range a.Conflicts[i].Holdings {
			l.addCells(append([]v1.Cell{textCell(a.Conflicts[i].RecordID)}, holdingCells(&a.Conflicts[i].Holdings[k])...)...)
		}
	}
	return l
}

// Holdings lists what each origin reports of a run.
func Holdings(e v1.Entry) List {
	l := List{Name: "holdings", Title: "What each origin reports", Columns: holdingColumns()}
	for i := range e.Holdings {
		l.addCells(holdingCells(&e.Holdings[i])...)
	}
	return l
}

// holdingColumns are those of what an origin reports.
func holdingColumns() []Column {
	return []Column{
		idColumn("origin"), textColumn("rank").fitted(LeaveOut), timeColumn("start"), timeColumn("stop").fitted(LeaveOut), timeColumn("observed").fitted(LeaveOut), stateColumn("state").fitted(LeaveOut),
	}
}

// holdingCells are those of what an origin reports.
func holdingCells(h *v1.Holding) []v1.Cell {
	start, stop, state := v1.Time{}, h.WaitingStop, "unknown"
	switch {
	case h.Withdrawn:
		state = "withdrawn"
	case h.Record != nil && h.Record.StopTime.IsZero():
		state = "running"
	case h.Record != nil:
		state = "ended"
	case !h.WaitingStop.IsZero():
		state = "waiting for its record"
	}
	if h.Record != nil {
		start, stop = h.Record.StartTime, h.Record.StopTime
	}
	return []v1.Cell{textCell(h.Origin), textCell(h.Rank), timeCell(start), timeCell(stop), timeCell(h.Observed), textCell(state)}
}

// Waiting lists ends of jobs that have no record yet.
func Waiting(a v1.Waiting) List {
	l := List{Name: "waiting", Title: "Job ends without a record", Empty: "No job end is without a record.", More: a.More, Columns: []Column{
		idColumn("record"), timeColumn("stop"), idColumn("origin").fitted(LeaveOut), timeColumn("observed").fitted(LeaveOut),
	}}
	for i := range a.Waiting {
		h := waitingHolding(&a.Waiting[i])
		l.addCells(textCell(a.Waiting[i].RecordID), timeCell(h.WaitingStop), textCell(h.Origin), timeCell(h.Observed))
	}
	return l
}

// WaitingStop is when a run stopped that has no record yet; zero where that is not known.
func WaitingStop(e *v1.Entry) v1.Time { return waitingHolding(e).WaitingStop }

// waitingHolding is what the origin reports that knows only the stop of a run; empty where none
// does.
func waitingHolding(e *v1.Entry) v1.Holding {
	for _, h := range e.Holdings {
		if !h.WaitingStop.IsZero() {
			return h
		}
	}
	return v1.Holding{}
}
