package report

import (
	"io"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
	"github.com/bursar-accounting/bursar/proto/workbook"
)

// WriteCSV writes all tables, as [v1.Document.WriteCSV] says.
func (d *Document) WriteCSV(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return (*v1.Document)(d).WriteCSV(w)
}

// WriteXLSX writes the document as a workbook, as [workbook.Write] says.
func (d *Document) WriteXLSX(w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	return workbook.Write(w, (*v1.Document)(d))
}
