package view

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Capacity lists what clusters and groups of clusters have, in a window each of its changes.
func Capacity(a v1.Capacity) List {
	l := List{Name: "capacity", Title: "Capacity", Empty: "No capacity configured or reported: add a cluster block to the configuration.", Columns: []Column{textColumn("cluster")}}
	if a.Window != nil {
		l.Columns = append(l.Columns, dateColumn("from"))
	}
	components := capacityComponents(&a)
	for _, name := range components {
		l.Columns = append(l.Columns, Column{DocumentTableColumn: v1.DocumentTableColumn{Name: name, Title: name, Kind: KindNumber, Unit: v1.AmountUnit(name)}})
	}
	l.Columns = append(l.Columns, textColumn("source").fitted(CutFirst|LeaveOut))
	add := func(name, source string, amounts v1.Amounts, steps []v1.CapacityStep) {
		if a.Window == nil {
			steps = []v1.CapacityStep{{Components: amounts}}
		}
		for _, step := range steps {
			row := []v1.Cell{textCell(name)}
			if a.Window != nil {
				row = append(row, timeCell(step.From))
			}
			for _, component := range components {
				row = append(row, v1.Figure(step.Components[component]))
			}
			l.addCells(append(row, textCell(source))...)
		}
	}
	for _, c := range a.Clusters {
		var sources []string
		if c.Configured {
			sources = append(sources, "configuration")
		}
		add(c.Name, strings.Join(append(sources, c.Sources...), ", "), c.Components, c.Steps)
	}
	for _, g := range a.Groups {
		add(g.Name, "group: "+strings.Join(slices.Concat(g.Members, g.Unknown), ", "), g.Components, g.Steps)
		if len(g.Unknown) > 0 {
			l.addNote("No capacity configured or reported for %s of %s.", strings.Join(g.Unknown, ", "), g.Name)
		}
	}
	return l
}

// capacityComponents are the names of the components that clusters or groups have, or had in the
// window.
func capacityComponents(a *v1.Capacity) []string {
	names := map[string]bool{}
	add := func(amounts v1.Amounts, steps []v1.CapacityStep) {
		for _, step := range append(slices.Clip(steps), v1.CapacityStep{Components: amounts}) {
			for name := range step.Components {
				names[name] = true
			}
		}
	}
	for i := range a.Clusters {
		add(a.Clusters[i].Components, a.Clusters[i].Steps)
	}
	for i := range a.Groups {
		add(a.Groups[i].Components, a.Groups[i].Steps)
	}
	return slices.Sorted(maps.Keys(names))
}

// Census lists how many jobs run and wait by user, queue or source, or by all of these; the most jobs
// first. Times of notes are by the clock of a zone.
func Census(a v1.Capacity, by, zone string) List {
	l := List{Name: "census", Title: "Jobs that run and wait", Empty: "No jobs run or wait."}
	keys := []string{by}
	if by == "all" {
		keys = []string{"user", "queue", "source"}
	}
	for _, key := range keys {
		l.Columns = append(l.Columns, textColumn(key))
	}
	l.Columns = append(l.Columns, numberColumn("running"), numberColumn("pending"))
	switch {
	case a.Census == nil:
		l.Empty = "The census counts all jobs; it is shown only to readers of all records."
		return l
	case len(a.Census.Sources) == 0:
		l.Empty = "No source reports how many jobs it has."
	}
	groups, hidden := groupCensus(a.Census, keys)
	for _, g := range groups {
		l.addCensusRow(g.values, g.running, g.pending)
	}
	if len(l.Rows) > 1 {
		l.addCensusRow(append([]string{"Total"}, make([]string, len(keys)-1)...), a.Census.Running, a.Census.Pending)
		l.Rows, l.Totals = l.Rows[:len(l.Rows)-1], l.Rows[len(l.Rows)-1]
	}
	if hidden {
		if l.Empty = "You do not have access to whose jobs these are; bursar census -by source has the numbers."; len(l.Rows) > 0 {
			l.addNote("%s", l.Empty)
		}
	}
	for _, s := range a.Census.Sources {
		l.addNote("Jobs of %s are as of %s %s.", s.Source, minute(s.At, zone), zone)
	}
	return l
}

// addCensusRow adds values of keys and how many jobs they have.
func (l *List) addCensusRow(values []string, running, pending int64) {
	var row []v1.Cell
	for _, value := range values {
		row = append(row, textCell(value))
	}
	l.addCells(append(row, countCell(running), countCell(pending))...)
}

// censusGroup has the jobs that have the same values of keys.
type censusGroup struct {
	values           []string
	running, pending int64
}

// groupCensus adds up the jobs that have the same values of keys; hidden says that it lacks what the
// reader has no access to.
func groupCensus(c *v1.Census, keys []string) (groups []*censusGroup, hidden bool) {
	of := map[string]*censusGroup{}
	for _, s := range c.Sources {
		rows := s.Rows
		if slices.Equal(keys, []string{"source"}) {
			rows = []v1.CensusRow{{Running: s.Running, Pending: s.Pending}}
		}
		hidden = hidden || rows == nil
		for _, r := range rows {
			var values []string
			for _, key := range keys {
				values = append(values, map[string]string{"user": r.User, "queue": r.Queue, "source": s.Source}[key])
			}
			name := strings.Join(values, "\x00")
			g := of[name]
			if g == nil {
				g = &censusGroup{values: values}
				of[name], groups = g, append(groups, g)
			}
			g.running, g.pending = g.running+r.Running, g.pending+r.Pending
		}
	}
	slices.SortFunc(groups, func(a, b *censusGroup) int {
		return cmp.Or(cmp.Compare(b.running+b.pending, a.running+a.pending), slices.Compare(a.values, b.values))
	})
	return groups, hidden
}
