package usage

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

// castagnoli returns the table of the checksums of stored sums.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// storedWriter appends what is stored.
type storedWriter struct{ b []byte }

func (w *storedWriter) uint(v uint64)  { w.b = binary.AppendUvarint(w.b, v) }
func (w *storedWriter) int(v int64)    { w.b = binary.AppendVarint(w.b, v) }
func (w *storedWriter) text(s string)  { w.b = appendText(w.b, s) }
func (w *storedWriter) mask(v uint32)  { w.b = binary.LittleEndian.AppendUint32(w.b, v) }
func (w *storedWriter) fixed(v uint64) { w.b = binary.LittleEndian.AppendUint64(w.b, v) }

// storedReader reads what storedWriter wrote. After the first fault everything reads as
// zero and err says so; it never takes more memory than the input can justify.
type storedReader struct {
	b   []byte
	err error
}

func (r *storedReader) fail() {
	r.err, r.b = errStored, nil
}

func (r *storedReader) uint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// below is a number that must be less than a limit.
func (r *storedReader) below(limit int) int {
	v := r.uint()
	if v >= uint64(limit) {
		r.fail()
		return 0
	}
	return int(v)
}

func (r *storedReader) int() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

// skip passes over n numbers, of which each ends with a byte below 128.
func (r *storedReader) skip(n int) {
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
		n -= one(b[0] < 128)
	}
	r.b = b
}

func (r *storedReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}

func (r *storedReader) text() string { return string(r.take(r.uint())) }

func (r *storedReader) mask() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *storedReader) fixed() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// count is the length of a list whose elements take a byte at least.
func (r *storedReader) count() int {
	n := r.uint()
	if n > uint64(len(r.b)) {
		r.fail()
		return 0
	}
	return int(n)
}

func (w *storedWriter) texts(list []string) {
	w.uint(uint64(len(list)))
	for _, s := range list {
		w.text(s)
	}
}

func (r *storedReader) texts() (list []string) {
	for range r.count() {
		list = append(list, r.text())
	}
	return list
}

func (w *storedWriter) part(p *part) {
	w.text(p.name)
	w.uint(uint64(p.kind))
	w.uint(uint64(len(p.scores)))
	for _, s := range p.scores {
		w.text(s.Name)
		w.fixed(math.Float64bits(s.Value))
	}
}

func (r *storedReader) part() (p part) {
	p.name, p.kind = r.text(), record.Kind(r.uint())
	for range r.count() {
		p.scores = append(p.scores, record.Score{Name: r.text(), Value: math.Float64frombits(r.fixed())})
	}
	return p
}

func (w *storedWriter) run(r *run) {
	w.text(r.id)
	w.uint(r.seq)
	w.uint(uint64(r.tuple))
	w.uint(uint64(r.layout.id))
	for _, amount := range r.amounts {
		w.int(amount)
	}
	for _, t := range []record.Time{r.start, r.stop, r.submit} {
		w.fixed(uint64(t))
	}
	w.texts([]string{r.origin.Agent, r.origin.Type, r.origin.Label})
}

func (r *storedReader) run(s *sums) *run {
	out := &run{id: r.text(), seq: r.uint(), tuple: uint32(r.below(len(s.tuples)))}
	if n := r.below(len(s.layouts.list)); r.err == nil {
		out.layout = s.layouts.list[n]
		for range out.layout.parts {
			out.amounts = append(out.amounts, r.int())
		}
	}
	for _, t := range []*record.Time{&out.start, &out.stop, &out.submit} {
		*t = record.Time(r.fixed())
	}
	if from := r.texts(); len(from) == 3 {
		out.origin = record.Origin{Agent: from[0], Type: from[1], Label: from[2]}
	} else {
		r.fail()
	}
	return out
}

// runs writes runs in the order of their numbers, so that equal sums are equal bytes.
func (w *storedWriter) runs(list []*run) {
	slices.SortFunc(list, func(a, b *run) int { return int(int64(a.seq - b.seq)) })
	w.uint(uint64(len(list)))
	for _, r := range list {
		w.run(r)
	}
}
