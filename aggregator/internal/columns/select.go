package columns

import (
	"math"

	"github.com/bursar-accounting/bursar/proto/record"
)

// All returns the rows that are no tombstones. A block whose flags cannot be
// read gives no rows here and an error from every other method.
func (b *Block) All() Mask {
	m := NewMask(b.v.n)
	for k := range m {
		m[k] = math.MaxUint64
	}
	if tail := b.v.n % 64; tail != 0 {
		m[len(m)-1] = 1<<tail - 1
	}
	if b.v.loadColumns(colFlags) != nil {
		clear(m)
		return m
	}
	for i, flags := range b.v.cols[colFlags] {
		if flags&flagTombstone != 0 {
			m.Clear(i)
		}
	}
	return m
}

// SelectStart keeps the rows of m with from ≤ start ≤ to.
func (b *Block) SelectStart(m Mask, from, to record.Time) error {
	if h := b.Header(); h.MinStart >= from && h.MaxStart <= to {
		return nil
	}
	starts, err := b.Starts()
	if err != nil {
		return err
	}
	filterWithin(m, starts, from, to)
	return nil
}

// SelectStop keeps the rows of m that have a stop and from ≤ stop ≤ to.
func (b *Block) SelectStop(m Mask, from, to record.Time) error {
	h := b.Header()
	if h.Open == 0 && h.MinStop >= from && h.MaxStop <= to {
		return nil
	}
	stops, err := b.Stops()
	if err != nil {
		return err
	}
	filterWithin(m, stops, max(from, record.None+1), to)
	return nil
}

// SelectOpen keeps the rows of m that have no stop, or, with open false, those
// that have one.
func (b *Block) SelectOpen(m Mask, open bool) error {
	if err := b.v.loadColumns(colFlags); err != nil {
		return err
	}
	flags := b.v.cols[colFlags]
	if flags == nil {
		flags = make([]uint64, b.v.n)
	}
	m.filterRows(func(i int) bool { return (flags[i]&flagOpen != 0) == open })
	return nil
}

// SelectOverlap keeps the rows of m that run at any instant of [from, to): they
// start before to, and stop after from or go on.
func (b *Block) SelectOverlap(m Mask, from, to record.Time) error {
	if err := b.SelectStart(m, record.None, to-1); err != nil {
		return err
	}
	stops, err := b.Stops()
	if err != nil {
		return err
	}
	m.filterRows(func(i int) bool { return stops[i] > from || stops[i] == record.None })
	return nil
}

// SelectRuntime keeps the rows of m that have a stop and from ≤ runtime ≤ to, in
// whole seconds as [record.Record.Runtime] counts them.
func (b *Block) SelectRuntime(m Mask, from, to int64) error {
	runtime, err := b.readColumn(colRuntime)
	if err != nil {
		return err
	}
	if err := b.SelectOpen(m, false); err != nil {
		return err
	}
	m.filterRows(func(i int) bool {
		seconds := int64(runtime[i]) / int64(record.Second)
		return from <= seconds && seconds <= to
	})
	return nil
}

// SelectWait keeps the rows of m that have a submit time and from ≤ wait ≤ to, in whole seconds
// from submit to start; none whose submit is after the start.
func (b *Block) SelectWait(m Mask, from, to int64) error {
	submits, err := b.Submits()
	if err != nil {
		return err
	}
	starts, err := b.Starts()
	if err != nil {
		return err
	}
	m.filterRows(func(i int) bool {
		if submits[i] == record.None || submits[i] > starts[i] {
			return false
		}
		seconds := int64(starts[i]-submits[i]) / int64(record.Second)
		return from <= seconds && seconds <= to
	})
	return nil
}

// MetaFilter is a condition on the values of one key of meta, with what it said
// of the sets that it met. It belongs to one goroutine.
type MetaFilter struct {
	dict      *Dict
	key       string
	keyNumber uint32 // in the dictionary; 0: not known
	match     func(values []string, present bool) bool
	setStates []uint8 // by set number
	end       bool    // a set without the key has it of its rows' ends
}

// What a filter knows of a set.
const (
	setUnknown = iota
	setMatches
	setFails
	setInRow // the values are in the row, or in its end
)

// MetaFilter returns a filter that keeps rows for whose values of key match is
// true; present is false when the meta does not have the key. match must depend
// on nothing else: it is asked once for each set.
func (d *Dict) MetaFilter(key string, match func(values []string, present bool) bool) *MetaFilter {
	return &MetaFilter{dict: d, key: key, match: match}
}

// KeyFilter is [Dict.MetaFilter] for a key that may be one of [record.EndKeys], of which
// rows have the values of their ends where their meta does not have it.
func (d *Dict) KeyFilter(key string, match func(values []string, present bool) bool) *MetaFilter {
	return &MetaFilter{dict: d, key: key, match: match, end: record.IsEndKey(key)}
}

// SelectMeta keeps the rows of m that match f, which must be of the dictionary
// of b.
func (b *Block) SelectMeta(m Mask, f *MetaFilter) error {
	sets, err := b.Sets()
	if err != nil {
		return err
	}
	f.growTo(len(b.v.tables()[TableSet]) + 1)
	var failed error
	m.filterRows(func(i int) bool {
		state := f.setStates[sets[i]]
		if state == setUnknown {
			state = f.judgeSet(b.v.tables(), sets[i])
		}
		if state != setInRow {
			return state == setMatches
		}
		values, present, err := f.inRow(b, i)
		if err != nil {
			failed = err
		}
		return f.match(values, present)
	})
	return failed
}

// inRow returns the values of the filter's key in a row.
func (f *MetaFilter) inRow(b *Block, i int) (values []string, present bool, err error) {
	if f.end {
		return b.Values(i, f.key)
	}
	meta, err := b.Meta(i)
	values = meta.Get(f.key)
	for k := range meta {
		present = present || meta[k].Key == f.key
	}
	return values, present, err
}

func (f *MetaFilter) growTo(n int) {
	if n > len(f.setStates) {
		f.setStates = append(f.setStates, make([]uint8, n-len(f.setStates))...)
		f.setStates[0] = setInRow
	}
}

// judgeSet finds out and remembers what f says of a set.
func (f *MetaFilter) judgeSet(t *tables, set uint32) uint8 {
	data, _ := t.getEntry(TableSet, uint64(set))
	state := uint8(setFails)
	values, present, inRow := f.valuesIn(t, data)
	switch {
	case inRow, f.end && !present:
		state = setInRow
	case f.match(values, present):
		state = setMatches
	}
	f.setStates[set] = state
	return state
}

// valuesIn returns the values of the filter's key in a set.
func (f *MetaFilter) valuesIn(t *tables, data string) (values []string, present, inRow bool) {
	if f.keyNumber == 0 {
		f.keyNumber = f.dict.keyNumber(f.key)
	}
	r := readText(data)
	for r.readByte(); r.bytesLeft() > 0; {
		p, _ := t.getPair(r.readUvarint() >> 1)
		if p.key != f.keyNumber || p.key == 0 {
			continue
		}
		if p.kind == pairInline {
			return nil, true, true
		}
		if present = true; p.kind == pairValue {
			values = append(values, p.value)
		}
	}
	return values, present, false
}

// SelectAmount keeps the rows of m for whose amount of the first component of
// that name match is true; present is false when a row has no such component.
func (b *Block) SelectAmount(m Mask, name string, match func(amount int64, present bool) bool) error {
	templates, err := b.Templates()
	if err != nil {
		return err
	}
	places := map[uint32]int{}
	var failed error
	m.filterRows(func(i int) bool {
		amount, present, err := b.amountOf(i, templates[i], name, places)
		if err != nil {
			failed = err
		}
		return match(amount, present)
	})
	return failed
}

// AmountsOf calls f with the amount of the first component of that name in each row of m;
// present is false when a row has no such component.
func (b *Block) AmountsOf(m Mask, name string, f func(i int, amount int64, present bool)) error {
	templates, err := b.Templates()
	if err != nil {
		return err
	}
	places := map[uint32]int{}
	for i := range m.Rows() {
		amount, present, err := b.amountOf(i, templates[i], name, places)
		if err != nil {
			return err
		}
		f(i, amount, present)
	}
	return nil
}

// amountOf returns the amount of the first component of that name; places
// remembers its position by template.
func (b *Block) amountOf(i int, id uint32, name string, places map[uint32]int) (int64, bool, error) {
	place, ok := places[id]
	if !ok || id == 0 {
		place = maxAmounts
		if id != 0 {
			t, err := b.Template(id)
			if err != nil {
				return 0, false, err
			}
			place = componentPosition(t, name)
		}
		places[id] = place
	}
	switch {
	case place < 0:
		return 0, false, nil
	case place < maxAmounts:
		err := b.v.loadColumns(colAmount + place)
		return int64(b.v.loadedNumber(colAmount+place, i)), true, err
	}
	return b.wideAmount(i, name)
}

// wideAmount looks into the row itself.
func (b *Block) wideAmount(i int, name string) (int64, bool, error) {
	r, err := b.Row(i)
	if c := r.Record.Component(name); c != nil {
		return c.Amount, true, err
	}
	return 0, false, err
}

func componentPosition(t template, name string) int {
	for k := range t {
		if t[k].Name == name {
			return k
		}
	}
	return -1
}
