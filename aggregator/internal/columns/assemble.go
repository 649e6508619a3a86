package columns

// encode writes the block after its entries got their numbers.
func (e *blockEncoder) encode(out *Encoded) {
	f := frame{}
	enc := encoder{codec: getCodec()}
	defer putCodec(enc.codec)
	for c := range numCols {
		if e.copies(c) {
			f.parts[c] = e.whole.batch.v.frame.parts[c]
		} else if c < colTextLen || c >= colAmount {
			e.cols[c] = e.column(c)
		}
	}
	e.idColumns()
	text, hex := e.idBytes()
	extra := e.extras()
	for c, v := range e.cols {
		if v != nil {
			f.parts[c] = enc.column(c, v, e.cols[colID])
		}
	}
	f.parts[blobText], f.parts[blobHex], f.parts[blobExtra] = enc.blob(text), enc.digits(hex), enc.blob(extra)
	f.header = e.header()
	out.Header = f.header
	out.Data = f.append(make([]byte, 0, 64<<10), kindBlock)
}

// copies reports whether column c is copied from the batch: all but those that
// refer to the dictionary and those that the store sets.
func (e *blockEncoder) copies(c int) bool {
	if e.whole == nil || c == colObserved && e.whole.part.Observed != nil {
		return false
	}
	if c == colTextLen || c >= colNumber && c < colNumber+maxNumbers {
		return !e.literalIDs
	}
	return c >= colFlags && c <= colBodyStop || c >= colAmount
}

func (e *blockEncoder) header() Header {
	h := Header{}
	if e.whole != nil {
		h = e.whole.batch.v.frame.header
	} else {
		h = summary(e.n, &e.cols)
	}
	h.FirstSeq, h.LastSeq = e.seqs[0], e.seqs[e.n-1]
	return h
}

// column gathers the numbers of a column; nil when all are zero.
func (e *blockEncoder) column(c int) []uint64 {
	switch c {
	case colSeq:
		return e.seqs
	case colReceived, colChanged, colSupersedes:
		return e.gather(func(p *piece, i int) uint64 { return p.bookkeeping(c, i) })
	}
	if t := tableOf(c); t != 0 {
		return e.gather(func(p *piece, i int) uint64 { return uint64(p.number(c, t, i)) })
	}
	return e.plain(c)
}

func (e *blockEncoder) gather(value func(p *piece, i int) uint64) []uint64 {
	out := make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		for _, i := range p.rows {
			out = append(out, value(p, i))
		}
	}
	return out
}

// plain gathers a column that does not change.
func (e *blockEncoder) plain(c int) []uint64 {
	used := false
	for _, p := range e.pieces {
		used = used || p.column(c) != nil
	}
	if !used {
		return nil
	}
	out := make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		v := p.column(c)
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

// column returns the numbers of a column that does not change; nil: all zero.
func (p *piece) column(c int) []uint64 {
	if c == colObserved && p.part.Observed != nil {
		return p.part.Observed
	}
	return p.batch.v.cols[c]
}

func (p *piece) bookkeeping(c, i int) uint64 {
	if p.loose() {
		return p.batch.v.at(c, i)
	}
	switch c {
	case colReceived:
		return uint64(p.part.Received)
	case colChanged:
		return uint64(p.part.Changed - p.part.Received)
	}
	return 0
}

// number returns the dictionary's number of the entry of a row; 0 when the
// entry is in the row.
func (p *piece) number(c int, t Table, i int) uint32 {
	id := p.batch.v.at(c, i)
	if id == 0 {
		return 0
	}
	entry := p.entries[t][id-1]
	if t == TableSet {
		entry = p.sets[id-1].entry
	}
	return entry.number()
}

// idColumns gathers the columns of ids where they are not copied.
func (e *blockEncoder) idColumns() {
	if e.copies(colTextLen) {
		return
	}
	for k := range maxNumbers {
		c := colNumber + k
		v := e.plain(c)
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
			if v := &p.batch.v; p.number(colID, TableID, i) == 0 {
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

// extras gathers what is in the rows, in this order: the set, or the values of
// its markers; the template, origin and end that have no number; the amounts
// beyond the columns.
func (e *blockEncoder) extras() (extra []byte) {
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
	s := &p.sets[v.at(colSet, i)-1]
	if s.entry.number() == 0 {
		b = appendField(b, s.data)
	}
	b = append(b, s.inline...)
	for _, c := range []int{colTemplate, colOrigin, colEnd} {
		if t := tableOf(c); p.number(c, t, i) == 0 {
			b = appendField(b, p.batch.tabs[t][v.at(c, i)-1])
		}
	}
	return append(b, v.blobs[2][v.extraAt[i]:v.extraAt[i+1]]...)
}
