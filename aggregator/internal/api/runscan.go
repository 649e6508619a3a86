package api

import (
	"context"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// countedRuns are how many runs there are and the histograms of them.
type countedRuns struct {
	runs       int
	histograms []histogram
}

// countRuns counts the runs of q, without parts of runs, whose first values are those of having.
// All processors take part; the answer does not depend on which one met which run.
func countRuns(ctx context.Context, view *access.View, q store.Query, having []sums.Filter) (*countedRuns, error) {
	var parts []*runScanner
	err := view.Scan(ctx, q, func() store.Scanner {
		s := newRunScanner(view, having)
		parts = append(parts, s)
		return store.Scanner{Block: s.addBlock, Loose: s.addLoose}
	})
	if err != nil {
		return nil, err
	}
	all := &parts[0].countedRuns
	for _, part := range parts[1:] {
		all.runs += part.runs
		for i := range all.histograms {
			all.histograms[i].addHistogram(&part.histograms[i])
		}
	}
	return all, nil
}

// runScanner counts runs by columns. It belongs to one goroutine.
type runScanner struct {
	countedRuns

	view     *access.View
	having   []sums.Filter
	keys     []string        // that decide whether a record is counted
	ends     bool            // some of them are of how runs ended
	all      bool            // all rows of blocks are counted
	counted  map[uint64]bool // whether records are, by their number of meta and of their end
	measured []measuredComponent
	places   map[uint32]*componentPlaces // by template
}

// componentPlaces are the positions of the measured components; -1: there is none.
type componentPlaces [measuredComponents]int

func newRunScanner(view *access.View, having []sums.Filter) *runScanner {
	s := &runScanner{view: view, having: having, keys: []string{record.PartKey}, counted: map[uint64]bool{}, places: map[uint32]*componentPlaces{}}
	s.histograms, s.measured = newHistograms(), listMeasuredComponents()
	for _, f := range having {
		s.keys = append(s.keys, f.Key)
		s.ends = s.ends || record.IsEndKey(f.Key)
	}
	s.all = len(having) == 0 && !view.BlocksMayHaveKey(record.PartKey)
	return s
}

func (s *runScanner) addBlock(b *columns.Block, m columns.Mask) error {
	rows, err := s.readColumns(b)
	if err != nil {
		return err
	}
	for i := range m.Rows() {
		if is, err := s.isCounted(rows, i); err != nil {
			return err
		} else if !is {
			continue
		}
		r := measuredRun{submit: rows.submits[i], start: rows.starts[i], stop: rows.stops[i]}
		if err := s.readAmounts(rows, i, &r); err != nil {
			return err
		}
		s.addRun(&r)
	}
	return nil
}

func (s *runScanner) addLoose(row *columns.Row) error {
	if !isCounted(&row.Record, s.having) {
		return nil
	}
	r := measuredRun{submit: row.Record.Submit, start: row.Record.Start, stop: row.ShownStop()}
	s.setAmounts(&r, row.Record.Components)
	s.addRun(&r)
	return nil
}

func (s *runScanner) addRun(r *measuredRun) {
	s.runs++
	figures := r.figures()
	for i := range s.histograms {
		s.histograms[i].addRun(&figures)
	}
}

// runColumns are the columns of a block that say something of runs.
type runColumns struct {
	*columns.Block

	starts, stops, submits []record.Time
	sets, templates        []uint32
	ends                   []uint32 // nil where these do not matter
}

func (s *runScanner) readColumns(b *columns.Block) (c *runColumns, err error) {
	c = &runColumns{Block: b}
	if c.starts, err = b.Starts(); err != nil {
		return nil, err
	}
	if c.stops, err = b.Stops(); err != nil {
		return nil, err
	}
	if c.submits, err = b.Submits(); err != nil {
		return nil, err
	}
	if c.sets, err = b.Sets(); err != nil {
		return nil, err
	}
	if c.templates, err = b.Templates(); err != nil {
		return nil, err
	}
	if s.ends {
		c.ends, err = b.Ends()
	}
	return c, err
}

// isCounted reports whether a record is a run, and its first values are those that are wanted.
func isCounted(r *record.Record, having []sums.Filter) bool {
	return !r.Meta.IsPart() && firstValues(having, r)
}

// isCounted is the function of that name for a row, and asks it once for all rows of which the answer
// is the same.
func (s *runScanner) isCounted(c *runColumns, i int) (bool, error) {
	if s.all {
		return true, nil
	}
	number := uint64(c.sets[i])
	if s.ends {
		number |= uint64(c.ends[i]) << 32
	}
	if is, known := s.counted[number]; known {
		return is, nil
	}
	meta, err := c.Meta(i)
	if err != nil {
		return false, err
	}
	r := record.Record{Meta: s.view.Shown(meta)}
	if s.ends {
		if r.State, r.Exit, err = c.End(i); err != nil {
			return false, err
		}
	}
	is := isCounted(&r, s.having)
	differ, err := c.Varies(c.sets[i], s.keys)
	if err == nil && !differ && (!s.ends || c.ends[i] != 0) {
		s.counted[number] = is
	}
	return is, err
}

// firstValues reports whether the first value of each key is one of those that are wanted;
// "" is none.
func firstValues(having []sums.Filter, r *record.Record) bool {
	for _, f := range having {
		first := ""
		if values, _ := r.Values(f.Key); len(values) > 0 {
			first = values[0]
		}
		if !slices.Contains(f.Values, first) {
			return false
		}
	}
	return true
}

// readAmounts sets the amounts of a row.
func (s *runScanner) readAmounts(c *runColumns, i int, r *measuredRun) error {
	id := c.templates[i]
	places := s.places[id]
	if places == nil && id != 0 {
		cs, err := c.Template(id)
		if err != nil {
			return err
		}
		places = s.placesOf(cs)
		s.places[id] = places
	}
	if id == 0 || slices.Max(places[:]) >= columns.MaxAmounts {
		cs, err := c.Components(i)
		if err != nil {
			return err
		}
		s.setAmounts(r, cs)
		return nil
	}
	for k, place := range places {
		r.amounts[k] = unsaid
		if place < 0 {
			continue
		}
		list, err := c.Amounts(place)
		if err != nil {
			return err
		}
		r.amounts[k] = 0
		if list != nil {
			r.amounts[k] = list[i]
		}
	}
	return nil
}

// setAmounts sets the amounts of the components of a record.
func (s *runScanner) setAmounts(r *measuredRun, cs []record.Component) {
	for k, place := range s.placesOf(cs) {
		r.amounts[k] = unsaid
		if place >= 0 {
			r.amounts[k] = cs[place].Amount
		}
	}
}

// placesOf returns where the first component of each name and kind stands.
func (s *runScanner) placesOf(cs []record.Component) *componentPlaces {
	places := &componentPlaces{}
	for k, want := range s.measured {
		places[k] = slices.IndexFunc(cs, func(c record.Component) bool { return c.Name == want.name && c.Kind == want.kind })
	}
	return places
}
