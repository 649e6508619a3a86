package api

import (
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ndjsonFormat is a record of /v1 a line.
func ndjsonFormat() format { return format{contentType: "application/x-ndjson", add: appendLine} }

// csvFormat is a table with the columns.
func csvFormat(c *csvColumns) format {
	row, head := c.newRow()
	return format{contentType: "text/csv; charset=utf-8", head: head, add: row.appendRow}
}

// appendV1 writes a row as /v1 shows it.
func appendV1(b []byte, row *columns.Row) []byte {
	rec := row.Shown()
	return wire.AppendV1JSON(b, &rec, wire.V1Extra{Origin: row.Origin, Rank: row.Rank, Seq: row.Seq, Received: row.Received, Changed: row.Changed, Archived: row.Archived})
}

func appendLine(b []byte, row *columns.Row) ([]byte, error) {
	return append(appendV1(b, row), '\n'), nil
}
