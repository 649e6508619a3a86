package config

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/accounting"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// FactorFile is a block factor_file { … }: a file of factors with columns of its own. Its other
// columns are ignored.
type FactorFile struct {
	Path hcl.Path `hcl:"path"`
	// Format owid has the columns of Our World in Data, of which Entity is the name or the code
	// of a country.
	Format hcl.String `hcl:"format,optional" default:"columns" allowed:"columns owid"`
	Entity hcl.String `hcl:"entity,optional"`
	// Columns are the names in the file of zone, from, to and g_per_kwh, where they have others.
	Columns map[string]hcl.String `hcl:"columns,optional"`
	// Zone is that of all rows, or beside a column of zones that of the rows that count.
	Zone hcl.String `hcl:"zone,optional"`
	// Step is for how long a value without an end holds at most, or next: until the next row. By
	// default it is the distance of the rows where that is regular.
	Step  hcl.String `hcl:"step,optional"`
	Range hcl.Range  `hcl:",def_range"`
}

// The columns of a committed file of factors.
const (
	zoneColumn  = "zone"
	fromColumn  = "from"
	toColumn    = "to"
	gramsColumn = "g_per_kwh"
)

func factorColumns() []string { return []string{zoneColumn, fromColumn, toColumn, gramsColumn} }

// loadFiles reads the files of factors and of meters. Where a configuration is only looked at, files that are not
// there are a warning.
func (e *Energy) loadFiles(offline bool) (diags hcl.Diagnostics) {
	if e == nil {
		return nil
	}
	for _, path := range e.Factors {
		t, more := readTable(path, e.Range, offline)
		if t != nil && !more.HasErrors() {
			if f, known := newFactorTable(t); known {
				more.Extend(f.leaveOutZones(e.usedZones()))
				more.Extend(f.setEnds(""))
			}
			e.tables = append(e.tables, *t)
		}
		diags.Extend(more)
	}
	for i := range e.Files {
		f := &e.Files[i]
		t, more := readTable(f.Path, e.Range, offline)
		if t != nil && !more.HasErrors() {
			more.Extend(f.chooseColumns(t))
			if table, known := newFactorTable(t); known && !more.HasErrors() {
				used := e.usedZones()
				if f.Zone.Value != "" {
					used = []string{f.Zone.Value}
				}
				more.Extend(table.leaveOutZones(used))
				more.Extend(table.setEnds(f.Step.Value))
				e.tables = append(e.tables, *t)
			}
		}
		diags.Extend(more)
	}
	if !diags.HasErrors() {
		diags.Extend(e.cutOverlaps())
	}
	diags.Extend(e.loadMeters(offline))
	return diags
}

// readTable reads a file as it is; nil where it is not there.
func readTable(path hcl.Path, at hcl.Range, offline bool) (*Table, hcl.Diagnostics) {
	text, err := os.ReadFile(path.Path)
	switch {
	case offline && errors.Is(err, fs.ErrNotExist):
		return nil, hcl.Diagnostics{hcl.Warnf(path.Range, "file is not here", "%v; what it says is not checked", hcl.FileError(err))}
	case err != nil:
		return nil, hcl.Diagnostics{hcl.Errorf(path.Range, "file cannot be read", "%v", hcl.FileError(err))}
	}
	t := &Table{File: hcl.String{Value: filepath.Base(path.Path), Range: path.Range}, Range: at}
	t.table.File = path.Path
	read := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))))
	read.TrimLeadingSpace, read.Comment = true, '#'
	for {
		row, err := read.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return t, hcl.Diagnostics{hcl.Errorf(path.Range, "wrong row", "%s: %v", path.Path, err)}
		}
		if t.Columns == nil {
			t.Columns = row
			continue
		}
		line, _ := read.FieldPos(0)
		t.Rows, t.table.Lines = append(t.Rows, row), append(t.table.Lines, line)
	}
}

// columnOf is the place of a column; -1 where there is none.
func columnOf(t *Table, name string) int {
	return slices.IndexFunc(t.Columns, func(c string) bool { return strings.EqualFold(strings.TrimSpace(c), strings.TrimSpace(name)) })
}

// rowRange is where a row is written.
func (t *Table) rowRange(row int) hcl.Range {
	if row < len(t.table.Lines) {
		return rangeOf(fmt.Sprintf("%s:%d:1", t.table.File, t.table.Lines[row]), t.Range)
	}
	return t.Range
}

// chooseColumns makes of the file's columns those of a committed file.
func (f *FactorFile) chooseColumns(t *Table) (diags hcl.Diagnostics) {
	wrong := func(at hcl.Range, format string, args ...any) hcl.Diagnostics {
		return hcl.Diagnostics{hcl.Errorf(at, "wrong file of factors", "%s: "+format, append([]any{t.File.Value}, args...)...)}
	}
	place := map[string]int{}
	for _, name := range factorColumns() {
		place[name] = columnOf(t, cmp.Or(f.Columns[name].Value, name))
		if named, is := f.Columns[name]; is && place[name] < 0 {
			return wrong(named.Range, "column %q not found: the file has %s", named.Value, strings.Join(t.Columns, ", "))
		}
	}
	for name, v := range f.Columns {
		if !slices.Contains(factorColumns(), name) {
			return wrong(v.Range, "unknown column %q: use %s", name, strings.Join(factorColumns(), ", "))
		}
	}
	entity, code := -1, -1
	if f.Format.Value == "owid" {
		if entity, code = columnOf(t, "Entity"), columnOf(t, "Code"); entity < 0 || f.Entity.Value == "" {
			return wrong(f.Range, "format owid needs the column Entity and entity, such as \"Germany\" or \"DEU\"")
		}
		place[fromColumn] = columnOf(t, "Year")
		if place[gramsColumn] < 0 {
			place[gramsColumn] = slices.IndexFunc(t.Columns, func(c string) bool {
				return strings.HasPrefix(strings.ToLower(strings.TrimSpace(c)), "carbon intensity of electricity")
			})
		}
	}
	switch {
	case place[fromColumn] < 0 || place[gramsColumn] < 0:
		return wrong(f.Path.Range, "columns of the time and of the factor not found: set columns = { from = …, g_per_kwh = … }; the file has %s", strings.Join(t.Columns, ", "))
	case place[zoneColumn] < 0 && f.Zone.Value == "":
		return wrong(f.Range, "set either zone, of all rows, or columns.zone")
	case f.lacksZone(t, place[zoneColumn]):
		return wrong(f.Zone.Range, "zone %q not found: the first row has %q", f.Zone.Value, strings.TrimSpace(t.Rows[0][place[zoneColumn]]))
	}
	is := func(row []string) bool {
		return entity < 0 || row[entity] == f.Entity.Value || code >= 0 && row[code] == f.Entity.Value
	}
	if f.pickRows(t, place, is); entity >= 0 && len(t.Rows) == 0 {
		return wrong(f.Entity.Range, "entity %q not found", f.Entity.Value)
	}
	return nil
}

// lacksZone reports whether no row has the zone of the block in its column.
func (f *FactorFile) lacksZone(t *Table, column int) bool {
	return column >= 0 && f.Zone.Value != "" && len(t.Rows) > 0 &&
		!slices.ContainsFunc(t.Rows, func(row []string) bool { return strings.TrimSpace(row[column]) == f.Zone.Value })
}

// pickRows keeps the rows that is takes, with the columns of a committed file.
func (f *FactorFile) pickRows(t *Table, place map[string]int, is func(row []string) bool) {
	var kept [][]string
	var lines []int
	for i, row := range t.Rows {
		if !is(row) {
			continue
		}
		cells := make([]string, 0, len(place))
		for _, name := range factorColumns() {
			cell := ""
			if p := place[name]; p >= 0 {
				cell = strings.TrimSpace(row[p])
			}
			cells = append(cells, cell)
		}
		if place[zoneColumn] < 0 {
			cells[0] = f.Zone.Value
		}
		if f.Format.Value == "owid" {
			cells[1] = yearOf(cells[1])
		}
		cells[3] = roundDecimal(cells[3], 6)
		kept, lines = append(kept, cells), append(lines, t.table.Lines[i])
	}
	t.Columns, t.Rows, t.table.Lines = factorColumns(), kept, lines
}

// yearOf is the first day of a year; another text as it is.
func yearOf(text string) string {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 10_000 {
		return fmt.Sprintf("%04d-01-01", n)
	}
	return text
}

// roundDecimal rounds a number to some digits after the point; another text stays as it is.
func roundDecimal(text string, digits int) string {
	n, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "/_xX") || len(text) > 64 {
		return text
	}
	return strings.TrimSuffix(strings.TrimRight(n.FloatString(digits), "0"), ".")
}

// isEmptyCell reports whether a cell has no value.
func isEmptyCell(text string) bool {
	return slices.Contains([]string{"", "null", "nan", "na", "n/a"}, strings.ToLower(strings.TrimSpace(text)))
}

// factorTime reads a time of a file of factors; one without a zone is of UTC.
func factorTime(text string) (record.Time, error) {
	at, err := accounting.ParseTime(text, time.UTC)
	if err == nil {
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return record.Time(t.UnixMicro()), nil
		}
	}
	return at, err
}

// factorTable is a file of factors or of a meter, and where its columns are; -1 where there is
// none. Of a meter grams is the energy.
type factorTable struct {
	*Table
	zone, from, to, grams int
}

// newFactorTable finds the columns; false where one is missing, which is said elsewhere.
func newFactorTable(t *Table) (*factorTable, bool) {
	f := &factorTable{Table: t, zone: columnOf(t, zoneColumn), from: columnOf(t, fromColumn), to: columnOf(t, toColumn), grams: columnOf(t, gramsColumn)}
	return f, f.zone >= 0 && f.from >= 0 && f.grams >= 0
}

// factorRow is a row of a zone.
type factorRow struct {
	row  int
	from record.Time
}

// A file is regular when it has rows for a day of hours, and four of five have the same distance
// from the row before, of at most a day.
const (
	regularRows = 24
	regularPart = 5
	longestStep = record.Day
)

// stepOf is for how long a value holds at most: the commonest distance of rows where they are
// regular; 0 where they are not.
func stepOf(rows []factorRow) record.Time {
	counts, all := map[record.Time]int{}, 0
	for i := 1; i < len(rows); i++ {
		if d := rows[i].from - rows[i-1].from; d > 0 {
			counts[d]++
			all++
		}
	}
	if all+1 < regularRows {
		return 0
	}
	for step, n := range counts {
		if step <= longestStep && n*regularPart >= all*(regularPart-1) {
			return step
		}
	}
	return 0
}

// setEnds gives values their end where the next row does not: where a row without a value begins,
// which is left out then, and after a step. word is the step, as [FactorFile.Step].
func (f *factorTable) setEnds(word string) hcl.Diagnostics {
	var fixed record.Time
	if word != "" && word != "next" {
		d, err := time.ParseDuration(word)
		if err != nil || d <= 0 {
			return hcl.Diagnostics{hcl.Errorf(f.File.Range, `invalid value for "step"`, "invalid step %q: use a duration such as 1h or 15m, or next", word)}
		}
		fixed = record.Time(d.Microseconds())
	}
	zones := map[string][]factorRow{}
	for i, row := range f.Rows {
		if at, err := factorTime(row[f.from]); err == nil && at.Present() {
			zone := ""
			if f.zone >= 0 {
				zone = strings.TrimSpace(row[f.zone])
			}
			zones[zone] = append(zones[zone], factorRow{i, at})
		}
	}
	ends := map[int]record.Time{}
	for _, rows := range zones {
		slices.SortStableFunc(rows, func(a, b factorRow) int { return cmp.Compare(a.from, b.from) })
		step := fixed
		if word == "" {
			step = stepOf(rows)
		}
		for i, r := range rows {
			later := rows[i+1:] // those that begin later, from the first instant at which one does
			for len(later) > 0 && later[0].from == r.from {
				later = later[1:]
			}
			switch {
			case f.to >= 0 && strings.TrimSpace(f.Rows[r.row][f.to]) != "":
			case step > 0 && (len(later) == 0 || r.from+step < later[0].from):
				ends[r.row] = r.from + step
			case len(later) > 0 && f.isEmptyAt(later):
				ends[r.row] = later[0].from
			}
		}
	}
	f.writeEnds(ends)
	return nil
}

// isEmptyAt reports whether none of the rows that begin when the first of rows does has a value.
func (f *factorTable) isEmptyAt(rows []factorRow) bool {
	for _, r := range rows {
		if r.from == rows[0].from && !isEmptyCell(f.Rows[r.row][f.grams]) {
			return false
		}
		if r.from != rows[0].from {
			break
		}
	}
	return true
}

// addTo gives the rows the column to, where they have none.
func (f *factorTable) addTo() {
	if f.to >= 0 {
		return
	}
	f.to, f.Columns = len(f.Columns), append(slices.Clone(f.Columns), toColumn)
	for i := range f.Rows {
		f.Rows[i] = append(slices.Clone(f.Rows[i]), "")
	}
}

// writeEnds puts ends into rows, and leaves rows without a value out.
func (f *factorTable) writeEnds(ends map[int]record.Time) {
	if len(ends) > 0 {
		f.addTo()
	}
	for i, at := range ends {
		f.Rows[i][f.to] = at.String()
	}
	var kept [][]string
	var lines []int
	for i, row := range f.Rows {
		if !isEmptyCell(row[f.grams]) {
			if _, is := ends[i]; is {
				f.open = append(f.open, len(kept))
			}
			kept, lines = append(kept, row), append(lines, f.table.Lines[i])
		}
	}
	f.Rows, f.table.Lines = kept, lines
}

// warnOfGaps names where a zone has no factor between two others, but for what unclear has. list
// ascends in each zone.
func (r *reader) warnOfGaps(list []accounting.CO2Factor, unclear map[string][]factorSpan, or hcl.Range) {
	named, more, hidden := 0, 0, record.Time(0)
	for i := 1; i < len(list); i++ {
		before, next := &list[i-1], &list[i]
		if before.Zone != next.Zone || !before.To.Present() || before.To >= next.From || isUnclear(unclear[next.Zone], before.To, next.From) {
			continue
		}
		if named++; named > namedFactors {
			more, hidden = more+1, hidden+next.From-before.To
			continue
		}
		r.diags.Add(hcl.Warnf(rangeOf(next.Place, or), "gap in factors", "zone %q has no factor from %s to %s (%s): CO2 of that time is not known", before.Zone, before.To, next.From, hoursText(next.From-before.To)))
	}
	if more > 0 {
		r.diags.Add(hcl.Warnf(or, "gap in factors", "%d more gaps, %s in all", more, hoursText(hidden)))
	}
}

// hoursText is a time in hours.
func hoursText(d record.Time) string {
	if d == record.Hour {
		return "1 hour"
	}
	text := big.NewRat(int64(d), int64(record.Hour)).FloatString(2)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + " hours"
}
