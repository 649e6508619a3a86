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
	maxBars     = 26
	figureWidth = 80
	plotLeft    = labelWidth / 2
	plotTop     = 20
	mostTicks   = 5
	mostMarks   = 16
)

// draw returns the SVG of a table's chart; empty where there is nothing to draw.
func (t *Table) draw(periods []Period) template.HTML {
	if t.Chart == nil || len(t.Rows) == 0 {
		return ""
	}
	switch t.Chart.Kind {
	case Bars:
		return t.bars(periods)
	case Steps:
		return t.steps(periods)
	case Line:
		return t.lines(periods)
	case Columns:
		return t.upright(periods)
	case Heat:
		return t.heat()
	default:
		return ""
	}
}

// canvas collects an SVG.
type canvas struct{ strings.Builder }

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(&c.Builder, format, args...) }

// open begins an image that screen readers skip: the table beside it says the same.
func (c *canvas) open(width, height int, title string) {
	c.add(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s" xmlns="http://www.w3.org/2000/svg">`, width, height, template.HTMLEscapeString(title))
}

func (c *canvas) done() template.HTML {
	c.add("</svg>")
	return template.HTML(c.String()) //nolint:gosec // all texts in it are escaped
}

// values are the columns that a chart draws.
func (t *Table) values() (label int, list []int) {
	for _, name := range t.Chart.Values {
		list = append(list, t.column(name))
	}
	return t.column(t.Chart.Label), list
}

// size is a number for the eye; 0 where there is none, which is not to be drawn.
func size(c Cell) float64 {
	if c.Number() == nil {
		return 0
	}
	f, _ := c.Number().Float64()
	return max(f, 0)
}

// greatest is the greatest number of the columns.
func greatest(rows [][]Cell, columns []int) float64 {
	most := 0.0
	for _, row := range rows {
		for _, i := range columns {
			most = max(most, size(row[i]))
		}
	}
	return most
}

// bars draws a bar for each row and column. Rows of one colour are told apart by a
// pattern, and the columns of a row by how full it is.
func (t *Table) bars(periods []Period) template.HTML {
	label, columns := t.values()
	rows := t.Rows[:min(len(t.Rows), maxBars)]
	high := len(columns)*barHeight + rowGap
	most := t.reach(greatest(rows, columns))
	if most == 0 {
		return ""
	}
	var names []string
	for _, row := range rows {
		names = append(names, row[label].String())
	}
	paints := Paints(names)
	var c canvas
	c.open(chartWidth, len(rows)*high+rowGap+18, t.Title)
	c.patterns(t.Name, paints)
	c.legend(t, columns, periods)
	for i, row := range rows {
		y := 18 + rowGap + i*high
		c.add(`<text x="%d" y="%d" text-anchor="end">%s</text>`, labelWidth-8, y+high/2-1, template.HTMLEscapeString(shorten(names[i], 22)))
		for k, at := range columns {
			if !row[at].Known() {
				c.add(`<text x="%d" y="%d" class="figure">–</text>`, labelWidth+4, y+k*barHeight+barHeight-2)
				continue
			}
			width := size(row[at]) / most * (chartWidth - labelWidth - figureWidth)
			c.add(`<rect x="%d" y="%d" width="%s" height="%d" fill="%s"%s><title>%s</title></rect>`, labelWidth, y+k*barHeight, number(width), barHeight-1,
				paints[i].fill(t.Name), faded(k), template.HTMLEscapeString(names[i]+", "+long(&t.Columns[at], periods)+": "+t.show(row, at)))
			c.add(`<text x="%s" y="%d" class="figure">%s</text>`, number(labelWidth+width+4), y+k*barHeight+barHeight-2, template.HTMLEscapeString(t.show(row, at)))
		}
	}
	return c.done()
}

// faded tells the bars of one row apart.
func faded(k int) string {
	if k == 0 {
		return ""
	}
	return ` fill-opacity="` + number(max(0.2, 0.5-0.2*float64(k-1))) + `" stroke="currentColor" stroke-width=".4"`
}

// legend says what the bars of a row are. One needs none.
func (c *canvas) legend(t *Table, columns []int, periods []Period) {
	for k, at := range columns {
		x := labelWidth + k*240
		c.add(`<rect x="%d" y="4" width="9" height="9" fill="currentColor"%s/><text x="%d" y="12">%s</text>`, x, faded(k), x+14, template.HTMLEscapeString(t.legendOf(&t.Columns[at], periods)))
	}
}

// legendOf is the title of a column with its unit, and with its period where others in
// the table have another one.
func (t *Table) legendOf(c *Column, periods []Period) string {
	title := c.Title
	if len(t.periods()) > 1 {
		title = long(c, periods)
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

func number(f float64) string { return strconv.FormatFloat(math.Round(f*10)/10, 'f', -1, 64) }
