package wire

import (
	"bytes"
	"errors"
	"unsafe"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Text is what JSON is read from. A decoder makes its strings parts of a string, and
// of a copy of bytes: nothing that it returns changes when the bytes do.
type Text interface{ ~string | ~[]byte }

// steadyBytes is a text as bytes that do not change, for reading only.
func steadyBytes[T Text](text T) []byte {
	s := string(text)                                 // copies bytes, and nothing else
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // no one writes to the bytes of a string
}

// DecodeAdd reads the body of AUDITOR's POST /record. The record is valid. A
// component has the kind that the body says, as the JSON of /v1 does, and else that
// of kinds. The error is a *[JSONError].
func DecodeAdd[T Text](body T, kinds record.Kinds) (record.Record, error) {
	return new(Lender).Add(steadyBytes(body), kinds)
}

// Add is [DecodeAdd] with views into body.
func (d *Lender) Add(body []byte, kinds record.Kinds) (record.Record, error) {
	return d.decodeOne(body, &shapeAdd, kinds)
}

// DecodeAdds reads the body of AUDITOR's POST /records and yields its records,
// each as [DecodeAdd] reads it, one by one. It does not look for ids that come twice.
// The error is that of yield, which ends the reading, or a *[JSONError]: then records
// before the bad one were yielded, and it is the caller's to forget them.
func DecodeAdds[T Text](body T, kinds record.Kinds, yield func(record.Record) error) error {
	return new(Lender).Adds(steadyBytes(body), kinds, yield)
}

// Adds is [DecodeAdds] with d's slices, and views into body.
func (d *Lender) Adds(body []byte, kinds record.Kinds, yield func(record.Record) error) error {
	in := jsonReader{Lender: d, kinds: kinds}
	in.beginAt(body, 0)
	var failed error
	err := in.readList(func() *JSONError {
		var r record.Record
		if err := in.readValid(&shapeAdd, &r); err != nil {
			return err
		}
		failed = yield(r)
		if failed != nil {
			return &JSONError{}
		}
		return nil
	})
	if failed != nil {
		return failed
	}
	if err == nil {
		err = in.checkEnd()
	}
	if err != nil {
		return err
	}
	return nil
}

// DecodeUpdate reads the body of AUDITOR's PUT /record. Components must be there,
// and everything else may be; it is checked and forgotten. The error is a
// *[JSONError].
func DecodeUpdate[T Text](body T) (id string, stop record.Time, err error) {
	r, err := new(Lender).decodeOne(steadyBytes(body), &shapeUpdate, nil)
	if err != nil {
		return "", record.None, err
	}
	return r.ID, r.Stop, nil
}

// DecodeRecordJSON reads a record as a server gives it: the fields of AUDITOR,
// and those of /v1 where they are there. Components may be null. The error is a
// *[JSONError].
func DecodeRecordJSON[T Text](body T) (record.Record, error) {
	return new(Lender).decodeOne(steadyBytes(body), &shapeStored, nil)
}

// DecodeComponentsJSON reads a list of components, as AUDITOR and /v1 give it, one of
// which without a kind is a rate. The error is a *[JSONError].
func DecodeComponentsJSON[T Text](text T) ([]record.Component, error) {
	in := jsonReader{Lender: new(Lender)}
	in.beginAt(steadyBytes(text), 0)
	list, err := in.componentList(componentFields[:])
	if err == nil {
		err = in.checkEnd()
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

// decodeOne returns an error, not a *JSONError, so that none is nil.
func (d *Lender) decodeOne(body []byte, want *shape, kinds record.Kinds) (record.Record, error) {
	var r record.Record
	in := jsonReader{Lender: d, kinds: kinds}
	in.beginAt(body, 0)
	err := in.readValid(want, &r)
	if err == nil {
		err = in.checkEnd()
	}
	if err != nil {
		return record.Record{}, err
	}
	return r, nil
}

// shape is which of the three JSON objects is read.
type shape struct {
	fields, component  []string
	required, nullable int // bits of fields
}

// The fields of a record.
const (
	fieldID = iota
	fieldMeta
	fieldComponents
	fieldStart
	fieldStop
	fieldSubmit
	fieldState
	fieldCode
	fieldSignal
)

var (
	recordFields = [...]string{"record_id", "meta", "components", "start_time", "stop_time",
		"submit_time", "state", "exit_code", "exit_signal"} // the second line is of /v1
	componentFields = [...]string{"name", "amount", "scores", "kind"}
	scoreFields     = [...]string{"name", "value"}

	// RecordAdd, RecordUpdate, and Record, also of /v1.
	shapeAdd = shape{recordFields[:fieldSubmit], componentFields[:],
		1<<fieldID | 1<<fieldComponents | 1<<fieldStart, 1<<fieldMeta | 1<<fieldStop}
	shapeUpdate = shape{recordFields[:fieldSubmit], componentFields[:fieldKind],
		1<<fieldID | 1<<fieldComponents | 1<<fieldStop, 1<<fieldMeta | 1<<fieldStart}
	shapeStored = shape{recordFields[:], componentFields[:],
		1<<fieldID | 1<<fieldStart, 1<<fieldMeta | 1<<fieldComponents | 1<<fieldStop |
			1<<fieldSubmit | 1<<fieldState | 1<<fieldCode | 1<<fieldSignal}
)

// jsonReader reads records. Lists are cut from the slabs of a Lender.
type jsonReader struct {
	jsonValues
	*Lender

	kinds   record.Kinds // of components that do not say theirs
	careful bool         // names are checked where they are read
	parts   int          // keys, values, components and scores of the record
}

// readValid reads a record and validates it. Names are checked when all is read,
// which is quick; when one is bad, the record is read again with care, which
// finds its place.
func (in *jsonReader) readValid(want *shape, r *record.Record) *JSONError {
	from := in.pos
	if err := in.readRecord(want, r); err != nil {
		return err
	}
	bad := r.Validate()
	if bad == nil {
		return nil
	}
	again := jsonReader{Lender: in.Lender, kinds: in.kinds, careful: true}
	again.beginAt(in.input, from+bytes.IndexByte(in.input[from:], '{')) // behind a comma
	if err := again.readRecord(want, r); err != nil {
		return err
	}
	err := in.failBehind("%s", bad.Error())
	if field, ok := errors.AsType[*record.FieldError](bad); ok {
		err.Message, err.Path = field.Problem, field.Field
	}
	return err
}

func (in *jsonReader) readRecord(want *shape, r *record.Record) *JSONError {
	*r = record.Record{Stop: record.None, Submit: record.None}
	in.dropUnfinished()
	in.parts = 0
	_, err := in.readObject("struct RecordAdd", want.fields, want.required, func(field int) *JSONError {
		if want.nullable&(1<<field) != 0 {
			if null, err := in.readNull(); null {
				return err
			}
		}
		return in.readField(want, field, r)
	})
	return err
}

// readField reads the value of a field that is not null.
func (in *jsonReader) readField(want *shape, field int, r *record.Record) (err *JSONError) {
	var v int64
	switch field {
	case fieldID:
		r.ID, err = in.readName()
	case fieldMeta:
		r.Meta, err = in.readMeta()
	case fieldComponents:
		r.Components, err = in.componentList(want.component)
	case fieldStart:
		r.Start, err = in.readTime()
	case fieldStop:
		r.Stop, err = in.readTime()
	case fieldSubmit:
		r.Submit, err = in.readTime()
	case fieldState:
		r.State, err = in.readName()
	case fieldCode:
		v, err = in.readInteger("i32", 32)
		r.Exit.Known, r.Exit.Code = true, int32(v)
	case fieldSignal:
		v, err = in.readInteger("i32", 32)
		r.Exit.Known, r.Exit.Signal = true, int32(v)
	}
	return err
}
