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
	if err := e.result(result, true); err != nil {
		return nil, err
	}
	return e.b, nil
}

// DecodeResult reads what [EncodeResult] wrote. The error wraps [ErrResult].
func DecodeResult(b []byte) (any, error) {
	d := decoder{b: b}
	d.format(resultFormat)
	result := d.result(true)
	if err := d.end("result"); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrResult, err)
	}
	return result, nil
}

// result writes one result. A group, which holds no group, is written where
// outer is true.
func (e *encoder) result(result any, outer bool) error {
	switch r := result.(type) {
	case nil:
		e.byte(resultNone)
	case IngestResult:
		e.byte(resultIngest)
		e.bool(r.Accepted)
		e.text(r.Cursor.Agent)
		e.bytes(encode(cursorFormat, &r.Cursor))
		r.Counts.fields(fields{e: e})
	case PostResult:
		e.byte(resultPost)
		r.fields(fields{e: e})
	case PutResult:
		if r.Archived != "" {
			e.byte(resultArchived)
			e.text(r.Archived)
			break
		}
		e.byte(resultPut)
		e.bool(r.Found)
	case ArchiveResult:
		e.byte(resultArchive)
		r.fields(fields{e: e})
	case DeleteResult:
		e.byte(resultDelete)
		e.int(int64(r.Changed))
	case string:
		e.byte(resultText)
		e.text(r)
	case uint32:
		e.byte(resultNumber)
		e.uint(uint64(r))
	case HashResult:
		e.byte(resultHash)
		e.uint(r.Index)
		e.fixed(r.Hash.Hi, r.Hash.Lo)
	case DocumentResult:
		e.byte(resultDocument)
		e.bool(r.Done)
		e.uint(r.Index)
	case []any:
		if !outer {
			return fmt.Errorf("%w: a group within a group", ErrResult)
		}
		e.byte(resultGroup)
		e.uint(uint64(len(r)))
		for _, one := range r {
			if err := e.result(one, false); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("%w: %T", ErrResult, result)
	}
	return nil
}

func (r *PostResult) fields(f fields) {
	list(f, &r.Existing, fields.text)
	f.text(&r.Refused)
	f.bool(&r.Unknown)
	added := int64(r.Added)
	f.int(&added)
	r.Added = int(added)
	f.uint(&r.Seq)
}

func (r *ArchiveResult) fields(f fields) {
	f.text(&r.Refused)
	code(f, &r.State)
	f.bool(&r.Done)
	f.uint(&r.Changed)
	f.uint(&r.Left)
}

func (d *decoder) result(outer bool) any {
	switch d.byte() {
	case resultNone:
		return nil
	case resultIngest:
		return d.ingestResult()
	case resultPost:
		var r PostResult
		r.fields(fields{d: d})
		return r
	case resultPut:
		return PutResult{Found: d.bool()}
	case resultArchived:
		return PutResult{Found: true, Archived: d.text()}
	case resultArchive:
		var r ArchiveResult
		r.fields(fields{d: d})
		return r
	case resultDelete:
		return DeleteResult{Changed: int(d.int())}
	case resultText:
		return d.text()
	case resultNumber:
		return d.number()
	case resultHash:
		return HashResult{Index: d.uint(), Hash: Hash{Hi: d.fixed(), Lo: d.fixed()}}
	case resultDocument:
		return DocumentResult{Done: d.bool(), Index: d.uint()}
	case resultGroup:
		if outer {
			return d.groupResult()
		}
	}
	d.fail()
	return nil
}

func (d *decoder) number() uint32 {
	v := d.uint()
	if v > 1<<32-1 {
		d.fail()
	}
	return uint32(v)
}

func (d *decoder) ingestResult() IngestResult {
	r := IngestResult{Accepted: d.bool()}
	agent, cursor := d.text(), d.view()
	if d.err != nil {
		return IngestResult{}
	}
	var err error
	if r.Cursor, err = decodeCursor(agent, cursor); err != nil {
		d.fail()
	}
	r.Counts.fields(fields{d: d})
	return r
}

func (d *decoder) groupResult() []any {
	n := d.count()
	results := make([]any, 0, min(n, 4096))
	for range n {
		results = append(results, d.result(false))
		if d.err != nil {
			return nil
		}
	}
	return results
}
