package usage

import (
	"strconv"
	"strings"

	"github.com/bursar-accounting/bursar/proto/csvtext"
)

// lines collects what is written and sends it piece by piece: send is called with what
// is next, which it may not keep.
type lines struct {
	buf  []byte
	send func([]byte) error
}

// tablePiece is how much is sent at a time, in bytes.
const tablePiece = 64 << 10

func (l *lines) flush(least int) error {
	if len(l.buf) < least || len(l.buf) == 0 {
		return nil
	}
	err := l.send(l.buf)
	l.buf = l.buf[:0]
	return err
}

// NDJSON writes a JSON object a line: first one that tells about the table, then one
// for each cell that is not empty.
func (s *Table) NDJSON(complete []byte, send func([]byte) error) error {
	l := &lines{send: send}
	l.buf = append(s.AppendAbout(append(l.buf, `{"about":{`...), complete), "}}\n"...)
	for g := range s.Groups {
		group := s.groupObject(g)
		for bucket := range s.bucketCount() {
			if s.emptyCell(g*s.bucketCount() + bucket) {
				continue
			}
			l.buf = s.appendObject(append(l.buf, group...), g, bucket)
			if err := l.flush(tablePiece); err != nil {
				return err
			}
		}
	}
	return l.flush(0)
}

func (s *Table) emptyCell(i int) bool {
	for k := range s.Columns {
		if s.Columns[k].hasFigure(&s.Columns[k].cells, i) {
			return false
		}
	}
	return true
}

// groupObject is how the lines of a group begin.
func (s *Table) groupObject(g int) []byte {
	b, group := []byte(`{"group":{`), &s.Groups[g]
	for k := range group.Values {
		b = append(appendQuoted(appendComma(b, k), s.Request.By[k]), ':')
		if group.Lacks[k] {
			b = append(b, "null"...)
		} else {
			b = appendQuoted(b, group.Values[k])
		}
	}
	b = strconv.AppendInt(append(b, `},"others":`...), int64(group.Others), 10)
	return b
}

func (s *Table) appendObject(b []byte, g, bucket int) []byte {
	b = orNull(append(b, `,"bucket":`...), s.Labels[bucket])
	b = appendTime(append(b, `,"from":`...), s.Edges[bucket])
	b = appendTime(append(b, `,"to":`...), s.Edges[bucket+1])
	b = strconv.AppendBool(append(b, `,"partial":`...), s.partial[bucket])
	b = append(b, `,"measures":{`...)
	for i := range s.Columns {
		c := &s.Columns[i]
		b = append(appendQuoted(appendComma(b, i), c.Name), ':')
		b = s.appendCell(b, c, g, bucket)
	}
	b = append(b, '}')
	if !s.hasBefore() {
		return append(b, "}\n"...)
	}
	return append(s.appendBeforeObject(b, g), "}\n"...)
}

func (s *Table) hasBefore() bool { return s.Request.Versus != nil }

// appendBeforeObject writes the group's figures of the whole windows: the bucket has
// no counterpart.
func (s *Table) appendBeforeObject(b []byte, g int) []byte {
	b = append(b, `,"compared":{`...)
	for i := range s.Columns {
		c := &s.Columns[i]
		b = append(appendQuoted(appendComma(b, i), c.Name), `:{"before":`...)
		b = s.appendBefore(b, c, g)
		b = s.appendDifference(append(b, `,"difference":`...), c, g)
		b = s.appendRelative(append(b, `,"relative":`...), c, g)
		b = append(b, '}')
	}
	return append(b, '}')
}

// CSV writes a table with a line for each group and bucket, the empty ones too. Heads
// of measures have their unit, as in "Cores [hour]".
func (s *Table) CSV(send func([]byte) error) error {
	l := &lines{send: send}
	l.buf = s.csvHead(l.buf)
	buckets := s.csvBuckets()
	for g := range s.Groups {
		group := s.csvGroup(g)
		for bucket := range s.bucketCount() {
			l.buf = append(append(l.buf, group...), buckets[bucket]...)
			l.buf = s.csvCells(l.buf, g, bucket)
			if err := l.flush(tablePiece); err != nil {
				return err
			}
		}
	}
	return l.flush(0)
}

func (s *Table) csvHead(b []byte) []byte {
	for _, key := range s.Request.By {
		b = append(appendField(b, key), ',')
	}
	b = append(b, "bucket,from,to"...)
	for i := range s.Columns {
		b = appendField(append(b, ','), s.Columns[i].titleWithUnit())
		if s.hasBefore() {
			for _, more := range []string{" before", " difference", " relative"} {
				b = appendField(append(b, ','), s.Columns[i].Name+more)
			}
		}
	}
	return append(b, '\n')
}

// titleWithUnit is the name with the unit.
func (c *Column) titleWithUnit() string {
	if c.Unit == "" {
		return c.Name
	}
	return c.Name + " [" + c.Unit + "]"
}

// csvBuckets is what the lines have of each bucket.
func (s *Table) csvBuckets() [][]byte {
	out := make([][]byte, s.bucketCount())
	for i := range out {
		b := append([]byte(s.Labels[i]), ',')
		b = append(s.Edges[i].Append(b), ',')
		out[i] = s.Edges[i+1].Append(b)
	}
	return out
}

// csvGroup is how the lines of a group begin. Groups that were put together are
// "(57 others)" in the first column.
func (s *Table) csvGroup(g int) (b []byte) {
	group := &s.Groups[g]
	for k := range s.Request.By {
		switch {
		case group.Others > 0 && k == 0:
			b = append(b, "("+strconv.Itoa(group.Others)+" others)"...)
		case group.Others == 0 && !group.Lacks[k]:
			b = appendField(b, group.Values[k])
		}
		b = append(b, ',')
	}
	return b
}

func (s *Table) csvCells(b []byte, g, bucket int) []byte {
	for i := range s.Columns {
		c := &s.Columns[i]
		b = csvNumber(s.appendCell(append(b, ','), c, g, bucket))
		if s.hasBefore() {
			b = csvNumber(s.appendBefore(append(b, ','), c, g))
			b = csvNumber(s.appendDifference(append(b, ','), c, g))
			b = csvNumber(s.appendRelative(append(b, ','), c, g))
		}
	}
	return append(b, '\n')
}

// csvNumber makes nothing of a null at the end.
func csvNumber(b []byte) []byte {
	if b[len(b)-1] == 'l' {
		return b[:len(b)-len("null")]
	}
	return b
}

// appendField writes a text of CSV, in quotes where it needs them.
func appendField(b []byte, field string) []byte {
	field = csvtext.Harmless(field)
	if !strings.ContainsAny(field, ",\"\r\n") && (field == "" || field[0] != ' ') {
		return append(b, field...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(field, `"`, `""`)...), '"')
}
