package columns

import (
	"slices"
)

// maxPicks is how many rows of a block are read one by one before all columns
// are decoded.
const maxPicks = 3

// Pick sets r to a row, as [Block.ReadRow] does, for those who want few of the
// block: it expands the columns but decodes one number of each.
func (b *Block) Pick(r *Row, i int) error {
	if b.picks++; b.all || b.picks > maxPicks {
		return b.ReadRow(r, i)
	}
	one, err := b.v.pick(i)
	if err != nil {
		return err
	}
	return one.row(r, 0)
}

// PickSeq is [Block.Pick] of the row with that Seq; false when there is none.
func (b *Block) PickSeq(r *Row, seq uint64) (bool, error) {
	i, ok, err := b.Find(seq)
	if err != nil || !ok {
		return false, err
	}
	return true, b.Pick(r, i)
}

// pick returns a view of row i alone.
func (v *view) pick(i int) (*view, error) {
	one := &view{frame: v.frame, n: 1, tables: v.tables, shared: v.shared}
	numbers := make([]uint64, numCols)
	coder := getCodec()
	defer putCodec(coder)
	for c := range v.cols {
		one.loaded[c] = true
		if v.frame.parts[c] == nil {
			continue
		}
		n, err := v.numberAt(coder, c, i)
		if err != nil {
			return nil, err
		}
		numbers[c] = n
		one.cols[c] = numbers[c : c+1]
	}
	return one, v.pickBlobs(one, i)
}

func (v *view) numberAt(coder *codec, c, i int) (uint64, error) {
	if v.loaded[c] {
		return v.at(c, i), nil
	}
	var group []uint64
	if c >= colNumber && c < colNumber+maxNumbers {
		if err := v.load(colID); err != nil {
			return 0, err
		}
		if group = v.cols[colID]; group == nil {
			group = make([]uint64, v.n)
		}
	}
	return coder.number(v.frame.parts[c], v.n, i, group)
}

// pickBlobs gives one the bytes of row i.
func (v *view) pickBlobs(one *view, i int) (err error) {
	if err := v.load(colID, colTextLen, colExtraLen); err != nil {
		return err
	}
	one.textAt, err = v.pickBlob(one, blobText, i, func(k int) (uint64, bool) { return v.at(colTextLen, k), true })
	if err != nil {
		return err
	}
	one.hexAt, err = v.pickBlob(one, blobHex, i, func(k int) (uint64, bool) {
		s, ok := v.shape(uint32(v.at(colID, k)))
		return uint64(s.bytes), ok
	})
	if err != nil {
		return err
	}
	one.extraAt, err = v.pickBlob(one, blobExtra, i, func(k int) (uint64, bool) { return v.at(colExtraLen, k), true })
	return err
}

func (v *view) pickBlob(one *view, part, i int, length func(i int) (uint64, bool)) ([]uint32, error) {
	if v.frame.parts[part] == nil {
		if n, ok := length(i); !ok || n != 0 {
			return nil, corrupt("row %d has bytes beyond the end, or no template", i)
		}
		return []uint32{0, 0}, nil
	}
	at, err := v.ends32(part, length)
	if err != nil {
		return nil, err
	}
	data := v.blobs[part-blobText][at[i]:at[i+1]]
	one.blobs[part-blobText] = data
	return []uint32{0, uint32(len(data))}, nil
}

// number reads number i of a column of n. group is that of each row, for
// modeGroup, which without it is an error.
func (c *codec) number(data []byte, n, i int, group []uint64) (uint64, error) {
	r := reader{b: data}
	mode, first := r.byte(), unzigzag(r.uvarint())
	v, err := uint64(0), error(nil)
	switch mode {
	case modeConst:
		v = first
	case modeLinear:
		v = first + uint64(i)*unzigzag(r.uvarint())
	default:
		v, err = c.packedNumber(&r, mode, first, n, i, group)
	}
	if err == nil && !r.done() {
		err = corrupt("column is cut off or too long")
	}
	return v, err
}

func (c *codec) packedNumber(r *reader, mode byte, first uint64, n, i int, group []uint64) (uint64, error) {
	divisor := r.uvarint()
	if mode == modeTable {
		c.words = slices.Grow(c.words[:0], n)[:n]
		err := c.readTable(r, c.words, first, divisor)
		return c.words[i], err
	}
	width := int(r.byte())
	if width < 1 || width > 8 {
		return 0, corrupt("column of width %d", width)
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
		return first + word(planes[:width], i)*divisor, nil
	}
	c.words = slices.Grow(c.words[:0], i+1)[:i+1]
	join(c.words, planes[:width])
	switch {
	case mode == modeDelta:
		return first + sumOf(c.words)*divisor, nil
	case mode == modeGroup && group != nil:
		return first + sumOfGroup(c.words, group, group[i])*divisor, nil
	}
	return 0, corrupt("column of unknown mode %d", mode)
}

func word(planes [][]byte, i int) (v uint64) {
	for p := range planes {
		v |= uint64(planes[p][i]) << (8 * p)
	}
	return v
}

func sumOf(deltas []uint64) (sum uint64) {
	for _, d := range deltas {
		sum += unzigzag(d)
	}
	return sum
}

func sumOfGroup(deltas, group []uint64, of uint64) (sum uint64) {
	for i, d := range deltas {
		if group[i] == of {
			sum += unzigzag(d)
		}
	}
	return sum
}
