package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// compareExamples is how many records of a kind and cause are named, compareGroups how many
// values of a key have a line of their own, and how many fields.
const (
	compareExamples = 10
	compareGroups   = 10_000
)

// sideSums are the records of both sides, and their usage.
type sideSums struct {
	there, here               int64
	usedThere, usedHere       big.Rat
	unknownThere, unknownHere int64 // records without usage
}

// causeKey is a kind of difference with its cause.
type causeKey struct{ kind, cause string }

// causeGroup are the records of a kind and cause.
type causeGroup struct {
	count int64
	first []example // ordered
}

// example is a record that differs.
type example struct {
	at     record.Time
	id     string
	detail string
}

// addToSums adds what is in the window of both sides, either of which may be nil, to the sums.
func (c *comparison) addToSums(kind string, there, here *comparand) {
	for _, e := range []*comparand{there, here} {
		if e == nil || !c.isInWindow(&e.Record) {
			continue
		}
		about := e // that says when, and whose it is
		if c.listed {
			about = here
		}
		used := c.componentUsage(e)
		sumOf(c.kinds, kind).addUsage(e.side, used)
		sumOf(c.days, c.dayOf(about)).addUsage(e.side, used)
		for i, key := range c.opt.by {
			value := ""
			if about != nil {
				value = v1.JoinList(about.Meta.Get(key)...)
			}
			sumOf(c.groups[i], value).addUsage(e.side, used)
		}
	}
}

// sumOf is the sum of a name; of too many names that of all others.
func sumOf(sums map[string]*sideSums, name string) *sideSums {
	if s := sums[name]; s != nil {
		return s
	}
	if len(sums) >= compareGroups {
		name = "others"
	}
	if sums[name] == nil {
		sums[strings.Clone(name)] = &sideSums{}
	}
	return sums[name]
}

func (s *sideSums) addUsage(of side, used *big.Rat) {
	n, sum, unknown := &s.here, &s.usedHere, &s.unknownHere
	if of == sideThere {
		n, sum, unknown = &s.there, &s.usedThere, &s.unknownThere
	}
	*n++
	if used == nil {
		*unknown++
		return
	}
	sum.Add(sum, used)
}

// running is the day of records without a stop.
const running = "running"

func (c *comparison) dayOf(e *comparand) string {
	switch {
	case e == nil:
		return ""
	case e.Open():
		return running
	}
	return e.Stop.Std().In(c.zone).Format(time.DateOnly)
}

// addDifference counts a difference, and stores it when it is one of the first of its cause.
func (c *comparison) addDifference(kind, cause string, e *comparand, detail string) {
	c.results[kind]++
	key := causeKey{kind, cause}
	g := c.causes[key]
	if g == nil {
		g = &causeGroup{}
		c.causes[key] = g
	}
	g.count++
	x := example{e.Stop, e.ID, detail}
	if e.Open() {
		x.at = e.Start
	}
	at, _ := slices.BinarySearchFunc(g.first, x, func(a, b example) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.id, b.id)) })
	if at >= compareExamples {
		return
	}
	x.id, x.detail = strings.Clone(x.id), strings.Clone(x.detail)
	g.first = slices.Insert(g.first, at, x)
	g.first = g.first[:min(len(g.first), compareExamples)]
}

// differenceCount is how many records are not equal.
func (c *comparison) differenceCount() (n int64) {
	for kind, count := range c.results {
		if kind != kindEqual {
			n += count
		}
	}
	return n
}

// buildDocument makes a report of the result.
func (c *comparison) buildDocument(now time.Time) *report.Document {
	d := &report.Document{Format: report.Format, Report: "compare", Title: "bursar and " + c.opt.other, Periods: []report.Period{}, Made: v1.Time{Time: now.UTC()}, Zone: c.zone.String(), Notes: c.comparisonNotes()}
	if c.opt.window != "" {
		w := v1.Window{From: v1.Stamp(c.from), To: v1.Stamp(c.to)}
		d.Periods = append(d.Periods, report.Period{Name: w.Name(c.opt.window, c.zone), From: w.From, To: w.To})
		d.Title += ", " + d.Periods[0].Name
	}
	kinds := report.Table{Name: "results", Title: "Results", Columns: slices.Insert(c.sumColumns("result", "Result"), 1, numberColumn("count", "Count"))}
	for _, kind := range []string{kindEqual, kindMissingHere, kindMissingThere, kindDifferent, kindInvalid} {
		kinds.Rows = append(kinds.Rows, slices.Insert(sumOf(c.kinds, kind).sumRow(kind), 1, cellOf(c.results[kind])))
	}
	d.Add(kinds)
	d.Add(c.causeTables()...)
	d.Add(c.sumTable("days", "day", "By day", c.days))
	for i, key := range c.opt.by {
		d.Add(c.sumTable("by_"+key, "value", "By "+key, c.groups[i]))
	}
	return d
}

func textColumn(name, title string) report.Column {
	return report.Column{Name: name, Title: title, Kind: report.Text}
}

func numberColumn(name, title string) report.Column {
	return report.Column{Name: name, Title: title, Kind: report.Number}
}

func cellOf(n int64) report.Cell { return v1.Rat(new(big.Rat).SetInt64(n)) }

func (c *comparison) sumColumns(name, title string) []report.Column {
	per := c.opt.unit
	if c.totals {
		per = ""
	}
	unit := v1.UsageUnit(c.opt.component, per)
	usage := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Kind: report.Number, Unit: unit}
	}
	return []report.Column{
		textColumn(name, title), numberColumn("records_there", "Records there"), numberColumn("records_here", "Records here"),
		usage("usage_there", "There"), usage("usage_here", "Here"), usage("difference", "Here − there"),
	}
}

// sumRow is the row of a name. What no record says is not zero.
func (s *sideSums) sumRow(name string) []report.Cell {
	label, there, here, less := v1.Words(name), v1.Rat(&s.usedThere), v1.Rat(&s.usedHere), v1.Rat(new(big.Rat).Sub(&s.usedHere, &s.usedThere))
	if name == "" {
		label = report.Cell{}
	}
	if s.there > 0 && s.unknownThere == s.there {
		there, less = report.Cell{}, report.Cell{}
	}
	if s.here > 0 && s.unknownHere == s.here {
		here, less = report.Cell{}, report.Cell{}
	}
	return []report.Cell{label, cellOf(s.there), cellOf(s.here), there, here, less}
}

// sumTable has a line for each name, and last what is not known.
func (c *comparison) sumTable(name, column, title string, sums map[string]*sideSums) report.Table {
	t := report.Table{Name: name, Title: title, Columns: c.sumColumns(column, strings.ToUpper(column[:1])+column[1:]), Rows: [][]report.Cell{}}
	for _, one := range slices.Sorted(maps.Keys(sums)) {
		if one != "" {
			t.Rows = append(t.Rows, sums[one].sumRow(one))
		}
	}
	if s := sums[""]; s != nil {
		t.Rows = append(t.Rows, s.sumRow(""))
	}
	return t
}

// causeTables are the kinds of differences with their causes, records of each, and the
// fields that differ.
func (c *comparison) causeTables() (list []report.Table) {
	if len(c.causes) == 0 {
		return nil
	}
	causes := report.Table{Name: "causes", Title: "Differences by cause", Columns: []report.Column{textColumn("result", "Result"), textColumn("cause", "Cause"), numberColumn("count", "Count")}}
	first := report.Table{Name: "records", Title: fmt.Sprintf("First %d of each", compareExamples), Columns: []report.Column{
		textColumn("result", "Result"), textColumn("cause", "Cause"), textColumn("record", "Record"), textColumn("time", "Stop or start"), textColumn("detail", "There → here"),
	}}
	word := func(s string) report.Cell {
		if s == "" {
			return report.Cell{}
		}
		return v1.Words(s)
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.causes), func(a, b causeKey) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(c.causes[b].count, c.causes[a].count), strings.Compare(a.cause, b.cause))
	}) {
		g := c.causes[key]
		causes.Rows = append(causes.Rows, []report.Cell{v1.Words(key.kind), word(key.cause), cellOf(g.count)})
		for _, x := range g.first {
			at := ""
			if x.at != record.None {
				at = x.at.Std().In(c.zone).Format(time.DateTime)
			}
			first.Rows = append(first.Rows, []report.Cell{v1.Words(key.kind), word(key.cause), v1.Words(x.id), word(at), word(x.detail)})
		}
	}
	list = []report.Table{causes, first}
	if len(c.fields) > 0 {
		fields := report.Table{Name: "fields", Title: "Fields that differ", Columns: []report.Column{textColumn("field", "Field"), numberColumn("count", "Records")}}
		for _, name := range slices.SortedFunc(maps.Keys(c.fields), func(a, b string) int { return cmp.Or(cmp.Compare(c.fields[b], c.fields[a]), strings.Compare(a, b)) }) {
			fields.Rows = append(fields.Rows, []report.Cell{v1.Words(name), cellOf(c.fields[name])})
		}
		list = append(list, fields)
	}
	return list
}

// comparisonNotes say what the figures are of.
func (c *comparison) comparisonNotes() []string {
	list := []string{"Here is bursar; there is " + c.opt.other + ". Records count on the day of their stop; running ones have no usage of a rate yet."}
	add := func(when bool, format string, args ...any) {
		if when {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(len(c.opt.ignore) > 0, "Not compared: %s.", strings.Join(c.opt.ignore, ", "))
	add(c.leftOut > 0, "The mapping of -config leaves out %s there.", view.Plural(c.leftOut, "record"))
	add(c.filters != "", "%s", c.filters)
	add(c.causes[causeKey{kindMissingHere, causeArchived}] != nil, "-archived compares archived records too.")
	add(c.unsure, "The quarantine is longer than one answer: causes in the rest of it are not named.")
	for i, key := range c.opt.by {
		add(len(c.groups[i]) == 1 && c.groups[i][""] != nil, "No record has the meta key %q.", key)
	}
	return list
}
