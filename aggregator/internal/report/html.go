package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"
)

//go:embed page.html
var page string

// WriteHTML writes the document as one file that needs nothing else: no script, no
// font, no request.
func (d *Document) WriteHTML(w io.Writer) error {
	if err := d.check(); err != nil {
		return err
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"chart": func(t Table) template.HTML { return t.draw(d.Periods) },
		"head":  func(c Column) string { return c.below(d.Periods) },
		"show":  func(t Table, i int, c Cell) string { return t.Columns[i].Show(c) },
		"exact": Cell.String,
		"right": func(t Table, i int) bool { return t.Columns[i].Kind != Text },
		"day":   func(at time.Time) string { return at.Format("2006-01-02 15:04") },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page of reports: %w", err)
	}
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("write the report %s as HTML: %w", d.Report, err)
	}
	return nil
}
