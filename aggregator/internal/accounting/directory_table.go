package accounting

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// DirectoryTable is what a file of comma separated values says. Its columns are some of
// [Columns], in any order; an empty cell says nothing. Of a row it holds, in its time:
//
//   - user and group: the user is in the group, the first such row counting first;
//   - group and project: the project claims the group;
//   - user and project without group: the project claims the user;
//   - project and pi, project and exempt: the project has them;
//   - user and name, user and email: the person is called so.
//
// Rows may say a thing again.
type DirectoryTable struct {
	// File is its name, for people.
	File    string
	Columns []string
	// Rows have as many cells as there are columns, or fewer where the last ones are
	// empty.
	Rows [][]string
	// Lines are where the rows are in the file; nil when that is not known.
	Lines []int
	// Zone is the time zone by whose clock dates begin; "" is UTC.
	Zone string
}

// parseTime reads a date or time of the table.
func (t *DirectoryTable) parseTime(text string) (record.Time, error) {
	zone, err := calendar.Zone(t.Zone)
	if err != nil {
		return record.None, err
	}
	return ParseTime(text, zone)
}

// DirectoryColumns are the names that the columns of a [DirectoryTable] can have.
func DirectoryColumns() []string {
	return []string{"user", "group", "project", "pi", "name", "email", "exempt", "from", "to"}
}

// Bounds of a file.
const (
	maxTableBytes = 64 << 20
	maxTableRows  = 1_000_000
)

// ReadDirectoryTable reads a file of comma separated values, or with semicolons or tabs in
// their place. All of its problems are in the error, which is [DirectoryProblems], with places
// like people.csv:3:7: line and column.
func ReadDirectoryTable(file string, text []byte) (DirectoryTable, error) {
	t := &tableReader{DirectoryTable: DirectoryTable{File: file}}
	if len(text) > maxTableBytes {
		t.problems.addProblem(file, "the file is larger than %d MiB", maxTableBytes>>20)
		return t.DirectoryTable, t.problems
	}
	t.readRows(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")))
	if len(t.problems) > 0 {
		return t.DirectoryTable, t.problems
	}
	return t.DirectoryTable, nil
}

type tableReader struct {
	DirectoryTable
	csv      *csv.Reader
	problems DirectoryProblems
}

func (t *tableReader) readRows(text []byte) {
	t.csv = csv.NewReader(bytes.NewReader(text))
	t.csv.Comma, t.csv.FieldsPerRecord = detectDelimiter(text), -1
	head, err := t.csv.Read()
	if errors.Is(err, io.EOF) {
		t.problems.addProblem(t.File+":1:1", "the file is empty; its first line names the columns, which are some of %s", strings.Join(DirectoryColumns(), ", "))
		return
	}
	if err != nil {
		t.addReadError(err)
		return
	}
	if t.readHeader(head); len(t.problems) > 0 {
		return
	}
	for {
		row, err := t.csv.Read()
		switch {
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			t.addReadError(err)
			return
		case len(t.Rows) >= maxTableRows:
			t.problems.addProblem(t.cellPlace(0), "there are more than %d rows", maxTableRows)
			return
		}
		t.addRow(row)
	}
}

// detectDelimiter returns what separates the columns of the first line.
func detectDelimiter(text []byte) rune {
	head, _, _ := bytes.Cut(text, []byte("\n"))
	for _, c := range []byte{',', ';', '\t'} {
		if bytes.IndexByte(head, c) >= 0 {
			return rune(c)
		}
	}
	return ','
}

// cellPlace is the place of a cell of the row that was read last.
func (t *tableReader) cellPlace(cell int) string {
	line, column := t.csv.FieldPos(cell)
	return fmt.Sprintf("%s:%d:%d", t.File, line, column)
}

func (t *tableReader) addReadError(err error) {
	if e, ok := errors.AsType[*csv.ParseError](err); ok {
		t.problems.addProblem(fmt.Sprintf("%s:%d:%d", t.File, e.Line, e.Column), "%v", e.Err)
		return
	}
	t.problems.addProblem(t.File, "%v", err)
}

func (t *tableReader) readHeader(cells []string) {
	for i, c := range cells {
		c = strings.ToLower(strings.TrimSpace(c))
		switch {
		case !slices.Contains(DirectoryColumns(), c):
			t.problems.addProblem(t.cellPlace(i), "there is no column %q; want some of %s", clipText(c), strings.Join(DirectoryColumns(), ", "))
		case slices.Contains(t.Columns, c):
			t.problems.addProblem(t.cellPlace(i), "duplicate column %q", c)
		}
		t.Columns = append(t.Columns, c)
	}
}

func (t *tableReader) addRow(cells []string) {
	if len(cells) > len(t.Columns) {
		t.problems.addProblem(t.cellPlace(len(t.Columns)), "the row has %d cells, and the first line names %d columns", len(cells), len(t.Columns))
		return
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	line, _ := t.csv.FieldPos(0)
	row := tableRow{DirectoryTable: &t.DirectoryTable, cells: cells}
	row.checkRow(func(column, format string, args ...any) {
		t.problems.addProblem(t.cellPlace(max(slices.Index(t.Columns, column), 0)), format, args...)
	})
	for len(cells) > 0 && cells[len(cells)-1] == "" {
		cells = cells[:len(cells)-1]
	}
	if len(cells) > 0 {
		t.Rows, t.Lines = append(t.Rows, cells), append(t.Lines, line)
	}
}

// tableRow is a row with its columns.
type tableRow struct {
	*DirectoryTable
	cells []string
}

// cellOf is the cell of a column, "" when there is none.
func (r *tableRow) cellOf(column string) string {
	if i := slices.Index(r.Columns, column); i >= 0 && i < len(r.cells) {
		return r.cells[i]
	}
	return ""
}

// checkRow tells what is wrong with a row, and in which column.
func (r *tableRow) checkRow(tell func(column, format string, args ...any)) {
	need := func(column string, of ...string) {
		if r.cellOf(column) == "" || slices.ContainsFunc(of, func(c string) bool { return r.cellOf(c) != "" }) {
			return
		}
		tell(column, "%s is %q, and of which %s it is is not said", column, clipText(r.cellOf(column)), strings.Join(of, " or "))
	}
	need("pi", "project")
	need("exempt", "project")
	need("name", "user")
	need("email", "user")
	if _, ok := parseYesNo(r.cellOf("exempt")); !ok {
		tell("exempt", "exempt is %q; want yes, no, or nothing", clipText(r.cellOf("exempt")))
	}
	for _, column := range []string{"from", "to"} {
		if _, err := r.parseTime(r.cellOf(column)); err != nil {
			tell(column, "%s: %v", column, err)
		}
	}
}

func parseYesNo(s string) (yes, ok bool) {
	switch strings.ToLower(s) {
	case "", "no", "false", "0":
		return false, true
	case "yes", "true", "1":
		return true, true
	}
	return false, false
}

// addTable adds what a table says.
func (b *builder) addTable(t *DirectoryTable) {
	for i, cells := range t.Rows {
		place := fmt.Sprintf("%s row %d", t.File, i+1)
		if i < len(t.Lines) {
			place = fmt.Sprintf("%s:%d", t.File, t.Lines[i])
		}
		row := tableRow{DirectoryTable: t, cells: cells}
		wrong := false
		row.checkRow(func(_, format string, args ...any) {
			wrong = true
			b.problems.addProblem(place, format, args...)
		})
		if !wrong {
			b.addTableRow(&row, place)
		}
	}
}

func (b *builder) addTableRow(r *tableRow, place string) {
	from, _ := r.parseTime(r.cellOf("from")) // checkRow has read them
	to, _ := r.parseTime(r.cellOf("to"))
	user, group, project := r.cellOf("user"), r.cellOf("group"), r.cellOf("project")
	say := func(value string) dirSpan { return newSpan(from, to, value, place) }
	if when := say(""); !b.checkSpan(&when) {
		return
	}
	if user != "" && b.checkName("user", user, place) {
		b.setContact(user, r.cellOf("name"), r.cellOf("email"), place)
		if group != "" {
			b.addMember(user, group, say(group))
		}
	}
	if project == "" || !b.checkName("project", project, place) {
		return
	}
	b.projects[project] = true
	switch {
	case group != "":
		b.groups.addClaim(group, say(project))
	case user != "":
		b.users.addClaim(user, say(project))
	}
	if pi := r.cellOf("pi"); pi != "" {
		b.investors.addClaim(project, say(pi))
	}
	if r.cellOf("exempt") != "" {
		yes, _ := parseYesNo(r.cellOf("exempt"))
		b.exempt.addClaim(project, say(strconv.FormatBool(yes)))
	}
}
