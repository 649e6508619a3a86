package api

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/csvtext"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// fixedColumns are those that every table of records has. Behind them stands a column for
// each meta key and each component of its records.
const fixedColumns = "record_id,start_time,stop_time,runtime,submit_time,wait,state,exit_code,exit_signal,origin,rank"

// mostColumns is how many keys, components and scores a table may have.
const mostColumns = 1000

// csvColumns are the columns of a table of records, by the names that its records have.
type csvColumns struct {
	keys       map[string]bool
	components map[string]map[string]bool // with the names of their scores
	count      int
}

// columnsOf finds the columns of the records of a query.
func columnsOf(ctx context.Context, read rows, q store.Query) (*csvColumns, error) {
	c := &csvColumns{map[string]bool{}, map[string]map[string]bool{}, 0}
	q.ReuseRows = true
	err := read(ctx, q, func(row *columns.Row) error {
		c.addNames(row)
		if c.count > mostColumns {
			return newRefusal(http.StatusUnprocessableEntity, "these records have more than %d keys and components, too many for a table; ask for fewer records, or for format=ndjson", mostColumns)
		}
		return nil
	})
	return c, err
}

// addNames adds the names of a row that is lent.
func (c *csvColumns) addNames(row *columns.Row) {
	for i := range row.Record.Meta {
		if key := row.Record.Meta[i].Key; !c.keys[key] {
			c.keys[strings.Clone(key)] = true
			c.count++
		}
	}
	for i := range row.Record.Components {
		one := &row.Record.Components[i]
		scores := c.components[one.Name]
		if scores == nil {
			scores = map[string]bool{}
			c.components[strings.Clone(one.Name)] = scores
			c.count++
		}
		for k := range one.Scores {
			if name := one.Scores[k].Name; !scores[name] {
				scores[strings.Clone(name)] = true
				c.count++
			}
		}
	}
}

// csvRow writes rows as lines of a table. It is written by hand because
// reflection and encoding/csv take five times as long.
type csvRow struct {
	line       []byte
	keys       []string // sorted
	components []csvComponent
}

// csvComponent is a column of amounts and those of its scores.
type csvComponent struct {
	name   string
	scores []string
}

// newRow returns what writes rows under the columns, and the head of the table. A key or
// component whose name another column has gets "meta." or "component." before it.
func (c *csvColumns) newRow() (row *csvRow, head string) {
	names := strings.Split(fixedColumns, ",")
	column := func(kind, name string) {
		for slices.Contains(names, name) {
			name = kind + name
		}
		names = append(names, name)
	}
	row = &csvRow{keys: slices.Sorted(maps.Keys(c.keys))}
	for _, key := range row.keys {
		column("meta.", key)
	}
	for _, name := range slices.Sorted(maps.Keys(c.components)) {
		one := csvComponent{name, slices.Sorted(maps.Keys(c.components[name]))}
		row.components = append(row.components, one)
		column("component.", name)
		for _, score := range one.scores {
			column("component.", name+"."+score)
		}
	}
	var line []byte
	for _, name := range names {
		line = append(appendCSV(line, csvtext.Harmless(name)), ',')
	}
	line[len(line)-1] = '\n'
	return row, string(line)
}

// appendRow appends a row.
func (c *csvRow) appendRow(b []byte, row *columns.Row) ([]byte, error) {
	r := row.Shown()
	c.line = appendCSV(b, csvtext.Harmless(r.ID))
	c.appendTime(r.Start)
	c.appendTime(r.Stop)
	runtime, ok := r.Runtime()
	c.appendInt(runtime, ok)
	c.appendTime(r.Submit)
	c.appendInt(int64(r.Start-r.Submit)/int64(record.Second), r.Submit.Present() && r.Submit <= r.Start)
	c.appendText(r.State)
	c.appendInt(int64(r.Exit.Code), r.Exit.Known)
	c.appendInt(int64(r.Exit.Signal), r.Exit.Known)
	c.appendText(row.Origin.String())
	c.appendText(row.Rank.String())
	for _, key := range c.keys {
		c.appendText(v1.JoinList(r.Meta.Get(key)...))
	}
	for i := range c.components {
		c.appendComponent(&c.components[i], r.Component(c.components[i].name))
	}
	return append(c.line, '\n'), nil
}

func (c *csvRow) appendText(s string) { c.line = appendCSV(append(c.line, ','), csvtext.Harmless(s)) }

func (c *csvRow) appendTime(t record.Time) {
	c.line = append(c.line, ',')
	if t.Present() {
		c.line = t.Append(c.line)
	}
}

func (c *csvRow) appendInt(n int64, known bool) {
	c.line = append(c.line, ',')
	if known {
		c.line = strconv.AppendInt(c.line, n, 10)
	}
}

// appendComponent writes the amount and the scores of a component; nil where the record has none
// of that name.
func (c *csvRow) appendComponent(column *csvComponent, one *record.Component) {
	if one == nil {
		one = &record.Component{}
		c.line = append(c.line, ',')
	} else {
		c.appendInt(one.Amount, true)
	}
	for _, name := range column.scores {
		c.line = append(c.line, ',')
		if i := slices.IndexFunc(one.Scores, func(s record.Score) bool { return s.Name == name }); i >= 0 {
			c.line = strconv.AppendFloat(c.line, one.Scores[i].Value, 'g', -1, 64)
		}
	}
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
