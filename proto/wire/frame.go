package wire

import (
	"fmt"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Kind says what a [Frame] carries. Its numbers are those of the bodies of
// bursarv1.Frame.
type Kind uint8

// The kinds of frames.
const (
	KindRecord     Kind = 10
	KindStop       Kind = 11
	KindWithdraw   Kind = 12
	KindQuarantine Kind = 13
	KindGap        Kind = 14
	KindWatermark  Kind = 15
	KindCensus     Kind = 16
	KindCapacity   Kind = 17
	KindDirectory  Kind = 18
	KindCheckpoint Kind = 19
)

// String returns the kind's name.
func (k Kind) String() string {
	names := [...]string{"record", "stop", "withdraw", "quarantine", "gap", "watermark", "census", "capacity", "directory", "checkpoint"}
	if k < KindRecord || k > KindCheckpoint {
		return "unknown"
	}
	return names[k-KindRecord]
}

// Frame is a bursarv1.Frame: what an agent's buffer keeps and the aggregator
// pulls. Which of the fields behind Kind count depends on Kind.
type Frame struct {
	SourceType  string // both empty: pushed
	SourceLabel string
	Rank        record.Rank
	Version     record.Version
	Settles     string // id of the quarantined job that this frame settles

	Kind       Kind
	ID         string        // record id of KindStop and KindWithdraw; of KindRecord too, set when decoded
	Record     record.Record // KindRecord
	Stop       record.Time   // KindStop
	Quarantine Quarantine    // KindQuarantine
	Gap        Gap           // KindGap
	Watermark  record.Time   // KindWatermark: the source is complete up to then
	Census     Census        // KindCensus
	Capacity   Capacity      // KindCapacity
	Directory  Directory     // KindDirectory
	Checkpoint []byte        // KindCheckpoint: in words that only the source understands
}

// Quarantine is a job that gave no valid record.
type Quarantine struct {
	ID        string // unique and stable: a repeated failure of the same job replaces it
	Reason    string // one of few words: mapping, validation, input, size
	Message   string // for people
	RecordID  string // as far as it is known
	Raw       []byte // the job's attributes as JSON, or the raw input
	Truncated bool   // Raw was cut
}

// Gap is a part of a source's history that cannot be had or was lost.
type Gap struct {
	From, To record.Time
	Reason   string
}

// Census counts the jobs of a source at one moment.
type Census struct {
	At   record.Time
	Rows []CensusRow
}

// CensusRow counts the jobs of one user in one queue.
type CensusRow struct {
	User, Queue      string
	Running, Pending int64
}

// Capacity is what a source's cluster has from a time on.
type Capacity struct {
	From       record.Time
	Components []record.Component
}

// Directory names people and their groups.
type Directory struct{ Rows []DirectoryRow }

// DirectoryRow is one person.
type DirectoryRow struct {
	User    string
	Groups  []string
	Name    string
	Address string
}

// Write returns the statement of a frame that came from that agent; false for
// the kinds that say nothing about a run. The write shares f's slices and keeps
// nothing else of f.
func (f *Frame) Write(agent string) (record.Write, bool) {
	w := record.Write{ID: f.ID, Rank: f.Rank, Version: f.Version, Stop: record.None}
	if f.SourceType != "" || f.SourceLabel != "" {
		w.Origin = record.Origin{Agent: agent, Type: f.SourceType, Label: f.SourceLabel}
	}
	switch f.Kind {
	case KindRecord:
		r := f.Record
		w.Op, w.ID, w.Record = record.OpPut, r.ID, &r
	case KindStop:
		w.Op, w.Stop = record.OpStop, f.Stop
	case KindWithdraw:
		w.Op = record.OpWithdraw
	default:
		return record.Write{}, false
	}
	return w, true
}

// AppendFrame appends f as a bursarv1.Frame: the bytes that the generated code
// gives. A Kind that is none of the constants gives a frame without a body, which
// no reader accepts.
func AppendFrame(b []byte, f *Frame) []byte {
	b = appendString(b, 1, f.SourceType)
	b = appendString(b, 2, f.SourceLabel)
	b = appendUint(b, 3, uint64(f.Rank))
	b = appendSint(b, 4, f.Version.Observed)
	b = appendBool(b, 5, f.Version.Ended)
	b = appendString(b, 6, f.Settles)
	if f.Kind < KindRecord || f.Kind > KindCheckpoint {
		return b
	}
	b, mark := begin(b, uint64(f.Kind))
	return end(appendBody(b, f), mark)
}

func appendBody(b []byte, f *Frame) []byte {
	switch f.Kind {
	case KindRecord:
		return AppendRecord(b, &f.Record)
	case KindStop:
		return appendSint(appendString(b, 1, f.ID), 2, int64(f.Stop))
	case KindWithdraw:
		return appendString(b, 1, f.ID)
	case KindQuarantine:
		return appendQuarantine(b, &f.Quarantine)
	case KindGap:
		b = appendSint(b, 1, int64(f.Gap.From))
		b = appendSint(b, 2, int64(f.Gap.To))
		return appendString(b, 3, f.Gap.Reason)
	case KindWatermark:
		return appendSint(b, 1, int64(f.Watermark))
	case KindCensus:
		return appendCensus(b, &f.Census)
	case KindCapacity:
		return appendComponents(appendSint(b, 1, int64(f.Capacity.From)), 2, f.Capacity.Components)
	case KindDirectory:
		return appendDirectory(b, &f.Directory)
	case KindCheckpoint:
		return appendString(b, 1, view(f.Checkpoint))
	}
	return b
}

func appendQuarantine(b []byte, q *Quarantine) []byte {
	b = appendString(b, 1, q.ID)
	b = appendString(b, 2, q.Reason)
	b = appendString(b, 3, q.Message)
	b = appendString(b, 4, q.RecordID)
	b = appendString(b, 5, view(q.Raw))
	return appendBool(b, 6, q.Truncated)
}

func appendCensus(b []byte, c *Census) []byte {
	b = appendSint(b, 1, int64(c.At))
	for i := range c.Rows {
		row := &c.Rows[i]
		var mark int
		b, mark = begin(b, 2)
		b = appendString(b, 1, row.User)
		b = appendString(b, 2, row.Queue)
		b = appendUint(b, 3, uint64(row.Running))
		b = appendUint(b, 4, uint64(row.Pending))
		b = end(b, mark)
	}
	return b
}

func appendDirectory(b []byte, d *Directory) []byte {
	for i := range d.Rows {
		row := &d.Rows[i]
		var mark int
		b, mark = begin(b, 1)
		b = appendString(b, 1, row.User)
		for _, g := range row.Groups {
			b = appendElement(b, 2, g)
		}
		b = appendString(b, 3, row.Name)
		b = appendString(b, 4, row.Address)
		b = end(b, mark)
	}
	return b
}

// DecodeFrame reads a bursarv1.Frame into f, whatever f was. Strings and byte
// slices of f are views into b. Unknown fields are passed over; a frame with no
// body that this program knows, or with two, is an error, as everything malformed.
// The error wraps [ErrProto]. Whoever decodes many uses a [Decoder].
func DecodeFrame(b []byte, f *Frame) error {
	var d Decoder
	return d.Frame(b, f)
}

// Frame is [DecodeFrame] with d's slices.
func (d *Decoder) Frame(b []byte, f *Frame) error {
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
			if kind := Kind(tag >> 3); tag>>3 >= uint64(KindRecord) && tag>>3 <= uint64(KindCheckpoint) {
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

func (d *Decoder) body(b []byte, f *Frame) error {
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

func (d *Decoder) capacity(b []byte, c *Capacity) error {
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
