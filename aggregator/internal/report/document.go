package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"
)

// Format is the version of a document's JSON.
const Format = 1

// Document is a report that is ready to be shown.
type Document struct {
	Format  int       `json:"format"`
	Report  string    `json:"report"` // its kind, for example usage
	Title   string    `json:"title"`
	Subject string    `json:"subject,omitempty"` // of whom it is; empty: of all
	Made    time.Time `json:"made"`
	Zone    string    `json:"zone"`
	Periods []Period  `json:"periods"` // one, or two side by side
	Tables  []Table   `json:"tables"`
	Notes   []string  `json:"notes"` // how complete it is, and how it was made
}

// Period is a window of time. To is its end and not part of it.
type Period struct {
	Name string    `json:"name"` // for people: "October 2026"
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Table is a part of a document.
type Table struct {
	Name    string   `json:"name"` // unique in the document
	Title   string   `json:"title"`
	Columns []Column `json:"columns"`
	Rows    [][]Cell `json:"rows"`
	Totals  []Cell   `json:"totals,omitempty"` // none, or a cell for each column
	Chart   *Chart   `json:"chart,omitempty"`
}

// Column says what a column has.
type Column struct {
	Name   string `json:"name"` // unique in the table
	Title  string `json:"title"`
	Kind   Kind   `json:"kind"`
	Unit   string `json:"unit,omitempty"`
	Period int    `json:"period,omitempty"` // counted from 1; 0: it is of none
}

// below is what stands below a column's title: its unit, and its period where there
// are two.
func (c *Column) below(periods []Period) string {
	var parts []string
	if c.Unit != "" {
		parts = append(parts, c.Unit)
	}
	if c.Period > 0 && len(periods) > 1 {
		parts = append(parts, periods[c.Period-1].Name)
	}
	return strings.Join(parts, ", ")
}

// long is a column's title with its period where there are two.
func (c *Column) long(periods []Period) string {
	if c.Period > 0 && len(periods) > 1 {
		return c.Title + ", " + periods[c.Period-1].Name
	}
	return c.Title
}

// Kind is how a column is meant.
type Kind string

// The kinds. A share, a ratio and a change are quotients: 1 is 100 per cent.
const (
	Text   Kind = "text"
	Number Kind = "number"
	Share  Kind = "share"
	Ratio  Kind = "ratio"
	Change Kind = "change"
	Money  Kind = "money"
)

// Chart draws columns of its table.
type Chart struct {
	Kind ChartKind `json:"kind"`
	// Label is the column that names bars, or the points of time.
	Label string `json:"label"`
	// Values are the columns that are drawn.
	Values []string `json:"values"`
}

// ChartKind is a way to draw.
type ChartKind string

// The ways. Bars has a bar for each row and value, beside each other; Area has a
// point for each row, in their order, and the values one above the other; Line has
// them each for itself.
const (
	Bars ChartKind = "bars"
	Area ChartKind = "area"
	Line ChartKind = "line"
)

// Cell is a text or an exact number; the zero Cell is not known.
type Cell struct {
	text   string
	number *big.Rat
	digits string // the number as it came
	known  bool
}

// Words is a cell with a text.
func Words(s string) Cell { return Cell{text: s, known: true} }

// Figure is a cell with a number as JSON has it; not known when there is none.
func Figure(n *json.Number) Cell {
	if n == nil || *n == "" {
		return Cell{}
	}
	r := Rational(n.String())
	if r == nil {
		return Cell{}
	}
	return Cell{number: r, digits: n.String(), known: true}
}

// Rational reads a number of JSON; nil for what is none, or is too long or too large
// to be meant.
func Rational(s string) *big.Rat {
	_, power, _ := strings.Cut(strings.ToLower(s), "e")
	if exponent, err := strconv.Atoi(power); power != "" && (err != nil || exponent < -400 || exponent > 400) {
		return nil
	}
	r, ok := new(big.Rat).SetString(s)
	if !ok || len(s) > 200 {
		return nil
	}
	return r
}

// Rat is a cell with a number.
func Rat(r *big.Rat) Cell {
	if r == nil {
		return Cell{}
	}
	return Cell{number: r, digits: exact(r), known: true}
}

// Known reports whether there is something in the cell.
func (c Cell) Known() bool { return c.known }

// Number returns the number of the cell; nil when it has none. It must not be
// changed.
func (c Cell) Number() *big.Rat { return c.number }

// String is the cell with all its digits; empty when it is not known.
func (c Cell) String() string {
	if c.number != nil {
		return c.digits
	}
	return c.text
}

// MarshalJSON writes a string, a number or null.
func (c Cell) MarshalJSON() ([]byte, error) {
	switch {
	case !c.known:
		return []byte("null"), nil
	case c.number != nil:
		return json.Marshal(json.Number(c.digits))
	}
	return json.Marshal(c.text)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Cell) UnmarshalJSON(data []byte) error {
	*c = Cell{}
	switch {
	case string(data) == "null":
		return nil
	case len(data) > 0 && data[0] == '"':
		c.known = true
		return json.Unmarshal(data, &c.text)
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return fmt.Errorf("a cell is neither a text nor a number: %w", err)
	}
	*c = Figure(&n)
	if !c.known {
		return fmt.Errorf("the number %.40q of a cell does not read", n)
	}
	return nil
}

// places is how many digits behind the point are written of what has more.
const places = 9

// exact writes a number without zeros at its end.
func exact(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	s := r.FloatString(places)
	for s[len(s)-1] == '0' {
		s = s[:len(s)-1]
	}
	if s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// Check returns what is wrong with the shape of a document.
func (d *Document) Check() error {
	for i := range d.Tables {
		if err := d.Tables[i].check(len(d.Periods)); err != nil {
			return fmt.Errorf("report %s: table %s: %w", d.Report, d.Tables[i].Name, err)
		}
	}
	return nil
}

func (t *Table) check(periods int) error {
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
	for _, name := range append([]string{t.Chart.Label}, t.Chart.Values...) {
		if !names[name] {
			return fmt.Errorf("the chart draws a column %q that is not there", name)
		}
	}
	return nil
}

// column returns the place of a column; -1 when it is not there.
func (t *Table) column(name string) int {
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
