package columns

import "github.com/bursar-accounting/bursar/proto/record"

// Batch is a parsed batch. It belongs to one goroutine: what its methods put
// together they keep for the next call.
type Batch struct {
	v     view
	tabs  tables
	pairs []pair // of TablePair
}

// ParseBatch reads what [Builder.Bytes] wrote and checks all of it, so that the
// accessors cannot fail. The batch keeps views of data, which must stay
// unchanged. The error wraps [ErrCorrupt] or [ErrFormat].
func ParseBatch(data []byte) (*Batch, error) {
	b := &Batch{}
	f := &frame{}
	if err := f.parseFrame(data, kindBatch); err != nil {
		return nil, err
	}
	b.v = view{frame: f, n: f.header.Rows, tables: func() *tables { return &b.tabs }, shared: &shared{}}
	if err := b.loadTables(); err != nil {
		return nil, err
	}
	if err := b.v.loadAll(); err != nil {
		return nil, err
	}
	if err := b.checkRows(); err != nil {
		return nil, err
	}
	return b, nil
}

// maxEntries is the most entries of a table of a batch: a raft entry cannot
// hold as many.
const maxEntries = 1 << 18

func (b *Batch) loadTables() error {
	for t := TableKey; t < numTables; t++ {
		data, err := b.v.expandBlob(blobTable + int(t))
		if err != nil {
			return err
		}
		if err := b.loadTable(t, string(data)); err != nil {
			return err
		}
	}
	return nil
}

func (b *Batch) loadTable(t Table, data string) error {
	r, seen := readText(data), map[string]struct{}{}
	for r.bytesLeft() > 0 {
		n := r.readUvarint()
		at := len(data) - r.bytesLeft()
		r.nextBytes(n)
		if r.bad || len(b.tabs[t]) == maxEntries || !b.acceptsEntry(t, data[at:at+int(n)]) {
			return corruptError("entry %d of table %d", len(b.tabs[t]), t)
		}
		b.tabs[t] = append(b.tabs[t], data[at:at+int(n)])
		if t == TableID {
			seen[data[at:at+int(n)]] = struct{}{}
		}
	}
	if t == TableID && len(seen) != len(b.tabs[t]) {
		return corruptError("table %d has an entry twice", t)
	}
	return nil
}

// acceptsEntry reports whether data can be an entry of a batch, which has no markers.
func (b *Batch) acceptsEntry(t Table, data string) bool {
	if !b.tabs.checkEntry(t, data) {
		return false
	}
	if t == TablePair {
		p, _ := parsePair(data)
		b.pairs = append(b.pairs, p)
		return p.kind != pairInline
	}
	return true
}

// checkRows reports whether every row can be read.
func (b *Batch) checkRows() error {
	if err := b.v.computeExtras(); err != nil {
		return err
	}
	for _, c := range entryColumns {
		t := tableOf(c)
		for i := range b.v.n {
			id := b.v.loadedNumber(c, i)
			if id > uint64(len(b.tabs[t])) || id == 0 && c != colID {
				return corruptError("row %d has no entry in table %d", i, t)
			}
		}
	}
	return b.checkExtras()
}

// checkExtras sees that the extras are the amounts beyond the columns.
func (b *Batch) checkExtras() error {
	if b.v.frame.parts[blobExtra] == nil && !b.hasWideTemplate() {
		return nil
	}
	for i := range b.v.n {
		t, ok := b.v.templateOf(uint32(b.v.loadedNumber(colTemplate, i)), nil)
		extra := b.v.rowExtras(i)
		for k := maxAmounts; k < len(t); k++ {
			extra.readUvarint()
		}
		if !ok || !extra.isDone() {
			return corruptError("row %d: amounts", i)
		}
	}
	return nil
}

// hasWideTemplate reports whether a template has more amounts than columns.
func (b *Batch) hasWideTemplate() bool {
	for _, data := range b.tabs[TableTemplate] {
		r := readText(data)
		if r.readUvarint() > maxAmounts {
			return true
		}
	}
	return false
}

// Len returns the number of rows, at least 1.
func (b *Batch) Len() int { return b.v.n }

// AppendID appends the record id of a row.
func (b *Batch) AppendID(dst []byte, i int) []byte { return b.v.appendID(dst, i) }

// ID returns the record id of a row.
func (b *Batch) ID(i int) string { return b.v.rowID(i) }

// Start returns the start of a row.
func (b *Batch) Start(i int) record.Time {
	return record.Time(b.v.loadedNumber(colStop, i) - b.v.loadedNumber(colRuntime, i))
}

// Stop returns the shown stop of a row; None while the run goes on.
func (b *Batch) Stop(i int) record.Time {
	if b.Open(i) {
		return record.None
	}
	return record.Time(b.v.loadedNumber(colStop, i))
}

// Seq returns the Seq that the row was added with.
func (b *Batch) Seq(i int) uint64 { return b.v.loadedNumber(colSeq, i) }

// Open reports whether a row shows no stop.
func (b *Batch) Open(i int) bool { return b.v.loadedNumber(colFlags, i)&flagOpen != 0 }

// Tombstone reports whether a row is a tombstone.
func (b *Batch) Tombstone(i int) bool { return b.v.loadedNumber(colFlags, i)&flagTombstone != 0 }

// Pushed reports whether a client has pushed every row and nothing else has
// touched, with a version that says whether it has ended.
func (b *Batch) Pushed() bool {
	for id := range b.tabs[TableOrigin] {
		if o, rank := b.OriginAt(uint32(id + 1)); !o.IsPushed() || rank != record.RankPush {
			return false
		}
	}
	for _, flags := range b.v.cols[colFlags] {
		if flags&(flagTombstone|flagRegister|flagBodyStop|flagUnended|flagArchived) != 0 {
			return false
		}
	}
	return b.v.cols[colStopObserved] == nil && b.v.cols[colSupersedes] == nil
}

// Version returns the version of a row.
func (b *Batch) Version(i int) record.Version {
	r := Row{}
	b.v.rowTimes(&r, i)
	return r.Version
}

// Origin returns who says the row, and how well they know.
func (b *Batch) Origin(i int) (record.Origin, record.Rank) {
	k, _ := b.v.originOf(uint32(b.v.loadedNumber(colOrigin, i)), nil) // checked when parsed
	return k.origin, k.rank
}

// Row returns a row. Rows share the slices of their metas and scores.
func (b *Batch) Row(i int) (r Row) {
	_ = b.v.fillRow(&r, i) // checked when parsed
	return r
}

// Same reports whether row i says what r says: record, origin, rank, version and
// stop register. What the store adds (Seq, Received, Changed, Supersedes) does
// not count.
func (b *Batch) Same(i int, r *Row) bool {
	s := b.Row(i)
	return s.Origin == r.Origin && s.Rank == r.Rank && s.Version == r.Version && s.Stop == r.Stop &&
		s.StopObserved == r.StopObserved && s.Tombstone == r.Tombstone && s.Archived == r.Archived && record.Same(&s.Record, &r.Record)
}
