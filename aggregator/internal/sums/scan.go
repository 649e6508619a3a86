package sums

import (
	"context"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// scanRows adds the rows of the view that the question asks for, as far as they are in the
// pieces. With sums of an index at the same view it adds only the short runs that the
// index has in days. All processors take part.
func (t *accumulator) scanRows(ctx context.Context, v *store.View, pieces []piece, known *groupedSums) error {
	q := t.q.Where
	from, to := pieces[0].from, pieces[len(pieces)-1].to
	if from > record.MinTime {
		from-- // a run that stopped at the first instant counts as stopped
	}
	if t.q.Levels { // those that wait in the pieces start later
		patience := record.MaxTime
		if known != nil {
			patience = min(known.patience, lasts)
		}
		to += min(patience, record.MaxTime-to)
	}
	if known != nil {
		q.Reads = known.shortBefore(pieces[len(pieces)-1].to)
	}
	q.Running = &store.Window{From: from, To: to}
	parts := make([]store.Scanner, store.Processors())
	partial := make([]*accumulator, len(parts))
	for i := range parts {
		partial[i] = t
		if i > 0 {
			partial[i] = emptyAccumulator(t.q)
			partial[i].groups, partial[i].ends, partial[i].memory = t.groups, t.ends, t.memory
			if known == nil {
				partial[i].groups = keysOfRows(t.q.By, t.q.classes)
				partial[i].groups.keep = t.q.Keep
			}
		}
		s := newScanner(partial[i], v, pieces, known)
		parts[i] = store.Scanner{Block: s.addBlock, Loose: s.addLoose}
	}
	if err := v.ScanBy(ctx, q, parts); err != nil {
		return err
	}
	for _, part := range partial[1:] {
		if known == nil {
			t.mergeGroups(part)
		} else {
			t.merge(part)
		}
	}
	return nil
}

// groupedSums are the sums of an index that does not move meanwhile, with the group of each
// tuple.
type groupedSums struct {
	*sums
	groups []int64 // of each tuple the group of the answer; negative: it is left out
	who    int     // which dimension names people; negative: people are not counted
}

// scanner adds rows to an accumulator.
type scanner struct {
	*accumulator
	pieces  []piece
	known   *groupedSums // nil: no index
	layouts *layouts
	people  *keys // nil: people are not counted, or the index knows

	tupleOf, whoIs numbers
	drawers        numbers        // by which energy is told apart
	classes        []*EnergyClass // by number of drawers
	run            run
	rows           blockRows
}

// blockRows are the columns of a block, as far as they were needed.
type blockRows struct {
	*columns.Block
	starts, stops, submits []record.Time
	sets, templates        []uint32
}

func newScanner(t *accumulator, v *store.View, pieces []piece, known *groupedSums) *scanner {
	s := &scanner{accumulator: t, pieces: pieces, known: known, layouts: newLayouts()}
	s.tupleOf.keys = t.groups
	switch {
	case known != nil:
		s.tupleOf = numbers{keys: newKeys(known.names, t.q.classes), known: known.keys}
	case t.q.People != "":
		s.people = keysOfRows([]string{t.q.People}, t.q.classes)
		s.whoIs.keys = s.people
	}
	if t.q.Energy != nil {
		s.drawers.keys = newKeys(t.q.Energy.From, t.q.classes)
	}
	s.tupleOf.free = !slices.ContainsFunc(s.tupleOf.keys.metas, v.BlocksMayHaveKey)
	return s
}

// classOf returns the class of energy of a number of drawers.
func (s *scanner) classOf(n uint32) *EnergyClass {
	for tuples := s.drawers.keys.tuples; len(s.classes) < len(tuples); {
		t := &tuples[len(s.classes)]
		s.classes = append(s.classes, s.q.Energy.Class(t.values, t.lacks))
	}
	return s.classes[n]
}

func (s *scanner) addBlock(b *columns.Block, m columns.Mask) (err error) {
	if err := s.checkLimits(); err != nil {
		return err
	}
	r := &s.rows
	*r = blockRows{Block: b}
	if r.starts, err = b.Starts(); err != nil {
		return err
	}
	if r.stops, err = b.Stops(); err != nil {
		return err
	}
	if r.submits, err = b.Submits(); err != nil {
		return err
	}
	if r.sets, err = b.Sets(); err != nil {
		return err
	}
	if r.templates, err = b.Templates(); err != nil {
		return err
	}
	for i := range m.Rows() {
		if err := s.addRow(i); err != nil {
			return err
		}
	}
	return nil
}

// addRow adds a row of the block.
func (s *scanner) addRow(i int) (err error) {
	r := &s.run
	r.start, r.stop, r.submit = s.rows.starts[i], s.rows.stops[i], s.rows.submits[i]
	if s.known != nil && (!s.known.inDays(r) || r.isLasting()) {
		return nil
	}
	if r.tuple, err = s.tupleOf.numberOfRow(s.rows.Block, s.rows.sets[i], i); err != nil {
		return err
	}
	group, name, wanted := s.groupOf(r.tuple)
	if !wanted {
		return nil
	}
	if s.people != nil {
		n, err := s.whoIs.numberOfRow(s.rows.Block, s.rows.sets[i], i)
		if err != nil {
			return err
		}
		name = s.people.tuples[n].values[0]
	}
	if s.q.Energy != nil {
		n, err := s.drawers.numberOfRow(s.rows.Block, s.rows.sets[i], i)
		if err != nil {
			return err
		}
		r.class = s.classOf(n)
	}
	if err := s.readComponents(i); err != nil {
		return err
	}
	s.addRun(r, group, name, s.pieces)
	return nil
}

// groupOf returns the group of a tuple, and whom it is about when the index knows; false
// when it is left out.
func (s *scanner) groupOf(tuple uint32) (group uint32, who string, wanted bool) {
	if s.known == nil {
		return tuple, "", !s.groups.dropped[tuple]
	}
	g := s.known.groups[tuple]
	return uint32(g), s.known.personOf(tuple), g >= 0
}

// personOf is the value of a tuple that names people.
func (k *groupedSums) personOf(tuple uint32) string {
	if k.who < 0 {
		return ""
	}
	return k.tuples[tuple].values[k.who]
}

// readComponents reads the components of a row, and of the amounts those that are added
// to something.
func (s *scanner) readComponents(i int) error {
	id := s.rows.templates[i]
	sh, ok := s.layouts.templates[id]
	if !ok && id != 0 {
		cs, err := s.rows.Template(id)
		if err != nil {
			return err
		}
		sh = s.layouts.layoutOf(slices.Clone(cs))
		s.layouts.templates[id] = sh
	}
	r := &s.run
	r.amounts = r.amounts[:0]
	if id == 0 || len(sh.parts) > columns.MaxAmounts {
		return s.readOwnComponents(i)
	}
	r.layout = sh
	for k, columns := range s.cachedTarget(sh).of {
		amount := int64(0)
		if len(columns) > 0 || s.q.Energy != nil {
			list, err := s.rows.Amounts(k)
			if err != nil {
				return err
			}
			if list != nil {
				amount = list[i]
			}
		}
		r.amounts = append(r.amounts, amount)
	}
	return nil
}

// readOwnComponents reads components that are in the row itself.
func (s *scanner) readOwnComponents(i int) error {
	cs, err := s.rows.Components(i)
	if err != nil {
		return fmt.Errorf("row %d of a block: %w", i, err)
	}
	s.run.layout = s.layouts.layoutOf(cs)
	for k := range cs {
		s.run.amounts = append(s.run.amounts, cs[k].Amount)
	}
	return nil
}

func (s *scanner) addLoose(row *columns.Row) error {
	if err := s.checkLimits(); err != nil {
		return err
	}
	r := runOf(s.tupleOf.keys, s.layouts, row)
	if s.known != nil && (!s.known.inDays(r) || r.isLasting()) {
		return nil
	}
	tuple, err := s.tupleOf.ofIndex(r.tuple)
	if err != nil {
		return err
	}
	group, name, wanted := s.groupOf(tuple)
	if !wanted {
		return nil
	}
	if s.people != nil {
		name = s.people.tuples[s.people.numberOf(&row.Record)].values[0]
	}
	if s.q.Energy != nil {
		r.class = s.classOf(s.drawers.keys.numberOf(&row.Record))
	}
	s.addRun(r, group, name, s.pieces)
	return nil
}

// inDays reports whether an index has the run in its days.
func (s *sums) inDays(r *run) bool { return r.stop != record.None && s.grid.holdsRun(r) }

// numbers finds the numbers of tuples of some keys by the number of a meta set. With an
// index, whose keys these are, they are its numbers; what it knows of sets is not read
// again.
type numbers struct {
	keys  *keys
	ofSet []uint32          // the number + 1; 0: not known
	known *keys             // of an index; nil: none
	ofEnd map[uint64]uint32 // the number by meta set and end, of keys with ends
	free  bool              // no meta set has one of the keys, so that sets make no difference
}

// numberOfRow returns the number of what a row of a block with that meta set has.
func (n *numbers) numberOfRow(b *columns.Block, set uint32, i int) (uint32, error) {
	if n.keys.ends {
		return n.numberOfEnd(b, set, i)
	}
	if n.free {
		return n.numberOfNone()
	}
	if number := numberAt(n.ofSet, set); number != 0 {
		return number - 1, nil
	}
	if n.known != nil {
		if number := numberAt(n.known.ofSet, set); number != 0 && number != varies {
			return number - 1, nil
		}
	}
	m, err := b.Meta(i)
	if err != nil {
		return 0, err
	}
	number, err := n.ofIndex(n.keys.numberOf(&record.Record{Meta: m}))
	if err != nil {
		return 0, err
	}
	differ, err := b.Varies(set, n.keys.metas)
	if err == nil && !differ {
		n.ofSet = withNumber(n.ofSet, set, number+1)
	}
	return number, err
}

// numberOfNone returns the number of a row that has none of the keys.
func (n *numbers) numberOfNone() (number uint32, err error) {
	if number := numberAt(n.ofSet, 0); number != 0 {
		return number - 1, nil
	}
	if number, err = n.ofIndex(n.keys.numberOf(&record.Record{})); err == nil {
		n.ofSet = withNumber(n.ofSet, 0, number+1)
	}
	return number, err
}

// numberOfEnd is numberOfRow for keys of which some are of how runs ended.
func (n *numbers) numberOfEnd(b *columns.Block, set uint32, i int) (uint32, error) {
	ends, err := b.Ends()
	if err != nil {
		return 0, err
	}
	if n.free {
		set = 0
	}
	both := uint64(set)<<32 | uint64(ends[i])
	if number, ok := n.ofEnd[both]; ok {
		return number, nil
	}
	r := record.Record{}
	if !n.free {
		if r.Meta, err = b.Meta(i); err != nil {
			return 0, err
		}
	}
	if r.State, r.Exit, err = b.End(i); err != nil {
		return 0, err
	}
	number := n.keys.numberOf(&r)
	differ := false
	if !n.free {
		differ, err = b.Varies(set, n.keys.metas)
	}
	if err == nil && !differ && ends[i] != 0 {
		if n.ofEnd == nil {
			n.ofEnd = map[uint64]uint32{}
		}
		n.ofEnd[both] = number
	}
	return number, err
}

// ofIndex returns the number that a tuple of the keys has in the index, which has those of
// all rows.
func (n *numbers) ofIndex(number uint32) (uint32, error) {
	if n.known == nil {
		return number, nil
	}
	t := &n.keys.tuples[number]
	known, ok := n.known.of[string(t.appendTo(nil))]
	if !ok {
		return 0, fmt.Errorf("the index does not know %q", t.values)
	}
	return known, nil
}

// emptyTuple is a tuple of n empty values.
func emptyTuple(n int) tuple {
	return tuple{values: make([]string, n), lacks: make([]bool, n), several: make([]bool, n)}
}
