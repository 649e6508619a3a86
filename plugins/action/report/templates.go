package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	text "text/template"
	"time"
	"unicode/utf8"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

//go:embed templates
var builtIn embed.FS

// The names of the templates.
const (
	subjectTemplate = "subject.txt"
	textTemplate    = "mail.txt"
	htmlTemplate    = "mail.html"
)

// templates write what a mail says.
type templates struct {
	texts map[string]*text.Template
	pages map[string]*template.Template
}

// letter is what templates are given.
type letter struct {
	Action   string // type/label
	Title    string // of the report
	Of       string // whom it is about; "": all
	Period   string // for people
	Zone     string
	Periods  []v1.DocumentPeriod
	Tables   []v1.DocumentTable
	Notes    []string
	Nothing  string // a sentence: nothing was used; "": there are tables
	Attached []string
	Subject  string // what the template subject.txt made
}

// templateFunctions are the functions of templates.
func templateFunctions() map[string]any {
	return map[string]any{
		"show":   func(c v1.DocumentTableColumn, cell v1.Cell) string { return v1.ShowIn(c.Kind, c.Unit, cell) },
		"cell":   func(t v1.DocumentTable, row []v1.Cell, i int) string { return t.Show(row, i) },
		"total":  showTotal,
		"number": func(c v1.DocumentTableColumn) bool { return c.Kind != "text" },
		"below":  columnUnit,
		"bar":    barLength,
		"plain":  plainTable,
		"join":   strings.Join,
		"day": func(at v1.Time, zone string) (string, error) {
			z, err := time.LoadLocation(zone)
			if err != nil {
				return "", err
			}
			return at.In(z).Format("2006-01-02 15:04"), nil
		},
	}
}

func showTotal(c v1.DocumentTableColumn, cell v1.Cell) string {
	if !cell.Known() {
		return ""
	}
	return v1.ShowIn(c.Kind, c.Unit, cell)
}

// columnUnit is a column's unit, and its period where there are two.
func columnUnit(c v1.DocumentTableColumn, periods []v1.DocumentPeriod) string {
	parts := []string{c.Unit}
	if c.Period > 0 && len(periods) > 1 {
		parts = append(parts, periods[c.Period-1].Name)
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ", ")
}

// barLength is how long the bar of a row is, in per cent of the longest; 0: the table has none.
func barLength(t v1.DocumentTable, row int) int {
	if t.Chart == nil || t.Chart.Kind != "bars" || len(t.Chart.Values) == 0 {
		return 0
	}
	at := slices.IndexFunc(t.Columns, func(c v1.DocumentTableColumn) bool { return c.Name == t.Chart.Values[0] })
	if at < 0 || t.Rows[row][at].Number() == nil {
		return 0
	}
	longest := new(big.Rat)
	for _, r := range t.Rows {
		if n := r[at].Number(); n != nil && n.Cmp(longest) > 0 {
			longest = n
		}
	}
	if longest.Sign() == 0 {
		return 0
	}
	part, _ := new(big.Rat).Quo(t.Rows[row][at].Number(), longest).Float64()
	return max(0, int(part*100))
}

// plainTable is a table in letters of one width.
func plainTable(t v1.DocumentTable, periods []v1.DocumentPeriod) string {
	head, units := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		head[i], units[i] = c.Title, columnUnit(c, periods)
	}
	lines := [][]string{head, units}
	for _, row := range append(slices.Clone(t.Rows), t.Totals) {
		var line []string
		for i := range row {
			line = append(line, t.Show(row, i))
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(t.Columns))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var out strings.Builder
	for _, line := range lines {
		var b strings.Builder
		for i, cell := range line {
			room := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if t.Columns[i].Kind == "text" {
				b.WriteString(cell + room + "  ")
			} else {
				b.WriteString(room + cell + "  ")
			}
		}
		if s := strings.TrimRight(b.String(), " "); s != "" {
			out.WriteString(s + "\n")
		}
	}
	return out.String()
}

// loadTemplates reads the templates of a folder, and takes the built-in ones for those that
// it lacks. All are tried, so that a field that does not exist is an error now. Errors begin
// with the file and the line.
func loadTemplates(dir string) (*templates, error) {
	t := &templates{texts: map[string]*text.Template{}, pages: map[string]*template.Template{}}
	names, err := fs.Glob(builtIn, "templates/*")
	if err != nil {
		return nil, err
	}
	for i := range names {
		names[i] = filepath.Base(names[i])
	}
	if dir != "" {
		list, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			if !slices.Contains(names, f.Name()) && !strings.HasPrefix(f.Name(), ".") {
				return nil, fmt.Errorf("%s: unknown template: use %s", filepath.Join(dir, f.Name()), strings.Join(names, ", "))
			}
		}
	}
	for _, name := range names {
		if err := t.loadTemplate(dir, name); err != nil {
			return nil, errorWithPlace(err)
		}
	}
	for _, l := range sampleLetters() {
		if _, err := t.renderLetter(&l); err != nil {
			return nil, errorWithPlace(err)
		}
	}
	for _, list := range [][]entry{nil, {{Folder: "f", Title: "Usage", Files: []string{"usage.csv"}}}} {
		if _, err := t.renderIndex(&index{"Reports", list}); err != nil {
			return nil, errorWithPlace(err)
		}
	}
	return t, nil
}

func (t *templates) loadTemplate(dir, name string) error {
	path := filepath.Join(dir, name)
	body, err := os.ReadFile(path)
	if dir == "" || errors.Is(err, fs.ErrNotExist) {
		path = name
		body, err = builtIn.ReadFile("templates/" + name)
	}
	if err != nil {
		return err
	}
	if filepath.Ext(name) == ".html" {
		t.pages[name], err = template.New(path).Funcs(templateFunctions()).Option("missingkey=error").Parse(string(body))
		return err
	}
	t.texts[name], err = text.New(path).Funcs(templateFunctions()).Option("missingkey=error").Parse(string(body))
	return err
}

// errorWithPlace makes an error begin with the file, as package template says it, and the line.
func errorWithPlace(err error) error {
	for _, prefix := range []string{"template: ", "html/template:"} {
		if rest, ok := strings.CutPrefix(err.Error(), prefix); ok {
			return errors.New(rest)
		}
	}
	return err
}

// sampleLetters are letters with and without usage, of two periods, and with a table without rows.
func sampleLetters() []letter {
	at := v1.Time{Time: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	base := letter{Action: "report/sample", Title: "Usage by group_id", Of: "bell", Period: "October 2026", Zone: "UTC", Attached: []string{"usage.csv"}}
	unused, used := base, base
	unused.Nothing = "Nothing was used."
	used.Periods = []v1.DocumentPeriod{{Name: "October 2026", From: at, To: v1.Time{Time: at.AddDate(0, 1, 0)}}}
	used.Notes = []string{"a note"}
	row := []v1.Cell{v1.Words("bell"), v1.Rat(big.NewRat(7, 2))}
	used.Tables = []v1.DocumentTable{{
		Name: "usage", Title: "Usage", Rows: [][]v1.Cell{row}, Totals: row, Chart: &v1.DocumentTableChart{Kind: "bars", Label: "group_id", Values: []string{"Cores"}},
		Columns: []v1.DocumentTableColumn{{Name: "group_id", Title: "group_id", Kind: "text"}, {Name: "Cores", Title: "Cores", Kind: "number", Unit: "core-hours", Period: 1}},
	}}
	two, none := used, used
	two.Periods = append(slices.Clone(used.Periods), v1.DocumentPeriod{Name: "September 2026", From: v1.Time{Time: at.AddDate(0, -1, 0)}, To: at})
	none.Tables = slices.Clone(used.Tables)
	none.Tables[0].Rows, none.Tables[0].Totals = nil, nil
	return []letter{unused, used, two, none}
}

// written is a letter in its forms.
type written struct{ subject, text, html string }

// renderLetter writes a letter; its subject first, which the others may name.
func (t *templates) renderLetter(l *letter) (w written, err error) {
	var b bytes.Buffer
	run := func(of interface{ Execute(io.Writer, any) error }) string {
		b.Reset()
		if e := of.Execute(&b, l); e != nil && err == nil {
			err = e
		}
		return b.String()
	}
	w.subject = strings.Join(strings.Fields(run(t.texts[subjectTemplate])), " ")
	l.Subject = w.subject
	w.text, w.html = run(t.texts[textTemplate]), run(t.pages[htmlTemplate])
	return w, err
}
