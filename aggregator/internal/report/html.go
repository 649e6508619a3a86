package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

//go:embed page.html
var page string

// WriteHTML writes the document as one file that needs nothing else: no script, no
// font, no request.
func (d *Document) WriteHTML(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		return fmt.Errorf("write the report %s as HTML: %w", d.Report, err)
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"chart": func(t v1.DocumentTable) template.HTML { return (*Table)(&t).drawChart(d.Periods) },
		"parts": func(t v1.DocumentTable) []part { return (*Table)(&t).pageParts(d.Periods) },
		"show":  func(t part, row []Cell, i int) string { return t.showCell(row, i) },
		"total": func(t part, row []Cell, i int) string {
			if !row[i].Known() {
				return ""
			}
			return t.showCell(row, i)
		},
		"exact": Cell.String,
		"right": func(t part, i int) bool { return t.Columns[i].Kind != Text },
		"label": func(t part, i int) string {
			c := t.Columns[i]
			if t.Heads != nil && c.Period > 0 {
				return c.Title + ", " + columnSubtitle(&c, d.Periods)
			}
			if c.Unit != "" {
				return c.Title + " (" + c.Unit + ")"
			}
			return c.Title
		},
		"day": func(at v1.Time) string { return at.In(zone).Format("2006-01-02 15:04") },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("the page of reports: %w", err)
	}
	if err := t.Execute(w, d); err != nil {
		return fmt.Errorf("write the report %s as HTML: %w", d.Report, err)
	}
	return nil
}
