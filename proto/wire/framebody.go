package wire

import "github.com/bursar-accounting/bursar/proto/record"

// bodyFields are those of the body, numbered from 1, of a kind that comes rarely: one list
// serves both ways. Its types say how a field is written; see [appendFields].
func (f *Frame) bodyFields() []any {
	switch f.Kind {
	case KindStop:
		return []any{&f.ID, &f.Stop}
	case KindWithdraw:
		return []any{&f.ID, &f.Run.Start, &f.Run.Submit}
	case KindQuarantine:
		q := &f.Quarantine
		return []any{&q.ID, &q.Reason, &q.Message, &q.RecordID, &q.Raw, &q.Truncated}
	case KindGap:
		return []any{&f.Gap.From, &f.Gap.To, &f.Gap.Reason}
	case KindWatermark:
		return []any{&f.Watermark, &f.Begin}
	case KindCensus:
		return []any{&f.Census.At, rows[CensusRow]{&f.Census.Rows, func(r *CensusRow) []any {
			return []any{&r.User, &r.Queue, &r.Running, &r.Pending}
		}}}
	case KindDirectory:
		return []any{rows[DirectoryRow]{&f.Directory.Rows, func(r *DirectoryRow) []any {
			return []any{&r.User, &r.Groups, &r.Name, &r.Address}
		}}}
	case KindCheckpoint:
		return []any{&f.Checkpoint}
	case KindCount:
		c := &f.Count
		return []any{&c.From, &c.To, &c.At, &c.Counted, &c.Records, &c.Filtered, &c.Quarantined, &c.Shared, &c.Skipped}
	}
	return nil
}

// repeated is a field of messages.
type repeated interface {
	appendElements(b []byte, number uint64) []byte
	readElement(message []byte) bool
}

type rows[T any] struct {
	list   *[]T
	fields func(*T) []any
}

func (r rows[T]) appendElements(b []byte, number uint64) []byte {
	for i := range *r.list {
		var mark int
		b, mark = beginMessage(b, number)
		b = endMessage(appendFields(b, r.fields(&(*r.list)[i])...), mark)
	}
	return b
}

func (r rows[T]) readElement(message []byte) bool {
	var row T
	in := reader{b: message}
	in.readFields(r.fields(&row)...)
	*r.list = append(*r.list, row)
	return !in.bad
}

// componentField is a list that is read into a Lender.
type componentField struct {
	into *Lender
	list []record.Component
}

func (c componentField) appendElements(b []byte, number uint64) []byte {
	return appendComponents(b, number, c.list)
}

func (c componentField) readElement(message []byte) bool { return c.into.addComponent(message) }

// appendFields appends fields: texts and bytes, times as zigzag numbers, other numbers
// as varints.
func appendFields(b []byte, fields ...any) []byte {
	for i, field := range fields {
		number := uint64(i + 1)
		switch v := field.(type) {
		case *string:
			b = appendString(b, number, *v)
		case *[]byte:
			b = appendString(b, number, viewString(*v))
		case *[]string:
			for _, s := range *v {
				b = appendElement(b, number, s)
			}
		case *record.Time:
			b = appendSint(b, number, int64(*v))
		case *int64:
			b = appendUint(b, number, uint64(*v))
		case *bool:
			b = appendBool(b, number, *v)
		case repeated:
			b = v.appendElements(b, number)
		}
	}
	return b
}

// readFields reads what [appendFields] appends, in any order, and passes over others.
func (r *reader) readFields(fields ...any) {
	for r.hasMore() {
		tag := r.readTag()
		number, kind := tag>>3, tag&7
		if number == 0 || number > uint64(len(fields)) {
			r.skipField(tag, uint64(len(fields)))
			continue
		}
		switch v := fields[number-1].(type) {
		case *record.Time:
			r.bad = r.bad || kind != typeVarint
			*v = record.Time(r.readSvarint())
		case *int64:
			r.bad = r.bad || kind != typeVarint
			*v = int64(r.readUvarint())
		case *bool:
			r.bad = r.bad || kind != typeVarint
			*v = r.readUvarint() != 0
		default:
			r.bad = r.bad || kind != typeBytes
			b := r.readBytes()
			switch v := v.(type) {
			case *string:
				*v = viewString(b)
			case *[]byte:
				*v = b
			case *[]string:
				*v = append(*v, viewString(b))
			case repeated:
				r.bad = !v.readElement(b) || r.bad
			}
		}
	}
}
