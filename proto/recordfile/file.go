package recordfile

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/parquetfile"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// Schema is which columns a file has.
type Schema string

// The schemas.
const (
	Bursar  Schema = "bursar"
	Auditor Schema = "auditor"
)

const (
	// rowsInGroup is how many rows are in memory.
	rowsInGroup = 1 << 16
	// formatKey has the version of the schema in the metadata of a file.
	formatKey, formatVersion = "bursar.format", "1"
	aboutKey                 = "bursar.archive"
)

// The columns that both schemas have.
const (
	columnID = iota
	columnMeta
	columnComponents
	columnStart
	columnStop
	ofAuditor // those of an AUDITOR that are read: runtime follows from others
)

// readColumns are the columns that are read, in their order in a row that is written.
func readColumns() []string {
	return []string{"record_id", "meta", "components", "start_time", "stop_time", "submit_time", "state", "exit_code", "exit_signal",
		"origin", "rank", "received", "changed", "seq", "supersedes", "observed", "ended", "body_stop", "stop_observed", "empty_components"}
}

func columnsOf(s Schema) *parquetfile.Columns {
	c := &parquetfile.Columns{}
	word := parquet.Encoded(parquet.String(), &parquet.RLEDictionary) // of few values
	at := parquet.Timestamp(parquet.Microsecond)
	if s == Auditor {
		at = parquet.Timestamp(parquet.Millisecond)
	}
	c.Add("record_id", parquet.String())
	c.Add("meta", word)
	c.Add("components", word)
	c.Add("start_time", at)
	c.Add("stop_time", at)
	c.Add("runtime", parquet.Int(64))
	if s == Auditor {
		return c
	}
	c.Add("submit_time", parquet.Optional(at))
	c.Add("state", parquet.Optional(word))
	c.Add("exit_code", parquet.Optional(parquet.Int(32)))
	c.Add("exit_signal", parquet.Optional(parquet.Int(32)))
	c.Add("negative", parquet.Leaf(parquet.BooleanType))
	c.Add("origin", word)
	c.Add("rank", word)
	c.Add("received", parquet.Optional(at))
	c.Add("changed", parquet.Optional(at))
	c.Add("seq", parquet.Int(64))
	c.Add("supersedes", parquet.Int(64))
	c.Add("observed", at)
	c.Add("ended", parquet.Leaf(parquet.BooleanType))
	c.Add("body_stop", parquet.Optional(at))
	c.Add("stop_observed", parquet.Optional(at))
	c.Add("empty_components", parquet.Leaf(parquet.BooleanType))
	return c
}

// Writer writes a file, and counts what it writes.
type Writer struct {
	Totals

	schema Schema
	out    *parquetfile.Writer
}

// NewWriter returns a writer of a file, which says of itself what about says.
func NewWriter(out io.Writer, s Schema, about string) *Writer {
	return &Writer{schema: s, out: parquetfile.NewWriter(out, "records", columnsOf(s), parquet.MaxRowsPerRowGroup(rowsInGroup),
		parquet.KeyValueMetadata(formatKey, formatVersion), parquet.KeyValueMetadata(aboutKey, about))}
}

// Write adds a row. Its record has ended.
func (w *Writer) Write(r *archived.Row) error {
	shown := r.Shown()
	seconds, ended := shown.Runtime()
	if !ended {
		return fmt.Errorf("record %q has not ended", r.Record.ID)
	}
	w.Row(r)
	var out parquetfile.Row
	text := func(b []byte) { out.Put(parquet.ByteArrayValue(b)) }
	unit, components := int64(1), wire.AppendComponentsJSON
	if w.schema == Auditor {
		unit, components = 1000, wire.AppendAuditorComponentsJSON
	}
	text([]byte(shown.ID))
	text(wire.AppendMetaJSON(nil, shown.Meta))
	text(components(nil, shown.Components))
	out.Put(parquet.Int64Value(int64(shown.Start) / unit))
	out.Put(parquet.Int64Value(int64(shown.Stop) / unit))
	out.Put(parquet.Int64Value(seconds))
	if w.schema == Bursar {
		putOwn(&out, r, &shown)
	}
	return w.out.Write(out)
}

// putOwn adds the columns that AUDITOR does not have.
func putOwn(out *parquetfile.Row, r *archived.Row, shown *record.Record) {
	moment := func(t record.Time, has bool) { out.PutOptional(parquet.Int64Value(int64(t)), has && t != record.None) }
	moment(r.Record.Submit, true)
	out.PutOptional(parquet.ByteArrayValue([]byte(r.Record.State)), r.Record.State != "")
	out.PutOptional(parquet.Int32Value(r.Record.Exit.Code), r.Record.Exit.Known)
	out.PutOptional(parquet.Int32Value(r.Record.Exit.Signal), r.Record.Exit.Known)
	out.Put(parquet.BooleanValue(shown.Negative()))
	out.Put(parquet.ByteArrayValue([]byte(r.Origin.String())))
	out.Put(parquet.ByteArrayValue([]byte(r.Rank.String())))
	moment(r.Received, true)
	moment(r.Changed, true)
	out.Put(parquet.Int64Value(int64(r.Seq)))
	out.Put(parquet.Int64Value(int64(r.Supersedes)))
	out.Put(parquet.Int64Value(r.Version.Observed))
	out.Put(parquet.BooleanValue(r.Version.Ended))
	said := r.Stop != record.None // the stop that is shown was said by a client
	moment(r.Record.Stop, said)
	out.PutOptional(parquet.Int64Value(r.StopObserved), said)
	out.Put(parquet.BooleanValue(r.Record.Components != nil && len(r.Record.Components) == 0))
}

// Close writes the end of the file.
func (w *Writer) Close() error { return w.out.Close() }

// File is a file of either schema that is read.
type File struct {
	*parquetfile.File

	columns []column // by their place in a row
	ours    bool
}

// column is one of names, with the unit of a time. That of a column that is not read is -1.
type column struct {
	index int
	unit  time.Duration
}

// Open reads the end of a file.
func Open(in io.ReaderAt, size int64) (*File, error) {
	file, err := parquetfile.Open(in, size)
	if err != nil {
		return nil, err
	}
	f := &File{File: file, columns: slices.Repeat([]column{{index: -1}}, len(file.Schema().Columns()))}
	version, ours := file.Lookup(formatKey)
	if ours && version != formatVersion {
		return nil, fmt.Errorf("its format is %s, and this program knows %s; use a newer one", version, formatVersion)
	}
	_, f.ours = file.Schema().Lookup("origin")
	f.ours = f.ours && ours
	for i, name := range readColumns() {
		leaf, there := file.Schema().Lookup(name)
		if !there && (i < ofAuditor || f.ours) {
			return nil, fmt.Errorf("it has no column %s, so it is not an archive of AUDITOR or bursar", name)
		}
		if there && (i < ofAuditor || f.ours) {
			f.columns[leaf.ColumnIndex] = column{i, unitOf(leaf.Node)}
		}
	}
	return f, nil
}

// About is what the writer said of the file; "" where it is not bursar's.
func (f *File) About() string {
	about, _ := f.Lookup(aboutKey)
	return about
}

// unitOf is the unit of a time, which is milliseconds with AUDITOR.
func unitOf(n parquet.Node) time.Duration {
	if t := n.Type().LogicalType(); t != nil {
		if stamp, ok := t.Value.(*format.TimestampType); ok && stamp.Unit.Value != nil {
			return stamp.Unit.Value.Duration()
		}
	}
	return time.Millisecond
}

// instantOf is the time of a number of units since 1970.
func (c column) instantOf(n int64) record.Time {
	if c.unit < time.Microsecond {
		return record.Time(n / int64(time.Microsecond/c.unit))
	}
	return record.Time(n * int64(c.unit/time.Microsecond))
}

// Lines yields the records from number from on, as a server gives them in JSON: AUDITOR's
// fields, and those of bursar where the file has them. A line is valid until yield returns.
func (f *File) Lines(from int64, yield func(line []byte) error) error {
	var line []byte
	return f.File.Rows(from, func(r parquet.Row) error {
		line = f.appendLine(line[:0], r)
		return yield(line)
	})
}

// appendLine writes a row as a server does.
func (f *File) appendLine(b []byte, r parquet.Row) []byte {
	b = append(b, '{')
	for _, v := range r {
		c := f.columns[v.Column()]
		if c.index < 0 || c.index >= columnOrigin {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), readColumns()[c.index]...), `":`...)
		switch {
		case v.IsNull():
			b = append(b, "null"...)
		case c.index == columnMeta || c.index == columnComponents: // JSON already
			b = append(b, v.ByteArray()...)
		case v.Kind() == parquet.ByteArray:
			text, _ := json.Marshal(string(v.ByteArray())) // a text
			b = append(b, text...)
		case v.Kind() == parquet.Int32:
			b = strconv.AppendInt(b, int64(v.Int32()), 10)
		default:
			b = append(append(append(b, '"'), c.instantOf(v.Int64()).String()...), '"')
		}
	}
	return append(b, '}')
}

// The columns that only bursar's own schema has and that are not of the record itself.
const (
	columnOrigin = ofAuditor + 4 + iota
	columnRank
	columnReceived
	columnChanged
	columnSeq
	columnSupersedes
	columnObserved
	columnEnded
	columnBodyStop
	columnStopObserved
	columnEmptyComponents
)

// Rows yields the rows of a file of bursar's schema. They belong to the caller.
func (f *File) Rows(yield func(*archived.Row) error) error {
	if !f.ours {
		return errors.New("the file has not the columns of bursar, so its records cannot be restored exactly")
	}
	var line []byte
	return f.File.Rows(0, func(in parquet.Row) error {
		line = f.appendLine(line[:0], in)
		rec, err := wire.DecodeRecordJSON(line)
		if err != nil {
			return err
		}
		r := archived.Row{Record: rec, Received: record.None, Changed: record.None, Stop: record.None}
		body := record.None
		for _, v := range in {
			if err := f.readOwn(&r, &body, v); err != nil {
				return fmt.Errorf("record %q: %w", rec.ID, err)
			}
		}
		if r.Stop != record.None {
			r.Stop, r.Record.Stop = rec.Stop, body
		}
		return yield(&r)
	})
}

// readOwn reads a column that is not of the record itself. A stop that a client said is marked
// by any Stop.
func (f *File) readOwn(r *archived.Row, body *record.Time, v parquet.Value) error {
	ok := true
	switch c := f.columns[v.Column()]; {
	case v.IsNull():
	case c.index == columnOrigin:
		r.Origin, ok = parseOrigin(string(v.ByteArray()))
	case c.index == columnRank:
		r.Rank, ok = parseRank(string(v.ByteArray()))
	case c.index == columnReceived:
		r.Received = c.instantOf(v.Int64())
	case c.index == columnChanged:
		r.Changed = c.instantOf(v.Int64())
	case c.index == columnSeq:
		r.Seq = uint64(v.Int64())
	case c.index == columnSupersedes:
		r.Supersedes = uint64(v.Int64())
	case c.index == columnObserved:
		r.Version.Observed = v.Int64()
	case c.index == columnEnded:
		r.Version.Ended = v.Boolean()
	case c.index == columnBodyStop:
		*body = c.instantOf(v.Int64())
	case c.index == columnStopObserved:
		r.Stop, r.StopObserved = 0, v.Int64()
	case c.index == columnEmptyComponents && v.Boolean():
		r.Record.Components = []record.Component{}
	}
	if !ok {
		return fmt.Errorf("unknown %s %q", readColumns()[f.columns[v.Column()].index], v.ByteArray())
	}
	return nil
}
