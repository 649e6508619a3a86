package report

import "html/template"

// Chart draws the chart of one of the document's tables as an SVG without scripts and
// without styles, for a page that has its own; empty where there is nothing to draw.
func (d *Document) Chart(t *Table) template.HTML {
	if d.Check() != nil {
		return ""
	}
	return t.drawChart(d.Periods)
}

// Below is what stands below a column's title: its unit, and its period where there
// are two.
func (d *Document) Below(c *Column) string { return columnSubtitle(c, d.Periods) }
