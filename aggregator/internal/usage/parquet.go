package usage

import (
	"fmt"
	"slices"

	"github.com/parquet-go/parquet-go"
)

// parquetBatch is how many rows are handed to the writer at once, and rowsInGroup how
// many a row group has: that much is in memory.
const (
	parquetBatch = 1 << 10
	rowsInGroup  = 1 << 17
)

// Parquet writes the table of [Table.CSV] as a Parquet file: keys and the bucket are
// texts, from and to are times in microseconds, sums are decimals of 38 digits, six of
// them behind the point, numbers are whole, and the rest is floating point. The
// metadata have what is known of the answer as JSON under "bursar".
func (s *Table) Parquet(complete []byte, send func([]byte) error) error {
	about := append(s.AppendAbout([]byte("{"), complete), '}')
	w := parquet.NewWriter(sender(send), parquet.NewSchema("usage", s.parquetSchema()), parquet.Compression(&parquet.Zstd),
		parquet.MaxRowsPerRowGroup(rowsInGroup), parquet.KeyValueMetadata("bursar", string(about)))
	batch := make([]parquet.Row, 0, parquetBatch)
	flush := func() error {
		_, err := w.WriteRows(batch)
		batch = batch[:0]
		return err
	}
	for g := range s.Groups {
		for bucket := range s.buckets() {
			batch = append(batch, s.parquetRow(g, bucket))
			if len(batch) < parquetBatch {
				continue
			}
			if err := flush(); err != nil {
				return fmt.Errorf("parquet: %w", err)
			}
		}
	}
	if err := flush(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

// sender makes a writer of a function.
type sender func([]byte) error

func (s sender) Write(b []byte) (int, error) {
	if err := s(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// orderedGroup is a group whose fields keep their order; the library's own sorts
// them by name.
type orderedGroup struct {
	parquet.Group

	names []string
}

func (o orderedGroup) Fields() []parquet.Field {
	fields := o.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(o.names, a.Name()) - slices.Index(o.names, b.Name())
	})
	return fields
}

func (o *orderedGroup) add(name string, n parquet.Node) {
	for i := 2; slices.Contains(o.names, name); i++ { // a key may be called from
		name = fmt.Sprintf("%s (%d)", name, i)
	}
	o.names = append(o.names, name)
	o.Group[name] = n
}

func (s *Table) parquetSchema() parquet.Node {
	o := &orderedGroup{Group: parquet.Group{}}
	for _, key := range s.Request.By {
		o.add(key, parquet.Optional(parquet.String()))
	}
	o.add("bucket", parquet.Optional(parquet.String()))
	o.add("from", parquet.Timestamp(parquet.Microsecond))
	o.add("to", parquet.Timestamp(parquet.Microsecond))
	for i := range s.Columns {
		c := &s.Columns[i]
		o.add(c.head(), parquet.Optional(c.parquetNode()))
		if s.hasBefore() {
			o.add(c.Name+" before", parquet.Optional(c.parquetNode()))
		}
	}
	return *o
}

func (c *Column) exact() bool { return c.Kind == Rate || c.Kind == Total || c.Kind == Worth }

func (c *Column) parquetNode() parquet.Node {
	switch {
	case c.exact():
		return parquet.Decimal(6, 38, parquet.FixedLenByteArrayType(16))
	case c.Kind == Count:
		return parquet.Int(64)
	}
	return parquet.Leaf(parquet.DoubleType)
}

func (s *Table) parquetRow(g, bucket int) parquet.Row {
	row := make(parquet.Row, 0, len(s.Request.By)+3+2*len(s.Columns))
	put := func(v parquet.Value, has bool) {
		level := 1
		if !has {
			v, level = parquet.NullValue(), 0
		}
		row = append(row, v.Level(0, level, len(row)))
	}
	group := &s.Groups[g]
	for k := range s.Request.By {
		switch {
		case group.Others > 0:
			put(parquet.ByteArrayValue(fmt.Appendf(nil, "(%d others)", group.Others)), k == 0)
		default:
			put(parquet.ByteArrayValue([]byte(group.Values[k])), !group.Lacks[k])
		}
	}
	put(parquet.ByteArrayValue([]byte(s.Labels[bucket])), s.Labels[bucket] != "")
	for _, edge := range s.Edges[bucket : bucket+2] {
		row = append(row, parquet.Int64Value(int64(edge)).Level(0, 0, len(row)))
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		put(c.parquetValue(&c.cells, g*s.buckets()+bucket, s.untold(c, g)))
		if s.hasBefore() {
			put(c.parquetValue(c.before, g, s.untold(c, g)))
		}
	}
	return row
}

// parquetValue is a cell; false where it has no figure.
func (c *Column) parquetValue(f *figures, i int, untold bool) (parquet.Value, bool) {
	switch {
	case untold:
		return parquet.Value{}, false
	case c.exact():
		b := c.millionths(f.sum[i]).Bytes()
		return parquet.FixedLenByteArrayValue(b[:]), true
	case c.Kind == Count:
		return parquet.Int64Value(int64(f.n[i])), true
	}
	v, ok := c.value(f, i)
	return parquet.DoubleValue(v), ok
}

// millionths is a sum in the column's unit, in millionths.
func (c *Column) millionths(s Sum) Sum {
	switch {
	case c.worth():
		return Millionths(s)
	case c.hours:
		return s.Over(3600)
	}
	return s
}
