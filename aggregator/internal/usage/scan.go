package usage

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// scan adds the rows of the view that the question asks for, as far as they are in the
// pieces. With sums of an index at the same view it adds only those runs that the
// index has in days. All processors take part.
func (t *tally) scan(ctx context.Context, v *store.View, pieces []piece, known *sums) error {
	q := t.q.Where
	from, to := pieces[0].from, pieces[len(pieces)-1].to
	if from > record.MinTime {
		from-- // a run that stopped at the first instant counts as stopped
	}
	if t.q.Levels { // those that wait in the pieces start later
		patience := record.MaxTime
		if known != nil {
			patience = known.patience
		}
		to += min(patience, record.MaxTime-to)
	}
	q.Running = &store.Window{From: from, To: to}
	parts := make([]store.Scanner, min(runtime.GOMAXPROCS(0), 16))
	tallies := make([]*tally, len(parts))
	for i := range parts {
		tallies[i] = t
		if i > 0 {
			tallies[i] = emptyTally(t.q)
			tallies[i].groups, tallies[i].ends = newKeys(t.q.By, t.q.classes), t.ends
			tallies[i].groups.keep, tallies[i].memory = t.q.Keep, t.memory
		}
		s := newScanner(tallies[i], pieces, known)
		parts[i] = store.Scanner{Block: s.block, Loose: s.loose}
	}
	if err := v.ScanBy(ctx, q, parts); err != nil {
		return err
	}
	for _, part := range tallies[1:] {
		t.mergeGroups(part)
	}
	return nil
}

// scanner adds rows to a tally.
type scanner struct {
	*tally
	pieces  []piece
	known   *sums // nil: no index
	layouts *layouts
	people  *keys // nil: no one asks

	groupOf, whoIs numbers
	run            run
	rows           blockRows
}

// blockRows are the columns of a block, as far as they were needed.
type blockRows struct {
	*columns.Block
	starts, stops, submits []record.Time
	sets, templates        []uint32
	amounts                [columns.MaxAmounts][]int64
	loaded                 [columns.MaxAmounts]bool
}

func newScanner(t *tally, pieces []piece, known *sums) *scanner {
	s := &scanner{tally: t, pieces: pieces, known: known, layouts: newLayouts()}
	s.groupOf.keys = t.groups
	if t.q.People != "" {
		s.people = newKeys([]string{t.q.People}, t.q.classes)
		s.whoIs.keys = s.people
	}
	if known != nil {
		s.groupOf.project(known.keys)
		if s.people != nil {
			s.whoIs.project(known.keys)
		}
	}
	return s
}

func (s *scanner) block(b *columns.Block, m columns.Mask) (err error) {
	if err := s.room(); err != nil {
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
		if err := s.row(i); err != nil {
			return err
		}
	}
	return nil
}

// row adds a row of the block.
func (s *scanner) row(i int) (err error) {
	r := &s.run
	r.start, r.stop, r.submit = s.rows.starts[i], s.rows.stops[i], s.rows.submits[i]
	if s.known != nil && !s.known.inDays(r) {
		return nil
	}
	if r.tuple, err = s.groupOf.row(s.rows.Block, s.rows.sets[i], i); err != nil {
		return err
	}
	if s.groups.dropped[r.tuple] {
		return nil
	}
	name := ""
	if s.people != nil {
		n, err := s.whoIs.row(s.rows.Block, s.rows.sets[i], i)
		if err != nil {
			return err
		}
		name = s.people.tuples[n].values[0]
	}
	if err := s.components(i); err != nil {
		return err
	}
	s.add(r, r.tuple, name, s.pieces)
	return nil
}

// components reads the components of a row, and of the amounts those that are added
// to something.
func (s *scanner) components(i int) error {
	id := s.rows.templates[i]
	sh, ok := s.layouts.templates[id]
	if !ok && id != 0 {
		cs, err := s.rows.Template(id)
		if err != nil {
			return err
		}
		sh = s.layouts.layout(slices.Clone(cs))
		s.layouts.templates[id] = sh
	}
	r := &s.run
	r.amounts = r.amounts[:0]
	if id == 0 || len(sh.parts) > columns.MaxAmounts {
		return s.own(i)
	}
	r.layout = sh
	for k, columns := range s.target(sh).of {
		amount := int64(0)
		if len(columns) > 0 {
			list, err := s.rows.amountsOf(k)
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

// own reads components that are in the row itself.
func (s *scanner) own(i int) error {
	cs, err := s.rows.Components(i)
	if err != nil {
		return fmt.Errorf("row %d of a block: %w", i, err)
	}
	s.run.layout = s.layouts.layout(cs)
	for k := range cs {
		s.run.amounts = append(s.run.amounts, cs[k].Amount)
	}
	return nil
}

// amountsOf are the amounts of the components at a position, nil when all are 0.
func (r *blockRows) amountsOf(k int) (list []int64, err error) {
	if !r.loaded[k] {
		if r.amounts[k], err = r.Amounts(k); err != nil {
			return nil, err
		}
		r.loaded[k] = true
	}
	return r.amounts[k], nil
}

func (s *scanner) loose(row *columns.Row) error {
	if err := s.room(); err != nil {
		return err
	}
	r := runOf(s.groups, s.layouts, row)
	if s.known != nil && !s.known.inDays(r) {
		return nil
	}
	name := ""
	if s.people != nil {
		name = s.people.tuples[s.people.number(row.Record.Meta)].values[0]
	}
	s.add(r, r.tuple, name, s.pieces)
	return nil
}

// inDays reports whether an index has the run in its days.
func (s *sums) inDays(r *run) bool { return r.stop != record.None && s.grid.holds(r) }

// numbers finds the numbers of tuples of some keys by the number of a meta set. What
// an index knows of sets it need not read again.
type numbers struct {
	keys  *keys
	ofSet []uint32 // the number + 1; 0: not known
	known *keys    // of an index; nil: none
	at    []int    // where the keys are among those of the index
	of    []uint32 // by tuple of the index: the number + 1; 0: not known
}

// project uses what an index knows, if that has all keys.
func (n *numbers) project(known *keys) {
	for _, name := range n.keys.names {
		i := slices.Index(known.names, name)
		if i < 0 {
			return
		}
		n.at = append(n.at, i)
	}
	n.known, n.of = known, make([]uint32, len(known.tuples))
}

// row returns the number of what a row of a block with that meta set has.
func (n *numbers) row(b *columns.Block, set uint32, i int) (uint32, error) {
	if int(set) < len(n.ofSet) && n.ofSet[set] != 0 {
		return n.ofSet[set] - 1, nil
	}
	if n.known != nil {
		if tuple, ok := n.known.sets[set]; ok && tuple != varies {
			number := n.ofTuple(tuple)
			n.keep(set, number)
			return number, nil
		}
	}
	m, err := b.Meta(i)
	if err != nil {
		return 0, err
	}
	number := n.keys.number(m)
	differ, err := b.Varies(set, n.keys.metas)
	if err == nil && !differ {
		n.keep(set, number)
	}
	return number, err
}

func (n *numbers) keep(set, number uint32) {
	if int(set) >= len(n.ofSet) {
		n.ofSet = append(n.ofSet, make([]uint32, int(set)+1-len(n.ofSet))...)
	}
	n.ofSet[set] = number + 1
}

// ofTuple returns the number for a tuple of the index.
func (n *numbers) ofTuple(tuple uint32) uint32 {
	if n.of[tuple] == 0 {
		from := &n.known.tuples[tuple]
		to := emptyTuple(len(n.at))
		for i, k := range n.at {
			to.values[i], to.lacks[i], to.several[i] = from.values[k], from.lacks[k], from.several[k]
		}
		n.of[tuple] = n.keys.enter(to) + 1
	}
	return n.of[tuple] - 1
}

// emptyTuple is a tuple of n empty values.
func emptyTuple(n int) tuple {
	return tuple{values: make([]string, n), lacks: make([]bool, n), several: make([]bool, n)}
}
