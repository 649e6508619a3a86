package columns

// encodeBlock writes the block after its entries got their numbers.
func (e *blockEncoder) encodeBlock(out *Encoded) {
	f := frame{}
	enc := encoder{codec: getCodec()}
	defer putCodec(enc.codec)
	for c := range numCols {
		if e.copiesColumn(c) {
			f.parts[c] = e.whole.batch.v.frame.parts[c]
		} else if c < colTextLen || c >= colAmount {
			e.cols[c] = e.gatherColumn(c)
		}
	}
	e.idColumns()
	text, hex := e.idBytes()
	extra := e.gatherExtras()
	for c, v := range e.cols {
		if v != nil {
			f.parts[c] = enc.encodeColumn(c, v, e.cols[colID])
		}
	}
	f.parts[blobText], f.parts[blobHex], f.parts[blobExtra] = enc.encodeBlob(text), enc.encodeDigits(hex), enc.encodeBlob(extra)
	f.header = e.blockHeader()
	out.Header = f.header
	out.Data = f.appendFrame(make([]byte, 0, 64<<10), kindBlock)
}

// copiesColumn reports whether column c is copied from the batch: all but those that
// refer to the dictionary and those that the store sets.
func (e *blockEncoder) copiesColumn(c int) bool {
	if e.whole == nil || c == colObserved && e.whole.part.Observed != nil {
		return false
	}
	if c == colTextLen || c >= colNumber && c < colNumber+maxNumbers {
		return !e.literalIDs
	}
	return c >= colFlags && c <= colBodyStop || c >= colAmount
}

func (e *blockEncoder) blockHeader() Header {
	h := Header{}
	if e.whole != nil {
		h = e.whole.batch.v.frame.header
	} else {
		h = columnsHeader(e.n, &e.cols)
	}
	h.FirstSeq, h.LastSeq = e.seqs[0], e.seqs[e.n-1]
	return h
}

// gatherColumn gathers the numbers of a column; nil when all are zero.
func (e *blockEncoder) gatherColumn(c int) []uint64 {
	switch c {
	case colSeq:
		return e.seqs
	case colReceived, colChanged, colSupersedes:
		return e.gatherValues(func(p *piece, i int) uint64 { return p.storeValue(c, i) })
	}
	if t := tableOf(c); t != 0 {
		return e.gatherValues(func(p *piece, i int) uint64 { return uint64(p.dictNumber(c, t, i)) })
	}
	return e.gatherPlain(c)
}

func (e *blockEncoder) gatherValues(value func(p *piece, i int) uint64) []uint64 {
	out := make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		for _, i := range p.rows {
			out = append(out, value(p, i))
		}
	}
	return out
}

// gatherPlain gathers a column that does not change.
func (e *blockEncoder) gatherPlain(c int) []uint64 {
	used := false
	for _, p := range e.pieces {
		used = used || p.plainColumn(c) != nil
	}
	if !used {
		return nil
	}
	out := make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		v := p.plainColumn(c)
		if v == nil {
			out = append(out, make([]uint64, len(p.rows))...)
			continue
		}
		for _, i := range p.rows {
			out = append(out, v[i])
		}
	}
	return out
}

// plainColumn returns the numbers of a column that does not change; nil: all zero.
func (p *piece) plainColumn(c int) []uint64 {
	if c == colObserved && p.part.Observed != nil {
		return p.part.Observed
	}
	return p.batch.v.cols[c]
}

func (p *piece) storeValue(c, i int) uint64 {
	if p.isLoose() {
		return p.batch.v.loadedNumber(c, i)
	}
	switch c {
	case colReceived:
		return uint64(p.part.Received)
	case colChanged:
		return uint64(p.part.Changed - p.part.Received)
	}
	return 0
}

// dictNumber returns the dictionary's number of the entry of a row; 0 when the
// entry is in the row.
func (p *piece) dictNumber(c int, t Table, i int) uint32 {
	id := p.batch.v.loadedNumber(c, i)
	if id == 0 {
		return 0
	}
	entry := p.entries[t][id-1]
	if t == TableSet {
		entry = p.sets[id-1].entry
	}
	return entry.admittedNumber()
}

// idColumns gathers the columns of ids where they are not copied.
func (e *blockEncoder) idColumns() {
	if e.copiesColumn(colTextLen) {
		return
	}
	for k := range maxNumbers {
		c := colNumber + k
		v := e.gatherPlain(c)
		for row := range v {
			if e.cols[colID][row] == 0 {
				v[row] = 0
			}
		}
		e.cols[c] = v
	}
}

// idBytes gathers the bytes of ids, and colTextLen where it is not copied.
func (e *blockEncoder) idBytes() (text, hex []byte) {
	if e.whole != nil && !e.literalIDs {
		return e.whole.batch.v.blobs[0], e.whole.batch.v.blobs[1]
	}
	var lengths []uint64
	for _, p := range e.pieces {
		for _, i := range p.rows {
			at := len(text)
			if v := &p.batch.v; p.dictNumber(colID, TableID, i) == 0 {
				text = v.appendID(text, i)
			} else {
				hex = append(hex, v.blobs[1][v.hexAt[i]:v.hexAt[i+1]]...)
			}
			lengths = append(lengths, uint64(len(text)-at))
		}
	}
	e.cols[colTextLen] = lengths
	return text, hex
}

// gatherExtras gathers what is in the rows, in this order: the set, or the values of
// its markers; the template, origin and end that have no number; the amounts
// beyond the columns.
func (e *blockEncoder) gatherExtras() (extra []byte) {
	for _, p := range e.pieces {
		e.inRows = e.inRows || len(p.batch.v.blobs[2]) > 0
	}
	if !e.inRows {
		return nil
	}
	lengths := make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		for _, i := range p.rows {
			at := len(extra)
			extra = p.appendExtra(extra, i)
			lengths = append(lengths, uint64(len(extra)-at))
		}
	}
	e.cols[colExtraLen] = lengths
	return extra
}

func (p *piece) appendExtra(b []byte, i int) []byte {
	v := &p.batch.v
	s := &p.sets[v.loadedNumber(colSet, i)-1]
	if s.entry.admittedNumber() == 0 {
		b = appendField(b, s.data)
	}
	b = append(b, s.inline...)
	for _, c := range []int{colTemplate, colOrigin, colEnd} {
		if t := tableOf(c); p.dictNumber(c, t, i) == 0 {
			b = appendField(b, p.batch.tabs[t][v.loadedNumber(c, i)-1])
		}
	}
	return append(b, v.blobs[2][v.extraAt[i]:v.extraAt[i+1]]...)
}
