package view

import (
	"fmt"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// DayState is the word for a state of a day of a source, or for a gap.
func DayState(state string) string {
	switch state {
	case "ok":
		return "complete"
	case "missing":
		return "missing runs"
	case "surplus":
		return "surplus records"
	case "gap":
		return "data unavailable"
	case "open":
		return "not counted yet"
	case "unchecked":
		return "not counted"
	}
	return state
}

// Days lists what schedulers counted and what is stored, by source and day: all days, or those that
// differ. The notes say what to do about runs that are missing.
func Days(a v1.Completeness, all bool) List {
	l := List{Name: "days", Title: "Days with differences", Columns: []Column{
		idColumn("source"), textColumn("day"), stateColumn("state"), numberColumn("counted"), numberColumn("stored"), numberColumn("filtered").fitted(LeaveOut), numberColumn("quarantined").fitted(LeaveOut),
		numberColumn("deleted").fitted(LeaveOut), numberColumn("missing"), numberColumn("surplus").fitted(LeaveOut),
	}}
	if all {
		l.Title = "Days"
	}
	counted, sources := 0, map[string]bool{}
	for i := range a.Days {
		d := &a.Days[i]
		if d.Runs != nil {
			counted, sources[d.Source] = counted+1, true
		}
		if all || d.State != "ok" && d.State != "open" && d.State != "unchecked" {
			l.addCells(textCell(d.Source), textCell(d.Day), textCell(DayState(d.State)), knownCount(d.Runs), countCell(d.Stored), knownCount(d.Filtered), knownCount(d.Quarantined),
				countCell(d.Deleted), countCell(d.Missing), countCell(d.Surplus))
		}
	}
	switch {
	case len(a.Days) == 0:
		l.Empty = "No source is known yet, or none matches."
	case counted == 0:
		l.Empty = "No day was counted: an agent counts a past day two hours after its end, if its source supports it."
	default:
		l.Empty = fmt.Sprintf("No differences in %s of %s.", Plural(counted, "counted day"), Plural(len(sources), "source"))
	}
	for _, row := range Stretches(a.Stretches).Rows {
		l.addNote("Runs missing of %s, %s: %s.", row[0], row[1], row[3])
		if row[4].Known() {
			l.addNote("Command: %s", row[4])
		}
	}
	return l
}

// Stretches lists consecutive days with missing runs, and what to do.
func Stretches(list []v1.Stretch) List {
	l := List{Name: "stretches", Title: "Consecutive days with missing runs, and what to do", Columns: []Column{
		idColumn("source"), textColumn("days"), numberColumn("missing"), textColumn("what_to_do"), commandColumn("command"),
	}}
	for i := range list {
		s := &list[i]
		days := s.From.UTC().Format(time.DateOnly)
		if last := s.To.Add(-time.Microsecond).UTC().Format(time.DateOnly); last != days {
			days += " to " + last
		}
		command := s.Do
		if s.Lost == 0 && s.Shared == 0 {
			command = ""
		}
		l.addCells(textCell(s.Source), textCell(days), countCell(s.Missing), textCell(whatToDo(s)), textCell(command))
	}
	return l
}

// whatToDo says how missing runs come to be stored.
func whatToDo(s *v1.Stretch) string {
	var parts []string
	add := func(n int64, text string) {
		if n > 0 {
			parts = append(parts, Count(n)+" "+text)
		}
	}
	add(s.Lost, "can be collected again on "+s.Agent+", first with -plan")
	add(s.Unread, "counted but not collected: see the log of the agent on "+s.Agent)
	add(s.Shared, "with record ids of other runs: correct the id in the mapping, then collect again on "+s.Agent)
	return strings.Join(parts, "; ")
}
