package sums

import (
	"fmt"
	"math"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// tuple is what a record has for a list of keys.
type tuple struct {
	values  []string // the first value of each key, "" for none
	lacks   []bool   // no value
	several []bool   // more than one value
	part    bool     // of a run: it is none itself
}

// keys gives the tuples of a list of keys their numbers, from 0 on.
type keys struct {
	names  []string
	bases  []basis  // of the names
	metas  []string // that tuples follow from
	ends   bool     // one of the names is of how runs ended
	tuples []tuple
	of     map[string]uint32
	// ofSet has by the number of a meta set of the store the number + 1, varies, or 0
	// where it is not known.
	ofSet []uint32
	// keep is the question's, nil without one; dropped says of each tuple whether keep
	// leaves it out.
	keep    func(values []string, lacks []bool) bool
	dropped []bool
	// several says of each name whether a tuple had more than one value for it.
	several []bool
}

// varies stands for the number of a meta set whose rows differ in one of the keys.
const varies = math.MaxUint32

func newKeys(names []string, classes []Class) *keys {
	k := &keys{names: names, of: map[string]uint32{}, several: make([]bool, len(names))}
	for _, name := range names {
		s := basisOf(name, classes)
		k.bases, k.metas = append(k.bases, s), append(k.metas, s.meta)
	}
	k.metas = append(k.metas, record.PartKey)
	return k
}

// keysOfRows are keys of which one may be of how runs ended, which no index knows.
func keysOfRows(names []string, classes []Class) *keys {
	k := newKeys(names, classes)
	k.ends = slices.ContainsFunc(names, func(name string) bool { return isEnd(name, classes) })
	return k
}

// isEnd reports whether a key is of how runs ended.
func isEnd(name string, classes []Class) bool {
	return record.IsEndKey(name) && !isClass(classes, name)
}

// valuesOf returns what a record has for a basis.
func (k *keys) valuesOf(i int, r *record.Record) []string {
	if k.ends && k.bases[i].class == nil {
		values, _ := r.Values(k.bases[i].meta)
		return values
	}
	return r.Meta.Get(k.bases[i].meta)
}

// numberOf returns the number of what a record has for the keys. Of the record the meta counts,
// and the state and exit where the keys have ends.
func (k *keys) numberOf(r *record.Record) uint32 {
	t := emptyTuple(len(k.names))
	t.part = r.Meta.IsPart()
	for i := range k.bases {
		list := k.valuesOf(i, r)
		t.lacks[i], t.several[i] = len(list) == 0, len(list) > 1
		if len(list) > 0 {
			value, has := k.bases[i].valueOf(list[0])
			t.values[i], t.lacks[i] = value, !has
		}
	}
	return k.addTuple(t)
}

func (k *keys) addTuple(t tuple) uint32 {
	key := string(t.appendTo(nil))
	n, ok := k.of[key]
	if !ok {
		n = uint32(len(k.tuples))
		k.of[key] = n
		k.tuples = append(k.tuples, t)
		k.dropped = append(k.dropped, k.keep != nil && !k.keep(t.values, t.lacks))
		for i := range t.several {
			k.several[i] = k.several[i] || t.several[i]
		}
	}
	return n
}

// partFlag is set in the flags of a tuple's values where the tuple is of parts of runs.
const partFlag = 4

// appendTo writes a tuple so that equal ones are equal bytes.
func (t *tuple) appendTo(b []byte) []byte {
	part := byte(0)
	if t.part {
		part = partFlag
	}
	if len(t.values) == 0 {
		b = append(b, part)
	}
	for i, v := range t.values {
		flags := part
		if t.lacks[i] {
			flags |= 1
		}
		if t.several[i] {
			flags |= 2
		}
		b = appendText(append(b, flags), v)
	}
	return b
}

// layouts gives lists of components their layouts.
type layouts struct {
	list      []*layout
	of        map[string]*layout
	templates map[uint32]*layout // of the store's
}

func newLayouts() *layouts {
	return &layouts{of: map[string]*layout{}, templates: map[uint32]*layout{}}
}

func (s *layouts) layoutOf(cs []record.Component) *layout {
	key := layoutKey(nil, cs)
	sh, ok := s.of[string(key)]
	if !ok {
		sh = newLayout(uint32(len(s.list)), string(key), cs)
		s.of[string(key)] = sh
		s.list = append(s.list, sh)
	}
	return sh
}

// runOf reads a row that is no tombstone.
func runOf(k *keys, s *layouts, row *columns.Row) *run {
	r := &run{
		seq: row.Seq, id: row.Record.ID, tuple: k.numberOf(&row.Record), layout: s.layoutOf(row.Record.Components),
		start: row.Record.Start, stop: row.ShownStop(), submit: row.Record.Submit,
		origin: row.Origin,
	}
	for i := range row.Record.Components {
		r.amounts = append(r.amounts, row.Record.Components[i].Amount)
	}
	return r
}

// table reads runs out of the columns of a block.
type table struct {
	block   *columns.Block
	keys    *keys
	layouts *layouts

	seqs                   []uint64
	starts, stops, submits []record.Time
	sets, templates        []uint32
	amounts                [][]int64 // by position, as far as they were needed
	loaded                 int
}

func newTable(b *columns.Block, k *keys, s *layouts) (*table, error) {
	t := &table{block: b, keys: k, layouts: s}
	var err error
	if t.seqs, err = b.Seqs(); err != nil {
		return nil, err
	}
	if t.starts, err = b.Starts(); err != nil {
		return nil, err
	}
	if t.stops, err = b.Stops(); err != nil {
		return nil, err
	}
	if t.submits, err = b.Submits(); err != nil {
		return nil, err
	}
	if t.sets, err = b.Sets(); err != nil {
		return nil, err
	}
	t.templates, err = b.Templates()
	return t, err
}

// readRun sets r to the run of row i. Its amounts are overwritten by the next one, and
// it has no id.
func (t *table) readRun(r *run, i int) (err error) {
	if r.tuple, err = t.tupleOfRow(i); err != nil {
		return err
	}
	r.seq, r.start, r.stop, r.submit = t.seqs[i], t.starts[i], t.stops[i], t.submits[i]
	r.amounts = r.amounts[:0]
	if id := t.templates[i]; id != 0 {
		return t.readTemplate(r, i, id)
	}
	return t.readOwnComponents(r, i)
}

func (t *table) tupleOfRow(i int) (uint32, error) {
	set := t.sets[i]
	known := numberAt(t.keys.ofSet, set)
	if known != 0 && known != varies {
		return known - 1, nil
	}
	m, err := t.block.Meta(i)
	if err != nil {
		return 0, err
	}
	n := t.keys.numberOf(&record.Record{Meta: m})
	if known == varies {
		return n, nil
	}
	differ, err := t.block.Varies(set, t.keys.metas)
	if err != nil {
		return 0, err
	}
	mark := n + 1
	if differ {
		mark = varies
	}
	t.keys.ofSet = withNumber(t.keys.ofSet, set, mark)
	return n, nil
}

// numberAt returns element i of a list that may be shorter; 0 behind its end.
func numberAt(list []uint32, i uint32) uint32 {
	if int(i) < len(list) {
		return list[i]
	}
	return 0
}

// withNumber sets element i of a list, which grows to have it.
func withNumber(list []uint32, i, v uint32) []uint32 {
	if int(i) >= len(list) {
		list = append(list, make([]uint32, int(i)+1-len(list))...)
	}
	list[i] = v
	return list
}

// readTemplate reads components of which the store has a template.
func (t *table) readTemplate(r *run, i int, id uint32) error {
	sh, ok := t.layouts.templates[id]
	if !ok {
		cs, err := t.block.Template(id)
		if err != nil {
			return err
		}
		if len(cs) > columns.MaxAmounts {
			return t.readOwnComponents(r, i)
		}
		sh = t.layouts.layoutOf(slices.Clone(cs))
		t.layouts.templates[id] = sh
	}
	r.layout = sh
	for ; t.loaded < len(sh.parts); t.loaded++ {
		column, err := t.block.Amounts(t.loaded)
		if err != nil {
			return err
		}
		t.amounts = append(t.amounts, column)
	}
	for k := range sh.parts {
		amount := int64(0)
		if column := t.amounts[k]; column != nil {
			amount = column[i]
		}
		r.amounts = append(r.amounts, amount)
	}
	return nil
}

// readOwnComponents reads components that are in the row itself.
func (t *table) readOwnComponents(r *run, i int) error {
	cs, err := t.block.Components(i)
	if err != nil {
		return fmt.Errorf("row %d: %w", t.seqs[i], err)
	}
	r.layout = t.layouts.layoutOf(cs)
	for k := range cs {
		r.amounts = append(r.amounts, cs[k].Amount)
	}
	return nil
}
