package wire

import (
	"bytes"
	"fmt"

	"github.com/bursar-accounting/bursar/proto/record"
)

// DecodeFrame reads a bursarv1.Frame into f, whatever f was. Nothing of f is part of
// b. Unknown fields are passed over; a frame with no body that this program knows, or
// with two, is an error, as everything malformed. The error wraps [ErrProto]. Whoever
// decodes many uses a [Lender].
func DecodeFrame(b []byte, f *Frame) error {
	var d Lender
	return d.Frame(bytes.Clone(b), f)
}

// Frame is [DecodeFrame] with d's slices, and views into b.
func (d *Lender) Frame(b []byte, f *Frame) error {
	*f = Frame{}
	var body []byte
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeBytes:
			f.SourceType = in.text()
		case 2<<3 | typeBytes:
			f.SourceLabel = in.text()
		case 3<<3 | typeVarint:
			f.Rank = record.Rank(in.uint8())
		case 4<<3 | typeVarint:
			f.Version.Observed = in.svarint()
		case 5<<3 | typeVarint:
			f.Version.Ended = in.uvarint() != 0
		case 6<<3 | typeBytes:
			f.Settles = in.text()
		default:
			if kind := Kind(tag >> 3); tag>>3 >= uint64(KindRecord) && tag>>3 <= uint64(KindCount) {
				in.bad = tag&7 != typeBytes || f.Kind != 0
				f.Kind, body = kind, in.bytes()
			} else {
				in.skip(tag, 6)
			}
		}
	}
	if err := in.err("frame"); err != nil {
		return err
	}
	if f.Kind == 0 {
		return fmt.Errorf("frame: %w: no body of a known kind", ErrProto)
	}
	if err := d.body(body, f); err != nil {
		return fmt.Errorf("%s frame: %w", f.Kind, err)
	}
	return nil
}

func (d *Lender) body(b []byte, f *Frame) error {
	switch f.Kind {
	case KindRecord:
		err := d.Record(b, &f.Record)
		f.ID = f.Record.ID
		return err
	case KindQuarantine:
		return decodeQuarantine(b, &f.Quarantine)
	case KindCensus:
		return decodeCensus(b, &f.Census)
	case KindCapacity:
		return d.capacity(b, &f.Capacity)
	case KindDirectory:
		return decodeDirectory(b, &f.Directory)
	case KindCount:
		return decodeCount(b, &f.Count)
	}
	return decodeSmall(b, f)
}

// decodeSmall reads the bodies with at most three fields.
func decodeSmall(b []byte, f *Frame) error {
	in := reader{b: b}
	for in.more() {
		tag := in.tag()
		switch {
		case tag == 1<<3|typeBytes && (f.Kind == KindStop || f.Kind == KindWithdraw):
			f.ID = in.text()
		case tag == 2<<3|typeVarint && f.Kind == KindStop:
			f.Stop = record.Time(in.svarint())
		case tag == 1<<3|typeVarint && f.Kind == KindGap:
			f.Gap.From = record.Time(in.svarint())
		case tag == 2<<3|typeVarint && f.Kind == KindGap:
			f.Gap.To = record.Time(in.svarint())
		case tag == 3<<3|typeBytes && f.Kind == KindGap:
			f.Gap.Reason = in.text()
		case tag == 1<<3|typeVarint && f.Kind == KindWatermark:
			f.Watermark = record.Time(in.svarint())
		case tag == 1<<3|typeBytes && f.Kind == KindCheckpoint:
			f.Checkpoint = in.bytes()
		default:
			in.skip(tag, fieldsOf(f.Kind))
		}
	}
	return in.err("body")
}

// fieldsOf is the highest field number of the bodies of decodeSmall.
func fieldsOf(k Kind) uint64 {
	switch k {
	case KindStop:
		return 2
	case KindGap:
		return 3
	}
	return 1
}

func decodeQuarantine(b []byte, q *Quarantine) error {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeBytes:
			q.ID = in.text()
		case 2<<3 | typeBytes:
			q.Reason = in.text()
		case 3<<3 | typeBytes:
			q.Message = in.text()
		case 4<<3 | typeBytes:
			q.RecordID = in.text()
		case 5<<3 | typeBytes:
			q.Raw = in.bytes()
		case 6<<3 | typeVarint:
			q.Truncated = in.uvarint() != 0
		default:
			in.skip(tag, 6)
		}
	}
	return in.err("body")
}

func decodeCensus(b []byte, c *Census) error {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeVarint:
			c.At = record.Time(in.svarint())
		case 2<<3 | typeBytes:
			row, ok := censusRow(in.bytes())
			c.Rows, in.bad = append(c.Rows, row), in.bad || !ok
		default:
			in.skip(tag, 2)
		}
	}
	return in.err("body")
}

func censusRow(b []byte) (row CensusRow, ok bool) {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeBytes:
			row.User = in.text()
		case 2<<3 | typeBytes:
			row.Queue = in.text()
		case 3<<3 | typeVarint:
			row.Running = int64(in.uvarint())
		case 4<<3 | typeVarint:
			row.Pending = int64(in.uvarint())
		default:
			in.skip(tag, 4)
		}
	}
	return row, !in.bad
}

func (d *Lender) capacity(b []byte, c *Capacity) error {
	d.drop()
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeVarint:
			c.From = record.Time(in.svarint())
		case 2<<3 | typeBytes:
			in.bad = !d.addComponent(in.bytes()) || in.bad
		default:
			in.skip(tag, 2)
		}
	}
	c.Components = d.components.take()
	return in.err("body")
}

func decodeDirectory(b []byte, dir *Directory) error {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeBytes:
			row, ok := directoryRow(in.bytes())
			dir.Rows, in.bad = append(dir.Rows, row), in.bad || !ok
		default:
			in.skip(tag, 1)
		}
	}
	return in.err("body")
}

func directoryRow(b []byte) (row DirectoryRow, ok bool) {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeBytes:
			row.User = in.text()
		case 2<<3 | typeBytes:
			row.Groups = append(row.Groups, in.text())
		case 3<<3 | typeBytes:
			row.Name = in.text()
		case 4<<3 | typeBytes:
			row.Address = in.text()
		default:
			in.skip(tag, 4)
		}
	}
	return row, !in.bad
}

func decodeCount(b []byte, c *Count) error {
	in := reader{b: b}
	for in.more() {
		switch tag := in.tag(); tag {
		case 1<<3 | typeVarint:
			c.From = record.Time(in.svarint())
		case 2<<3 | typeVarint:
			c.To = record.Time(in.svarint())
		case 3<<3 | typeVarint:
			c.At = record.Time(in.svarint())
		case 4<<3 | typeVarint:
			c.Counted = int64(in.uvarint())
		case 5<<3 | typeVarint:
			c.Records = int64(in.uvarint())
		case 6<<3 | typeVarint:
			c.Filtered = int64(in.uvarint())
		case 7<<3 | typeVarint:
			c.Quarantined = int64(in.uvarint())
		case 8<<3 | typeVarint:
			c.Shared = int64(in.uvarint())
		case 9<<3 | typeVarint:
			c.Skipped = int64(in.uvarint())
		default:
			in.skip(tag, 9)
		}
	}
	return in.err("body")
}
