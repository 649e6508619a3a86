package view

import v1 "github.com/bursar-accounting/bursar/proto/v1"

// Projects lists the projects of a directory. The time of which they are is by the clock of a
// zone.
func Projects(a v1.Directory, zone string) List {
	l := List{Name: "projects", Title: "Projects", Empty: "No projects configured.", Columns: []Column{
		textColumn("project"), textColumn("pi").titled("PI"), textColumn("name").fitted(LeaveOut), textColumn("groups").fitted(CutFirst), textColumn("users").fitted(CutFirst), textColumn("exempt").fitted(LeaveOut),
		timeColumn("since").fitted(LeaveOut), timeColumn("until").fitted(LeaveOut),
	}}
	for _, p := range a.Projects {
		exempt := ""
		if p.Exempt {
			exempt = "yes"
		}
		l.addCells(textCell(p.ID), textCell(p.PI), textCell(p.PIName), textCell(v1.JoinList(p.Groups...)), textCell(v1.JoinList(p.Users...)), textCell(exempt), timeCell(p.Since), timeCell(p.Until))
	}
	l.addNote("As of %s. Other parts: people (%s), classes of hosts (%s), contributions (%s); see bursar directory -h.",
		zonedInstant(a.At, zone), Count(len(a.People)), Count(len(a.HostClasses)), Count(len(a.Contributions)))
	return l
}

// People lists the people of a directory.
func People(a v1.Directory) List {
	l := List{Name: "people", Title: "People", Empty: "No people configured or reported by sources.", Columns: []Column{
		textColumn("id").titled("ID"), textColumn("name").fitted(CutFirst), textColumn("email").fitted(LeaveOut), textColumn("groups").fitted(CutFirst), textColumn("project"), textColumn("pi").titled("PI"),
	}}
	for _, p := range a.People {
		l.addCells(textCell(p.ID), textCell(p.Name), textCell(p.Email), textCell(v1.JoinList(p.Groups...)), textCell(p.Project), textCell(p.PI))
	}
	l.addNote("The project is that of records without a group.")
	return l
}

// HostClasses lists the classes of hosts of a directory, in the order in which they are tried.
func HostClasses(a v1.Directory) List {
	l := List{Name: "host_classes", Title: "Host classes", Empty: "No host classes configured.", Columns: []Column{textColumn("class"), textColumn("pattern").fitted(CutFirst), exactColumn("factor")}}
	for _, c := range a.HostClasses {
		l.addCells(textCell(c.ID), textCell(c.Pattern), exactCell(c.SUFactor))
	}
	switch units := a.ServiceUnits; {
	case units == nil:
		l.addNote("The first class whose pattern matches counts.")
	case units.DefaultFactor == nil:
		l.addNote("The first class whose pattern matches counts. What has no factor is counted apart.")
	default:
		l.addNote("The first class whose pattern matches counts. What has no factor has %s.", exactCell(units.DefaultFactor))
	}
	return l
}

// Contributions lists the contributions of a directory.
func Contributions(a v1.Directory) List {
	l := List{Name: "contributions", Title: "Contributions", Empty: "No contributions configured.", Columns: []Column{
		textColumn("contribution").fitted(CutFirst), textColumn("by"), textColumn("credit"), exactColumn("amount"), exactColumn("split").titled("Split %"), exactColumn("factor"), exactColumn("units"),
		timeColumn("from").fitted(LeaveOut), timeColumn("to").fitted(LeaveOut),
	}}
	for i := range a.Contributions {
		c := &a.Contributions[i]
		l.addCells(textCell(c.ID), textCell(c.By), textCell(c.Credit), exactCell(&c.Amount), exactCell(&c.Split), exactCell(&c.SUFactor), exactCell(&c.Units), timeCell(c.From), timeCell(c.To))
	}
	return l
}

// Unclaimed lists the groups and users that have records and belong to no project. Times are by
// the clock of a zone.
func Unclaimed(a v1.Directory, zone string) List {
	l := List{Name: "unclaimed", Title: "Groups and users without a project", Columns: []Column{textColumn("group"), textColumn("user"), numberColumn("records")}}
	if a.Unclaimed == nil {
		return l
	}
	for _, u := range a.Unclaimed.Lines {
		l.addCells(textCell(u.Group), textCell(u.User), countCell(u.Records))
	}
	if a.Unclaimed.More > 0 {
		l.addNote("There are %s more with fewer records.", Count(a.Unclaimed.More))
	}
	l.Empty = "The projects of " + zonedInstant(a.At, zone) + " claim everything that ran since " + zonedInstant(a.Unclaimed.From, zone) + "."
	return l
}
