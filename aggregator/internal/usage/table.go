package usage

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	spelling "github.com/bursar-accounting/bursar/proto/text"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Table is an answer. Its cells are those of group g and bucket b.
type Table struct {
	Request *Request
	// Index and Seq are up to where the log and the feed are in it; Way says how it
	// was found.
	Index, Seq uint64
	Way        string
	// Open is how many of the records go on, Several how many have more than one
	// value for a key of By.
	Open, Several uint64
	// Records is how many there are, each once.
	Records uint64
	// Basis is that of energy and CO2; nil where neither is asked for.
	Basis   *EnergyBasis
	Edges   []record.Time
	Labels  []string
	Groups  []TableGroup
	Columns []Column

	placeOf []int // of the groups of the other window
	// partial and unknown are of each bucket: see markUnknown.
	partial, unknown []bool
}

// TableGroup is a line.
type TableGroup struct {
	Values []string
	Lacks  []bool // whether there is no value
	// Others is how many groups are in this one; 0 when it is one itself.
	Others int

	begin record.Time // from when on its runs are known, where that is later than of the others
}

// MakeTable asks for what is on the table. Errors that wrap [ErrRequest] say what is wrong
// with the request.
func MakeTable(ctx context.Context, ask QueryFunc, r Request) (*Table, error) {
	r.setDefaults()
	if err := r.checkFields(); err != nil {
		return nil, err
	}
	r.narrowKnown()
	edges, err := calendar.Edges(r.Window, r.Bucket, r.Zone, MaxCells)
	if err != nil {
		return nil, wrong{err}
	}
	a, err := r.askChecked(ctx, ask, edges)
	if err != nil {
		return nil, err
	}
	s := &Table{Request: &r, Index: a.Index, Seq: a.Seq, Way: a.Way, Open: a.Open, Several: a.Several, Records: a.Runs, Basis: a.Basis, Edges: edges, Labels: calendar.Labels(edges, r.Bucket, r.Zone)}
	s.markUnknown()
	s.setColumns(a)
	if err := s.addCapacity(ctx, ask); err != nil {
		return nil, err
	}
	if r.Versus != nil {
		if err := s.addComparison(ctx, ask); err != nil {
			return nil, err
		}
	}
	s.pruneGroups()
	return s, s.orderGroups()
}

// askChecked asks for the buckets between edges, and refuses keys and components that are in
// no record.
func (r *Request) askChecked(ctx context.Context, ask QueryFunc, edges []record.Time) (*Result, error) {
	a, err := r.askBuckets(ctx, ask, edges)
	if err != nil {
		return nil, err
	}
	if err := r.checkKeys(ctx, ask, a); err != nil {
		return nil, err
	}
	return a, r.completeComponents(ctx, ask, a)
}

// askBuckets asks for the buckets between edges.
func (r *Request) askBuckets(ctx context.Context, ask QueryFunc, edges []record.Time) (*Result, error) {
	a, err := ask(ctx, r.queryFor(edges))
	if errors.Is(err, sums.ErrTooMany) || err == nil && len(a.Groups)*(len(edges)-1) > MaxCells {
		return nil, tooMany(len(edges) - 1)
	}
	if err != nil {
		return nil, err
	}
	return a, r.setLevels(ctx, ask, a, edges)
}

func tooMany(buckets int) error {
	return requestError("the groups in %d buckets are more than the %d cells that are answered at once; ask for longer buckets, a shorter window, fewer keys or a filter", buckets, MaxCells)
}

// setColumns makes the groups and the columns of an answer.
func (s *Table) setColumns(a *Result) {
	for _, g := range a.Groups {
		s.Groups = append(s.Groups, s.Request.tableGroup(&g))
	}
	s.Columns = s.Request.answerColumns(a)
	for i := range s.Columns {
		c := &s.Columns[i]
		c.whole = s.wholeFigures(c, a)
	}
}

// tableGroup is a group as a line.
func (r *Request) tableGroup(g *sums.Group) TableGroup {
	t := TableGroup{Values: g.Values, Lacks: g.Lacks}
	t.begin = r.beginOfGroup(&t)
	return t
}

func (s *Table) bucketCount() int { return len(s.Edges) - 1 }

// wholeFigures is a column of the whole window; nil when it does not follow from the buckets.
func (s *Table) wholeFigures(c *Column, a *Result) *figures {
	groups, buckets := len(s.Groups), s.bucketCount()
	if c.Name == people && buckets > 1 {
		return nil
	}
	if c.Component == "" && (c.Name == records || c.Name == jobs) {
		whole, touching, begun := a.AllRecords, a.Records, a.Begun
		if c.Name == jobs {
			whole, touching, begun = a.AllJobs, a.Jobs, a.Started
		}
		switch {
		case whole != nil:
			c.once = &whole.All
			return &figures{n: whole.Groups}
		case buckets > 1 && s.Request.Credit == sums.Spread:
			return touchingAny(touching, begun, groups, buckets)
		}
	}
	out := c.cells.sumBuckets(groups, buckets)
	for i := range c.cells.sum {
		if c.strict && c.cells.isUnknown(i) {
			out.sum[i/buckets], out.over[i/buckets] = sums.Sum{}, sums.SumOf(1)
		}
	}
	return &out
}

// touchingAny is how many runs of each group touch a window: those that touch its first
// bucket, or begin in another.
func touchingAny(touching, begun []uint64, groups, buckets int) *figures {
	out := figures{n: make([]uint64, groups)}
	for g := range groups {
		out.n[g] = touching[g*buckets]
		for _, n := range begun[g*buckets+1 : (g+1)*buckets] {
			out.n[g] += n
		}
	}
	return &out
}

// orderGroups puts the groups in the order that is asked for, and the small ones together.
func (s *Table) orderGroups() error {
	r := s.Request
	if r.Top == 0 && r.Order == "" {
		return nil
	}
	by, err := s.orderColumn()
	if err != nil {
		return err
	}
	order := make([]int, len(s.Groups))
	values := make([]float64, len(s.Groups))
	for g := range order {
		order[g] = g
		if by != nil {
			if v, ok := by.cellValue(by.whole, g); ok {
				values[g] = v
			}
		}
	}
	sort.SliceStable(order, func(i, j int) bool { return values[order[i]] > values[order[j]] })
	place := make([]int, len(order))
	for at, g := range order {
		place[g] = at
		if r.Top > 0 {
			place[g] = min(at, r.Top)
		}
	}
	s.moveGroups(place)
	return nil
}

// orderColumn is nil where there is nothing to order.
func (s *Table) orderColumn() (*Column, error) {
	var names []string
	var found *Column
	want := s.Request.orderName()
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.whole == nil {
			continue
		}
		names = append(names, c.Name)
		if c.Name == want || want == "" && (found == nil || found.Component == "" && c.Component != "") {
			found = c
		}
	}
	if found != nil || len(s.Groups) == 0 || s.Request.Order == "" && len(names) == 0 {
		return found, nil
	}
	if near := spelling.Suggest(want, names); near != "" {
		return nil, requestError("invalid order %q: did you mean %q?", want, near)
	}
	return nil, requestError("invalid order %q: use one of %s", want, strings.Join(names, ", "))
}

// orderName is the measure to order by: the one that is asked for, or the first of
// those that are; "" leaves it to the table, which takes the first component.
func (r *Request) orderName() string {
	if r.Order == "" && len(r.Measures) > 0 {
		return r.Measures[0]
	}
	return r.Order
}

// pruneGroups leaves groups out that have nothing in any column: whether the answer has
// them depends on how it was found.
func (s *Table) pruneGroups() {
	if len(s.Request.By) == 0 {
		return
	}
	place, left := make([]int, len(s.Groups)), 0
	for g := range place {
		if place[g] = -1; s.hasFigures(g) {
			place[g] = left
			left++
		}
	}
	if left < len(place) {
		s.moveGroups(place)
	}
}

// hasFigures reports whether a group has anything.
func (s *Table) hasFigures(g int) bool {
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.before != nil && c.hasFigure(c.before, g) {
			return true
		}
		for b := range s.bucketCount() {
			if c.hasFigure(&c.cells, g*s.bucketCount()+b) {
				return true
			}
		}
	}
	return false
}

// moveGroups moves group g to place[g], and leaves it out where that is negative; those
// that meet are added up.
func (s *Table) moveGroups(place []int) {
	groups := 0
	for _, p := range place {
		groups = max(groups, p+1)
	}
	old := s.Groups
	s.Groups = make([]TableGroup, groups)
	for g, p := range place {
		if p < 0 {
			continue
		}
		if n := &s.Groups[p]; n.Others == 0 {
			*n = old[g]
			n.Others = max(n.Others, 1)
		} else {
			n.Others++
		}
	}
	for g := range s.Groups {
		if n := &s.Groups[g]; n.Others == 1 {
			n.Others = 0
		} else {
			n.Values, n.Lacks = nil, nil
		}
	}
	for i := range s.Columns {
		s.Columns[i].regroupFigures(place, groups, s.bucketCount())
	}
	s.updateCapacity()
}

func (c *Column) regroupFigures(place []int, groups, buckets int) {
	c.supply.regroupClusters(place, groups)
	c.cells = c.cells.regroupCells(place, groups, buckets)
	for _, f := range []**figures{&c.whole, &c.before} {
		if *f != nil {
			out := (*f).regroupCells(place, groups, 1)
			*f = &out
		}
	}
	if c.lacking != nil {
		f := figures{sum: c.lacking}
		c.lacking = f.regroupCells(place, groups, buckets).sum
	}
	for i := range c.unpriced {
		f := figures{sum: c.unpriced[i].Used}
		c.unpriced[i].Used = f.regroupCells(place, groups, buckets).sum
	}
}

// completeComponents adds the components that are asked for and of which there is nothing
// in the window, and refuses those that are in no record at all.
func (r *Request) completeComponents(ctx context.Context, ask QueryFunc, a *Result) error {
	if r.wantsAll() || len(r.missingMeasures(a)) == 0 {
		return nil
	}
	all, err := r.Ever(ctx, ask)
	if err != nil || len(all.Components) == 0 {
		return err
	}
	for i := range all.Components {
		c := &all.Components[i]
		if slices.Contains(r.componentNames(), c.Name) {
			a.Components = withComponent(a.Components, c, len(a.Groups)*(len(a.Edges)-1))
		}
	}
	if list := r.missingMeasures(a); len(list) > 0 {
		return &UnknownMeasureError{list[0], append(r.allWords(), measureNames(all)...), componentsByUnit(all)}
	}
	return nil
}

// componentsByUnit are the components by the units that people say for them, such as core-hours.
// CPU-hours are those of CPU seconds or, without any, of cores.
func componentsByUnit(a *Result) map[string]string {
	of := map[string]string{}
	for i := range a.Components {
		c := &a.Components[i]
		unit := v1.UsageUnit(c.Name, "hour")
		switch {
		case c.Kind != record.Total && unit == "core-hours" && of[cpuHours] == "":
			of[cpuHours] = c.Name
		case c.Kind == record.Total:
			if unit = v1.UsageUnit(c.Name, ""); unit == "CPU-seconds" {
				of[cpuHours] = c.Name
			}
		}
		if unit != "" && of[unit] == "" {
			of[unit] = c.Name
		}
	}
	return of
}

const cpuHours = "CPU-hours"

// missingMeasures are the measures that the answer has no component for.
func (r *Request) missingMeasures(a *Result) (list []string) {
	have := measureNames(a)
	for _, m := range slices.Concat(r.Components, r.Measures) {
		if !r.isWordMeasure(m) && !slices.Contains(have, m) {
			list = append(list, m)
		}
	}
	return list
}

// measureNames are the names of an answer's components, alone and with each score.
func measureNames(a *Result) (list []string) {
	for i := range a.Components {
		c := &a.Components[i]
		if !slices.Contains(list, c.Name) {
			list = append(list, c.Name)
		}
		for _, s := range c.Scores {
			if name := c.Name + times + s.Name; !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
	}
	return list
}

// withComponent adds what a list has not of a component, with nothing used.
func withComponent(list []sums.Component, c *sums.Component, cells int) []sums.Component {
	at := slices.IndexFunc(list, func(o sums.Component) bool { return o.Name == c.Name && o.Kind == c.Kind })
	if at < 0 {
		at = slices.IndexFunc(list, func(o sums.Component) bool { return o.Name > c.Name || o.Name == c.Name && o.Kind > c.Kind })
		if at < 0 {
			at = len(list)
		}
		list = slices.Insert(list, at, sums.Component{Name: c.Name, Kind: c.Kind, Used: make([]sums.Sum, cells)})
	}
	for _, s := range c.Scores {
		if !slices.ContainsFunc(list[at].Scores, func(o sums.Score) bool { return o.Name == s.Name }) {
			list[at].Scores = append(list[at].Scores, sums.Score{Name: s.Name, Used: make([]float64, cells), Lacking: list[at].Used})
		}
	}
	return list
}
