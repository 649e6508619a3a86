package sums

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/bits"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// errStored is wrapped when stored sums are damaged, or of another state of the store.
var errStored = errors.New("the stored sums are damaged")

// castagnoliTable returns the table of the checksums of stored sums.
func castagnoliTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// storedWriter appends what is stored.
type storedWriter struct{ b []byte }

func (w *storedWriter) putUint(v uint64)  { w.b = binary.AppendUvarint(w.b, v) }
func (w *storedWriter) putInt(v int64)    { w.b = binary.AppendVarint(w.b, v) }
func (w *storedWriter) putText(s string)  { w.b = appendText(w.b, s) }
func (w *storedWriter) putMask(v uint32)  { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *storedWriter) putFixed(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

// storedReader reads what storedWriter wrote. After the first fault everything reads as
// zero and err says so; it never takes more memory than the input can justify.
type storedReader struct {
	b   []byte
	err error
}

func (r *storedReader) fail() {
	r.err, r.b = errStored, nil
}

func (r *storedReader) readUint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// readBelow is a number that must be less than a limit.
func (r *storedReader) readBelow(limit int) int {
	v := r.readUint()
	if v >= uint64(limit) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *storedReader) readInt() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// skipNumbers passes over n numbers, of which each ends with a byte below 128.
func (r *storedReader) skipNumbers(n int) {
	b := r.b
	for n >= 8 && len(b) >= 8 {
		n -= bits.OnesCount64(^binary.LittleEndian.Uint64(b) & 0x8080808080808080)
		b = b[8:]
	}
	for ; n > 0; b = b[1:] {
		if len(b) == 0 {
			r.fail()
			return
		}
		n -= oneIf(b[0] < 128)
	}
	r.b = b
}

func (r *storedReader) readBytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *storedReader) readText() string { return string(r.readBytes(r.readUint())) }

func (r *storedReader) readMask() uint32 {
	if b := r.readBytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *storedReader) readFixed() uint64 {
	if b := r.readBytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// readCount is the length of a list whose elements take a byte at least.
func (r *storedReader) readCount() int {
	n := r.readUint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (w *storedWriter) putTexts(list []string) {
	w.putUint(uint64(len(list)))
	for _, s := range list {
		w.putText(s)
	}
}

func (r *storedReader) readTexts() (list []string) {
	for range r.readCount() {
		list = append(list, r.readText())
	}
	return list
}

func (w *storedWriter) putPart(p *part) {
	w.putText(p.name)
	w.putUint(uint64(p.kind))
	w.putUint(uint64(len(p.scores)))
	for _, s := range p.scores {
		w.putText(s.Name)
		w.putFixed(math.Float64bits(s.Value))
	}
}

func (r *storedReader) readPart() (p part) {
	p.name, p.kind = r.readText(), record.Kind(r.readUint())
	for range r.readCount() {
		p.scores = append(p.scores, record.Score{Name: r.readText(), Value: math.Float64frombits(r.readFixed())})
	}
	return p
}

func (w *storedWriter) putRun(r *run) {
	w.putText(r.id)
	w.putUint(r.seq)
	w.putUint(uint64(r.tuple))
	w.putUint(uint64(r.layout.id))
	for _, amount := range r.amounts {
		w.putInt(amount)
	}
	for _, t := range []record.Time{r.start, r.stop, r.submit} {
		w.putFixed(uint64(t))
	}
	w.putTexts([]string{r.origin.Agent, r.origin.Type, r.origin.Label})
}

func (r *storedReader) readRun(s *sums) *run {
	out := &run{id: r.readText(), seq: r.readUint(), tuple: uint32(r.readBelow(len(s.tuples)))}
	if n := r.readBelow(len(s.layouts.list)); r.err == nil {
		out.layout = s.layouts.list[n]
		for range out.layout.parts {
			out.amounts = append(out.amounts, r.readInt())
		}
	}
	for _, t := range []*record.Time{&out.start, &out.stop, &out.submit} {
		*t = record.Time(r.readFixed())
	}
	if from := r.readTexts(); len(from) == 3 {
		out.origin = record.Origin{Agent: from[0], Type: from[1], Label: from[2]}
	} else {
		r.fail()
	}
	return out
}

// putRuns writes runs in the order of their numbers, so that equal sums are equal bytes.
func (w *storedWriter) putRuns(list []*run) {
	slices.SortFunc(list, func(a, b *run) int { return int(int64(a.seq - b.seq)) })
	w.putUint(uint64(len(list)))
	for _, r := range list {
		w.putRun(r)
	}
}
