package wire

import (
	"errors"
	"unsafe"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Text is what JSON is read from. A decoder makes its strings parts of a string, and
// of a copy of bytes: nothing that it returns changes when the bytes do.
type Text interface{ ~string | ~[]byte }

// steady is a text as bytes that do not change, for reading only.
func steady[T Text](text T) []byte {
	s := string(text)                                 // copies bytes, and nothing else
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // no one writes to the bytes of a string
}

// DecodeAdd reads the body of AUDITOR's POST /record. The record is valid. A
// component has the kind that the body says, as the JSON of /v1 does, and else that
// of kinds. The error is a *[JSONError].
func DecodeAdd[T Text](body T, kinds record.Kinds) (record.Record, error) {
	return new(Lender).Add(steady(body), kinds)
}

// Add is [DecodeAdd] with views into body.
func (d *Lender) Add(body []byte, kinds record.Kinds) (record.Record, error) {
	return d.decodeOne(body, shapeAdd, kinds)
}

// DecodeAdds reads the body of AUDITOR's POST /records and yields its records,
// each as [DecodeAdd] reads it, one by one. It does not look for ids that come twice.
// The error is that of yield, which ends the reading, or a *[JSONError]: then records
// before the bad one were yielded, and it is the caller's to forget them.
func DecodeAdds[T Text](body T, kinds record.Kinds, yield func(record.Record) error) error {
	return new(Lender).Adds(steady(body), kinds, yield)
}

// Adds is [DecodeAdds] with d's slices, and views into body.
func (d *Lender) Adds(body []byte, kinds record.Kinds, yield func(record.Record) error) error {
	in := jsonReader{scanner: scanner{b: body}, Lender: d, kinds: kinds}
	if err := in.open('[', "a sequence"); err != nil {
		return err
	}
	for i := 0; ; i++ {
		more, err := in.element(i == 0)
		if err == nil && !more {
			err = in.end()
		}
		if err != nil {
			return err
		}
		if !more {
			return nil
		}
		var r record.Record
		if err := in.valid(shapeAdd, &r); err != nil {
			return err.in("[%d]", i)
		}
		if err := yield(r); err != nil {
			return err
		}
	}
}

// DecodeUpdate reads the body of AUDITOR's PUT /record. Components must be there,
// and everything else may be; it is checked and forgotten. The error is a
// *[JSONError].
func DecodeUpdate[T Text](body T) (id string, stop record.Time, err error) {
	r, err := new(Lender).decodeOne(steady(body), shapeUpdate, nil)
	if err != nil {
		return "", record.None, err
	}
	return r.ID, r.Stop, nil
}

// DecodeRecordJSON reads a record as a server gives it: the fields of AUDITOR,
// and those of /v1 where they are there. Components may be null. The error is a
// *[JSONError].
func DecodeRecordJSON[T Text](body T) (record.Record, error) {
	return new(Lender).decodeOne(steady(body), shapeStored, nil)
}

// decodeOne returns an error, not a *JSONError, so that none is nil.
func (d *Lender) decodeOne(body []byte, want shape, kinds record.Kinds) (record.Record, error) {
	var r record.Record
	in := jsonReader{scanner: scanner{b: body}, Lender: d, kinds: kinds}
	err := in.valid(want, &r)
	if err == nil {
		err = in.end()
	}
	if err != nil {
		return record.Record{}, err
	}
	return r, nil
}

// shape is which of the three JSON objects is read.
type shape uint8

const (
	shapeAdd    shape = iota // RecordAdd
	shapeUpdate              // RecordUpdate
	shapeStored              // Record, also of /v1
)

// jsonReader reads records. Lists are cut from the slabs of a Lender.
type jsonReader struct {
	scanner
	*Lender
	kinds   record.Kinds // of components that do not say theirs
	careful bool         // names are checked where they are read
	parts   int          // keys, values, components and scores of the record
}

// valid reads a record and validates it. Names are checked when all is read,
// which is quick; when one is bad, the record is read again with care, which
// finds its place.
func (in *jsonReader) valid(want shape, r *record.Record) *JSONError {
	from := in.i
	if err := in.record(want, r); err != nil {
		return err
	}
	bad := r.Validate()
	if bad == nil {
		return nil
	}
	end := in.i
	in.i, in.careful = from, true
	if err := in.record(want, r); err != nil {
		return err
	}
	in.i = end
	err := in.fail("%s", bad.Error())
	if field := (*record.FieldError)(nil); errors.As(bad, &field) {
		err.Message, err.Path = field.Problem, field.Field
	}
	return err
}

// The fields of a record that were seen.
const (
	seenID = 1 << iota
	seenMeta
	seenComponents
	seenStart
	seenStop
	seenSubmit
	seenState
	seenCode
	seenSignal
)

func (in *jsonReader) record(want shape, r *record.Record) *JSONError {
	*r = record.Record{Stop: record.None, Submit: record.None}
	in.drop()
	in.parts = 0
	if err := in.open('{', "struct RecordAdd"); err != nil {
		return err
	}
	seen := 0
	for first := true; ; first = false {
		key, more, err := in.key(first)
		if err != nil {
			return err
		}
		if !more {
			return in.complete(want, seen)
		}
		if err := in.field(want, key, &seen, r); err != nil {
			return err
		}
	}
}

// complete names the first field that is missing.
func (in *jsonReader) complete(want shape, seen int) *JSONError {
	switch {
	case seen&seenID == 0:
		return in.missing("record_id")
	case seen&seenComponents == 0 && want != shapeStored:
		return in.missing("components")
	case seen&seenStart == 0 && want != shapeUpdate:
		return in.missing("start_time")
	case seen&seenStop == 0 && want == shapeUpdate:
		return in.missing("stop_time")
	}
	return nil
}

func (in *jsonReader) missing(field string) *JSONError {
	return in.fail("missing field `%s`", field)
}

// once notes in seen that the key of bit is there, and refuses it the next time.
func (in *jsonReader) once(bit int, key string, seen *int) *JSONError {
	if *seen&bit != 0 {
		return in.fail("duplicate field `%s`", key)
	}
	*seen |= bit
	return nil
}

// field reads the value of a key.
func (in *jsonReader) field(want shape, key string, seen *int, r *record.Record) (err *JSONError) {
	bit := fieldBit(want, key)
	if bit == 0 {
		return in.skip(2)
	}
	if err := in.once(bit, key, seen); err != nil {
		return err
	}
	switch bit {
	case seenID:
		r.ID, err = in.name()
	case seenMeta:
		r.Meta, err = in.meta()
	case seenComponents:
		r.Components, err = in.list(want)
	case seenStart:
		r.Start, err = in.time(want == shapeUpdate)
	case seenStop:
		r.Stop, err = in.time(want != shapeUpdate)
	default:
		err = in.runEnd(bit, r)
	}
	if err != nil {
		return err.in("%s", key)
	}
	return nil
}

// fieldBit returns zero for a key that the shape ignores.
func fieldBit(want shape, key string) int {
	switch key {
	case "record_id":
		return seenID
	case "meta":
		return seenMeta
	case "components":
		return seenComponents
	case "start_time":
		return seenStart
	case "stop_time":
		return seenStop
	}
	if want != shapeStored {
		return 0
	}
	switch key {
	case "submit_time":
		return seenSubmit
	case "state":
		return seenState
	case "exit_code":
		return seenCode
	case "exit_signal":
		return seenSignal
	}
	return 0
}

// runEnd reads what /v1 adds.
func (in *jsonReader) runEnd(bit int, r *record.Record) (err *JSONError) {
	switch {
	case bit == seenSubmit:
		r.Submit, err = in.time(true)
	case in.null():
	case bit == seenState:
		r.State, err = in.name()
	case bit == seenCode:
		r.Exit.Known = true
		r.Exit.Code, err = in.int32()
	case bit == seenSignal:
		r.Exit.Known = true
		r.Exit.Signal, err = in.int32()
	}
	return err
}

func (in *jsonReader) int32() (int32, *JSONError) {
	v, err := in.whole("i32")
	if err == nil && int64(int32(v)) != v {
		err = in.failValue("invalid value: integer `%d`, expected i32", v)
	}
	return int32(v), err
}
