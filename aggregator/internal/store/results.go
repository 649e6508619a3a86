package store

import (
	"errors"
	"fmt"
)

// resultFormat is the version of what [EncodeResult] writes.
const resultFormat = 1

// The kinds of results. The numbers travel between nodes of different versions:
// they are never reused.
const (
	resultNone     = 0
	resultIngest   = 1
	resultPost     = 2
	resultPut      = 3
	resultDelete   = 4
	resultText     = 5
	resultNumber   = 6
	resultHash     = 7
	resultDocument = 8
	resultGroup    = 9
	resultArchived = 10 // a stop that was not put
	resultArchive  = 11
)

// ErrResult is wrapped by the errors of [EncodeResult] and [DecodeResult].
var ErrResult = errors.New("unknown or damaged result")

// EncodeResult returns the result of a command, as [Store.Apply] gives it, as
// bytes for another node: a follower that has handed the command to the leader.
func EncodeResult(result any) ([]byte, error) {
	e := encoder{b: []byte{resultFormat}}
	if err := e.putResult(result, true); err != nil {
		return nil, err
	}
	return e.b, nil
}

// DecodeResult reads what [EncodeResult] wrote. The error wraps [ErrResult].
func DecodeResult(b []byte) (any, error) {
	d := decoder{b: b}
	d.checkFormat(resultFormat)
	result := d.readResult(true)
	if err := d.checkEnd("result"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	return result, nil
}

// putResult writes one result. A group, which holds no group, is written where
// outer is true.
func (e *encoder) putResult(result any, outer bool) error {
	switch r := result.(type) {
	case nil:
		e.putByte(resultNone)
	case IngestResult:
		e.putByte(resultIngest)
		e.putBool(r.Accepted)
		e.putText(r.Cursor.Agent)
		e.putBytes(encodeValue(cursorFormat, &r.Cursor))
		r.Counts.visitFields(fields{e: e})
	case PostResult:
		e.putByte(resultPost)
		r.visitFields(fields{e: e})
	case PutResult:
		if r.Archived != "" {
			e.putByte(resultArchived)
			e.putText(r.Archived)
			break
		}
		e.putByte(resultPut)
		e.putBool(r.Found)
	case ArchiveResult:
		e.putByte(resultArchive)
		r.visitFields(fields{e: e})
	case DeleteResult:
		e.putByte(resultDelete)
		e.putInt(int64(r.Changed))
	case string:
		e.putByte(resultText)
		e.putText(r)
	case uint32:
		e.putByte(resultNumber)
		e.putUint(uint64(r))
	case HashResult:
		e.putByte(resultHash)
		e.putUint(r.Index)
		e.putFixed64(r.Hash.Hi, r.Hash.Lo)
	case DocumentResult:
		e.putByte(resultDocument)
		e.putBool(r.Done)
		e.putUint(r.Index)
	case []any:
		if !outer {
			return fmt.Errorf("%w: a group within a group", ErrResult)
		}
		e.putByte(resultGroup)
		e.putUint(uint64(len(r)))
		for _, one := range r {
			if err := e.putResult(one, false); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: %T", ErrResult, result)
	}
	return nil
}

func (r *PostResult) visitFields(f fields) {
	visitList(f, &r.Existing, fields.visitText)
	f.visitText(&r.Refused)
	f.visitBool(&r.Unknown)
	added := int64(r.Added)
	f.visitInt(&added)
	r.Added = int(added)
	f.visitUint(&r.Seq)
}

func (r *ArchiveResult) visitFields(f fields) {
	f.visitText(&r.Refused)
	visitByte(f, &r.State)
	f.visitBool(&r.Done)
	f.visitUint(&r.Changed)
	f.visitUint(&r.Left)
}

func (d *decoder) readResult(outer bool) any {
	switch d.readByte() {
	case resultNone:
		return nil
	case resultIngest:
		return d.readIngestResult()
	case resultPost:
		var r PostResult
		r.visitFields(fields{d: d})
		return r
	case resultPut:
		return PutResult{Found: d.readBool()}
	case resultArchived:
		return PutResult{Found: true, Archived: d.readText()}
	case resultArchive:
		var r ArchiveResult
		r.visitFields(fields{d: d})
		return r
	case resultDelete:
		return DeleteResult{Changed: int(d.readInt())}
	case resultText:
		return d.readText()
	case resultNumber:
		return d.readUint32()
	case resultHash:
		return HashResult{Index: d.readUint(), Hash: Hash{Hi: d.readFixed64(), Lo: d.readFixed64()}}
	case resultDocument:
		return DocumentResult{Done: d.readBool(), Index: d.readUint()}
	case resultGroup:
		if outer {
			return d.readGroupResult()
		}
	}
	d.fail()
	return nil
}

func (d *decoder) readUint32() uint32 {
	v := d.readUint()
	if v > 1<<32-1 {
		d.fail()
	}
	return uint32(v)
}

func (d *decoder) readIngestResult() IngestResult {
	r := IngestResult{Accepted: d.readBool()}
	agent, cursor := d.readText(), d.readView()
	if d.err != nil {
		return IngestResult{}
	}
	var err error
	if r.Cursor, err = decodeCursor(agent, cursor); err != nil {
		d.fail()
	}
	r.Counts.visitFields(fields{d: d})
	return r
}

func (d *decoder) readGroupResult() []any {
	n := d.readCount()
	results := make([]any, 0, min(n, 4096))
	for range n {
		results = append(results, d.readResult(false))
		if d.err != nil {
			return nil
		}
	}
	return results
}
