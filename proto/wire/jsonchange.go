package wire

import "github.com/bursar-accounting/bursar/proto/record"

// Change is a change of the ledger of /v1/changes.
type Change struct {
	Seq    uint64
	ID     string
	Shown  bool          // false: the id shows nothing any more
	Record record.Record // that is shown
	Former Former        // what the change supersedes; Seq 0: nothing
}

// Former names a record that is superseded.
type Former struct {
	Seq  uint64
	Stop record.Time
}

// The fields of a change, and of what it supersedes.
const (
	fieldSeq = iota
	fieldRecordID
	fieldRecord
	fieldSupersedes
)

const fieldFormerStop = 1

var (
	changeFields = [...]string{"seq", "record_id", "record", "supersedes"}
	formerFields = [...]string{"seq", "stop_time"}
)

// Change reads a line of /v1/changes with ledger=true: d's slices, and views into line. With an
// error, a *[JSONError], it returns what was read until then.
func (d *Lender) Change(line []byte) (c Change, err error) {
	in := jsonReader{Lender: d}
	in.beginAt(line, 0)
	_, bad := in.readObject("struct Change", changeFields[:], 1<<fieldSeq|1<<fieldRecordID|1<<fieldRecord|1<<fieldSupersedes, func(field int) *JSONError {
		return in.readChangeField(field, &c)
	})
	if bad == nil {
		bad = in.checkEnd()
	}
	if bad != nil {
		return c, bad
	}
	return c, nil
}

func (in *jsonReader) readChangeField(field int, c *Change) (err *JSONError) {
	switch field {
	case fieldSeq:
		c.Seq, err = in.readSeq()
	case fieldRecordID:
		c.ID, err = in.readText("a string")
	case fieldRecord:
		null := false
		if null, err = in.readNull(); !null {
			c.Shown = true
			err = in.readValid(&shapeStored, &c.Record)
		}
	case fieldSupersedes:
		null := false
		if null, err = in.readNull(); !null {
			err = in.readFormer(&c.Former)
		}
	}
	return err
}

func (in *jsonReader) readFormer(f *Former) *JSONError {
	_, err := in.readObject("struct Record", formerFields[:], 1<<fieldSeq|1<<fieldFormerStop, func(field int) (err *JSONError) {
		if field == fieldFormerStop {
			f.Stop, err = in.readTime()
			return err
		}
		f.Seq, err = in.readSeq()
		return err
	})
	return err
}

// readSeq reads the number of a change, which is not 0.
func (in *jsonReader) readSeq() (uint64, *JSONError) {
	v, err := in.readInteger("u64", 64)
	if err == nil && v <= 0 {
		err = in.failValue("invalid value: integer `%d`, expected a number of a change", v)
	}
	return uint64(max(v, 0)), err
}
