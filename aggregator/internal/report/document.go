package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/workbook"
)

// Format is the version of a document's JSON.
const Format = 1

// Document is a report that is ready to be shown.
type Document v1.Document

// Table is a part of a document. Names are unique: that of a table in the document, those
// of columns in the table. A row has a cell for each column; so have Totals, or they are
// none.
type Table v1.DocumentTable

// The parts of a document.
type (
	// Period is a window of time. To is its end and not part of it.
	Period = v1.DocumentPeriod
	// Column says what a column has, and of which period, counted from 1.
	Column = v1.DocumentTableColumn
	// Chart draws columns of its table: Label names bars, or the points of time.
	Chart = v1.DocumentTableChart
	// Cell is a text or an exact number; the zero Cell is not known.
	Cell = v1.Cell
)

// Table is a table of the document.
func (d *Document) Table(i int) *Table { return (*Table)(&d.Tables[i]) }

// Add adds tables.
func (d *Document) Add(list ...Table) {
	for _, t := range list {
		d.Tables = append(d.Tables, v1.DocumentTable(t))
	}
}

// showCell is cell i of a row as people read it.
func (t *Table) showCell(row []Cell, i int) string { return (*v1.DocumentTable)(t).Show(row, i) }

// Below is what stands below a column's title: its unit, and its period where there
// are two.
func (d *Document) Below(c *Column) string { return columnSubtitle(c, d.Periods) }

// columnSubtitle is a column's unit, and its period where there are two.
func columnSubtitle(c *Column, periods []Period) string {
	var parts []string
	if c.Unit != "" {
		parts = append(parts, c.Unit)
	}
	if c.Period > 0 && len(periods) > 1 {
		parts = append(parts, periods[c.Period-1].Name)
	}
	return strings.Join(parts, ", ")
}

// longTitle is a column's title with its period where there are two.
func longTitle(c *Column, periods []Period) string {
	if c.Period > 0 && len(periods) > 1 {
		return c.Title + ", " + periods[c.Period-1].Name
	}
	return c.Title
}

// The kinds of columns. A share, a ratio and a change are quotients: 1 is 100 per cent.
const (
	Text   = "text"
	Number = "number"
	Share  = "share"
	Ratio  = "ratio"
	Change = "change"
	Money  = "money"
)

// The kinds of charts. Bars has a bar for each row and value, beside each other; Steps has
// a step for each row, in their order, and the values one above the other; Line has a line
// of each; Columns has upright bars, and Heat a line of squares for each row.
const (
	Bars    = "bars"
	Steps   = "steps"
	Line    = "line"
	Columns = "columns"
	Heat    = "heat"
)

// Check returns what is wrong with the shape of a document.
func (d *Document) Check() error {
	for i := range d.Tables {
		if err := d.Table(i).checkShape(len(d.Periods)); err != nil {
			return fmt.Errorf("report %s: table %s: %w", d.Report, d.Tables[i].Name, err)
		}
	}
	return nil
}

func (t *Table) checkShape(periods int) error {
	names := map[string]bool{}
	for _, c := range t.Columns {
		if names[c.Name] || c.Period < 0 || c.Period > periods {
			return fmt.Errorf("column %q is duplicate, or its period is missing", c.Name)
		}
		names[c.Name] = true
	}
	for i, row := range t.Rows {
		if len(row) != len(t.Columns) {
			return fmt.Errorf("row %d has %d cells, and there are %d columns", i, len(row), len(t.Columns))
		}
	}
	if n := len(t.Totals); n != 0 && n != len(t.Columns) {
		return fmt.Errorf("there are %d totals and %d columns", n, len(t.Columns))
	}
	if t.Chart == nil {
		return nil
	}
	for _, name := range slices.Concat([]string{t.Chart.Label}, t.Chart.Values, t.Chart.Lines) {
		if !names[name] {
			return fmt.Errorf("the chart draws a column %q that is not there", name)
		}
	}
	return nil
}

// columnIndex returns -1 when the column is not there.
func (t *Table) columnIndex(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// WriteJSON writes the document as one JSON object.
func (d *Document) WriteJSON(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(d)
}

// WriteCSV writes all tables, as [v1.Document.WriteCSV] says.
func (d *Document) WriteCSV(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return (*v1.Document)(d).WriteCSV(w)
}

// WriteXLSX writes the document as a workbook, as [workbook.Write] says.
func (d *Document) WriteXLSX(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return workbook.Write(w, (*v1.Document)(d))
}
