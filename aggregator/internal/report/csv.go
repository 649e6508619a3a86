package report

import (
	"io"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// WriteCSV writes all tables, as [v1.Document.WriteCSV] says.
func (d *Document) WriteCSV(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return (*v1.Document)(d).WriteCSV(w)
}
