// Package workbook writes documents as workbooks of spreadsheet programs (Office Open XML,
// ECMA-376), so that people go on calculating with a report. It is apart from proto/v1,
// whose readers need no spreadsheets.
package workbook

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ContentType is the media type of a workbook.
const ContentType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

// aboutSheet says of whom and when the tables are, and has the notes.
const aboutSheet = "About"

// Write writes the document as a workbook: the sheet "About" has title, subject, periods and
// notes; each table follows on a sheet of its own, with the titles and units of its columns in
// the first line, a line for each row, and the totals below. Numbers are numbers with all
// digits that a spreadsheet keeps (15), shown with those that [v1.ShowIn] shows; a share of
// 0.5 is 50 %. What is not known is an empty cell. Texts are never formulas. A table with
// more rows than a sheet can have is an error.
func Write(w io.Writer, d *v1.Document) error {
	b := &builder{file: excelize.NewFile(), document: d, styles: map[look]int{}}
	err := b.writeSheets()
	if err == nil {
		_, err = b.file.WriteTo(w)
	}
	if closed := b.file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write the report %s as a workbook: %w", d.Report, err)
	}
	return nil
}

// builder makes a workbook of a document.
type builder struct {
	file     *excelize.File
	document *v1.Document
	styles   map[look]int
	sheets   []string // of the tables
}

// look is how a cell looks.
type look struct {
	bold   bool
	wrap   bool
	right  bool
	format string // of a number
}

func (b *builder) writeSheets() error {
	names := map[string]bool{strings.ToLower(aboutSheet): true}
	for i := range b.document.Tables {
		b.sheets = append(b.sheets, sheetName(b.document.Tables[i].Title, names))
	}
	if err := b.writeAbout(); err != nil {
		return err
	}
	for i := range b.document.Tables {
		if err := b.writeTable(&b.document.Tables[i], b.sheets[i]); err != nil {
			return fmt.Errorf("table %s: %w", b.document.Tables[i].Name, err)
		}
	}
	return nil
}

// sheetName is a title as the name of a sheet, which no other sheet has.
func sheetName(title string, taken map[string]bool) string {
	clean := strings.Trim(strings.Map(func(c rune) rune {
		if strings.ContainsRune(`:\/?*[]`, c) || c < ' ' {
			return '-'
		}
		return c
	}, title), " '")
	clean = cmp.Or(clean, "Table")
	for n := 1; ; n++ {
		end := ""
		if n > 1 {
			end = fmt.Sprintf(" (%d)", n)
		}
		name := cutUnits(clean, excelize.MaxSheetNameLength-len(end)) + end
		if lower := strings.ToLower(name); name != "" && !taken[lower] {
			taken[lower] = true
			return name
		}
	}
}

// cutUnits leaves the first units of a text in UTF-16, in which spreadsheets count.
func cutUnits(text string, units int) string {
	for i, c := range text {
		if units--; c > 0xffff {
			units--
		}
		if units < 0 {
			return strings.TrimRight(text[:i], " '")
		}
	}
	return text
}

// styleNumber is the number of a look in the file.
func (b *builder) styleNumber(l look) (int, error) {
	if id, ok := b.styles[l]; ok {
		return id, nil
	}
	s := &excelize.Style{Alignment: &excelize.Alignment{Vertical: "top", WrapText: l.wrap}}
	if l.bold {
		s.Font = &excelize.Font{Bold: true}
	}
	if l.right {
		s.Alignment.Horizontal = "right"
	}
	if l.format != "" {
		s.CustomNumFmt = &l.format
	}
	id, err := b.file.NewStyle(s)
	if err != nil {
		return 0, err
	}
	b.styles[l] = id
	return id, nil
}

// writeAbout writes the first sheet.
func (b *builder) writeAbout() error {
	d := b.document
	if err := b.file.SetSheetName("Sheet1", aboutSheet); err != nil {
		return err
	}
	zone, err := time.LoadLocation(d.Zone)
	if err != nil {
		return err
	}
	when := func(at v1.Time) string { return at.In(zone).Format("2006-01-02 15:04") }
	lines := [][2]string{{"Report", d.Title}}
	if d.Subject != "" {
		lines = append(lines, [2]string{"Of", d.Subject})
	}
	for _, p := range d.Periods {
		lines = append(lines, [2]string{"Period", fmt.Sprintf("%s: from %s until %s", p.Name, when(p.From), when(p.To))})
	}
	lines = append(lines, [2]string{"Time zone", d.Zone}, [2]string{"Made", when(d.Made)})
	for i := range d.Tables {
		lines = append(lines, [2]string{"Sheet", b.sheets[i]})
	}
	for _, note := range d.Notes {
		lines = append(lines, [2]string{"Note", note})
	}
	out, err := b.beginSheet(aboutSheet, []float64{12, 100})
	if err != nil {
		return err
	}
	for i, line := range lines {
		err := out.writeRow(i+1, []cell{{value: line[0], look: look{bold: true}}, {value: line[1], look: look{bold: i == 0, wrap: true}}})
		if err != nil {
			return err
		}
	}
	return out.Flush()
}

// sheet is a sheet that is being written, from its first row on.
type sheet struct {
	*excelize.StreamWriter

	b *builder
}

// cell is what stands in a cell; nil is nothing.
type cell struct {
	value any
	look  look
}

// beginSheet begins a sheet that is there, with the widths of its columns in characters.
func (b *builder) beginSheet(name string, widths []float64) (*sheet, error) {
	out, err := b.file.NewStreamWriter(name)
	if err != nil {
		return nil, err
	}
	for i, width := range widths {
		if err := out.SetColWidth(i+1, i+1, width); err != nil {
			return nil, err
		}
	}
	return &sheet{out, b}, nil
}

// writeRow writes a row, counted from 1.
func (s *sheet) writeRow(row int, cells []cell) error {
	values := make([]any, len(cells))
	for i, c := range cells {
		if c.value == nil {
			continue
		}
		style, err := s.b.styleNumber(c.look)
		if err != nil {
			return err
		}
		values[i] = excelize.Cell{StyleID: style, Value: c.value}
	}
	return s.SetRow(fmt.Sprintf("A%d", row), values)
}

// writeTable writes a table on a new sheet.
func (b *builder) writeTable(t *v1.DocumentTable, name string) error {
	if most := excelize.TotalRows - 2; len(t.Rows) > most {
		return fmt.Errorf("%d rows, and a sheet has room for %d: set a smaller top, or use csv", len(t.Rows), most)
	}
	if _, err := b.file.NewSheet(name); err != nil {
		return err
	}
	heads := b.columnHeads(t)
	out, err := b.beginSheet(name, columnWidths(t, heads))
	if err != nil {
		return err
	}
	if err := out.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
		return err
	}
	if err := b.addChart(t, name, heads); err != nil {
		return err
	}
	cells := make([]cell, len(t.Columns))
	for i, head := range heads {
		cells[i] = cell{head, look{bold: true, wrap: true, right: t.Columns[i].Kind != "text"}}
	}
	if err := out.writeRow(1, cells); err != nil {
		return err
	}
	for n, row := range t.Rows {
		for i := range t.Columns {
			cells[i] = cellOf(t, row, i)
		}
		if err := out.writeRow(n+2, cells); err != nil {
			return err
		}
	}
	if len(t.Totals) > 0 {
		for i := range t.Columns {
			cells[i] = cellOf(t, t.Totals, i)
			cells[i].look.bold = true
		}
		if err := out.writeRow(len(t.Rows)+2, cells); err != nil {
			return err
		}
	}
	return out.Flush()
}

// columnHeads are the titles of the columns with their units, and their periods where there are
// two.
func (b *builder) columnHeads(t *v1.DocumentTable) []string {
	var heads []string
	for _, c := range t.Columns {
		head := c.Title
		if c.Unit != "" {
			head += " (" + c.Unit + ")"
		}
		if c.Period > 0 && len(b.document.Periods) > 1 {
			head += ", " + b.document.Periods[c.Period-1].Name
		}
		heads = append(heads, head)
	}
	return heads
}

// columnWidths are the widths of the columns, in characters: those of the longest cell among
// the first rows, between a word and a sentence.
func columnWidths(t *v1.DocumentTable, heads []string) []float64 {
	const (
		least, most = 8, 60
		looked      = 200
	)
	var list []float64
	for i, head := range heads {
		longest := least
		for word := range strings.FieldsSeq(head) {
			longest = max(longest, utf8.RuneCountInString(word)+2)
		}
		for _, row := range t.Rows[:min(len(t.Rows), looked)] {
			longest = max(longest, utf8.RuneCountInString(t.Show(row, i))+2)
		}
		list = append(list, float64(min(longest, most)))
	}
	return list
}

// cellOf is cell i of a row of the table.
func cellOf(t *v1.DocumentTable, row []v1.Cell, i int) cell {
	switch n := row[i].Number(); {
	case !row[i].Known():
		return cell{}
	case n == nil:
		return cell{value: row[i].String()}
	default:
		value, _ := n.Float64()
		if t.Columns[i].Kind == "duration" {
			value /= secondsOfDay
		}
		return cell{value: value, look: look{right: true, format: numberFormat(t.Columns[i].Kind, v1.Decimals(t.Columns[i].Kind, t.RowUnit(row, i), n))}}
	}
}

// secondsOfDay make a duration a number of days, which spreadsheets count time in.
const secondsOfDay = 24 * 60 * 60

// numberFormat shows a number as [v1.ShowIn] does, with the spreadsheet's own signs.
func numberFormat(kind string, decimals int) string {
	point := ""
	if decimals > 0 {
		point = "." + strings.Repeat("0", decimals)
	}
	switch kind {
	case "duration":
		return "[h]:mm:ss"
	case "share", "ratio":
		return "#,##0" + point + "%"
	case "change":
		return "+#,##0" + point + "%;-#,##0" + point + "%;0" + point + "%"
	}
	return "#,##0" + point
}
