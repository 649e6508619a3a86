package columns

import (
	"fmt"
	"sync"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Part is where rows of a new block come from: Rows, or a Batch.
type Part struct {
	// Rows are whole, each with its Seq, Received, Changed and Supersedes.
	Rows []Row

	// Batch gives its rows without those at the positions Skip, which ascend.
	// The first row taken gets FirstSeq, the others follow without gaps; all
	// get Received and Changed; none supersedes another. Observed, by position in the
	// batch, takes the place of their versions' own; nil: it does not.
	Batch             *Batch
	Skip              []int
	FirstSeq          uint64
	Received, Changed record.Time
	Observed          []uint64
}

// Encoded is a new block and what must be stored with it in the same
// transaction.
type Encoded struct {
	Data   []byte // the block
	Header Header // of Data
	// KVs are the numbers of all pairs and markers that rows of the block
	// have, ascending: the block's postings.
	KVs     []uint32
	Entries []Entry // what is new in the dictionary, in order of (Table, ID)
	State   []byte  // the dictionary's counters from now on
}

// EncodeBlock makes a block of the rows of parts, in their order, in which the
// Seqs must ascend. It adds to d what the block needs. Of an error, which wraps
// [ErrRows] or [ErrCorrupt], d does not change.
//
// A batch that is the only part and is taken whole costs least: its columns are
// copied as they are compressed.
func EncodeBlock(d *Dict, parts ...Part) (*Encoded, error) {
	e := blockEncoder{d: d}
	defer e.releaseBuilders()
	if err := e.addParts(parts); err != nil {
		return nil, err
	}
	if err := e.numberRows(); err != nil {
		return nil, err
	}
	out := e.admitEntries()
	e.encodeBlock(out)
	return out, nil
}

// blockEncoder makes one block.
type blockEncoder struct {
	d      *Dict
	pieces []*piece
	n      int
	seqs   []uint64
	whole  *piece // the only piece, a parsed batch that is taken whole; or nil

	t      tables // of d, growing
	kvs    Mask   // by number of the pair
	arena  []byte // memory of what sets become
	buf    []byte
	inline []byte
	cols   [numCols][]uint64 // that are not copied

	builders   []*Builder
	literalIDs bool // ids that have a template in their batch have none here
	inRows     bool // entries or values are in the rows' extras
}

// piece is a part while it is encoded.
type piece struct {
	batch *Batch
	part  *Part
	rows  []int // positions taken

	// By the batch's number - 1:
	uses    [numTables][]uint64
	entries [numTables][]ref
	sets    []setUse
}

// setUse is what becomes of a batch's set in the block.
type setUse struct {
	entry  ref // none: the set is in the row
	data   []byte
	inline []byte // values for the markers
}

func (e *blockEncoder) addParts(parts []Part) error {
	for i := range parts {
		p := &piece{part: &parts[i], batch: parts[i].Batch}
		if len(parts[i].Rows) > 0 {
			if p.batch != nil || len(parts[i].Rows) > MaxRows {
				return fmt.Errorf("%w: part %d has a batch and rows, or %d rows", ErrRows, i, len(parts[i].Rows))
			}
			p.batch = e.collectRows(parts[i].Rows)
		}
		if p.batch == nil {
			continue
		}
		if p.rows = positionsWithout(p.batch.Len(), parts[i].Skip); len(p.rows) == 0 {
			continue
		}
		if err := p.makeReady(); err != nil {
			return err
		}
		e.pieces = append(e.pieces, p)
		e.n += len(p.rows)
	}
	if e.n == 0 || e.n > MaxRows {
		return fmt.Errorf("%w: %d rows", ErrRows, e.n)
	}
	if p := e.pieces[0]; len(e.pieces) == 1 && !p.isLoose() && len(p.rows) == p.batch.Len() {
		e.whole = p
	}
	return nil
}

// builders keeps builders, which grow large, between uses.
var builders = sync.Pool{New: func() any { return NewBuilder() }}

// collectRows makes a batch of rows without encoding it.
func (e *blockEncoder) collectRows(rows []Row) *Batch {
	b := builders.Get().(*Builder)
	e.builders = append(e.builders, b)
	for i := range rows {
		b.Add(&rows[i])
	}
	return b.asBatch()
}

// releaseBuilders gives the builders back.
func (e *blockEncoder) releaseBuilders() {
	for _, b := range e.builders {
		b.Reset()
		builders.Put(b)
	}
}

func (p *piece) isLoose() bool { return len(p.part.Rows) > 0 }

func (p *piece) makeReady() error {
	if err := p.batch.v.computeOffsets(); err != nil {
		return err
	}
	return p.batch.v.computeExtras()
}

// positionsWithout lists 0 … n-1 without skip.
func positionsWithout(n int, skip []int) []int {
	rows := make([]int, 0, n)
	for i := range n {
		if len(skip) > 0 && skip[0] == i {
			skip = skip[1:]
			continue
		}
		rows = append(rows, i)
	}
	return rows
}

// numberRows numbers the rows.
func (e *blockEncoder) numberRows() error {
	e.seqs = make([]uint64, 0, e.n)
	for _, p := range e.pieces {
		for k, i := range p.rows {
			seq := p.part.FirstSeq + uint64(k)
			if p.isLoose() {
				seq = p.batch.Seq(i)
			}
			if last := len(e.seqs) - 1; last >= 0 && seq <= e.seqs[last] {
				return fmt.Errorf("%w: %d comes after %d", ErrRows, seq, e.seqs[last])
			}
			e.seqs = append(e.seqs, seq)
		}
	}
	return nil
}

// admitEntries gives all entries of the block their numbers.
func (e *blockEncoder) admitEntries() *Encoded {
	e.d.mu.Lock()
	defer e.d.mu.Unlock()
	before := e.d.current.Load()
	e.t = *before
	for _, p := range e.pieces {
		p.countUses()
	}
	e.admitKeys()
	e.admitPairs()
	e.admitSets()
	for _, t := range []Table{TableTemplate, TableOrigin, TableEnd, TableID} {
		e.admitTable(t)
	}
	after := e.t
	e.d.current.Store(&after)
	return &Encoded{Entries: after.entriesSince(before), State: e.d.counts.appendCounts(nil), KVs: e.listPostings()}
}

// postPair notes that rows have a pair.
func (e *blockEncoder) postPair(pair uint32) {
	if int(pair/64) >= len(e.kvs) {
		e.kvs = append(e.kvs, NewMask(int(pair)+64-len(e.kvs)*64)...)
	}
	e.kvs.Set(int(pair))
}

func (e *blockEncoder) listPostings() []uint32 {
	pairs := make([]uint32, 0, e.kvs.Count())
	for i := range e.kvs.Rows() {
		pairs = append(pairs, uint32(i))
	}
	return pairs
}

// countUses counts how often the rows taken use each entry.
func (p *piece) countUses() {
	for t := range p.uses {
		p.uses[t] = make([]uint64, len(p.batch.tabs[t]))
		p.entries[t] = make([]ref, len(p.batch.tabs[t]))
	}
	for _, c := range entryColumns {
		t := tableOf(c)
		uses, ids := p.uses[t], p.batch.v.cols[c]
		if ids == nil {
			continue
		}
		for _, i := range p.rows {
			if ids[i] != 0 {
				uses[ids[i]-1]++
			}
		}
	}
	p.sets = make([]setUse, len(p.batch.tabs[TableSet]))
	for s, n := range p.uses[TableSet] {
		if n > 0 {
			p.countSet(p.batch.tabs[TableSet][s], n)
		}
	}
}

func (p *piece) countSet(data string, n uint64) {
	r := readText(data[1:])
	for r.bytesLeft() > 0 {
		id := r.readUvarint() >> 1
		p.uses[TablePair][id-1] += n
		p.uses[TableKey][p.batch.pairs[id-1].key-1] += n
	}
}

// admitTable admits entries whose bytes are the same here and in a batch.
func (e *blockEncoder) admitTable(t Table) {
	a := newAdmission(t)
	for _, p := range e.pieces {
		for i, n := range p.uses[t] {
			if n > 0 {
				p.entries[t][i] = a.countUse(e.d, []byte(p.batch.tabs[t][i]), n)
			}
		}
	}
	e.decideNumbers(a)
	for _, c := range a.fresh {
		if c.id == 0 {
			e.literalIDs = e.literalIDs || t == TableID
			e.inRows = e.inRows || t != TableID
		}
	}
}

func (e *blockEncoder) decideNumbers(a *admission) {
	a.decideAdmissions(e.d, &e.t, uint64(len(e.t[a.table])), e.d.counts.rows[a.table])
	e.d.counts.rows[a.table] += a.uses
}

// admitKeys admits keys until the first is refused. After that none is, so that
// a key either has a number in all blocks or is posted under the marker of key 0
// in all.
func (e *blockEncoder) admitKeys() {
	a := newAdmission(TableKey)
	for _, p := range e.pieces {
		for i, n := range p.uses[TableKey] {
			if n > 0 {
				p.entries[TableKey][i] = a.countUse(e.d, []byte(p.batch.tabs[TableKey][i]), n)
			}
		}
	}
	if _, closed := e.d.index[TablePair][string(appendPair(nil, pair{kind: pairInline}))]; closed {
		a.fresh = nil
	}
	e.decideNumbers(a)
}

// admitPairs admits pairs, by the counts of their keys.
func (e *blockEncoder) admitPairs() {
	byKey := map[uint32]*admission{}
	var order []uint32
	var buf []byte
	for _, p := range e.pieces {
		for i, n := range p.uses[TablePair] {
			if n == 0 {
				continue
			}
			local := p.batch.pairs[i]
			key := p.entries[TableKey][local.key-1].admittedNumber()
			if key == 0 {
				continue
			}
			a, ok := byKey[key]
			if !ok {
				a = newAdmission(TablePair)
				byKey[key], order = a, append(order, key)
			}
			local.key = key
			buf = appendPair(buf[:0], local)
			if local.kind == pairEmpty {
				p.entries[TablePair][i] = ref{id: e.admitAlways(string(buf))}
				continue
			}
			p.entries[TablePair][i] = a.countUse(e.d, buf, n)
		}
	}
	for _, key := range order {
		e.d.counts.growTo(key)
		a := byKey[key]
		a.decideAdmissions(e.d, &e.t, e.d.counts.values[key], e.d.counts.uses[key])
		e.d.counts.uses[key] += a.uses
	}
}

// markerOf returns the pair that stands for values of key that are in the rows;
// key 0 stands for all keys that have no number.
func (e *blockEncoder) markerOf(key uint32) uint32 {
	id := e.admitAlways(string(appendPair(nil, pair{key: key, kind: pairInline})))
	e.postPair(id)
	return id
}

// admitAlways returns the number of a pair that is admitted without counting: there
// is one of its kind for each key.
func (e *blockEncoder) admitAlways(data string) uint32 {
	id, ok := e.d.index[TablePair][data]
	if !ok {
		id = e.d.enterEntry(&e.t, TablePair, data)
	}
	return id
}

func (e *blockEncoder) admitSets() {
	a := newAdmission(TableSet)
	for _, p := range e.pieces {
		for i, n := range p.uses[TableSet] {
			if n == 0 {
				continue
			}
			s, whole := e.translateSet(p, p.batch.tabs[TableSet][i])
			if whole {
				s.entry = a.countUse(e.d, s.data, n)
			} else {
				a.uses += n
			}
			e.inRows = e.inRows || !whole || len(s.inline) > 0
			p.sets[i] = s
		}
	}
	e.decideNumbers(a)
	for _, c := range a.fresh {
		e.inRows = e.inRows || c.id == 0
	}
}

// translateSet writes a batch's set in the numbers of the dictionary. whole is false
// when a key has no number.
func (e *blockEncoder) translateSet(p *piece, local string) (s setUse, whole bool) {
	whole = true
	data, inline := append(e.buf[:0], local[0]), e.inline[:0]
	r := readText(local[1:])
	for r.bytesLeft() > 0 {
		u := r.readUvarint()
		item := &p.batch.pairs[u>>1-1]
		key := p.entries[TableKey][item.key-1].admittedNumber()
		id := p.entries[TablePair][u>>1-1].admittedNumber()
		switch {
		case key == 0:
			e.markerOf(0)
			whole = false
			inline = append(appendField(inline, p.batch.tabs[TableKey][item.key-1]), item.kind)
			inline = appendField(inline, item.value)
		case id == 0:
			id = e.markerOf(key)
			inline = appendField(inline, item.value)
		default:
			e.postPair(id)
		}
		data = appendItem(data, id, u&1 != 0)
	}
	e.buf, e.inline = data, inline
	return setUse{data: e.copyBytes(data), inline: e.copyBytes(inline)}, whole
}

// copyBytes copies b to where it stays until the block is done.
func (e *blockEncoder) copyBytes(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	at := len(e.arena)
	e.arena = append(e.arena, b...)
	return e.arena[at:len(e.arena):len(e.arena)]
}
