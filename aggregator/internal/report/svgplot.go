package report

import (
	"fmt"
	"html/template"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// plot is a chart with an upright axis: rows are points of its other one.
type plot struct {
	canvas
	*Table

	periods []Period
	label   int
	columns []int // those that are filled, or each a line
	over    []int // those that are lines over what is filled
	paints  []Paint
	step    float64 // between ticks
	top     float64 // the last of them
}

// beginPlot begins a chart whose axis reaches most; nil where there is nothing to draw.
func (t *Table) beginPlot(periods []Period, most float64) *plot {
	if most = t.axisEnd(most); most <= 0 {
		return nil
	}
	c := &plot{Table: t, periods: periods}
	c.label, c.columns = t.chartColumns()
	for _, name := range t.Chart.Lines {
		c.over = append(c.over, t.columnIndex(name))
	}
	c.step = tickStep(most, t.Columns[c.columns[0]].Kind)
	c.top = math.Ceil(most/c.step-1e-9) * c.step
	names := make([]string, len(c.columns))
	for k, col := range c.columns {
		names[k] = t.Columns[col].Title
	}
	c.paints = Paints(names)
	c.openImage(chartWidth, plotTop+plotHeight+c.belowHeight(), t.Title)
	c.definePatterns(t.Name, c.paints)
	c.drawGrid()
	return c
}

// belowHeight is the height of what is below the plot: the names of rows, and the legend.
func (c *plot) belowHeight() int {
	if !c.hasLegend() {
		return namesHeight
	}
	return axisHeight + (len(c.columns)+len(c.over)+3)/4*16
}

// hasLegend reports whether what is drawn has to be told apart: upright bars of one column have not.
func (c *plot) hasLegend() bool { return c.Chart.Kind != Columns || len(c.columns) > 1 }

// axisEnd is where an axis ends at least, of which the greatest value is known: percentages
// have all of 0 to 100 in view, also where all of them are 0.
func (t *Table) axisEnd(most float64) float64 {
	_, columns := t.chartColumns()
	known := slices.ContainsFunc(t.Rows, func(row []Cell) bool {
		return slices.ContainsFunc(columns, func(at int) bool { return row[at].Known() })
	})
	if known && isPercentage(t.Columns[columns[0]].Kind) {
		return max(most, 1)
	}
	return most
}

// isPercentage reports whether 1 of a kind is 100 per cent.
func isPercentage(kind string) bool { return kind == Ratio || kind == Share }

// tickStep is the round distance of the lines of an axis.
func tickStep(most float64, kind string) float64 {
	if isPercentage(kind) && most <= 1 {
		return 0.25
	}
	power := math.Pow(10, math.Floor(math.Log10(most/mostTicks)))
	for _, step := range []float64{1, 2, 2.5, 5} {
		if most <= step*power*mostTicks {
			return step * power
		}
	}
	return 10 * power
}

// drawGrid draws the axis: round numbers, and their unit above.
func (c *plot) drawGrid() {
	column := &c.Columns[c.columns[0]]
	for value := 0.0; value <= c.top*(1+1e-9); value += c.step {
		y := c.y(value)
		text := v1.Show(Number, v1.Rat(new(big.Rat).SetFloat64(math.Round(value*1e6)/1e6)))
		if isPercentage(column.Kind) {
			text = formatTenth(value*100) + "\u202f%"
		}
		c.addMarkup(`<line x1="%d" x2="%d" y1="%s" y2="%s" class="grid"/><text x="%d" y="%s" text-anchor="end">%s</text>`, plotLeft, chartWidth-10, formatTenth(y), formatTenth(y),
			plotLeft-6, formatTenth(y+4), template.HTMLEscapeString(text))
	}
	c.addMarkup(`<text x="%d" y="10">%s</text>`, 2, template.HTMLEscapeString(column.Unit))
}

// y is the height of a value.
func (c *plot) y(value float64) float64 {
	return plotTop + plotHeight - min(max(value, 0)/c.top, 1)*plotHeight
}

// drawNames writes what a few of the rows are called, below them.
func (c *plot) drawNames(x func(row int) float64) {
	every := max(1, (len(c.Rows)+7)/8)
	for row := 0; row < len(c.Rows); row += every {
		name := shorten(c.Rows[row][c.label].String(), 14)
		at := min(x(row), chartWidth-3.5*float64(utf8.RuneCountInString(name))) // a character is 7 wide at most
		c.addMarkup(`<text x="%s" y="%d" text-anchor="middle">%s</text>`, formatTenth(at), plotTop+plotHeight+14, template.HTMLEscapeString(name))
	}
}

// drawLines draws rows as points of time.
func (t *Table) drawLines(periods []Period) template.HTML {
	if len(t.Rows) < 2 {
		return ""
	}
	c := t.beginPlot(periods, t.greatestValue(false))
	if c == nil {
		return ""
	}
	step := float64(chartWidth-plotLeft-30) / float64(len(t.Rows)-1)
	x := func(row int) float64 { return plotLeft + 10 + float64(row)*step }
	for k, col := range c.columns {
		line := stroke{Paint: c.paints[k], place: k}
		c.drawSeries(col, line, x)
		c.drawSample(line, t.Columns[col].Title, false, k)
	}
	c.drawNames(x)
	return c.closeImage()
}

// drawSteps draws rows as intervals of time, the values of each one above the other, and lines
// over them. What is not a whole interval is hatched.
func (t *Table) drawSteps(periods []Period) template.HTML {
	c := t.beginPlot(periods, t.greatestValue(true))
	if c == nil {
		return ""
	}
	wide := float64(chartWidth-plotLeft-20) / float64(len(t.Rows))
	left := func(row int) float64 { return plotLeft + 10 + float64(row)*wide }
	middle := func(row int) float64 { return left(row) + wide/2 }
	below := make([]float64, len(t.Rows))
	for k, col := range c.columns {
		for row := range t.Rows {
			value := drawnSize(t.Rows[row][col])
			if value == 0 {
				continue
			}
			low, high := c.y(below[row]), c.y(below[row]+value)
			below[row] += value
			c.addMarkup(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s" fill-opacity=".8"><title>%s</title></rect>`, formatTenth(left(row)), formatTenth(high), formatTenth(wide), formatTenth(low-high),
				c.paints[k].svgFill(t.Name), template.HTMLEscapeString(t.Rows[row][c.label].String()+", "+t.Columns[col].Title+": "+v1.Show(t.Columns[col].Kind, t.Rows[row][col])))
		}
		c.drawSample(stroke{Paint: c.paints[k]}, t.Columns[col].Title, true, k)
	}
	c.hatchPartial(below, left, wide)
	for k, col := range c.over {
		line := stroke{Paint: Paint{Colour: "currentColor"}, place: k + 1}
		c.drawSeries(col, line, middle)
		c.drawSample(line, t.Columns[col].Title, false, len(c.columns)+k)
	}
	c.drawNames(middle)
	return c.closeImage()
}

// hatchPartial marks the rows that are not whole intervals.
func (c *plot) hatchPartial(tops []float64, left func(row int) float64, wide float64) {
	for row, top := range tops {
		label := c.Rows[row][c.label].String()
		if top == 0 || !strings.HasSuffix(label, view.PartialMark) {
			continue
		}
		y := c.y(top)
		for at := y + 4; at < plotTop+plotHeight; at += 4 {
			c.addMarkup(`<line x1="%s" x2="%s" y1="%s" y2="%s" stroke="#fff" stroke-width="1.5"/>`, formatTenth(left(row)), formatTenth(left(row)+wide), formatTenth(at), formatTenth(max(at-4, y)))
		}
		c.addMarkup(`<text x="%s" y="%s" class="figure" text-anchor="middle">partial</text>`, formatTenth(left(row)+wide/2), formatTenth(max(y-4, 10)))
	}
}

// greatestValue is the greatest value that has to fit.
func (t *Table) greatestValue(stack bool) float64 {
	_, columns := t.chartColumns()
	most := 0.0
	for _, name := range t.Chart.Lines {
		most = max(most, greatestIn(t.Rows, []int{t.columnIndex(name)}))
	}
	if !stack {
		return max(most, greatestIn(t.Rows, columns))
	}
	for _, row := range t.Rows {
		sum := 0.0
		for _, col := range columns {
			sum += drawnSize(row[col])
		}
		most = max(most, sum)
	}
	return most
}

// stroke is how a line is drawn: lines of one chart differ by dash and mark, so that they
// are told apart without colours.
type stroke struct {
	Paint

	place int // among the lines of the chart
}

func (s *stroke) dashAttr() string {
	return []string{"", ` stroke-dasharray="7 3"`, ` stroke-dasharray="2 3"`, ` stroke-dasharray="8 3 2 3"`, ` stroke-dasharray="12 4"`}[s.place%5]
}

// drawMark draws the line's mark at a point.
func (c *canvas) drawMark(s *stroke, point string) {
	x, y, _ := strings.Cut(point, ",")
	path := []string{"M-2.6 0a2.6 2.6 0 1 0 5.2 0a2.6 2.6 0 1 0-5.2 0z", "M-2.6-2.6h5.2v5.2h-5.2z", "M0-3.2 3 2.4H-3z", "M0-3.4 3.4 0 0 3.4-3.4 0z"}[s.place%4]
	c.addMarkup(`<path transform="translate(%s %s)" d="%s" fill="%s"/>`, x, y, path, s.Colour)
}

// drawSample draws what a series looks like, and its name, in a place of the legend.
func (c *plot) drawSample(s stroke, title string, filled bool, place int) {
	x, y := plotLeft+(place%4)*160, plotTop+plotHeight+axisHeight+place/4*16
	if filled {
		c.addMarkup(`<rect x="%d" y="%d" width="9" height="9" fill="%s"/>`, x, y-9, s.svgFill(c.Name))
	} else {
		c.addMarkup(`<line x1="%d" x2="%d" y1="%d" y2="%d" stroke="%s" stroke-width="2"%s/>`, x-14, x+10, y-4, y-4, s.Colour, s.dashAttr())
		c.drawMark(&s, fmt.Sprintf("%d,%d", x-2, y-4))
	}
	c.addMarkup(`<text x="%d" y="%d">%s</text>`, x+14, y, template.HTMLEscapeString(shorten(title, 24)))
}

// drawSeries draws one column as a line. Where a figure is not known there is a gap.
func (c *plot) drawSeries(col int, s stroke, x func(row int) float64) {
	title := template.HTMLEscapeString(c.Columns[col].Title)
	every := max(1, len(c.Rows)/mostMarks)
	for from := 0; from < len(c.Rows); from++ {
		to := from
		var points []string
		for ; to < len(c.Rows) && c.Rows[to][col].Known(); to++ {
			points = append(points, formatTenth(x(to))+","+formatTenth(c.y(drawnSize(c.Rows[to][col]))))
		}
		switch {
		case len(points) == 0:
		case len(points) == 1: // a line of one point cannot be seen
			x, y, _ := strings.Cut(points[0], ",")
			c.addMarkup(`<circle cx="%s" cy="%s" r="3" fill="%s"><title>%s</title></circle>`, x, y, s.Colour, title)
		default:
			c.addMarkup(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s><title>%s</title></polyline>`, strings.Join(points, " "), s.Colour, s.dashAttr(), title)
			for i := 0; i < len(points); i += every {
				c.drawMark(&s, points[i])
			}
		}
		from = to
	}
}

// drawColumns draws rows as upright bars: those of several columns stand beside each other.
func (t *Table) drawColumns(periods []Period) template.HTML {
	_, columns := t.chartColumns()
	c := t.beginPlot(periods, greatestIn(t.Rows, columns))
	if c == nil {
		return ""
	}
	room := float64(chartWidth-plotLeft-20) / float64(len(t.Rows))
	wide := room * 0.84 / float64(len(columns))
	x := func(row int) float64 { return plotLeft + 5 + (float64(row)+0.5)*room }
	for k, col := range columns {
		for row := range t.Rows {
			cell := t.Rows[row][col]
			left := x(row) - room*0.42 + float64(k)*wide
			if !cell.Known() {
				c.addMarkup(`<text x="%s" y="%d" class="figure" text-anchor="middle">–</text>`, formatTenth(left+wide/2), plotTop+plotHeight-3)
				continue
			}
			high := plotTop + plotHeight - c.y(drawnSize(cell))
			c.addMarkup(`<rect x="%s" y="%s" width="%s" height="%s" fill="%s"><title>%s</title></rect>`, formatTenth(left), formatTenth(c.y(drawnSize(cell))), formatTenth(max(wide-1, 1)), formatTenth(high),
				c.paints[k].svgFill(t.Name), template.HTMLEscapeString(t.Rows[row][c.label].String()+", "+t.Columns[col].Title+": "+t.showCell(t.Rows[row], col)))
		}
		if c.hasLegend() {
			c.drawSample(stroke{Paint: c.paints[k]}, t.Columns[col].Title, true, k)
		}
	}
	c.drawNames(x)
	return c.closeImage()
}

// The measures of a map of heat.
const (
	heatLeft = 60
	heatHigh = 22
	heatTop  = 18
)

// drawHeat draws each row as a line of squares, one for each column: the fuller the greater.
func (t *Table) drawHeat() template.HTML {
	label, columns := t.chartColumns()
	most := t.axisEnd(greatestIn(t.Rows, columns))
	if most == 0 {
		return ""
	}
	var c canvas
	c.openImage(chartWidth, heatTop+len(t.Rows)*heatHigh+34, t.Title)
	wide := float64(chartWidth-heatLeft-10) / float64(len(columns))
	for k, col := range columns {
		if k%2 == 0 {
			c.addMarkup(`<text x="%s" y="12" text-anchor="middle" class="figure">%s</text>`, formatTenth(heatLeft+(float64(k)+0.5)*wide), template.HTMLEscapeString(t.Columns[col].Title))
		}
	}
	square := func(x float64, y int, cell Cell, title string) {
		if !cell.Known() {
			c.addMarkup(`<text x="%s" y="%d" text-anchor="middle" class="figure">–</text>`, formatTenth(x+wide/2), y+heatHigh/2+3)
			return
		}
		c.addMarkup(`<rect x="%s" y="%d" width="%s" height="%d" fill="%s" fill-opacity="%s" stroke="currentColor" stroke-opacity=".15"><title>%s</title></rect>`, formatTenth(x), y, formatTenth(wide-1), heatHigh-1,
			palette()[0], shadeOpacity(drawnSize(cell)/most), template.HTMLEscapeString(title))
	}
	for i, row := range t.Rows {
		y := heatTop + i*heatHigh
		c.addMarkup(`<text x="%d" y="%d" text-anchor="end">%s</text>`, heatLeft-6, y+heatHigh/2+4, template.HTMLEscapeString(shorten(row[label].String(), 10)))
		for k, col := range columns {
			square(heatLeft+float64(k)*wide, y, row[col], row[label].String()+" "+t.Columns[col].Title+": "+t.showCell(row, col)+" "+t.Columns[col].Unit)
		}
	}
	y := heatTop + len(t.Rows)*heatHigh + 8
	for k := range 5 {
		part := new(big.Rat).SetFloat64(math.Round(most*float64(k)/4*10) / 10)
		x := heatLeft + float64(k)*100
		c.addMarkup(`<rect x="%s" y="%d" width="18" height="12" fill="%s" fill-opacity="%s" stroke="currentColor" stroke-opacity=".3"/>`, formatTenth(x), y, palette()[0], shadeOpacity(float64(k)/4))
		c.addMarkup(`<text x="%s" y="%d">%s</text>`, formatTenth(x+22), y+10, template.HTMLEscapeString(v1.Show(Number, v1.Rat(part))))
	}
	c.addMarkup(`<text x="%d" y="%d">%s</text>`, heatLeft+500, y+10, template.HTMLEscapeString(t.Columns[columns[0]].Unit))
	return c.closeImage()
}

// shadeOpacity says how dark a part of the greatest is: the square tells great parts apart.
func shadeOpacity(part float64) string { return strconv.FormatFloat(part*part, 'f', 2, 64) }
