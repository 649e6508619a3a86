package api

import "github.com/bursar-accounting/bursar/aggregator/internal/columns"

// ndjsonFormat is a record of /v1 a line.
func ndjsonFormat() format { return format{contentType: "application/x-ndjson", add: appendLine} }

// csvFormat is a table with the columns.
func csvFormat(c *csvColumns) format {
	row, head := c.newRow()
	return format{contentType: "text/csv; charset=utf-8", head: head, add: row.appendRow}
}

func appendLine(b []byte, row *columns.Row) ([]byte, error) {
	return append(row.AppendV1(b), '\n'), nil
}
