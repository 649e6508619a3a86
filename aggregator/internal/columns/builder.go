package columns

import (
	"encoding/binary"

	"github.com/bursar-accounting/bursar/proto/record"
)

// MaxRows is the most rows of a batch and of a block.
const MaxRows = 4096

// MaxBatch is the [Builder.Size] from which on a batch is full: an entry of the
// raft log may have 384 KiB, and this leaves room for its envelope and for what
// else it carries.
const MaxBatch = 352 << 10

// fewRows is how many rows a batch must have for its blobs to be compressed: of fewer, that
// takes longer than to write them.
const fewRows = 64

// Builder makes a batch out of rows. It belongs to one goroutine. The strings
// of added rows must stay unchanged until Reset.
type Builder struct {
	n      int
	cols   [numCols][]uint64 // nil: all zero; may be shorter than n: then zero
	used   []int             // columns that are not nil
	least  [numCols]int64
	most   [numCols]int64
	tabs   tables
	text   []byte
	hex    []byte
	extra  []byte
	bytes  int // of the tables' entries and blobs
	ids    idParser
	keys   map[string]uint32
	values []map[string]uint32 // by key: pairs
	empty  map[uint32]uint32   // by key: the pair without a value
	memo   []memo              // by position in a meta: what was met last
	origin map[originKey]uint32
	end    map[endKey]uint32
	other  [numTables]map[string]uint32
	buf    []byte
}

// memo is the key and the first value that the last meta had at a position:
// nearly always the next has the same key there, and often the same value.
type memo struct {
	key   string
	id    uint32
	value string
	pair  uint32
}

type originKey struct {
	origin record.Origin
	rank   record.Rank
}

type endKey struct {
	state string
	exit  record.Exit
}

// NewBuilder returns an empty builder.
func NewBuilder() *Builder {
	b := &Builder{
		keys: map[string]uint32{}, empty: map[uint32]uint32{},
		origin: map[originKey]uint32{}, end: map[endKey]uint32{},
	}
	for _, t := range []Table{TableSet, TableTemplate, TableID} {
		b.other[t] = map[string]uint32{}
	}
	return b
}

// Reset empties b and keeps its memory.
func (b *Builder) Reset() {
	b.n, b.bytes, b.used = 0, 0, b.used[:0]
	for i := range b.cols {
		b.cols[i] = b.cols[i][:0]
		b.least[i], b.most[i] = 0, 0
	}
	for i := range b.tabs {
		clear(b.tabs[i])
		b.tabs[i] = b.tabs[i][:0]
		clear(b.other[i])
	}
	b.text, b.hex, b.extra = b.text[:0], b.hex[:0], b.extra[:0]
	clear(b.keys)
	for _, m := range b.values {
		clear(m)
	}
	clear(b.empty)
	clear(b.memo)
	b.memo = b.memo[:0]
	clear(b.origin)
	clear(b.end)
}

// Len returns how many rows were added.
func (b *Builder) Len() int { return b.n }

// Full reports whether no further row should be added: the batch has [MaxRows]
// rows or its size reached [MaxBatch]. One more row after that is no error
// below MaxRows, but may make the entry of the raft log too large.
func (b *Builder) Full() bool { return b.n >= MaxRows || b.Size() >= MaxBatch }

// Size returns an upper bound of the length of [Builder.Bytes]. A row of
// ordinary size adds 60 to 90 bytes to it and less than half of that to the
// batch.
func (b *Builder) Size() int {
	size := HeaderSize + 8*numParts + b.bytes
	for _, c := range b.used {
		least, most := b.least[c], b.most[c]
		if len(b.cols[c]) < b.n {
			least, most = min(least, 0), max(most, 0)
		}
		if least != most {
			size += b.n*byteWidth(uint64(most-least)) + numbersOverhead
		}
	}
	return size
}

// Add adds a row. It panics when there are [MaxRows] already.
func (b *Builder) Add(r *Row) {
	if b.n >= MaxRows {
		panic("columns: Builder.Add: the batch has MaxRows rows")
	}
	b.n++
	b.addTimes(r)
	b.putNumber(colSeq, r.Seq)
	b.putNumber(colReceived, uint64(r.Received))
	b.putNumber(colChanged, uint64(r.Changed-r.Received))
	b.putNumber(colSupersedes, r.Supersedes)
	b.putNumber(colSet, uint64(b.internSet(r.Record.Meta)))
	b.putNumber(colOrigin, uint64(b.originOf(r)))
	b.putNumber(colEnd, uint64(b.endOf(&r.Record)))
	b.addID(r.Record.ID)
	b.addComponents(r.Record.Components)
}

// putNumber sets the column of the row that is being added.
func (b *Builder) putNumber(c int, v uint64) {
	if v == 0 && len(b.cols[c]) == 0 {
		return
	}
	if len(b.cols[c]) == 0 {
		b.used = append(b.used, c)
	}
	if b.n == 1 {
		b.least[c], b.most[c] = int64(v), int64(v)
	}
	if len(b.cols[c]) < b.n-1 {
		b.least[c], b.most[c] = min(b.least[c], 0), max(b.most[c], 0)
	}
	for len(b.cols[c]) < b.n-1 {
		b.cols[c] = append(b.cols[c], 0)
	}
	b.cols[c] = append(b.cols[c], v)
	b.least[c], b.most[c] = min(b.least[c], int64(v)), max(b.most[c], int64(v))
}

func (b *Builder) addTimes(r *Row) {
	stop, flags := r.ShownStop(), flagsOf(r)
	if stop == record.None {
		stop = r.Record.Start
	}
	b.putNumber(colFlags, flags)
	b.putNumber(colStop, uint64(stop))
	b.putNumber(colRuntime, uint64(stop-r.Record.Start))
	if flags&flagSubmit != 0 {
		b.putNumber(colWait, uint64(r.Record.Start-r.Record.Submit))
	}
	b.putNumber(colObserved, uint64(r.Version.Observed))
	b.putNumber(colStopObserved, uint64(r.StopObserved))
	if flags&flagBodyStop != 0 {
		b.putNumber(colBodyStop, uint64(r.Record.Stop-stop))
	}
}

func flagsOf(r *Row) uint64 {
	flags := uint64(0)
	set := func(when bool, flag uint64) {
		if when {
			flags |= flag
		}
	}
	set(r.ShownStop() == record.None, flagOpen)
	set(r.Tombstone, flagTombstone)
	set(r.Stop != record.None, flagRegister)
	set(r.Stop != record.None && r.Record.Stop != record.None, flagBodyStop)
	set(r.Record.Submit != record.None, flagSubmit)
	set(r.Version.Ended != (r.Record.Stop != record.None), flagUnended)
	set(r.Record.Components != nil && len(r.Record.Components) == 0, flagNoParts)
	set(r.Archived, flagArchived)
	return flags
}

// maxTemplateParts is the most bytes that an id template has beyond its id's: an id that
// changes between digits and letters more often is kept whole.
const maxTemplateParts = 16

func (b *Builder) addID(id string) {
	p := &b.ids
	p.splitID(id)
	if len(p.template) > len(id)+maxTemplateParts {
		b.putNumber(colTextLen, uint64(len(id)))
		b.text = append(b.text, id...)
		b.bytes += len(id)
		return
	}
	b.putNumber(colID, uint64(b.internEntry(TableID, p.template)))
	for k, v := range p.numbers[:p.count] {
		b.putNumber(colNumber+k, v)
	}
	b.hex = append(b.hex, p.bytes...)
	b.bytes += len(p.bytes)
}

func (b *Builder) addComponents(components []record.Component) {
	b.buf = appendTemplate(b.buf[:0], components)
	b.putNumber(colTemplate, uint64(b.internEntry(TableTemplate, b.buf)))
	for i := range components[:min(len(components), maxAmounts)] {
		b.putNumber(colAmount+i, uint64(components[i].Amount))
	}
	if len(components) <= maxAmounts {
		return
	}
	at := len(b.extra)
	for i := maxAmounts; i < len(components); i++ {
		b.extra = binary.AppendUvarint(b.extra, uint64(components[i].Amount))
	}
	b.putNumber(colExtraLen, uint64(len(b.extra)-at))
	b.bytes += len(b.extra) - at
}

// padColumns brings all columns that are not zero to the full length.
func (b *Builder) padColumns() {
	for c := range b.cols {
		for len(b.cols[c]) > 0 && len(b.cols[c]) < b.n {
			b.cols[c] = append(b.cols[c], 0)
		}
	}
}

// Bytes returns the encoded batch; nil when it has no rows. More rows can be
// added after it.
func (b *Builder) Bytes() []byte {
	if b.n == 0 {
		return nil
	}
	b.padColumns()
	f := frame{header: b.rowsHeader()}
	e := encoder{codec: getCodec(), plain: b.n < fewRows}
	defer putCodec(e.codec)
	for c, v := range b.cols {
		f.parts[c] = e.encodeColumn(c, v, b.cols[colID])
	}
	f.parts[blobText] = e.encodeBlob(b.text)
	f.parts[blobHex] = e.encodeDigits(b.hex)
	f.parts[blobExtra] = e.encodeBlob(b.extra)
	for t, entries := range b.tabs {
		f.parts[blobTable+t] = e.encodeEntries(entries)
	}
	return f.appendFrame(nil, kindBatch)
}

func (b *Builder) rowsHeader() Header { return columnsHeader(b.n, &b.cols) }

// columnsHeader makes the header of columns.
func columnsHeader(n int, cols *[numCols][]uint64) Header {
	h := emptyHeader()
	at := func(c, i int) uint64 {
		if len(cols[c]) == 0 {
			return 0
		}
		return cols[c][i]
	}
	for i := range n {
		h.addRow(at(colFlags, i), at(colStop, i), at(colRuntime, i))
	}
	h.FirstSeq, h.LastSeq = at(colSeq, 0), at(colSeq, n-1)
	return h
}

// asBatch returns the rows as a batch that was not encoded. It shares the memory
// of b.
func (b *Builder) asBatch() *Batch {
	b.padColumns()
	out := &Batch{tabs: b.tabs}
	out.v = view{frame: &frame{header: b.rowsHeader()}, n: b.n, tables: func() *tables { return &out.tabs }, shared: &shared{}}
	for c, v := range b.cols {
		out.v.loaded[c] = true
		if len(v) > 0 {
			out.v.cols[c] = v
		}
	}
	for _, data := range b.tabs[TablePair] {
		p, _ := parsePair(data)
		out.pairs = append(out.pairs, p)
	}
	out.v.blobs[0], out.v.blobs[1], out.v.blobs[2] = b.text, b.hex, b.extra
	return out
}
