package usage

import (
	"fmt"

	"github.com/parquet-go/parquet-go"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/parquetfile"
)

// Parquet writes the table of [Table.CSV] as a Parquet file: keys and the bucket are
// texts, from and to are times in microseconds, sums are decimals of 38 digits, six of
// them behind the point, numbers are whole, and the rest is floating point. The
// metadata have what is known of the answer as JSON under "bursar".
func (s *Table) Parquet(complete []byte, send func([]byte) error) error {
	about := append(s.AppendAbout([]byte("{"), complete), '}')
	w := parquetfile.NewWriter(sender(send), "usage", s.parquetSchema(), parquet.KeyValueMetadata("bursar", string(about)))
	for g := range s.Groups {
		for bucket := range s.bucketCount() {
			if err := w.Write(s.parquetRow(g, bucket)); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// sender makes a writer of a function.
type sender func([]byte) error

func (s sender) Write(b []byte) (int, error) {
	if err := s(b); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (s *Table) parquetSchema() *parquetfile.Columns {
	o := &parquetfile.Columns{}
	for _, key := range s.Request.By {
		o.Add(key, parquet.Optional(parquet.String()))
	}
	o.Add("bucket", parquet.Optional(parquet.String()))
	o.Add("from", parquet.Timestamp(parquet.Microsecond))
	o.Add("to", parquet.Timestamp(parquet.Microsecond))
	for i := range s.Columns {
		c := &s.Columns[i]
		o.Add(c.titleWithUnit(), parquet.Optional(c.parquetNode()))
		if s.hasBefore() {
			o.Add(c.Name+" before", parquet.Optional(c.parquetNode()))
		}
	}
	return o
}

func (c *Column) isExact() bool { return c.Kind == Rate || c.Kind == Total || c.Kind == Worth }

func (c *Column) parquetNode() parquet.Node {
	switch {
	case c.isExact():
		return parquet.Decimal(6, 38, parquet.FixedLenByteArrayType(16))
	case c.Kind == Count:
		return parquet.Int(64)
	}
	return parquet.Leaf(parquet.DoubleType)
}

func (s *Table) parquetRow(g, bucket int) (row parquetfile.Row) {
	row.Row = make(parquet.Row, 0, len(s.Request.By)+3+2*len(s.Columns))
	group := &s.Groups[g]
	for k := range s.Request.By {
		switch {
		case group.Others > 0:
			row.PutOptional(parquet.ByteArrayValue(fmt.Appendf(nil, "(%d others)", group.Others)), k == 0)
		default:
			row.PutOptional(parquet.ByteArrayValue([]byte(group.Values[k])), !group.Lacks[k])
		}
	}
	row.PutOptional(parquet.ByteArrayValue([]byte(s.Labels[bucket])), s.Labels[bucket] != "")
	for _, edge := range s.Edges[bucket : bucket+2] {
		row.Put(parquet.Int64Value(int64(edge)))
	}
	for i := range s.Columns {
		c := &s.Columns[i]
		row.PutOptional(c.parquetValue(&c.cells, g*s.bucketCount()+bucket, s.hasNoFigure(c, g) || s.isUnknown(c, g, bucket)))
		if s.hasBefore() {
			row.PutOptional(c.parquetValue(c.before, g, s.hasNoFigure(c, g) || s.isBeforeUnknown(c, g)))
		}
	}
	return row
}

// parquetValue is a cell; false where it has no figure.
func (c *Column) parquetValue(f *figures, i int, untold bool) (parquet.Value, bool) {
	switch {
	case untold, c.isExact() && f.isUnknown(i):
		return parquet.Value{}, false
	case c.isExact():
		b := c.toMillionths(f.sum[i]).Bytes()
		return parquet.FixedLenByteArrayValue(b[:]), true
	case c.Kind == Count:
		return parquet.Int64Value(int64(f.n[i])), true
	}
	v, ok := c.cellValue(f, i)
	return parquet.DoubleValue(v), ok
}

// toMillionths is a sum in the column's unit, in millionths.
func (c *Column) toMillionths(s sums.Sum) sums.Sum {
	switch {
	case c.isInValueUnit():
		return sums.Millionths(s)
	case c.hours:
		return s.Over(3600)
	}
	return s
}
