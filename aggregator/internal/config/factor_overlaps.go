package config

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// namedFactors is how many gaps, overlaps and second zones of factors are named one by one.
const namedFactors = 10

// usedZones are the zones whose factors the block or a class of it names.
func (e *Energy) usedZones() (list []string) {
	list = append(list, e.Zone.Value)
	for i := range e.Classes {
		list = append(list, e.Classes[i].Zone.Value)
	}
	list = slices.DeleteFunc(list, func(zone string) bool { return zone == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// leaveOutZones takes the rows of zones that are not used out of a file that also has rows of
// used ones, and names them. Where one zone is used, such a row stays as a row of it without
// a value: it ends the row before, so its hours are unknown unless the zone has them itself.
func (f *factorTable) leaveOutZones(used []string) (diags hcl.Diagnostics) {
	zoneOf := func(row []string) string { return strings.TrimSpace(row[f.zone]) }
	if len(used) == 0 || !slices.ContainsFunc(f.Rows, func(row []string) bool { return slices.Contains(used, zoneOf(row)) }) {
		return nil
	}
	first, count := map[string]int{}, map[string]int{}
	var zones []string
	for i, row := range f.Rows {
		zone := zoneOf(row)
		if slices.Contains(used, zone) {
			continue
		}
		if count[zone]++; count[zone] == 1 {
			first[zone], zones = i, append(zones, zone)
		}
		if len(used) == 1 {
			f.Rows[i] = slices.Clone(row)
			f.Rows[i][f.zone], f.Rows[i][f.grams] = used[0], ""
			if f.to >= 0 {
				f.Rows[i][f.to] = ""
			}
		}
	}
	for i, zone := range zones {
		if i == namedFactors {
			diags.Add(hcl.Warnf(f.Range, "second zone", "%s: %d more zones", f.File.Value, len(zones)-i))
			break
		}
		rows, verb := fmt.Sprintf("%d rows", count[zone]), "are"
		if count[zone] == 1 {
			rows, verb = "1 row", "is"
		}
		text := fmt.Sprintf("%s: %s of zone %q, which neither the site nor a class has, %s not used", f.File.Value, rows, zone, verb)
		if len(used) == 1 {
			text = fmt.Sprintf("%s: %s of zone %q beside %q %s left out: CO2 of that time is not known where %q has no row for it", f.File.Value, rows, zone, used[0], verb, used[0])
		}
		diags.Add(hcl.Warnf(f.rowRange(first[zone]), "second zone", "%s", text))
	}
	return diags
}

// factorSpan is the time from one instant to another; to is [factorsForever] without an end.
type factorSpan struct{ from, to record.Time }

const factorsForever = record.Time(math.MaxInt64)

// heldRow is a row of a file of factors and the time for which it holds.
type heldRow struct {
	factorSpan

	table, row int
	// isOpen is of a row whose end is not written: it ends where the next one begins, if not before.
	isOpen bool
}

// cutOverlaps cuts the hours that two rows of a zone have, of one file or of several, out
// of all of them, so that they are unknown, and names them.
func (e *Energy) cutOverlaps() (diags hcl.Diagnostics) {
	zones := map[string][]heldRow{}
	for i := range e.tables {
		f, known := newFactorTable(&e.tables[i])
		if !known { // which is said when rows are read
			return nil
		}
		for k, row := range f.Rows {
			from, err := factorTime(row[f.from])
			h := heldRow{factorSpan: factorSpan{from, record.None}, table: i, row: k}
			_, h.isOpen = slices.BinarySearch(f.open, k)
			if err == nil && f.to >= 0 {
				h.to, err = factorTime(row[f.to])
			}
			if err != nil || !from.Present() || h.to.Present() && h.to <= from { // which is said, too
				return nil
			}
			zone := strings.TrimSpace(row[f.zone])
			zones[zone] = append(zones[zone], h)
		}
	}
	kept := map[[2]int][]factorSpan{}
	overlaps := 0
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		rows := zones[zone]
		changed := endOpenRows(rows)
		twice := overlappingSpans(rows)
		if len(twice) == 0 && !changed {
			continue
		}
		left := 0
		for _, h := range rows {
			spans := h.spansWithout(twice)
			kept[[2]int{h.table, h.row}] = spans
			left += len(spans)
		}
		if left == 0 { // a factor of before all records says that the zone is known
			kept[[2]int{rows[0].table, rows[0].row}] = []factorSpan{{record.MinTime, record.MinTime + record.Second}}
		}
		for _, s := range twice {
			if overlaps++; overlaps <= namedFactors {
				diags.Add(e.overlapWarning(zone, rows, s))
			}
		}
		if e.unclear == nil {
			e.unclear = map[string][]factorSpan{}
		}
		e.unclear[zone] = twice
	}
	if overlaps > namedFactors {
		diags.Add(hcl.Warnf(e.Range, "overlapping factors", "%d more overlaps", overlaps-namedFactors))
	}
	for i := range e.tables {
		if f, _ := newFactorTable(&e.tables[i]); len(kept) > 0 {
			f.addTo()
			f.splitRows(func(row int) ([]factorSpan, bool) { spans, is := kept[[2]int{i, row}]; return spans, is })
		}
	}
	e.tables = slices.DeleteFunc(e.tables, func(t Table) bool { return len(t.Rows) == 0 })
	return diags
}

// endOpenRows puts the rows of a zone in order, and ends those that are open where the next
// one begins; it reports whether one would have lasted longer.
func endOpenRows(rows []heldRow) (changed bool) {
	slices.SortStableFunc(rows, func(a, b heldRow) int { return cmp.Compare(a.from, b.from) })
	next := factorsForever // where the rows after those of one instant begin
	for i := len(rows) - 1; i >= 0; i-- {
		if i+1 < len(rows) && rows[i+1].from > rows[i].from {
			next = rows[i+1].from
		}
		switch h := &rows[i]; {
		case !h.to.Present():
			h.to = next
		case h.isOpen && h.to > next:
			h.to, changed = next, true
		}
	}
	return changed
}

// overlappingSpans is the time that more than one of the rows holds for.
func overlappingSpans(rows []heldRow) (list []factorSpan) {
	type edge struct {
		at   record.Time
		more int
	}
	var edges []edge
	for _, h := range rows {
		edges = append(edges, edge{h.from, 1}, edge{h.to, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.at, b.at) })
	holding, from := 0, record.None
	for i, e := range edges {
		if holding += e.more; i+1 < len(edges) && edges[i+1].at == e.at {
			continue
		}
		switch {
		case holding > 1 && !from.Present():
			from = e.at
		case holding < 2 && from.Present():
			list, from = append(list, factorSpan{from, e.at}), record.None
		}
	}
	return list
}

// spansWithout is the time for which a row holds, less spans, which ascend and do not overlap.
func (h heldRow) spansWithout(spans []factorSpan) (list []factorSpan) {
	first, _ := slices.BinarySearchFunc(spans, h.from, func(s factorSpan, from record.Time) int {
		if s.to <= from {
			return -1
		}
		return 1
	})
	from := h.from
	for _, s := range spans[first:] {
		if s.from >= h.to {
			break
		}
		if s.from > from {
			list = append(list, factorSpan{from, s.from})
		}
		from = s.to
	}
	if from < h.to {
		list = append(list, factorSpan{from, h.to})
	}
	return list
}

// overlapWarning names a time that more than one row of a zone holds for, where the last of the rows
// that begin it is written.
func (e *Energy) overlapWarning(zone string, rows []heldRow, s factorSpan) *hcl.Diagnostic {
	var places []hcl.Range
	for _, h := range rows {
		if h.from <= s.from && s.from < h.to {
			places = append(places, e.tables[h.table].rowRange(h.row))
		}
	}
	until, hours := "on", ""
	if s.to != factorsForever {
		until, hours = "to "+s.to.String(), " ("+hoursText(s.to-s.from)+")"
	}
	other := places[0]
	return hcl.Warnf(places[len(places)-1], "overlapping factors", "zone %q has two factors from %s %s%s, here and in %s:%d: CO2 of that time is not known",
		zone, s.from, until, hours, filepath.Base(other.Filename), other.Start.Line)
}

// splitRows makes of each row as many as it holds for spans, which spans has; rows that it has not
// stay as they are.
func (f *factorTable) splitRows(spans func(row int) ([]factorSpan, bool)) {
	var rows [][]string
	var lines []int
	for i, row := range f.Rows {
		list, is := spans(i)
		if !is {
			rows, lines = append(rows, row), append(lines, f.table.Lines[i])
			continue
		}
		for _, s := range list {
			held := slices.Clone(row)
			if held[f.from], held[f.to] = s.from.String(), ""; s.to != factorsForever {
				held[f.to] = s.to.String()
			}
			rows, lines = append(rows, held), append(lines, f.table.Lines[i])
		}
	}
	f.Rows, f.table.Lines = rows, lines
}

// isUnclear reports whether two factors have all of a time.
func isUnclear(spans []factorSpan, from, to record.Time) bool {
	return slices.ContainsFunc(spans, func(s factorSpan) bool { return s.from <= from && to <= s.to })
}
