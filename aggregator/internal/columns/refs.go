package columns

import "github.com/bursar-accounting/bursar/proto/record"

// Refs are the numbers of a row's entries in the tables of its batch, from 1.
// Rows with the same number have the same entry, so that it is looked at once.
type Refs struct{ Set, Template, Origin, End uint32 }

// Refs returns the numbers of a row's entries.
func (b *Batch) Refs(i int) Refs {
	return Refs{Set: uint32(b.v.loadedNumber(colSet, i)), Template: uint32(b.v.loadedNumber(colTemplate, i)),
		Origin: uint32(b.v.loadedNumber(colOrigin, i)), End: uint32(b.v.loadedNumber(colEnd, i))}
}

// ReadOwn sets r to what is a row's own: all but meta, components, origin, rank,
// state and exit, which the entries of [Batch.Refs] say, and the amounts.
func (b *Batch) ReadOwn(r *Row, i int) {
	*r = Row{}
	b.v.rowOwn(r, i)
	r.Record.ID = b.v.rowID(i)
}

// Entries returns how many entries a table of the batch has.
func (b *Batch) Entries(t Table) int { return len(b.tabs[t]) }

// Pair returns a pair of [TablePair]. has is false when it stands for a key
// without values.
func (b *Batch) Pair(id uint32) (key, value string, has bool) {
	p := &b.pairs[id-1]
	return b.tabs[TableKey][p.key-1], p.value, p.kind == pairValue
}

// SetItem is one pair of a set. GoesOn says that its value belongs to the key of
// the item before it, whatever its own key is.
type SetItem struct {
	Pair   uint32
	GoesOn bool
}

// AppendSet appends the items of an entry of [TableSet]. present is false for
// the set of an absent meta.
func (b *Batch) AppendSet(dst []SetItem, set uint32) (items []SetItem, present bool) {
	r := readText(b.tabs[TableSet][set-1])
	for present = r.readByte() != 0; r.bytesLeft() > 0; {
		u := r.readUvarint()
		dst = append(dst, SetItem{Pair: uint32(u >> 1), GoesOn: u&1 != 0})
	}
	return dst, present
}

// Template returns the components of an entry of [TableTemplate], all amounts
// zero. The slice is shared.
func (b *Batch) Template(id uint32) []record.Component {
	t, _ := b.v.templateOf(id, nil) // checked when parsed
	return t
}

// OriginAt returns an entry of [TableOrigin].
func (b *Batch) OriginAt(id uint32) (record.Origin, record.Rank) {
	k, _ := b.v.originOf(id, nil) // checked when parsed
	return k.origin, k.rank
}

// End returns an entry of [TableEnd].
func (b *Batch) End(id uint32) (state string, exit record.Exit) {
	k, _ := b.v.endOf(id, nil) // checked when parsed
	return k.state, k.exit
}

// MaxAmounts is how many amounts of a row [Batch.AppendAmounts] can give.
const MaxAmounts = maxAmounts

// AppendAmounts appends the amounts of the first n components of a row, at most
// [MaxAmounts].
func (b *Batch) AppendAmounts(dst []int64, i, n int) []int64 {
	for k := range n {
		dst = append(dst, int64(b.v.loadedNumber(colAmount+k, i)))
	}
	return dst
}
