package workbook_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/workbook"
)

// sheetFile is a sheet as ECMA-376 has it in a file, without what another package reads.
type sheetFile struct {
	Rows []struct {
		Cells []struct {
			At    string `xml:"r,attr"`
			Type  string `xml:"t,attr"`
			Style int    `xml:"s,attr"`
			Value string `xml:"v"`
			Text  string `xml:"is>t"`
			Sum   string `xml:"f"`
		} `xml:"c"`
	} `xml:"sheetData>row"`
	Filter struct {
		Of string `xml:"ref,attr"`
	} `xml:"autoFilter"`
	Drawing struct {
		ID string `xml:"id,attr"`
	} `xml:"drawing"`
}

// bookFile is what a workbook has.
type bookFile struct {
	names   []string
	sheets  []sheetFile
	formats []string // of each style
	files   map[string]string
}

func readBook(t interface{ Fatal(...any) }, data []byte) bookFile {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	b := bookFile{files: map[string]string{}}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		b.files[f.Name] = string(text)
	}
	decode := func(name string, into any) {
		if err := xml.Unmarshal([]byte(b.files[name]), into); err != nil {
			t.Fatal(name, err)
		}
	}
	var book struct {
		Sheets []struct {
			Name string `xml:"name,attr"`
		} `xml:"sheets>sheet"`
	}
	decode("xl/workbook.xml", &book)
	for i, s := range book.Sheets {
		var sheet sheetFile
		decode(fmt.Sprintf("xl/worksheets/sheet%d.xml", i+1), &sheet)
		b.names, b.sheets = append(b.names, s.Name), append(b.sheets, sheet)
	}
	var styles struct {
		Formats []struct {
			ID   int    `xml:"numFmtId,attr"`
			Code string `xml:"formatCode,attr"`
		} `xml:"numFmts>numFmt"`
		Cells []struct {
			Format int `xml:"numFmtId,attr"`
		} `xml:"cellXfs>xf"`
	}
	decode("xl/styles.xml", &styles)
	codes := map[int]string{}
	for _, f := range styles.Formats {
		codes[f.ID] = f.Code
	}
	for _, c := range styles.Cells {
		b.formats = append(b.formats, codes[c.Format])
	}
	return b
}

// rows are the cells of a sheet by their address, each as text, with "#" before a number.
func (s *sheetFile) cells() map[string]string {
	out := map[string]string{}
	for _, row := range s.Rows {
		for _, c := range row.Cells {
			switch {
			case c.Sum != "":
				out[c.At] = "formula " + c.Sum
			case c.Type == "" || c.Type == "n":
				if c.Value != "" {
					out[c.At] = "#" + c.Value
				}
			default:
				out[c.At] = c.Value + c.Text
			}
		}
	}
	return out
}

func write(t interface{ Fatal(...any) }, d *v1.Document) []byte {
	var out bytes.Buffer
	if err := workbook.Write(&out, d); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

var texts = rapid.OneOf(
	rapid.StringMatching(`[a-zäö🎓 '=+@<>&"/\\:?*\[\]-]{0,40}`),
	rapid.SampledFrom([]string{"", "=1+1", "@x", "+49", "-1", "007", "1e5", "TRUE", "2026-03-01", "  two  spaces ", "line\nbreak", "'quoted", "About", "History"}),
)

func randomTable(t *rapid.T, periods int) v1.DocumentTable {
	table := v1.DocumentTable{Name: "t", Title: texts.Draw(t, "title")}
	for i := range rapid.IntRange(1, 6).Draw(t, "columns") {
		c := v1.DocumentTableColumn{Name: strconv.Itoa(i), Title: texts.Draw(t, "head"), Kind: rapid.SampledFrom([]string{"text", "number", "share", "ratio", "change", "money", "duration"}).Draw(t, "kind")}
		c.Period = rapid.IntRange(0, periods).Draw(t, "period")
		table.Columns = append(table.Columns, c)
	}
	row := func() (cells []v1.Cell) {
		for _, c := range table.Columns {
			switch {
			case rapid.IntRange(0, 4).Draw(t, "known") == 0:
				cells = append(cells, v1.Cell{})
			case c.Kind == "text":
				cells = append(cells, v1.Words(texts.Draw(t, "text")))
			default:
				n := json.Number(strconv.FormatFloat(rapid.Float64Range(-1e12, 1e12).Draw(t, "number"), 'g', -1, 64))
				cells = append(cells, v1.Figure(&n))
			}
		}
		return cells
	}
	for range rapid.IntRange(0, 8).Draw(t, "rows") {
		table.Rows = append(table.Rows, row())
	}
	if rapid.Bool().Draw(t, "totals") {
		table.Totals = row()
	}
	if rapid.Bool().Draw(t, "chart") {
		kind := rapid.SampledFrom([]string{"bars", "steps", "line", "columns", "heat"}).Draw(t, "kind of chart")
		table.Chart = &v1.DocumentTableChart{Kind: kind, Label: "0", Values: []string{table.Columns[len(table.Columns)-1].Name}}
	}
	return table
}

// A spreadsheet has each cell of each table as it is: texts as texts, whatever they look like,
// numbers as numbers, and nothing for what is not known.
func TestWrite_RandomDocuments_EachCellIsWhatItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := &v1.Document{Report: "usage", Title: "Usage", Zone: "Europe/Berlin", Notes: rapid.SliceOfN(texts, 0, 3).Draw(t, "notes")}
		for i := range rapid.IntRange(1, 2).Draw(t, "periods") {
			d.Periods = append(d.Periods, v1.DocumentPeriod{Name: fmt.Sprintf("period %d", i)})
		}
		for range rapid.IntRange(0, 4).Draw(t, "tables") {
			d.Tables = append(d.Tables, randomTable(t, len(d.Periods)))
		}
		b := readBook(t, write(t, d))
		if len(b.sheets) != len(d.Tables)+1 {
			t.Fatalf("%d sheets of %d tables", len(b.sheets), len(d.Tables))
		}
		taken := map[string]bool{}
		for _, name := range b.names {
			if taken[strings.ToLower(name)] || name == "" || len(utf16.Encode([]rune(name))) > 31 || strings.ContainsAny(name, `:\/?*[]`) || strings.Trim(name, "'") != name {
				t.Fatalf("the name of a sheet is %q of %q", name, b.names)
			}
			taken[strings.ToLower(name)] = true
		}
		for i := range d.Tables {
			checkTable(t, &d.Tables[i], &b.sheets[i+1], b.formats)
		}
	})
}

func checkTable(t *rapid.T, table *v1.DocumentTable, sheet *sheetFile, formats []string) {
	got, want := sheet.cells(), map[string]string{}
	rows := table.Rows
	if len(table.Totals) > 0 {
		rows = append(slices.Clip(rows), table.Totals)
	}
	for i := range table.Columns {
		delete(got, fmt.Sprintf("%c1", 'A'+i)) // the heads
		for n, row := range rows {
			at := fmt.Sprintf("%c%d", 'A'+i, n+2)
			switch number := row[i].Number(); {
			case number != nil:
				if table.Columns[i].Kind == "duration" {
					number = new(big.Rat).Quo(number, big.NewRat(86400, 1))
				}
				value, ok := new(big.Rat).SetString(strings.TrimPrefix(got[at], "#"))
				if ok {
					a, _ := value.Float64()
					if b, _ := number.Float64(); math.Abs(a-b) <= 1e-14*math.Abs(b) { // spreadsheets keep 15 digits
						want[at] = got[at]
						continue
					}
				}
				want[at] = "#" + row[i].String()
			case row[i].Known():
				want[at] = row[i].String()
			}
		}
	}
	for at, text := range want {
		if got[at] != text {
			t.Fatalf("%s is %q, want %q", at, got[at], text)
		}
		delete(got, at)
	}
	for at, text := range got {
		if text != "" {
			t.Fatalf("%s has %q, and nothing is known there", at, text)
		}
	}
	if (sheet.Filter.Of != "") != (len(table.Rows) > 0) {
		t.Fatalf("the filter is over %q of %d rows", sheet.Filter.Of, len(table.Rows))
	}
	if (sheet.Drawing.ID != "") != (table.Chart != nil && table.Chart.Kind != "heat" && len(table.Rows) > 0) {
		t.Fatalf("the drawing is %q of %+v", sheet.Drawing.ID, table.Chart)
	}
	for _, row := range sheet.Rows {
		for _, c := range row.Cells {
			if c.Style >= len(formats) {
				t.Fatalf("%s has style %d of %d", c.At, c.Style, len(formats))
			}
		}
	}
}

// A spreadsheet shows a figure with the digits that pages and terminals show.
func TestWrite_Figures_ShowTheDigitsThatPagesShow(t *testing.T) {
	for _, c := range []struct{ kind, unit, number, shown, format string }{
		{"number", "core-hours", "1234567", "1\u202f234\u202f567", "#,##0"},
		{"number", "core-hours", "12.345", "12.35", "#,##0.00"},
		{"number", "core-hours", "0.12345", "0.1235", "#,##0.0000"},
		{"money", "EUR", "1.005", "1.01", "#,##0.00"},
		{"money", "JPY", "1200", "1\u202f200", "#,##0"},
		{"share", "", "0.1234", "12.3\u202f%", "#,##0.0%"},
		{"ratio", "", "1.5", "150\u202f%", "#,##0%"},
		{"change", "", "0.25", "+25.0\u202f%", "+#,##0.0%;-#,##0.0%;0.0%"},
		{"duration", "", "90061.6", "1-01:01:02", "[h]:mm:ss"},
	} {
		n := json.Number(c.number)
		d := &v1.Document{Zone: "UTC", Tables: []v1.DocumentTable{{
			Name: "t", Title: "T", Columns: []v1.DocumentTableColumn{{Name: "a", Title: "A", Kind: c.kind, Unit: c.unit}}, Rows: [][]v1.Cell{{v1.Figure(&n)}},
		}}}
		if shown := d.Tables[0].Show(d.Tables[0].Rows[0], 0); shown != c.shown {
			t.Errorf("%v is shown as %q", c, shown)
		}
		b := readBook(t, write(t, d))
		if format := b.formats[b.sheets[1].Rows[1].Cells[0].Style]; format != c.format {
			t.Errorf("%v has the format %q", c, format)
		}
	}
}

func TestWrite_About_SaysOfWhomAndWhen(t *testing.T) {
	d := &v1.Document{
		Title: "Statement", Subject: "group atlas", Zone: "Europe/Berlin", Notes: []string{"2 records are not counted."},
		Tables: []v1.DocumentTable{{Name: "t", Title: "By user: all/none", Columns: []v1.DocumentTableColumn{{Name: "a", Title: "A", Kind: "text"}}}},
	}
	b := readBook(t, write(t, d))
	var text []string
	for _, row := range b.sheets[0].Rows {
		for _, c := range row.Cells {
			text = append(text, c.Value+c.Text)
		}
	}
	if got := strings.Join(text, "|"); !strings.HasPrefix(got, "Report|Statement|Of|group atlas|Time zone|Europe/Berlin|Made|") ||
		!strings.HasSuffix(got, "|Sheet|By user- all-none|Note|2 records are not counted.") || b.names[1] != "By user- all-none" {
		t.Errorf("%q\n%q", got, b.names)
	}
}

func TestWrite_MoreRowsThanASheetHas_IsAnError(t *testing.T) {
	d := &v1.Document{Report: "jobs", Zone: "UTC", Tables: []v1.DocumentTable{{
		Name: "t", Title: "T", Columns: []v1.DocumentTableColumn{{Name: "a", Title: "A", Kind: "text"}}, Rows: make([][]v1.Cell, 1<<20),
	}}}
	if err := workbook.Write(io.Discard, d); err == nil || !strings.Contains(err.Error(), "report jobs as a workbook: table t: 1048576 rows") {
		t.Error(err)
	}
}
