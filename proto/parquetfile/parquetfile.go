// Package parquetfile writes and reads Parquet files row by row. Memory is bounded by a row
// group, whatever a file has.
package parquetfile

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/parquet-go/parquet-go"
)

const (
	batch = 1 << 10 // rows that go to the library, and come from it, at once
	// rowsInGroup is how many rows a row group has unless the options of a file say more.
	rowsInGroup = 1 << 17
	// readBuffer is how much of a column is read at once: each read of a file in a bucket is
	// a request.
	readBuffer = 1 << 20
)

// Columns are those of a file. They keep their order; the library's own groups sort them by
// name. The zero value has none.
type Columns struct {
	parquet.Group

	names []string
}

// Add adds a column behind the others. A name that is there already gets a number.
func (c *Columns) Add(name string, n parquet.Node) {
	if c.Group == nil {
		c.Group = parquet.Group{}
	}
	for i := 2; slices.Contains(c.names, name); i++ {
		name = fmt.Sprintf("%s (%d)", name, i)
	}
	c.names = append(c.names, name)
	c.Group[name] = n
}

// Fields implements parquet.Node.
func (c *Columns) Fields() []parquet.Field {
	fields := c.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(c.names, a.Name()) - slices.Index(c.names, b.Name())
	})
	return fields
}

// Row is a row that is being made, column by column.
type Row struct{ parquet.Row }

// Put adds the value of a column that must have one.
func (r *Row) Put(v parquet.Value) { r.Row = append(r.Row, v.Level(0, 0, len(r.Row))) }

// PutOptional adds the value of an optional column; null without one.
func (r *Row) PutOptional(v parquet.Value, has bool) {
	level := 1
	if !has {
		v, level = parquet.NullValue(), 0
	}
	r.Row = append(r.Row, v.Level(0, level, len(r.Row)))
}

// Writer writes a file, compressed with zstd.
type Writer struct {
	w     rowWriter
	batch []parquet.Row
}

type rowWriter interface {
	parquet.RowWriter
	io.Closer
}

// NewWriter returns a writer of a file with a schema of that name. What the options say
// counts before what the package does by itself.
func NewWriter(out io.Writer, name string, c *Columns, options ...parquet.WriterOption) *Writer {
	options = append([]parquet.WriterOption{
		parquet.NewSchema(name, c), parquet.Compression(&parquet.Zstd), parquet.MaxRowsPerRowGroup(rowsInGroup),
	}, options...)
	return &Writer{w: parquet.NewWriter(out, options...), batch: make([]parquet.Row, 0, batch)}
}

// Write adds a row, which belongs to the writer from then on.
func (w *Writer) Write(r Row) error {
	w.batch = append(w.batch, r.Row)
	if len(w.batch) < batch {
		return nil
	}
	return w.flush()
}

func (w *Writer) flush() error {
	if _, err := w.w.WriteRows(w.batch); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	clear(w.batch)
	w.batch = w.batch[:0]
	return nil
}

// Close writes the rest. A file that was not closed is not a Parquet file.
func (w *Writer) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.w.Close(); err != nil {
		return fmt.Errorf("parquet: %w", err)
	}
	return nil
}

// File is a file that is read.
type File struct{ *parquet.File }

// Open reads the end of a file. Damage is an error, of this function or of Rows.
func Open(in io.ReaderAt, size int64) (f *File, err error) {
	defer recoverDamage(&err)
	file, err := parquet.OpenFile(in, size, parquet.ReadBufferSize(int(min(readBuffer, max(size, 1<<10)))), parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, fmt.Errorf("it is not a Parquet file: %w", err)
	}
	return &File{file}, nil
}

// recoverDamage makes an error of a panic: the library panics on some damaged files.
func recoverDamage(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the Parquet file is damaged: %v", p)
	}
}

// Rows yields the rows from number from on, which is counted from 0, until yield fails. A
// row is valid until yield returns.
func (f *File) Rows(from int64, yield func(parquet.Row) error) error {
	for _, group := range f.RowGroups() {
		if n := group.NumRows(); from >= n {
			from -= n
			continue
		}
		if err := rowsOf(group, from, yield); err != nil {
			return err
		}
		from = 0
	}
	return nil
}

func rowsOf(group parquet.RowGroup, from int64, yield func(parquet.Row) error) (err error) {
	rows, err := seekRow(group, from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	buffer := make([]parquet.Row, batch)
	for {
		n, err := readRows(rows, buffer)
		for _, r := range buffer[:n] {
			if err := yield(r); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func seekRow(group parquet.RowGroup, from int64) (rows parquet.Rows, err error) {
	defer recoverDamage(&err)
	rows = group.Rows()
	return rows, rows.SeekToRow(from)
}

func readRows(rows parquet.Rows, buffer []parquet.Row) (n int, err error) {
	defer recoverDamage(&err)
	return rows.ReadRows(buffer)
}
