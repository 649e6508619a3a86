package workbook

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xuri/excelize/v2"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// The size of a chart in pixels, and how many bars it has at most: those of the first rows.
const (
	chartWidth, chartHeight = 720, 400
	maxBars                 = 40
)

// addChart adds a filter over the columns and, right of them, the table's chart, which
// follows the cells. A heat map has no chart in a workbook.
func (b *builder) addChart(t *v1.DocumentTable, name string, heads []string) error {
	if len(t.Rows) == 0 {
		return nil
	}
	corner, err := excelize.CoordinatesToCellName(len(heads), len(t.Rows)+1)
	if err != nil {
		return err
	}
	if err := b.file.AutoFilter(name, "A1:"+corner, nil); err != nil {
		return err
	}
	chart := chartOf(t, name)
	if chart == nil {
		return nil
	}
	at, err := excelize.CoordinatesToCellName(len(heads)+2, 2)
	if err != nil {
		return err
	}
	return b.file.AddChart(name, at, chart)
}

// chartOf draws the columns of the table that its chart names; nil where there is nothing to draw.
func chartOf(t *v1.DocumentTable, name string) *excelize.Chart {
	if t.Chart == nil {
		return nil
	}
	kind, rows := excelize.Col, len(t.Rows)
	switch t.Chart.Kind {
	case "heat":
		return nil
	case "bars":
		kind, rows = excelize.Bar, min(rows, maxBars)
	case "steps":
		kind = excelize.ColStacked
	case "line":
		kind = excelize.Line
	}
	of := func(column string) (cells, head string) {
		i := slices.IndexFunc(t.Columns, func(c v1.DocumentTableColumn) bool { return c.Name == column })
		if i < 0 {
			return "", ""
		}
		letter, err := excelize.ColumnNumberToName(i + 1)
		if err != nil {
			return "", ""
		}
		quoted := "'" + strings.ReplaceAll(name, "'", "''") + "'!"
		return fmt.Sprintf("%s$%s$2:$%s$%d", quoted, letter, letter, rows+1), quoted + "$" + letter + "$1"
	}
	labels, _ := of(t.Chart.Label)
	chart := &excelize.Chart{
		Type: kind, Dimension: excelize.ChartDimension{Width: chartWidth, Height: chartHeight},
		Title:  excelize.ChartTitle{Paragraph: []excelize.RichTextRun{{Text: t.Title}}},
		Legend: excelize.ChartLegend{Position: "bottom"}, ShowBlanksAs: "gap",
		XAxis: excelize.ChartAxis{ReverseOrder: kind == excelize.Bar},
	}
	for _, column := range slices.Concat(t.Chart.Values, t.Chart.Lines) {
		if cells, head := of(column); cells != "" {
			chart.Series = append(chart.Series, excelize.ChartSeries{Name: head, Categories: labels, Values: cells})
		}
	}
	if len(chart.Series) == 0 {
		return nil
	}
	return chart
}
