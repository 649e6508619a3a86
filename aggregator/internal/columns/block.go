package columns

import (
	"iter"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Block is a decoded block. Columns are decompressed when they are first asked
// for. It belongs to one goroutine. The slices that its methods return belong
// to it and must not be changed.
type Block struct {
	v       view
	starts  []record.Time
	stops   []record.Time
	sets    []uint32
	temps   []uint32
	ends    []uint32
	who     []uint32
	amounts [maxAmounts][]int64
	all     bool
	picks   int // rows that were read one by one
}

// Header returns the block's zone map.
func (b *Block) Header() Header { return b.v.frame.header }

// Len returns the number of rows, at least 1.
func (b *Block) Len() int { return b.v.n }

// readColumn returns a column, all zero when it is not there.
func (b *Block) readColumn(c int) ([]uint64, error) {
	if err := b.v.loadColumns(c); err != nil {
		return nil, err
	}
	if b.v.cols[c] == nil {
		b.v.cols[c] = make([]uint64, b.v.n)
	}
	return b.v.cols[c], nil
}

// Seqs returns the Seqs of all rows, which ascend.
func (b *Block) Seqs() ([]uint64, error) { return b.readColumn(colSeq) }

// Find returns the position of the row with that Seq.
func (b *Block) Find(seq uint64) (i int, ok bool, err error) {
	seqs, err := b.Seqs()
	if err != nil {
		return 0, false, err
	}
	i, ok = slices.BinarySearch(seqs, seq)
	return i, ok, nil
}

// Starts returns the starts of all rows.
func (b *Block) Starts() ([]record.Time, error) {
	if b.starts != nil {
		return b.starts, nil
	}
	stop, err := b.readColumn(colStop)
	if err != nil {
		return nil, err
	}
	runtime, err := b.readColumn(colRuntime)
	if err != nil {
		return nil, err
	}
	starts := make([]record.Time, b.v.n)
	for i := range starts {
		starts[i] = record.Time(stop[i] - runtime[i])
	}
	b.starts = starts
	return starts, nil
}

// Stops returns the shown stops of all rows; None of those that go on.
func (b *Block) Stops() ([]record.Time, error) {
	if b.stops != nil {
		return b.stops, nil
	}
	stop, err := b.readColumn(colStop)
	if err != nil {
		return nil, err
	}
	if err := b.v.loadColumns(colFlags); err != nil {
		return nil, err
	}
	stops := make([]record.Time, b.v.n)
	for i := range stops {
		stops[i] = record.Time(stop[i])
	}
	b.noStops(stops)
	b.stops = stops
	return stops, nil
}

func (b *Block) noStops(stops []record.Time) {
	for i, flags := range b.v.cols[colFlags] {
		if flags&flagOpen != 0 {
			stops[i] = record.None
		}
	}
}

// Sets returns the numbers of all rows' metas in [TableSet]. Rows with the same
// number other than 0 have the same pairs, but for values that are inline; see
// [Block.Meta].
func (b *Block) Sets() ([]uint32, error) { return b.entryColumn(&b.sets, colSet) }

// Templates returns the numbers of all rows' components in [TableTemplate]. Rows
// with the same number other than 0 have the same components but for the
// amounts; a row with 0 has its own, see [Block.Components].
func (b *Block) Templates() ([]uint32, error) { return b.entryColumn(&b.temps, colTemplate) }

func (b *Block) entryColumn(cache *[]uint32, c int) ([]uint32, error) {
	if *cache != nil {
		return *cache, nil
	}
	if err := b.v.loadColumns(c); err != nil {
		return nil, err
	}
	ids := make([]uint32, b.v.n)
	for i, id := range b.v.cols[c] {
		if id > uint64(len(b.v.tables()[tableOf(c)])) {
			return nil, corruptError("row %d has entry %d, which table %d does not have", i, id, tableOf(c))
		}
		ids[i] = uint32(id)
	}
	*cache = ids
	return ids, nil
}

// Template returns the components of a number of [TableTemplate], all amounts
// zero. The slice is shared.
func (b *Block) Template(id uint32) ([]record.Component, error) {
	if id != 0 {
		if t, ok := b.v.templateOf(id, nil); ok {
			return t, nil
		}
	}
	return nil, corruptError("no template %d", id)
}

// Amounts returns the amounts of the components at a position below 32, counted
// from 0, of all rows; 0 for rows that have no such component. It is nil when
// all are 0, or position is beyond.
func (b *Block) Amounts(position int) ([]int64, error) {
	if position < 0 || position >= maxAmounts || b.v.frame.parts[colAmount+position] == nil {
		return nil, nil
	}
	if b.amounts[position] != nil {
		return b.amounts[position], nil
	}
	if err := b.v.loadColumns(colAmount + position); err != nil {
		return nil, err
	}
	amounts := make([]int64, b.v.n)
	for i, u := range b.v.cols[colAmount+position] {
		amounts[i] = int64(u)
	}
	b.amounts[position] = amounts
	return amounts, nil
}

// Meta returns the meta of a row. Rows share metas.
func (b *Block) Meta(i int) (record.Meta, error) {
	if err := b.v.loadColumns(colSet); err != nil {
		return nil, err
	}
	extra, err := b.extraOf(i)
	if err != nil {
		return nil, err
	}
	m, ok := b.v.metaOf(uint32(b.v.loadedNumber(colSet, i)), &extra)
	if !ok {
		return nil, corruptError("row %d: meta", i)
	}
	return m, nil
}

// Values returns the values of a key in a row, as [record.Record.Values] does. They are
// lent no longer than those of [Block.Meta].
func (b *Block) Values(i int, key string) (values []string, ok bool, err error) {
	m, err := b.Meta(i)
	if err != nil {
		return nil, false, err
	}
	r := record.Record{Meta: m}
	if r.State, r.Exit, err = b.End(i); err != nil {
		return nil, false, err
	}
	values, ok = r.Values(key)
	return values, ok, nil
}

// Origins returns the numbers of all rows' origins in [TableOrigin]. Rows with the same number
// other than 0 have the same origin.
func (b *Block) Origins() ([]uint32, error) { return b.entryColumn(&b.who, colOrigin) }

// Origin returns the origin of a row, of which other columns are not read where it has a number.
func (b *Block) Origin(i int) (record.Origin, error) {
	origins, err := b.Origins()
	if err != nil {
		return record.Origin{}, err
	}
	if origins[i] == 0 { // it is in the row, behind what is of others
		r, err := b.Row(i)
		return r.Origin, err
	}
	key, ok := b.v.originOf(origins[i], &reader{})
	if !ok {
		return record.Origin{}, corruptError("no origin %d", origins[i])
	}
	return key.origin, nil
}

// Ends returns the numbers of all rows' ends in [TableEnd]. Rows with the same number other
// than 0 have the same end.
func (b *Block) Ends() ([]uint32, error) { return b.entryColumn(&b.ends, colEnd) }

// End returns how the run of a row ended.
func (b *Block) End(i int) (state string, exit record.Exit, err error) {
	ends, err := b.Ends()
	if err != nil {
		return "", record.Exit{}, err
	}
	if ends[i] == 0 { // it is in the row, behind what is of others
		r, err := b.Row(i)
		return r.Record.State, r.Record.Exit, err
	}
	end, ok := b.v.endOf(ends[i], &reader{})
	if !ok {
		return "", record.Exit{}, corruptError("no end %d", ends[i])
	}
	return end.state, end.exit, nil
}

func (b *Block) extraOf(i int) (reader, error) {
	if err := b.v.computeExtras(); err != nil {
		return reader{}, err
	}
	return b.v.rowExtras(i), nil
}

// Varies reports whether rows with that number of [TableSet] can differ in one of
// the keys, because its values are in the rows.
func (b *Block) Varies(set uint32, keys []string) (bool, error) {
	if set == 0 {
		return true, nil
	}
	f, ok := b.v.metaFormOf(set)
	if !ok {
		return false, corruptError("no set %d", set)
	}
	for _, h := range f.holes {
		if slices.Contains(keys, f.meta[h.entry].Key) {
			return true, nil
		}
	}
	return false, nil
}

// Components returns the components of a row with their amounts.
func (b *Block) Components(i int) ([]record.Component, error) {
	r, err := b.Row(i)
	return r.Record.Components, err
}

// AppendID appends the record id of a row.
func (b *Block) AppendID(dst []byte, i int) ([]byte, error) {
	if err := b.v.loadIDs(); err != nil {
		return dst, err
	}
	return b.v.appendID(dst, i), nil
}

// ID returns the record id of a row.
func (b *Block) ID(i int) (string, error) {
	id, err := b.AppendID(nil, i)
	return string(id), err
}

// Row returns a row. Rows share the slices of their metas and scores.
func (b *Block) Row(i int) (r Row, err error) {
	err = b.ReadRow(&r, i)
	return r, err
}

// ReuseRows makes the rows from now on valid only until the next one of the block is
// read: what they do not share with others is overwritten then. It saves most of
// the memory of a sweep.
func (b *Block) ReuseRows() {
	b.v.reusesRows = true
	b.v.parts, b.v.slabs = nil, 0
}

// ReadRow sets r to a row, as [Block.Row] returns it.
func (b *Block) ReadRow(r *Row, i int) error {
	if !b.all {
		if err := b.v.loadAll(); err != nil {
			return err
		}
		if err := b.v.computeExtras(); err != nil {
			return err
		}
		b.all = true
	}
	return b.v.fillRow(r, i)
}

// Rows yields all rows in the order of Seq, and ends with the first error.
func (b *Block) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for i := range b.v.n {
			r, err := b.Row(i)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Supersedes returns the Seqs that all rows replace, 0 for those that replace none.
func (b *Block) Supersedes() ([]uint64, error) { return b.readColumn(colSupersedes) }

// Changed returns the times at which the rows were made.
func (b *Block) Changed() ([]record.Time, error) {
	received, err := b.readColumn(colReceived)
	if err != nil {
		return nil, err
	}
	later, err := b.readColumn(colChanged)
	if err != nil {
		return nil, err
	}
	times := make([]record.Time, len(received))
	for i := range times {
		times[i] = record.Time(received[i] + later[i])
	}
	return times, nil
}

// Submits returns the submit times of all rows; None of those that have none.
func (b *Block) Submits() ([]record.Time, error) {
	starts, err := b.Starts()
	if err != nil {
		return nil, err
	}
	if err := b.v.loadColumns(colFlags, colWait); err != nil {
		return nil, err
	}
	submits := make([]record.Time, b.v.n)
	for i := range submits {
		submits[i] = record.None
		if b.v.loadedNumber(colFlags, i)&flagSubmit != 0 {
			submits[i] = starts[i] - record.Time(b.v.loadedNumber(colWait, i))
		}
	}
	return submits, nil
}

// Tombstones returns the rows of ids that show nothing any more.
func (b *Block) Tombstones() (Mask, error) { return b.flaggedRows(flagTombstone) }

// Archived returns the rows whose bodies have lost details to an archive.
func (b *Block) Archived() (Mask, error) { return b.flaggedRows(flagArchived) }

func (b *Block) flaggedRows(flag uint64) (Mask, error) {
	if err := b.v.loadColumns(colFlags); err != nil {
		return nil, err
	}
	m := NewMask(b.v.n)
	for i, flags := range b.v.cols[colFlags] {
		if flags&flag != 0 {
			m.Set(i)
		}
	}
	return m, nil
}
