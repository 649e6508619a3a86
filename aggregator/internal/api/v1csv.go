package api

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/csvtext"
	"github.com/bursar-accounting/bursar/proto/record"
)

const csvHead = "record_id,start_time,stop_time,runtime,submit_time,state,exit_code,exit_signal,origin,rank,meta,components\n"

// csvRow writes rows as lines of csvHead. It is written by hand because
// reflection and encoding/csv take five times as long.
type csvRow struct {
	line []byte
	json []byte // of the column that is being written
}

// add appends a row.
func (c *csvRow) add(b []byte, row *columns.Row) ([]byte, error) {
	r := row.Shown()
	c.line = appendCSV(b, csvtext.Harmless(r.ID))
	c.time(r.Start)
	c.time(r.Stop)
	runtime, ok := r.Runtime()
	c.int(runtime, ok)
	c.time(r.Submit)
	c.text(r.State)
	c.int(int64(r.Exit.Code), r.Exit.Known)
	c.int(int64(r.Exit.Signal), r.Exit.Known)
	c.text(row.Origin.String())
	c.text(row.Rank.String())
	c.meta(r.Meta)
	c.components(r.Components)
	return append(c.line, '\n'), nil
}

func (c *csvRow) text(s string) { c.line = appendCSV(append(c.line, ','), csvtext.Harmless(s)) }

func (c *csvRow) time(t record.Time) {
	c.line = append(c.line, ',')
	if t.Present() {
		c.line = t.Append(c.line)
	}
}

func (c *csvRow) int(n int64, known bool) {
	c.line = append(c.line, ',')
	if known {
		c.line = strconv.AppendInt(c.line, n, 10)
	}
}

func (c *csvRow) meta(m record.Meta) {
	if m == nil {
		c.text("null")
		return
	}
	j := append(c.json[:0], '{')
	for i := range m {
		j = appendString(comma(j, i), m[i].Key)
		j = append(j, ":["...)
		for k, v := range m[i].Values {
			j = appendString(comma(j, k), v)
		}
		j = append(j, ']')
	}
	c.json = append(j, '}')
	c.line = appendCSV(append(c.line, ','), c.json)
}

func (c *csvRow) components(list []record.Component) {
	j := append(c.json[:0], '[')
	for i := range list {
		j = appendString(append(comma(j, i), `{"name":`...), list[i].Name)
		j = strconv.AppendInt(append(j, `,"amount":`...), list[i].Amount, 10)
		j = appendString(append(j, `,"kind":`...), list[i].Kind.String())
		j = append(j, `,"scores":[`...)
		for k, s := range list[i].Scores {
			j = appendString(append(comma(j, k), `{"name":`...), s.Name)
			j = strconv.AppendFloat(append(j, `,"value":`...), s.Value, 'g', -1, 64)
			j = append(j, '}')
		}
		j = append(j, "]}"...)
	}
	c.json = append(j, ']')
	c.line = appendCSV(append(c.line, ','), c.json)
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		b = append(b, ',')
	}
	return b
}

// appendString appends a text in JSON.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= utf8.RuneSelf || s[i] == '"' || s[i] == '\\' {
			text, _ := json.Marshal(s) // a text always has one in JSON
			return append(b, text...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

// appendCSV appends a field, in quotes where it needs them.
func appendCSV[T string | []byte](b []byte, field T) []byte {
	if !strings.ContainsAny(string(field), ",\"\r\n") && (len(field) == 0 || field[0] != ' ') {
		return append(b, field...)
	}
	b = append(b, '"')
	for i := range len(field) {
		if field[i] == '"' {
			b = append(b, '"')
		}
		b = append(b, field[i])
	}
	return append(b, '"')
}
