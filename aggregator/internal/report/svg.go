package report

import (
	"fmt"
	"hash/fnv"
	"html/template"
	"math"
	"strconv"
	"strings"
)

// palette has colours that the colour-blind can tell apart: seven of Okabe and Ito, "Color
// Universal Design", 2008, without black, which is text, and with the olive of Tol,
// "Colour Schemes", 2021, for yellow, which is too pale on paper. The others are as far
// from these and from each other, also for those who cannot tell red from green, and all
// are seen on white and on dark pages. Their number and order are in the
// colour of each name, where COMPLETED is green and FAILED red.
func palette() []string {
	return []string{
		"#0072b2", "#e69f00", "#7d3cc0", "#d55e00", "#56b4e9", "#cc79a7", "#999933", "#3d4fd1",
		"#009e73", "#a3298d", "#e19678", "#784b5a", "#a51e2d", "#5a5a3c", "#875a00", "#f0708e",
	}
}

// OthersColour is that of all others, who have no name.
const OthersColour = "#8c8c8c"

// Colour is that of a name on all pages and in all charts, whatever is beside it.
func Colour(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	list, sum := palette(), h.Sum32()
	return list[(sum^sum>>16)%uint32(len(list))] // folded, as FNV's authors advise for few bits
}

// The measures of a chart, in the units of its SVG.
const (
	chartWidth  = 720
	labelWidth  = 150
	barHeight   = 9
	rowGap      = 9
	plotHeight  = 220
	axisHeight  = 34
	namesHeight = 20
	maxBars     = 26
	figureWidth = 80
	plotLeft    = labelWidth / 2
	plotTop     = 20
	mostTicks   = 5
	mostMarks   = 16
)

// Chart draws the chart of one of the document's tables as an SVG without scripts and
// without styles, for a page that has its own; empty where there is nothing to draw.
func (d *Document) Chart(t *Table) template.HTML {
	if d.Check() != nil {
		return ""
	}
	return t.drawChart(d.Periods)
}

// drawChart returns the SVG of a table's chart; empty where there is nothing to draw.
func (t *Table) drawChart(periods []Period) template.HTML {
	if t.Chart == nil || len(t.Rows) == 0 {
		return ""
	}
	switch t.Chart.Kind {
	case Bars:
		return t.drawBars(periods)
	case Steps:
		return t.drawSteps(periods)
	case Line:
		return t.drawLines(periods)
	case Columns:
		return t.drawColumns(periods)
	case Heat:
		return t.drawHeat()
	default:
		return ""
	}
}

// canvas collects an SVG.
type canvas struct{ strings.Builder }

func (c *canvas) addMarkup(format string, args ...any) { fmt.Fprintf(&c.Builder, format, args...) }

// openImage begins an image that screen readers skip: the table beside it says the same.
func (c *canvas) openImage(width, height int, title string) {
	c.addMarkup(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`, width, height, template.HTMLEscapeString(title))
}

func (c *canvas) closeImage() template.HTML {
	c.addMarkup("</svg>")
	return template.HTML(c.String()) //nolint:gosec // all texts in it are escaped
}

// chartColumns are the columns that a chart draws.
func (t *Table) chartColumns() (label int, list []int) {
	for _, name := range t.Chart.Values {
		list = append(list, t.columnIndex(name))
	}
	return t.columnIndex(t.Chart.Label), list
}

// drawnSize is a cell's number for the eye; 0 where there is none, which is not to be drawn.
func drawnSize(c Cell) float64 {
	if c.Number() == nil {
		return 0
	}
	f, _ := c.Number().Float64()
	return max(f, 0)
}

// greatestIn is the greatest number of the columns.
func greatestIn(rows [][]Cell, columns []int) float64 {
	most := 0.0
	for _, row := range rows {
		for _, i := range columns {
			most = max(most, drawnSize(row[i]))
		}
	}
	return most
}

// drawBars draws a bar for each row and column. Rows of one colour are told apart by a
// pattern, and the columns of a row by how full it is.
func (t *Table) drawBars(periods []Period) template.HTML {
	label, columns := t.chartColumns()
	rows := t.Rows[:min(len(t.Rows), maxBars)]
	high := len(columns)*barHeight + rowGap
	most := t.axisEnd(greatestIn(rows, columns))
	if most == 0 {
		return ""
	}
	var names []string
	for _, row := range rows {
		names = append(names, row[label].String())
	}
	paints := Paints(names)
	var c canvas
	c.openImage(chartWidth, len(rows)*high+rowGap+18, t.Title)
	c.definePatterns(t.Name, paints)
	c.drawLegend(t, columns, periods)
	for i, row := range rows {
		y := 18 + rowGap + i*high
		c.addMarkup(`<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-8, y+high/2-1, template.HTMLEscapeString(shorten(names[i], 22)))
		for k, at := range columns {
			if !row[at].Known() {
				c.addMarkup(`<text x="%d" y="%d" class="figure">–</text>`, labelWidth+4, y+k*barHeight+barHeight-2)
				continue
			}
			width := drawnSize(row[at]) / most * (chartWidth - labelWidth - figureWidth)
			c.addMarkup(`<rect x="%d" y="%d" width="%s" height="%d" fill="%s"%s><title>%s</title></rect>`, labelWidth, y+k*barHeight, formatTenth(width), barHeight-1,
				paints[i].svgFill(t.Name), opacityAttrs(k), template.HTMLEscapeString(names[i]+", "+longTitle(&t.Columns[at], periods)+": "+t.showCell(row, at)))
			c.addMarkup(`<text x="%s" y="%d" class="figure">%s</text>`, formatTenth(labelWidth+width+4), y+k*barHeight+barHeight-2, template.HTMLEscapeString(t.showCell(row, at)))
		}
	}
	return c.closeImage()
}

// opacityAttrs tells the bars of one row apart.
func opacityAttrs(k int) string {
	if k == 0 {
		return ""
	}
	return ` fill-opacity="` + formatTenth(max(0.2, 0.5-0.2*float64(k-1))) + `" stroke="currentColor" stroke-width=".4"`
}

// drawLegend says what the bars of a row are. One needs none.
func (c *canvas) drawLegend(t *Table, columns []int, periods []Period) {
	for k, at := range columns {
		x := labelWidth + k*240
		c.addMarkup(`<rect x="%d" y="4" width="9" height="9" fill="currentColor"%s/><text x="%d" y="12">%s</text>`, x, opacityAttrs(k), x+14, template.HTMLEscapeString(t.legendOf(&t.Columns[at], periods)))
	}
}

// legendOf is the title of a column with its unit, and with its period where others in
// the table have another one.
func (t *Table) legendOf(c *Column, periods []Period) string {
	title := c.Title
	if len(t.columnPeriods()) > 1 {
		title = longTitle(c, periods)
	}
	if c.Unit != "" {
		title += " (" + c.Unit + ")"
	}
	return title
}

// shorten cuts a text to so many characters.
func shorten(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

func formatTenth(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }
