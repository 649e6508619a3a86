package columns

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// view reads rows out of columns, a column at a time. It is what batches and
// blocks have in common.
type view struct {
	frame  *frame
	n      int
	tables func() *tables
	cols   [numCols][]uint64 // nil: zero or not loaded
	loaded [numCols]bool
	blobs  [numTables + 3][]byte
	got    [numTables + 3]bool
	ranks  []uint32

	textAt, hexAt, extraAt []uint32 // where each row begins, and the end

	ids        [][]string         // by idChunk rows: those that were asked for
	idBuf      []byte             // memory to put ids together in
	parts      []record.Component // memory of the components that rows are given
	slabs      int                // components of the last slab
	reusesRows bool               // rows' slices are overwritten by the next row
	metaBuffer record.Meta        // with reusesRows: memory of metas
	texts      []string           // and of their values

	shared  *shared
	scratch *scratch // memory for columns and blobs; nil: of their own
}

// loadedNumber returns a number of a loaded column.
func (v *view) loadedNumber(c, i int) uint64 {
	if v.cols[c] == nil {
		return 0
	}
	return v.cols[c][i]
}

// loadColumns decodes columns that are not there yet.
func (v *view) loadColumns(cols ...int) error {
	for _, c := range cols {
		if v.loaded[c] {
			continue
		}
		if err := v.loadColumn(c); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) loadColumn(c int) error {
	if part := v.frame.parts[c]; part != nil {
		coder := getCodec()
		defer putCodec(coder)
		groups := v.idRanks
		if c < colNumber || c >= colNumber+maxNumbers {
			groups = nil // only ids have groups, and the column of groups has none
		}
		numbers := v.scratch.allocNumbers(v.n)
		if err := coder.readColumn(numbers, part, groups); err != nil {
			return err
		}
		v.cols[c] = numbers
	}
	v.loaded[c] = true
	return nil
}

func (v *view) loadAll() error {
	for c := range v.cols {
		if err := v.loadColumns(c); err != nil {
			return err
		}
	}
	for _, blob := range []int{blobText, blobHex, blobExtra} {
		if _, err := v.expandBlob(blob); err != nil {
			return err
		}
	}
	return v.computeOffsets()
}

// idRanks returns the ranks of the rows' id templates.
func (v *view) idRanks() ([]uint32, error) {
	if err := v.loadColumns(colID); err != nil {
		return nil, err
	}
	if v.ranks == nil {
		ids := v.cols[colID]
		if ids == nil {
			ids = make([]uint64, v.n)
		}
		v.ranks = rankByAppearance(ids)
	}
	return v.ranks, nil
}

// expandBlob returns a blob, expanded.
func (v *view) expandBlob(part int) ([]byte, error) {
	k := part - blobText
	if v.got[k] || v.frame.parts[part] == nil {
		return v.blobs[k], nil
	}
	coder := getCodec()
	defer putCodec(coder)
	r := reader{b: v.frame.parts[part]}
	n := r.readUvarint()
	if r.bad || n > maxStream {
		return nil, corruptError("blob of %d bytes", n)
	}
	data, err := coder.readStream(&r, int(n), v.scratch.allocText(int(n)))
	if err == nil && !r.isDone() {
		err = corruptError("blob is too long")
	}
	if err != nil {
		return nil, err
	}
	v.blobs[k], v.got[k] = data, true
	return data, nil
}

// computeOffsets computes where the rows' bytes begin in the blobs.
func (v *view) computeOffsets() error {
	if v.textAt != nil {
		return nil
	}
	if err := v.loadColumns(colID, colTextLen); err != nil {
		return err
	}
	textAt, err := v.ends32(blobText, func(i int) (uint64, bool) { return v.loadedNumber(colTextLen, i), true })
	if err != nil {
		return err
	}
	v.hexAt, err = v.ends32(blobHex, func(i int) (uint64, bool) {
		s, ok := v.idShapeOf(uint32(v.loadedNumber(colID, i)))
		return uint64(s.bytes), ok
	})
	if err != nil {
		return err
	}
	v.textAt = textAt
	return nil
}

// computeExtras computes where the rows' extras begin.
func (v *view) computeExtras() error {
	if v.extraAt != nil {
		return nil
	}
	if err := v.loadColumns(colExtraLen); err != nil {
		return err
	}
	at, err := v.ends32(blobExtra, func(i int) (uint64, bool) { return v.loadedNumber(colExtraLen, i), true })
	v.extraAt = at
	return err
}

// ends32 adds up the lengths of the rows in a blob, which must have just as
// many bytes.
func (v *view) ends32(part int, length func(i int) (uint64, bool)) ([]uint32, error) {
	data, err := v.expandBlob(part)
	if err != nil {
		return nil, err
	}
	at, sum := make([]uint32, v.n+1), uint64(0)
	for i := range v.n {
		n, ok := length(i)
		if !ok || n > uint64(len(data)) {
			return nil, corruptError("row %d has bytes beyond the end, or no template", i)
		}
		sum += n
		at[i+1] = uint32(sum)
	}
	if sum != uint64(len(data)) {
		return nil, corruptError("rows have %d bytes of %d", sum, len(data))
	}
	return at, nil
}

// idShapeOf returns what an id template takes; that of 0 takes nothing.
func (v *view) idShapeOf(id uint32) (idShape, bool) {
	if id == 0 {
		return idShape{}, true
	}
	if s := v.shared.shapes.getValue(id); s != nil {
		return *s, true
	}
	data, ok := v.tables().getEntry(TableID, uint64(id))
	if !ok {
		return idShape{}, false
	}
	s, ok := shapeOf(data)
	if ok {
		v.shared.shapes.setOnce(id, s)
	}
	return s, ok
}

// loadIDs makes ready for appendID.
func (v *view) loadIDs() error {
	if v.textAt != nil {
		return nil
	}
	for k := range maxNumbers {
		if err := v.loadColumns(colNumber + k); err != nil {
			return err
		}
	}
	return v.computeOffsets()
}

// appendID appends the id of a row after loadIDs.
func (v *view) appendID(dst []byte, i int) []byte {
	id := v.loadedNumber(colID, i)
	if id == 0 {
		return append(dst, v.blobs[0][v.textAt[i]:v.textAt[i+1]]...)
	}
	data, _ := v.tables().getEntry(TableID, id) // offsets has seen that it is there
	number := func(k int) uint64 { return v.loadedNumber(colNumber+k, i) }
	return appendID(dst, data, number, v.blobs[1][v.hexAt[i]:v.hexAt[i+1]])
}

// rowExtras returns a reader of the row's extras after extras.
func (v *view) rowExtras(i int) reader {
	return reader{b: v.blobs[2][v.extraAt[i]:v.extraAt[i+1]]}
}
