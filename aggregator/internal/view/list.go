package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// List is an answer that is a list: a table, the notes below it, and what is said in its place
// when it has no rows. It is the same for terminals, pages and files; what differs is how they
// draw a column of a kind, and what they do with it where there is too little room.
type List struct {
	// Name is that of the table in a page, Title what the table holds.
	Name, Title string
	Columns     []Column
	// Rows have a cell for each column, and so have Totals where there are any.
	Rows   [][]v1.Cell
	Totals []v1.Cell
	Notes  []string
	// Notices say what is wrong with something in the list, and what to do.
	Notices []Notice
	// Below are lists that people see after it, under their titles.
	Below []List
	// Empty is shown in place of a table without rows.
	Empty string
	// More says that the server has more than it lists.
	More bool
}

// Column is a column of a list: a number, share or the like, or of one of the Kinds below. Its
// name is the head in files.
type Column struct {
	v1.DocumentTableColumn

	Fit Fit
}

// Kinds of columns that lists have beside those of documents. Their cells are texts.
const (
	KindText    = "text"
	KindNumber  = "number"
	KindTime    = "time"    // a moment, in RFC 3339, or for people words in its place
	KindAge     = "age"     // a moment of which it matters how long ago it is, as KindTime
	KindBytes   = "bytes"   // a size, a number
	KindDate    = "date"    // a moment that usually begins a day, in RFC 3339
	KindExact   = "exact"   // a number of which each digit counts, such as a price
	KindState   = "state"   // a word that has a [Tone]
	KindID      = "id"      // a name that programs made, such as a record id
	KindCommand = "command" // to be typed in a shell
)

// Fit is what happens to a column where there is too little room, and to which readers it is
// shown.
type Fit uint8

// The values of Fit, which can be combined.
const (
	CutFirst Fit = 1 << iota // it is cut before all others
	LeaveOut                 // it is left out where cutting is not enough
	FileOnly                 // it is in files only
	PageOnly                 // it is not on terminals, as other columns say the same
	IfAny                    // people see it only where a row has it
	TermOnly                 // it is not in pages and documents, as other columns say the same
)

// newColumn makes a column of a kind, whose title is its name as words.
func newColumn(kind, name string) Column {
	return Column{DocumentTableColumn: v1.DocumentTableColumn{Name: name, Title: Capital(strings.ReplaceAll(name, "_", " ")), Kind: kind}}
}

func textColumn(name string) Column    { return newColumn(KindText, name) }
func numberColumn(name string) Column  { return newColumn(KindNumber, name) }
func bytesColumn(name string) Column   { return newColumn(KindBytes, name) }
func timeColumn(name string) Column    { return newColumn(KindTime, name) }
func ageColumn(name string) Column     { return newColumn(KindAge, name) }
func dateColumn(name string) Column    { return newColumn(KindDate, name) }
func exactColumn(name string) Column   { return newColumn(KindExact, name) }
func shareColumn(name string) Column   { return newColumn("share", name) }
func stateColumn(name string) Column   { return newColumn(KindState, name) }
func idColumn(name string) Column      { return newColumn(KindID, name) }
func commandColumn(name string) Column { return newColumn(KindCommand, name) }

// titled returns the column under another title.
func (c Column) titled(title string) Column {
	c.Title = title
	return c
}

// fitted returns the column with a Fit.
func (c Column) fitted(f Fit) Column {
	c.Fit = f
	return c
}

// addCells adds a row, which must have a cell for each column.
func (l *List) addCells(cells ...v1.Cell) {
	if len(cells) != len(l.Columns) {
		panic(fmt.Sprintf("a row of the list %s has %d cells, want %d", l.Name, len(cells), len(l.Columns)))
	}
	l.Rows = append(l.Rows, cells)
}

// ShownColumns are the places of the columns that people see, but for those that have a Fit of
// these.
func (l *List) ShownColumns(but Fit) (shown []int) {
	for i := range l.Columns {
		fit := l.Columns[i].Fit
		if fit&but == 0 && (fit&IfAny == 0 || slices.ContainsFunc(l.Rows, func(row []v1.Cell) bool { return row[i].Known() })) {
			shown = append(shown, i)
		}
	}
	return shown
}

// CellOf is the cell of a row in a column; not known where the list has no such column.
func (l *List) CellOf(row []v1.Cell, column string) v1.Cell {
	i := slices.IndexFunc(l.Columns, func(c Column) bool { return c.Name == column })
	if i < 0 {
		return v1.Cell{}
	}
	return row[i]
}

// addNote adds a note.
func (l *List) addNote(format string, args ...any) {
	l.Notes = append(l.Notes, fmt.Sprintf(format, args...))
}

// textCell is a text; not known where it is empty.
func textCell[T ~string](text T) v1.Cell {
	if text == "" {
		return v1.Cell{}
	}
	return v1.Words(string(text))
}

// idCell is a number that is a name.
func idCell[N integer](n N) v1.Cell { return v1.Words(fmt.Sprint(n)) }

// countCell is a whole number.
func countCell[N integer](n N) v1.Cell {
	digits := json.Number(fmt.Sprint(n))
	return v1.Figure(&digits)
}

// knownCount is a whole number that may not be known.
func knownCount[N integer](n *N) v1.Cell {
	if n == nil {
		return v1.Cell{}
	}
	return countCell(*n)
}

// exactCell is a number to the digit, without zeros at its end.
func exactCell(n *json.Number) v1.Cell { return v1.Rat(v1.Figure(n).Number()) }

// timeCell is a moment, to the digit; not known where there is none.
func timeCell(t v1.Time) v1.Cell {
	if t.IsZero() {
		return v1.Cell{}
	}
	return v1.Words(t.UTC().Format(time.RFC3339Nano))
}

// TimeOf is the moment in a cell of [KindTime] or [KindAge]; zero where it is not known or has words
// in its place.
func TimeOf(c v1.Cell) time.Time {
	t, err := time.Parse(time.RFC3339Nano, c.String())
	if err != nil {
		return time.Time{}
	}
	return t
}

// Tone is how good or bad a state is.
type Tone string

// The tones, from good to bad; of a plain word it is not said.
const (
	Good  Tone = "good"
	Plain Tone = "dim"
	Warn  Tone = "warn"
	Bad   Tone = "bad"
)

// ToneOf is the tone of a state, the same in each list that has the word. Of a state with several
// parts, such as "1 done, 1 unknown", it is the worst; what follows a colon does not matter.
func ToneOf(state string) Tone {
	state, _, _ = strings.Cut(state, ":")
	if first, rest, several := strings.Cut(state, ", "); several {
		return worseOf(ToneOf(first), ToneOf(rest))
	}
	switch strings.ToLower(strings.TrimLeft(state, "0123456789 ")) {
	case "up to date", "collecting", "waiting", "leader", "healthy", "running", "done", "saved", "complete", "nothing to do", "normal", "lasts":
		return Good
	case "silent", "configuring", "paused", "stopped", "incomplete", "partial", "unknown", "firing", "warning", "pending removal", "surplus records":
		return Warn
	case "unreachable", "damaged", "fenced", "failing", "disabled", "rejected", "critical", "fails", "not planned", "low", "read-only", "exhausted", "runs out", "missing runs":
		return Bad
	}
	return Plain
}

// worseOf is the worse of two tones. What is plain says less than what is good.
func worseOf(a, b Tone) Tone {
	for _, t := range []Tone{Bad, Warn, Good} {
		if a == t || b == t {
			return t
		}
	}
	return Plain
}

// RowTone is the worst tone of the states of a row; plain while a state says that it does not
// matter yet.
func (l *List) RowTone(row []v1.Cell) Tone {
	worst := Plain
	for i := range row {
		if l.Columns[i].Kind != KindState {
			continue
		}
		state := row[i].String()
		if state == "silenced" || state == "pending" {
			return Plain
		}
		worst = worseOf(worst, ToneOf(state))
	}
	return worst
}

// ShowAt is cell i of a row as people read it by the clock of a zone, a moment cut to seconds.
func (l *List) ShowAt(row []v1.Cell, i int, zone *time.Location) string {
	switch c := &l.Columns[i]; {
	case !row[i].Known():
		return v1.Show(c.Kind, row[i])
	case c.Kind == KindBytes:
		return Size(row[i].Number().Num().Uint64())
	case (c.Kind == KindTime || c.Kind == KindAge) && TimeOf(row[i]).IsZero():
		return row[i].String()
	case c.Kind == KindTime || c.Kind == KindAge:
		return TimeOf(row[i]).In(zone).Format(time.DateTime)
	case c.Kind == KindDate:
		return dateText(TimeOf(row[i]).In(zone))
	case c.Kind == KindExact:
		return row[i].String()
	default:
		return v1.ShowIn(c.Kind, cmp.Or(c.Unit, l.rowUnit(row)), row[i])
	}
}

// dateText is the day that a moment begins, or the moment to the minute.
func dateText(t time.Time) string {
	if hour, minute, second := t.Clock(); hour+minute+second == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format(MinuteLayout)
}

// rowUnit is the unit of the amounts of a row, where it has a column for that.
func (l *List) rowUnit(row []v1.Cell) string {
	if i := slices.IndexFunc(l.Columns, func(c Column) bool { return c.Name == "unit" && c.Kind == KindText }); i >= 0 {
		return row[i].String()
	}
	return ""
}

// Table is the list as a table of a document, whose columns are texts and figures: what else
// there is becomes a text, times by the clock of a zone.
func (l *List) Table(zone *time.Location) v1.DocumentTable {
	t := v1.DocumentTable{Name: l.Name, Title: l.Title}
	rows, hasTotals := l.Rows, len(l.Totals) > 0
	if hasTotals {
		rows = append(slices.Clip(rows), l.Totals)
	}
	all := make([][]v1.Cell, len(rows))
	for _, i := range l.ShownColumns(FileOnly | TermOnly) {
		c := l.Columns[i].DocumentTableColumn
		switch c.Kind {
		case KindTime, KindAge, KindDate, KindExact, KindBytes, KindState, KindID, KindCommand:
			c.Kind = KindText
		}
		t.Columns = append(t.Columns, c)
		for n, row := range rows {
			cell := row[i]
			if c.Kind == KindText && cell.Known() {
				cell = v1.Words(l.ShowAt(row, i, zone))
			}
			all[n] = append(all[n], cell)
		}
	}
	if t.Rows = all; hasTotals {
		t.Rows, t.Totals = all[:len(all)-1], all[len(all)-1]
	}
	return t
}
