package v1

import (
	"encoding/csv"
	"fmt"
	"io"

	"github.com/bursar-accounting/bursar/proto/csvtext"
)

// WriteCSV writes all tables: the first line of each has the names of its columns,
// each in the form NAME or NAME PERIOD, and an empty line stands between two. Numbers
// have all their digits; the totals are not written, since who reads a CSV adds up.
func (d *Document) WriteCSV(w io.Writer) error {
	for i := range d.Tables {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := d.Tables[i].writeCSV(w); err != nil {
			return fmt.Errorf("write the table %s: %w", d.Tables[i].Name, err)
		}
	}
	return nil
}

func (t *DocumentTable) writeCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	line := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		line[i] = csvtext.Harmless(c.Name) // of a component or a key
	}
	if err := out.Write(line); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for i, c := range row {
			line[i] = c.String()
			if c.Number() == nil {
				line[i] = csvtext.Harmless(line[i])
			}
		}
		if err := out.Write(line); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}
