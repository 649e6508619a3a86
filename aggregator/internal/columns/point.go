package columns

import (
	"slices"
	"sync"

	"github.com/bursar-accounting/bursar/proto/poison"
)

// maxPicks is how many rows of a block are read one by one before all columns
// are decoded.
const maxPicks = 3

// Pick sets r to a row, as [Block.ReadRow] does, for those who want few of the
// block: it expands the columns but decodes one number of each.
func (b *Block) Pick(r *Row, i int) error { return b.pickRow(r, i, "") }

func (b *Block) pickRow(r *Row, i int, id string) error {
	if b.picks++; b.all || b.picks > maxPicks {
		return b.ReadRow(r, i)
	}
	one, err := b.v.pickRow(i, id)
	if err != nil {
		return err
	}
	return one.fillRow(r, 0)
}

// PickSeq is [Block.Pick] of the row with that Seq; false when there is none.
func (b *Block) PickSeq(r *Row, seq uint64) (bool, error) { return b.pickSeq(r, seq, "") }

func (b *Block) pickSeq(r *Row, seq uint64, id string) (bool, error) {
	i, ok, err := b.positionOf(seq)
	if err != nil || !ok {
		return false, err
	}
	return true, b.pickRow(r, i, id)
}

// positionOf is [Block.Find], and decodes nothing where the Seqs go up by one.
func (b *Block) positionOf(seq uint64) (i int, ok bool, err error) {
	h := b.Header()
	if h.LastSeq-h.FirstSeq != uint64(b.v.n-1) {
		return b.Find(seq)
	}
	return int(seq - h.FirstSeq), seq >= h.FirstSeq && seq <= h.LastSeq, nil
}

// Pick reads one row of a block of which nothing else is wanted: the row with that Seq; false
// when there is none. id is the row's record id where that is known, which saves its columns,
// and else "". It keeps nothing of data.
func (r *Reader) Pick(row *Row, data []byte, seq uint64, id string) (bool, error) {
	b, err := r.Block(data)
	if err != nil {
		return false, err
	}
	b.v.scratch = scratches.Get().(*scratch)
	defer b.v.scratch.releaseAll()
	return b.pickSeq(row, seq, id)
}

// scratch is memory that is used again for the next block. Of nil, all is new.
type scratch struct {
	words []uint64
	bytes []byte
}

var scratches = sync.Pool{New: func() any { return &scratch{make([]uint64, 0, 4*MaxRows), make([]byte, 0, 32<<10)} }}

// allocNumbers returns memory for n numbers.
func (s *scratch) allocNumbers(n int) []uint64 {
	if s == nil || n > cap(s.words)-len(s.words) {
		return make([]uint64, n)
	}
	at := len(s.words)
	s.words = s.words[:at+n]
	return s.words[at : at+n : at+n]
}

// allocText returns memory for n bytes; nil when it has not so much.
func (s *scratch) allocText(n int) []byte {
	if s == nil || n > cap(s.bytes)-len(s.bytes) {
		return nil
	}
	at := len(s.bytes)
	s.bytes = s.bytes[:at+n]
	return s.bytes[at : at+n : at+n]
}

// releaseAll takes back all that it has given.
func (s *scratch) releaseAll() {
	poison.Slice(s.words, ^uint64(0))
	poison.Bytes(s.bytes)
	s.words, s.bytes = s.words[:0], s.bytes[:0]
	scratches.Put(s)
}

// pickRow returns a view of row i alone. id is its record id; "": it is not known.
func (v *view) pickRow(i int, id string) (*view, error) {
	one := &view{frame: v.frame, n: 1, tables: v.tables, shared: v.shared}
	numbers := make([]uint64, numCols)
	coder := getCodec()
	defer putCodec(coder)
	for c := range v.cols {
		one.loaded[c] = true
		ofID := c == colID || c == colTextLen || c >= colNumber && c < colNumber+maxNumbers
		if v.frame.parts[c] == nil || ofID && id != "" || c == colExtraLen {
			continue
		}
		n, err := v.numberAt(coder, c, i)
		if err != nil {
			return nil, err
		}
		numbers[c] = n
		one.cols[c] = numbers[c : c+1]
	}
	if id != "" {
		one.ids = [][]string{{id}}
	} else if err := v.pickID(one, i); err != nil {
		return nil, err
	}
	return one, v.pickExtras(one, i)
}

func (v *view) numberAt(coder *codec, c, i int) (uint64, error) {
	if v.loaded[c] {
		return v.loadedNumber(c, i), nil
	}
	var group []uint64
	if c >= colNumber && c < colNumber+maxNumbers {
		if err := v.loadColumns(colID); err != nil {
			return 0, err
		}
		if group = v.cols[colID]; group == nil {
			group = make([]uint64, v.n)
		}
	}
	return coder.readNumber(v.frame.parts[c], v.n, i, group)
}

// pickID gives one the bytes of the id of row i.
func (v *view) pickID(one *view, i int) (err error) {
	if err := v.loadColumns(colID, colTextLen); err != nil {
		return err
	}
	one.textAt, err = v.pickBlob(one, blobText, i, func(k int) (uint64, bool) { return v.loadedNumber(colTextLen, k), true })
	if err != nil {
		return err
	}
	one.hexAt, err = v.pickBlob(one, blobHex, i, func(k int) (uint64, bool) {
		s, ok := v.idShapeOf(uint32(v.loadedNumber(colID, k)))
		return uint64(s.bytes), ok
	})
	return err
}

// pickExtras gives one the extras of row i, where it has any.
func (v *view) pickExtras(one *view, i int) (err error) {
	one.extraAt = []uint32{0, 0}
	form, ok := v.metaFormOf(uint32(one.loadedNumber(colSet, 0)))
	t, known := v.templateOf(uint32(one.loadedNumber(colTemplate, 0)), &reader{})
	whole := ok && known && len(form.holes) == 0 && len(t) <= maxAmounts
	if whole && one.loadedNumber(colTemplate, 0) != 0 && one.loadedNumber(colOrigin, 0) != 0 && one.loadedNumber(colEnd, 0) != 0 {
		return nil
	}
	if err := v.loadColumns(colExtraLen); err != nil {
		return err
	}
	one.extraAt, err = v.pickBlob(one, blobExtra, i, func(k int) (uint64, bool) { return v.loadedNumber(colExtraLen, k), true })
	return err
}

func (v *view) pickBlob(one *view, part, i int, length func(i int) (uint64, bool)) ([]uint32, error) {
	data, err := v.expandBlob(part)
	if err != nil {
		return nil, err
	}
	at, sum := []uint32{0, 0}, uint64(0)
	for k := range v.n {
		n, ok := length(k)
		if !ok || n > uint64(len(data)) {
			return nil, corruptError("row %d has bytes beyond the end, or no template", k)
		}
		if k == i {
			one.blobs[part-blobText], at[1] = data[min(sum, uint64(len(data))):], uint32(n)
		}
		sum += n
	}
	if sum != uint64(len(data)) {
		return nil, corruptError("rows have %d bytes of %d", sum, len(data))
	}
	return at, nil
}

// readNumber reads number i of a column of n. group is that of each row, for
// modeGroup, which without it is an error.
func (c *codec) readNumber(data []byte, n, i int, group []uint64) (uint64, error) {
	r := reader{b: data}
	mode, first := r.readByte(), zigzagValue(r.readUvarint())
	v, err := uint64(0), error(nil)
	switch mode {
	case modeConst:
		v = first
	case modeLinear:
		v = first + uint64(i)*zigzagValue(r.readUvarint())
	default:
		v, err = c.packedNumber(&r, mode, first, n, i, group)
	}
	if err == nil && !r.isDone() {
		err = corruptError("column is cut off or too long")
	}
	return v, err
}

func (c *codec) packedNumber(r *reader, mode byte, first uint64, n, i int, group []uint64) (uint64, error) {
	divisor := r.readUvarint()
	if mode == modeTable {
		c.words = slices.Grow(c.words[:0], n)[:n]
		err := c.readTable(r, c.words, first, divisor)
		return c.words[i], err
	}
	width := int(r.readByte())
	if width < 1 || width > 8 {
		return 0, corruptError("column of width %d", width)
	}
	var planes [8][]byte
	for p := range width {
		plane, err := c.plain8(r, n, p)
		if err != nil {
			return 0, err
		}
		planes[p] = plane
	}
	if mode == modePlain {
		return first + wordAt(planes[:width], i)*divisor, nil
	}
	c.words = slices.Grow(c.words[:0], i+1)[:i+1]
	joinPlanes(c.words, planes[:width])
	switch {
	case mode == modeDelta:
		return first + sumOf(c.words)*divisor, nil
	case mode == modeGroup && group != nil:
		return first + sumOfGroup(c.words, group, group[i])*divisor, nil
	}
	return 0, corruptError("column of unknown mode %d", mode)
}

func wordAt(planes [][]byte, i int) (v uint64) {
	for p := range planes {
		v |= uint64(planes[p][i]) << (8 * p)
	}
	return v
}

func sumOf(deltas []uint64) (sum uint64) {
	for _, d := range deltas {
		sum += zigzagValue(d)
	}
	return sum
}

func sumOfGroup(deltas, group []uint64, of uint64) (sum uint64) {
	for i, d := range deltas {
		if group[i] == of {
			sum += zigzagValue(d)
		}
	}
	return sum
}
