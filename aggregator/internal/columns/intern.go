package columns

import "github.com/bursar-accounting/bursar/proto/record"

// internEntry returns the number of an entry that is found by its bytes.
func (b *Builder) internEntry(t Table, data []byte) uint32 {
	if id, ok := b.other[t][string(data)]; ok {
		return id
	}
	s := string(data)
	id := b.enterEntry(t, s)
	b.other[t][s] = id
	return id
}

// entryOverhead is what an entry costs beside its bytes: its length.
const entryOverhead = 4

func (b *Builder) enterEntry(t Table, data string) uint32 {
	b.tabs[t] = append(b.tabs[t], data)
	b.bytes += len(data) + entryOverhead
	return uint32(len(b.tabs[t]))
}

func (b *Builder) internSet(m record.Meta) uint32 {
	b.buf = appendBool(b.buf[:0], m != nil)
	for i := range m {
		e, last := &m[i], b.memoAt(i, m[i].Key)
		if len(e.Values) == 0 {
			b.buf = appendItem(b.buf, b.emptyPair(last.id), false)
			continue
		}
		if last.pair == 0 || last.value != e.Values[0] {
			last.value, last.pair = e.Values[0], b.internPair(last.id, e.Values[0])
		}
		b.buf = appendItem(b.buf, last.pair, false)
		for _, v := range e.Values[1:] {
			b.buf = appendItem(b.buf, b.internPair(last.id, v), true)
		}
	}
	return b.internEntry(TableSet, b.buf)
}

// memoAt returns the memo of a position, made again when the key is another.
func (b *Builder) memoAt(i int, key string) *memo {
	for len(b.memo) <= i {
		b.memo = append(b.memo, memo{})
	}
	m := &b.memo[i]
	if m.id == 0 || m.key != key {
		*m = memo{key: key, id: b.internKey(key)}
	}
	return m
}

func (b *Builder) internKey(key string) uint32 {
	id, ok := b.keys[key]
	if !ok {
		id = b.enterEntry(TableKey, key)
		b.keys[key] = id
		if len(b.values) < int(id) {
			b.values = append(b.values, map[string]uint32{})
		}
	}
	return id
}

func (b *Builder) internPair(key uint32, value string) uint32 {
	id, ok := b.values[key-1][value]
	if !ok {
		id = b.enterEntry(TablePair, string(appendPair(nil, pair{key: key, value: value})))
		b.values[key-1][value] = id
	}
	return id
}

func (b *Builder) emptyPair(key uint32) uint32 {
	id, ok := b.empty[key]
	if !ok {
		id = b.enterEntry(TablePair, string(appendPair(nil, pair{key: key, kind: pairEmpty})))
		b.empty[key] = id
	}
	return id
}

func (b *Builder) originOf(r *Row) uint32 {
	k := originKey{r.Origin, r.Rank}
	id, ok := b.origin[k]
	if !ok {
		id = b.enterEntry(TableOrigin, string(appendOrigin(nil, r.Origin, r.Rank)))
		b.origin[k] = id
	}
	return id
}

func (b *Builder) endOf(r *record.Record) uint32 {
	k := endKey{r.State, r.Exit}
	id, ok := b.end[k]
	if !ok {
		id = b.enterEntry(TableEnd, string(appendEnd(nil, r.State, r.Exit)))
		b.end[k] = id
	}
	return id
}
