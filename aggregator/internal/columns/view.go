package columns

import (
	"unsafe"

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

	ids   []byte             // memory of the ids that rows are given
	parts []record.Component // and of their components

	metas     map[uint32]record.Meta
	templates map[uint32]template
	shapes    map[uint32]idShape
	ends      map[uint32]endKey
	origins   map[uint32]originKey
}

// at returns a number of a loaded column.
func (v *view) at(c, i int) uint64 {
	if v.cols[c] == nil {
		return 0
	}
	return v.cols[c][i]
}

// load decodes columns that are not there yet.
func (v *view) load(cols ...int) error {
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
		groups := v.groups
		if c < colNumber || c >= colNumber+maxNumbers {
			groups = nil // only ids have groups, and the column of groups has none
		}
		numbers, err := coder.numbers(part, v.n, groups)
		if err != nil {
			return err
		}
		v.cols[c] = numbers
	}
	v.loaded[c] = true
	return nil
}

func (v *view) loadAll() error {
	for c := range v.cols {
		if err := v.load(c); err != nil {
			return err
		}
	}
	for _, blob := range []int{blobText, blobHex, blobExtra} {
		if _, err := v.blob(blob); err != nil {
			return err
		}
	}
	return v.offsets()
}

// groups returns the ranks of the rows' id templates.
func (v *view) groups() ([]uint32, error) {
	if err := v.load(colID); err != nil {
		return nil, err
	}
	if v.ranks == nil {
		ids := v.cols[colID]
		if ids == nil {
			ids = make([]uint64, v.n)
		}
		v.ranks = rank(ids)
	}
	return v.ranks, nil
}

// blob returns a blob, expanded.
func (v *view) blob(part int) ([]byte, error) {
	k := part - blobText
	if v.got[k] || v.frame.parts[part] == nil {
		return v.blobs[k], nil
	}
	coder := getCodec()
	defer putCodec(coder)
	r := reader{b: v.frame.parts[part]}
	n := r.uvarint()
	if r.bad || n > maxStream {
		return nil, corrupt("blob of %d bytes", n)
	}
	data, err := coder.stream(&r, int(n), nil)
	if err == nil && !r.done() {
		err = corrupt("blob is too long")
	}
	if err != nil {
		return nil, err
	}
	v.blobs[k], v.got[k] = data, true
	return data, nil
}

// offsets computes where the rows' bytes begin in the blobs.
func (v *view) offsets() error {
	if v.textAt != nil {
		return nil
	}
	if err := v.load(colID, colTextLen); err != nil {
		return err
	}
	textAt, err := v.ends32(blobText, func(i int) (uint64, bool) { return v.at(colTextLen, i), true })
	if err != nil {
		return err
	}
	v.hexAt, err = v.ends32(blobHex, func(i int) (uint64, bool) {
		s, ok := v.shape(uint32(v.at(colID, i)))
		return uint64(s.bytes), ok
	})
	if err != nil {
		return err
	}
	v.textAt = textAt
	return nil
}

// extras computes where the rows' extras begin.
func (v *view) extras() error {
	if v.extraAt != nil {
		return nil
	}
	if err := v.load(colExtraLen); err != nil {
		return err
	}
	at, err := v.ends32(blobExtra, func(i int) (uint64, bool) { return v.at(colExtraLen, i), true })
	v.extraAt = at
	return err
}

// ends32 adds up the lengths of the rows in a blob, which must have just as
// many bytes.
func (v *view) ends32(part int, length func(i int) (uint64, bool)) ([]uint32, error) {
	data, err := v.blob(part)
	if err != nil {
		return nil, err
	}
	at, sum := make([]uint32, v.n+1), uint64(0)
	for i := range v.n {
		n, ok := length(i)
		if !ok || n > uint64(len(data)) {
			return nil, corrupt("row %d has bytes beyond the end, or no template", i)
		}
		sum += n
		at[i+1] = uint32(sum)
	}
	if sum != uint64(len(data)) {
		return nil, corrupt("rows have %d bytes of %d", sum, len(data))
	}
	return at, nil
}

// shape returns what an id template takes; that of 0 takes nothing.
func (v *view) shape(id uint32) (idShape, bool) {
	if id == 0 {
		return idShape{}, true
	}
	if s, ok := v.shapes[id]; ok {
		return s, true
	}
	data, ok := v.tables().get(TableID, uint64(id))
	if !ok {
		return idShape{}, false
	}
	s, ok := shapeOf(data)
	if v.shapes == nil {
		v.shapes = map[uint32]idShape{}
	}
	v.shapes[id] = s
	return s, ok
}

// loadIDs makes ready for appendID.
func (v *view) loadIDs() error {
	if v.textAt != nil {
		return nil
	}
	for k := range maxNumbers {
		if err := v.load(colNumber + k); err != nil {
			return err
		}
	}
	return v.offsets()
}

// appendID appends the id of a row after loadIDs.
func (v *view) appendID(dst []byte, i int) []byte {
	id := v.at(colID, i)
	if id == 0 {
		return append(dst, v.blobs[0][v.textAt[i]:v.textAt[i+1]]...)
	}
	data, _ := v.tables().get(TableID, id) // offsets has seen that it is there
	number := func(k int) uint64 { return v.at(colNumber+k, i) }
	return appendID(dst, data, number, v.blobs[1][v.hexAt[i]:v.hexAt[i+1]])
}

// rowExtras returns a reader of the row's extras after extras.
func (v *view) rowExtras(i int) reader {
	return reader{b: v.blobs[2][v.extraAt[i]:v.extraAt[i+1]]}
}

// row puts a row together after all columns were loaded.
func (v *view) row(i int) (Row, error) {
	r := Row{}
	v.rowTimes(&r, i)
	r.Seq, r.Supersedes = v.at(colSeq, i), v.at(colSupersedes, i)
	r.Received = record.Time(v.at(colReceived, i))
	r.Changed = r.Received + record.Time(v.at(colChanged, i))
	r.Record.ID = v.id(i)
	return r, v.rowEntries(&r, i)
}

// Rows take their ids and components out of slabs of this many bytes and
// components, which saves most of the allocations of a sweep.
const (
	idSlab   = 1024
	partSlab = 32
)

func (v *view) id(i int) string {
	if cap(v.ids)-len(v.ids) < 64 {
		v.ids = make([]byte, 0, idSlab)
	}
	at := len(v.ids)
	v.ids = v.appendID(v.ids, i)
	id := v.ids[at:]
	return unsafe.String(unsafe.SliceData(id), len(id))
}

// slab returns n components to be filled in.
func (v *view) slab(n int) []record.Component {
	if n > partSlab/2 {
		return make([]record.Component, n)
	}
	if len(v.parts) < n {
		v.parts = make([]record.Component, partSlab)
	}
	out := v.parts[:n:n]
	v.parts = v.parts[n:]
	return out
}

func (v *view) rowTimes(r *Row, i int) {
	flags, stop := v.at(colFlags, i), record.Time(v.at(colStop, i))
	body := &r.Record
	body.Start = stop - record.Time(v.at(colRuntime, i))
	body.Stop, body.Submit, r.Stop = record.None, record.None, record.None
	switch {
	case flags&flagRegister != 0 && flags&flagBodyStop != 0:
		r.Stop, body.Stop = stop, stop+record.Time(v.at(colBodyStop, i))
	case flags&flagRegister != 0:
		r.Stop = stop
	case flags&flagOpen == 0:
		body.Stop = stop
	}
	if flags&flagSubmit != 0 {
		body.Submit = body.Start - record.Time(v.at(colWait, i))
	}
	r.StopObserved = int64(v.at(colStopObserved, i))
	r.Version.Observed = int64(v.at(colObserved, i))
	r.Version.Ended = (body.Stop != record.None) != (flags&flagUnended != 0)
	r.Tombstone = flags&flagTombstone != 0
}

// rowEntries reads what comes from the tables or, where an entry is in the row,
// from the row's extras.
func (v *view) rowEntries(r *Row, i int) error {
	extra := v.rowExtras(i)
	var ok [4]bool
	r.Record.Meta, ok[0] = v.meta(uint32(v.at(colSet, i)), &extra)
	var t template
	t, ok[1] = v.template(uint32(v.at(colTemplate, i)), &extra)
	var from originKey
	from, ok[2] = v.originOf(uint32(v.at(colOrigin, i)), &extra)
	var end endKey
	end, ok[3] = v.endOf(uint32(v.at(colEnd, i)), &extra)
	r.Origin, r.Rank = from.origin, from.rank
	r.Record.State, r.Record.Exit = end.state, end.exit
	r.Record.Components = v.components(t, i, &extra)
	if !extra.done() || ok != [4]bool{true, true, true, true} {
		return corrupt("row %d: its entries are not in the dictionary or not whole", i)
	}
	return nil
}

// components fills in the amounts.
func (v *view) components(t template, i int, extra *reader) []record.Component {
	if len(t) == 0 {
		if v.at(colFlags, i)&flagNoParts != 0 {
			return []record.Component{}
		}
		return nil
	}
	out := v.slab(len(t))
	copy(out, t)
	for k := range out[:min(len(out), maxAmounts)] {
		out[k].Amount = int64(v.at(colAmount+k, i))
	}
	for k := maxAmounts; k < len(out); k++ {
		out[k].Amount = int64(extra.uvarint())
	}
	return out
}

func (v *view) template(id uint32, extra *reader) (template, bool) {
	if id == 0 {
		return parseTemplate(extra.text())
	}
	if t, ok := v.templates[id]; ok {
		return t, true
	}
	data, ok := v.tables().get(TableTemplate, uint64(id))
	if !ok {
		return nil, false
	}
	t, ok := parseTemplate(data)
	if v.templates == nil {
		v.templates = map[uint32]template{}
	}
	v.templates[id] = t
	return t, ok
}

func (v *view) originOf(id uint32, extra *reader) (originKey, bool) {
	if k, ok := v.origins[id]; ok {
		return k, true
	}
	data, ok := v.tables().get(TableOrigin, uint64(id))
	if id == 0 {
		data, ok = extra.text(), !extra.bad
	}
	o, rank, parsed := parseOrigin(data)
	if id != 0 && ok {
		if v.origins == nil {
			v.origins = map[uint32]originKey{}
		}
		v.origins[id] = originKey{o, rank}
	}
	return originKey{o, rank}, ok && parsed
}

func (v *view) endOf(id uint32, extra *reader) (endKey, bool) {
	if k, ok := v.ends[id]; ok {
		return k, true
	}
	data, ok := v.tables().get(TableEnd, uint64(id))
	if id == 0 {
		data, ok = extra.text(), !extra.bad
	}
	state, exit, parsed := parseEnd(data)
	if id != 0 && ok {
		if v.ends == nil {
			v.ends = map[uint32]endKey{}
		}
		v.ends[id] = endKey{state, exit}
	}
	return endKey{state, exit}, ok && parsed
}

// meta returns the meta of a set, in which markers take their values from the
// row.
func (v *view) meta(id uint32, extra *reader) (record.Meta, bool) {
	if m, ok := v.metas[id]; ok {
		return m, true
	}
	data, ok := v.tables().get(TableSet, uint64(id))
	if id == 0 {
		data, ok = extra.text(), !extra.bad
	}
	if !ok {
		return nil, false
	}
	m, shared, ok := parseMeta(v.tables(), data, extra)
	if shared && ok && id != 0 {
		if v.metas == nil {
			v.metas = map[uint32]record.Meta{}
		}
		v.metas[id] = m
	}
	return m, ok
}

// parseMeta reads a set. shared is false when it took values from extra.
func parseMeta(t *tables, data string, extra *reader) (m record.Meta, shared, ok bool) {
	r := readText(data)
	if r.byte() == 0 {
		return nil, true, r.done()
	}
	n := items(r)
	m, shared = make(record.Meta, 0, n), true
	values, first := make([]string, 0, n), 0
	for r.left() > 0 {
		u := r.uvarint()
		key, value, has, inline, found := readItem(t, u>>1, extra)
		if !found {
			return nil, false, false
		}
		shared = shared && !inline
		if u&1 == 0 || len(m) == 0 {
			m, first = append(m, record.MetaEntry{Key: key}), len(values)
		}
		if has {
			values = append(values, value)
			m[len(m)-1].Values = values[first:len(values):len(values)]
		}
	}
	return m, shared, !r.bad && !extra.bad
}

// items counts the items of a set.
func items(r reader) (n int) {
	for ; r.left() > 0; n++ {
		r.uvarint()
	}
	return n
}

// readItem reads one item of a set. A pair of 0 is in the row as a whole, of a
// marker the value is.
func readItem(t *tables, id uint64, extra *reader) (key, value string, has, inline, ok bool) {
	if id == 0 {
		key, kind := extra.text(), extra.byte()
		return key, extra.text(), kind == pairValue, true, !extra.bad
	}
	p, ok := t.pair(id)
	if !ok {
		return "", "", false, false, false
	}
	key, ok = t.get(TableKey, uint64(p.key))
	if p.kind == pairInline {
		return key, extra.text(), true, true, ok && !extra.bad
	}
	return key, p.value, p.kind == pairValue, false, ok
}
