package usage

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
	spelling "github.com/bursar-accounting/bursar/proto/text"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Table is an answer that is laid out. Its cells are those of group g and bucket b.
type Table struct {
	Request *Request
	// Index and Seq are up to where the log and the feed are in it. Records is how many there are,
	// each once, Open how many of them go on, and Several how many have more than one value for a
	// key of By.
	Index, Seq, Records, Open, Several uint64
	Edges                              []record.Time
	Labels                             []string
	Groups                             []TableGroup
	Columns                            []Column

	// now and before are the answers for both windows, with the same groups; before is nil
	// without a comparison. The columns have their figures.
	now, before *sums.Answer
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
func MakeTable(ctx context.Context, ask sums.AskFunc, r Request) (*Table, error) {
	r.setDefaults()
	if err := r.checkFields(); err != nil {
		return nil, err
	}
	r.narrowKnown()
	edges, err := calendar.Edges(r.Window, r.Bucket, r.Zone, MaxCells)
	if err != nil {
		return nil, wrong{err}
	}
	s := &Table{Request: &r, Edges: edges, Labels: calendar.Labels(edges, r.Bucket, r.Zone)}
	s.markUnknown()
	if err := s.askAnswers(ctx, ask); err != nil {
		return nil, err
	}
	a := s.now
	s.Index, s.Seq, s.Records, s.Open, s.Several = a.Index, a.Seq, a.Runs, a.Open, a.Several
	s.setFigures()
	place, err := s.placeGroups()
	if err != nil {
		return nil, err
	}
	s.moveGroups(place)
	return s, nil
}

// askAnswers asks for all that is on the table, and makes its groups and columns.
func (s *Table) askAnswers(ctx context.Context, ask sums.AskFunc) (err error) {
	r := s.Request
	if s.now, err = r.askChecked(ctx, ask, s.Edges); err != nil {
		return err
	}
	var other []record.Time
	if r.Versus != nil {
		other = []record.Time{r.Versus.From, r.Versus.To}
		if s.before, err = r.askBuckets(ctx, ask, other); err != nil {
			return err
		}
		completeAnswer(s.now, s.before)
		completeAnswer(s.before, s.now)
	}
	if err := s.uniteGroups(); err != nil {
		return err
	}
	s.Columns = r.answerColumns(s.now)
	return s.addCapacity(ctx, ask, other)
}

// completeAnswer adds the components that another answer has, with nothing used.
func completeAnswer(a, other *sums.Answer) {
	for i := range other.Components {
		a.Components = withComponent(a.Components, &other.Components[i], len(a.Groups)*(len(a.Edges)-1))
	}
}

// askChecked asks for the buckets between edges, and refuses keys and components that are in
// no record.
func (r *Request) askChecked(ctx context.Context, ask sums.AskFunc, edges []record.Time) (*sums.Answer, error) {
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
func (r *Request) askBuckets(ctx context.Context, ask sums.AskFunc, edges []record.Time) (*sums.Answer, error) {
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

// tableGroup is a group as a line.
func (r *Request) tableGroup(g *sums.Group) TableGroup {
	t := TableGroup{Values: g.Values, Lacks: g.Lacks}
	t.begin = r.beginOfGroup(&t)
	return t
}

func (s *Table) bucketCount() int { return len(s.Edges) - 1 }

// setFigures gives the columns their figures of both answers.
func (s *Table) setFigures() {
	whole := s.now.SumBuckets()
	total := whole.SumGroups()
	for i := range s.Columns {
		c := &s.Columns[i]
		c.cells, c.whole, c.total, c.before = c.of(s.now), c.figuresOf(whole), c.figuresOf(total), nil
		if s.before != nil {
			c.before = c.figuresOf(s.before)
		}
	}
	s.updateCapacity()
}

// uniteGroups gives both answers the groups of either and those that no one used, in the order
// of their values.
func (s *Table) uniteGroups(idle ...sums.Group) error {
	union := slices.Concat(s.now.Groups, idle)
	if s.before != nil {
		union = append(union, s.before.Groups...)
	}
	slices.SortStableFunc(union, compareGroups)
	union = slices.CompactFunc(union, func(a, b sums.Group) bool { return compareGroups(a, b) == 0 })
	if len(union)*s.bucketCount() > MaxCells {
		return tooMany(s.bucketCount())
	}
	for _, a := range []**sums.Answer{&s.now, &s.before} {
		if *a == nil || len((*a).Groups) == len(union) {
			continue
		}
		place := make([]int, len((*a).Groups))
		for i, g := range (*a).Groups {
			place[i], _ = slices.BinarySearchFunc(union, g, compareGroups)
		}
		*a = (*a).MoveGroups(place, union)
	}
	s.Groups = nil
	for i := range union {
		s.Groups = append(s.Groups, s.Request.tableGroup(&union[i]))
	}
	return nil
}

// compareGroups orders groups as answers do.
func compareGroups(a, b sums.Group) int {
	return sums.CompareValues(a.Values, b.Values, a.Lacks, b.Lacks)
}

// placeGroups returns where each group goes: into the order that is asked for, the small ones
// together. Those without a figure in any column go nowhere, since whether the answer has them
// depends on how it was found.
func (s *Table) placeGroups() ([]int, error) {
	r := s.Request
	var order []int
	place := make([]int, len(s.Groups))
	for g := range place {
		if place[g] = -1; len(r.By) == 0 || s.hasFigures(g) {
			order = append(order, g)
		}
	}
	if r.Top > 0 || r.Order != "" {
		by, err := s.orderColumn(len(order))
		if err != nil {
			return nil, err
		}
		values := make([]float64, len(s.Groups))
		for _, g := range order {
			if by != nil {
				if v, ok := by.cellValue(by.whole, g); ok {
					values[g] = v
				}
			}
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	}
	for at, g := range order {
		place[g] = at
		if r.Top > 0 {
			place[g] = min(at, r.Top)
		}
	}
	return place, nil
}

// orderColumn is nil where there is nothing to order of some groups.
func (s *Table) orderColumn(groups int) (*Column, error) {
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
	if found != nil || groups == 0 || s.Request.Order == "" && len(names) == 0 {
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
	groups, moved := 0, false
	for g, p := range place {
		groups, moved = max(groups, p+1), moved || p != g
	}
	if !moved {
		return
	}
	lines, list := make([]TableGroup, groups), make([]sums.Group, groups)
	for g, p := range place {
		if p < 0 {
			continue
		}
		if n := &lines[p]; n.Others == 0 {
			*n = s.Groups[g]
			n.Others = 1
		} else {
			n.Others++
		}
	}
	for g := range lines {
		n := &lines[g]
		if n.Others == 1 {
			n.Others = 0
		} else {
			n.Values, n.Lacks = nil, nil
		}
		list[g] = sums.Group{Values: n.Values, Lacks: n.Lacks}
	}
	s.Groups, s.now = lines, s.now.MoveGroups(place, list)
	if s.before != nil {
		s.before = s.before.MoveGroups(place, list)
	}
	for i := range s.Columns {
		s.Columns[i].supply.regroupClusters(place, groups)
	}
	s.setFigures()
}

// completeComponents adds the components that are asked for and of which there is nothing
// in the window, and refuses those that are in no record at all.
func (r *Request) completeComponents(ctx context.Context, ask sums.AskFunc, a *sums.Answer) error {
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
func componentsByUnit(a *sums.Answer) map[string]string {
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
func (r *Request) missingMeasures(a *sums.Answer) (list []string) {
	have := measureNames(a)
	for _, m := range slices.Concat(r.Components, r.Measures) {
		if !r.isWordMeasure(m) && !slices.Contains(have, m) {
			list = append(list, m)
		}
	}
	return list
}

// measureNames are the names of an answer's components, alone and with each score.
func measureNames(a *sums.Answer) (list []string) {
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
