package columns

import (
	"github.com/bursar-accounting/bursar/proto/record"
)

// fillRow sets r to a row after all columns were loaded.
func (v *view) fillRow(r *Row, i int) error {
	*r = Row{}
	v.rowOwn(r, i)
	r.Record.ID = v.rowID(i)
	return v.rowEntries(r, i)
}

// rowOwn reads what is the row's own but for the id and the amounts.
func (v *view) rowOwn(r *Row, i int) {
	v.rowTimes(r, i)
	r.Seq, r.Supersedes = v.loadedNumber(colSeq, i), v.loadedNumber(colSupersedes, i)
	r.Received = record.Time(v.loadedNumber(colReceived, i))
	r.Changed = r.Received + record.Time(v.loadedNumber(colChanged, i))
}

// idChunk is how many ids are put together at a time: whoever keeps one keeps
// the memory of all of them.
const idChunk = 32

// rowID returns the id of a row after loadIDs.
func (v *view) rowID(i int) string {
	if v.ids == nil {
		v.ids = make([][]string, (v.n+idChunk-1)/idChunk)
	}
	k := i / idChunk
	if v.ids[k] == nil {
		v.ids[k] = v.idsOf(k*idChunk, min(v.n, (k+1)*idChunk))
	}
	return v.ids[k][i%idChunk]
}

func (v *view) idsOf(from, to int) []string {
	var ends [idChunk]int
	b := v.idBuf[:0]
	for i := from; i < to; i++ {
		b = v.appendID(b, i)
		ends[i-from] = len(b)
	}
	v.idBuf = b
	text, ids, at := string(b), make([]string, to-from), 0
	for k := range ids {
		ids[k], at = text[at:ends[k]], ends[k]
	}
	return ids
}

// Rows take their components out of slabs of this many, which saves most of the
// allocations of a sweep. The first is small, for those who want one row.
const (
	firstSlab = 8
	maxSlab   = 64
)

// allocComponents returns n components to be filled in.
func (v *view) allocComponents(n int) []record.Component {
	if v.reusesRows && n <= cap(v.parts) {
		return v.parts[:n]
	}
	if v.reusesRows {
		v.parts = make([]record.Component, n)
		return v.parts
	}
	if n > maxSlab/2 {
		return make([]record.Component, n)
	}
	if len(v.parts) < n {
		v.slabs = min(maxSlab, max(firstSlab, 2*v.slabs, n))
		v.parts = make([]record.Component, v.slabs)
	}
	out := v.parts[:n:n]
	v.parts = v.parts[n:]
	return out
}

func (v *view) rowTimes(r *Row, i int) {
	flags, stop := v.loadedNumber(colFlags, i), record.Time(v.loadedNumber(colStop, i))
	body := &r.Record
	body.Start = stop - record.Time(v.loadedNumber(colRuntime, i))
	body.Stop, body.Submit, r.Stop = record.None, record.None, record.None
	switch {
	case flags&flagRegister != 0 && flags&flagBodyStop != 0:
		r.Stop, body.Stop = stop, stop+record.Time(v.loadedNumber(colBodyStop, i))
	case flags&flagRegister != 0:
		r.Stop = stop
	case flags&flagOpen == 0:
		body.Stop = stop
	}
	if flags&flagSubmit != 0 {
		body.Submit = body.Start - record.Time(v.loadedNumber(colWait, i))
	}
	r.StopObserved = int64(v.loadedNumber(colStopObserved, i))
	r.Version.Observed = int64(v.loadedNumber(colObserved, i))
	r.Version.Ended = (body.Stop != record.None) != (flags&flagUnended != 0)
	r.Tombstone, r.Archived = flags&flagTombstone != 0, flags&flagArchived != 0
}

// rowEntries reads what comes from the tables or, where an entry is in the row,
// from the row's extras.
func (v *view) rowEntries(r *Row, i int) error {
	extra := v.rowExtras(i)
	var ok [4]bool
	r.Record.Meta, ok[0] = v.metaOf(uint32(v.loadedNumber(colSet, i)), &extra)
	var t template
	t, ok[1] = v.templateOf(uint32(v.loadedNumber(colTemplate, i)), &extra)
	var from originKey
	from, ok[2] = v.originOf(uint32(v.loadedNumber(colOrigin, i)), &extra)
	var end endKey
	end, ok[3] = v.endOf(uint32(v.loadedNumber(colEnd, i)), &extra)
	r.Origin, r.Rank = from.origin, from.rank
	r.Record.State, r.Record.Exit = end.state, end.exit
	r.Record.Components = v.fillComponents(t, i, &extra)
	if !extra.isDone() || ok != [4]bool{true, true, true, true} {
		return corruptError("row %d: its entries are not in the dictionary or not whole", i)
	}
	return nil
}

// fillComponents fills in the amounts.
func (v *view) fillComponents(t template, i int, extra *reader) []record.Component {
	if len(t) == 0 {
		if v.loadedNumber(colFlags, i)&flagNoParts != 0 {
			return []record.Component{}
		}
		return nil
	}
	out := v.allocComponents(len(t))
	copy(out, t)
	for k := range out[:min(len(out), maxAmounts)] {
		out[k].Amount = int64(v.loadedNumber(colAmount+k, i))
	}
	for k := maxAmounts; k < len(out); k++ {
		out[k].Amount = int64(extra.readUvarint())
	}
	return out
}

func (v *view) templateOf(id uint32, extra *reader) (template, bool) {
	if id == 0 {
		return parseTemplate(extra.readText())
	}
	if t := v.shared.templates.getValue(id); t != nil {
		return *t, true
	}
	data, ok := v.tables().getEntry(TableTemplate, uint64(id))
	if !ok {
		return nil, false
	}
	t, ok := parseTemplate(data)
	if ok {
		v.shared.templates.setOnce(id, t)
	}
	return t, ok
}

func (v *view) originOf(id uint32, extra *reader) (originKey, bool) {
	if k := v.shared.origins.getValue(id); k != nil {
		return *k, true
	}
	data, ok := v.tables().getEntry(TableOrigin, uint64(id))
	if id == 0 {
		data, ok = extra.readText(), !extra.bad
	}
	o, rank, parsed := parseOrigin(data)
	if id != 0 && ok && parsed {
		v.shared.origins.setOnce(id, originKey{o, rank})
	}
	return originKey{o, rank}, ok && parsed
}

func (v *view) endOf(id uint32, extra *reader) (endKey, bool) {
	if k := v.shared.ends.getValue(id); k != nil {
		return *k, true
	}
	data, ok := v.tables().getEntry(TableEnd, uint64(id))
	if id == 0 {
		data, ok = extra.readText(), !extra.bad
	}
	state, exit, parsed := parseEnd(data)
	if id != 0 && ok && parsed {
		v.shared.ends.setOnce(id, endKey{state, exit})
	}
	return endKey{state, exit}, ok && parsed
}

// metaOf returns the meta of a set, in which markers take their values from the
// row.
func (v *view) metaOf(id uint32, extra *reader) (record.Meta, bool) {
	if id == 0 {
		return readMeta(v.tables(), extra.readText(), extra)
	}
	f, ok := v.metaFormOf(id)
	if !ok {
		return nil, false
	}
	if len(f.holes) == 0 {
		return f.meta, true
	}
	if !v.reusesRows {
		return f.fillMeta(make(record.Meta, 0, len(f.meta)), make([]string, len(f.holes)), extra)
	}
	v.texts = append(v.texts[:0], make([]string, len(f.holes))...)
	m, ok := f.fillMeta(v.metaBuffer[:0], v.texts, extra)
	v.metaBuffer = m
	return m, ok
}

// metaFormOf returns a set that is in the dictionary.
func (v *view) metaFormOf(id uint32) (*metaForm, bool) {
	if f := v.shared.metas.getValue(id); f != nil {
		return f, true
	}
	data, ok := v.tables().getEntry(TableSet, uint64(id))
	if !ok {
		return nil, false
	}
	f, ok := parseForm(v.tables(), data)
	if !ok {
		return nil, false
	}
	return v.shared.metas.setOnce(id, f), true
}

// metaForm is a set as a meta, with holes where the values are in the rows.
type metaForm struct {
	meta  record.Meta
	holes []hole
}

type hole struct{ entry, value int }

// fillMeta appends the meta with the values of a row to m. texts has room for these.
func (f *metaForm) fillMeta(m record.Meta, texts []string, extra *reader) (record.Meta, bool) {
	m = append(m, f.meta...)
	for k, h := range f.holes {
		texts[k] = extra.readText()
		e := &m[h.entry]
		if len(e.Values) == 1 {
			e.Values = texts[k : k+1 : k+1]
			continue
		}
		if h.isFirst(f.holes[:k]) {
			e.Values = append([]string(nil), e.Values...)
		}
		e.Values[h.value] = texts[k]
	}
	return m, !extra.bad
}

// isFirst reports whether no hole before is in the same entry.
func (h hole) isFirst(before []hole) bool {
	return len(before) == 0 || before[len(before)-1].entry != h.entry
}

// parseForm reads a set.
func parseForm(t *tables, data string) (f metaForm, ok bool) {
	f.meta, ok = parseMeta(data, func(pair uint64, at hole) (key, value string, has, ok bool) {
		p, ok := t.getPair(pair)
		if !ok {
			return "", "", false, false
		}
		key, ok = t.getEntry(TableKey, uint64(p.key))
		if p.kind == pairInline {
			f.holes = append(f.holes, at)
		}
		return key, p.value, p.kind != pairEmpty, ok
	})
	return f, ok
}

// readMeta reads a set that is in the row.
func readMeta(t *tables, data string, extra *reader) (record.Meta, bool) {
	return parseMeta(data, func(pair uint64, _ hole) (key, value string, has, ok bool) {
		return readItem(t, pair, extra)
	})
}

// parseMeta reads a set, of whose pairs item knows the keys and values.
func parseMeta(data string, item func(pair uint64, at hole) (key, value string, has, ok bool)) (record.Meta, bool) {
	r := readText(data)
	if r.readByte() == 0 {
		return nil, r.isDone()
	}
	n := countItems(r)
	m := make(record.Meta, 0, n)
	values, first := make([]string, 0, n), 0
	for r.bytesLeft() > 0 {
		u := r.readUvarint()
		begins := u&1 == 0 || len(m) == 0
		if begins {
			m, first = append(m, record.MetaEntry{}), len(values)
		}
		e := &m[len(m)-1]
		key, value, has, ok := item(u>>1, hole{len(m) - 1, len(values) - first})
		if !ok {
			return nil, false
		}
		if begins {
			e.Key = key
		}
		if has {
			values = append(values, value)
			e.Values = values[first:len(values):len(values)]
		}
	}
	return m, !r.bad
}

// parseShared reads a set without what is in the rows.
func parseShared(t *tables, data string) (m record.Meta, inline, ok bool) {
	r := readText(data)
	if r.readByte() == 0 {
		return nil, false, true
	}
	m = record.Meta{}
	for r.bytesLeft() > 0 {
		u := r.readUvarint()
		p, _ := t.getPair(u >> 1)
		if p.kind == pairInline {
			inline = true
			continue
		}
		key, _ := t.getEntry(TableKey, uint64(p.key))
		if u&1 == 0 || len(m) == 0 || m[len(m)-1].Key != key {
			m = append(m, record.MetaEntry{Key: key})
		}
		if e := &m[len(m)-1]; p.kind == pairValue {
			e.Values = append(e.Values, p.value)
		}
	}
	return m, inline, true
}

// countItems counts the items of a set.
func countItems(r reader) (n int) {
	for ; r.bytesLeft() > 0; n++ {
		r.readUvarint()
	}
	return n
}

// readItem reads one item of a set that is in the row. A pair of 0 is in the row
// as a whole, of a marker the value is.
func readItem(t *tables, id uint64, extra *reader) (key, value string, has, ok bool) {
	if id == 0 {
		key, kind := extra.readText(), extra.readByte()
		return key, extra.readText(), kind == pairValue, !extra.bad
	}
	p, ok := t.getPair(id)
	if !ok {
		return "", "", false, false
	}
	key, ok = t.getEntry(TableKey, uint64(p.key))
	if p.kind == pairInline {
		return key, extra.readText(), true, ok && !extra.bad
	}
	return key, p.value, p.kind == pairValue, ok
}
