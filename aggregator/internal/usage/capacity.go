package usage

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Capacity knows what clusters have.
type Capacity interface {
	// Clusters returns the clusters that names stand for, all without names. The error
	// says which one stands for nothing.
	Clusters(names []string) ([]string, error)
	// Among returns those of some clusters of which a record can pass the conditions.
	Among(clusters []string, tests []store.MetaTest) []string
	// Within returns those of some clusters to which a record with these first values of
	// keys can belong; false when clusters cannot be told apart by any of the keys.
	Within(clusters, keys, values []string, lacks []bool) ([]string, bool)
	// Components are the names of what clusters have.
	Components() []string
	// Of returns what clusters have of a component, in amount × microseconds, or
	// of service units as [sums.Worth] has it; false when it is not known.
	Of(clusters []string, component string, from, to record.Time) (sums.Sum, bool)
	// Cuts are the instants at which a cluster begins or ceases to have anything of it.
	Cuts(clusters []string, component string, from, to record.Time) []record.Time
}

// The measures of capacity: alone they are about cores, and with * and the name of
// another component about that.
const (
	supplied    = "capacity"
	utilization = "utilization"
)

// clusterKey is the derived key of clusters, and serviceUnits the component and the
// weight of service units.
const (
	clusterKey   = "cluster"
	serviceUnits = "su"
)

// moreCells is how many more cells the question by cluster may have.
const moreCells = 4 * MaxCells

// demand is a measure of capacity.
type demand struct{ name, word, component string }

// demandOf reads a measure of capacity; false when it is another.
func (r *Request) demandOf(measure string) (demand, bool) {
	word, component, other := strings.Cut(measure, times)
	if word != supplied && word != utilization {
		return demand{}, false
	}
	if !other {
		component = r.Cores
	}
	return demand{measure, word, component}, true
}

// OfCapacity reports whether a measure is about what clusters have.
func (r *Request) OfCapacity() bool { return len(r.capacityDemands()) > 0 }

func (r *Request) capacityDemands() (list []demand) {
	for _, m := range r.Measures {
		if d, is := r.demandOf(m); is {
			list = append(list, d)
		}
	}
	return list
}

// expandClusters puts the clusters in the place of groups of clusters in conditions.
func (r *Request) expandClusters() error {
	if r.Capacity == nil {
		return nil
	}
	if all, err := r.Capacity.Clusters(nil); err != nil || len(all) == 0 {
		return err
	}
	r.Having = slices.Clone(r.Having)
	for i := range r.Having {
		f := &r.Having[i]
		if f.Key != clusterKey {
			continue
		}
		names := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return v == "" })
		clusters, err := r.Capacity.Clusters(append([]string{}, names...))
		if err != nil {
			return wrong{err}
		}
		if len(names) < len(f.Values) {
			clusters = append(clusters, "")
		}
		f.Values = clusters
	}
	return nil
}

// clustersInScope are the clusters of which a record can pass the conditions.
func (r *Request) clustersInScope() ([]string, error) {
	clusters, err := r.Capacity.Clusters(nil)
	tests := slices.Clone(r.Where.Meta)
	for _, f := range r.Having {
		if f.Key != clusterKey {
			tests = append(tests, store.MetaTest{Key: f.Key, Any: f.Values})
			continue
		}
		clusters = slices.DeleteFunc(clusters, func(name string) bool { return !slices.Contains(f.Values, name) })
	}
	return r.Capacity.Among(clusters, tests), err
}

// checkCapacity refuses measures of capacity that no cluster has.
func (r *Request) checkCapacity(list []demand) error {
	if len(list) == 0 {
		return nil
	}
	var have []string
	if r.Capacity != nil {
		have = r.Capacity.Components()
	}
	if len(have) == 0 {
		return requestError("%s: no capacity configured or reported; add a cluster block to the configuration", list[0].name)
	}
	for _, d := range list {
		if !slices.Contains(have, d.component) {
			return requestError("%s: no cluster has %s; there is %s", d.name, d.component, strings.Join(have, ", "))
		}
		if d.word == utilization && d.component == serviceUnits && !slices.Contains(r.Weights, serviceUnits) {
			return requestError("%s: nothing says how many service units a record is worth", d.name)
		}
	}
	return nil
}

// supply is the capacity that a column is about.
type supply struct {
	component string
	// clusters are those in the scope; now and before is what they have: of each in
	// each bucket, and in the other window.
	clusters    []string
	now, before []sums.Sum
	// of has the clusters of each group, which the records of the group can belong to; nil:
	// all groups are of all clusters.
	of [][]bool
	// lines says that no cluster is in two groups, so that one without any use has a
	// line, too.
	lines bool
}

// capacitySpan is a window in pieces in which each cluster either has something that is known
// or has not.
type capacitySpan struct {
	edges  []record.Time
	bucket []int // of each piece
	most   int   // buckets

	begins map[string]record.Time // from when on the use of each cluster is known
}

// capacityPieces are the buckets, cut where the capacity of a cluster begins or ends, and at
// the present.
func (r *Request) capacityPieces(edges []record.Time, clusters []string, list []demand) capacitySpan {
	from, to := edges[0], edges[len(edges)-1]
	all := slices.Clone(edges)
	for _, d := range list {
		all = append(all, r.Capacity.Cuts(clusters, d.component, from, to)...)
	}
	begins := map[string]record.Time{}
	cuts := []record.Time{r.Now, r.Known.From, r.Known.To}
	for _, name := range clusters {
		begins[name] = r.beginOf(nil, nil, nil, []string{name})
		cuts = append(cuts, begins[name])
	}
	for _, at := range cuts {
		if at > from && at < to {
			all = append(all, at)
		}
	}
	slices.Sort(all)
	s := capacitySpan{edges: slices.Compact(all), most: len(edges) - 1, begins: begins}
	bucket := 0
	for _, at := range s.edges[:len(s.edges)-1] {
		for edges[bucket+1] <= at {
			bucket++
		}
		s.bucket = append(s.bucket, bucket)
	}
	return s
}

// capacityOf is what a cluster has in a piece; nothing where it is not known, and in the
// time to come. For a utilization it is nothing where use is unknown.
func (r *Request) capacityOf(cluster string, d demand, s *capacitySpan, piece int) sums.Sum {
	if s.edges[piece] >= r.Now || d.word == utilization && !r.isUseKnown(cluster, s, piece) {
		return sums.Sum{}
	}
	sum, _ := r.Capacity.Of([]string{cluster}, d.component, s.edges[piece], s.edges[piece+1])
	return sum
}

// isUseKnown reports whether a piece lies in the known time of a cluster; "" is none.
func (r *Request) isUseKnown(cluster string, s *capacitySpan, piece int) bool {
	known := r.Known
	if begin, told := s.begins[cluster]; told && known != (sums.Span{}) {
		known.From = max(known.From, begin)
	}
	return known.Covers(s.edges[piece], s.edges[piece+1])
}

// capacityTable is what each cluster has in each bucket.
func (r *Request) capacityTable(clusters []string, d demand, s *capacitySpan) []sums.Sum {
	out := make([]sums.Sum, len(clusters)*s.most)
	for i, name := range clusters {
		for p, b := range s.bucket {
			out[i*s.most+b] = out[i*s.most+b].Add(r.capacityOf(name, d, s, p))
		}
	}
	return out
}

// addCapacity adds the columns that are about capacity; other are the edges of the other window,
// nil without one. What was used of capacity is among the worths of the answers.
func (s *Table) addCapacity(ctx context.Context, ask sums.AskFunc, other []record.Time) error {
	r := s.Request
	list := r.capacityDemands()
	if len(list) == 0 {
		return nil
	}
	now, err := r.useInScope(ctx, ask, s.Edges)
	if err != nil {
		return err
	}
	if err := s.uniteGroups(r.idleGroups(now, list)...); err != nil {
		return err
	}
	var before *useInScope
	if other != nil {
		if before, err = r.useInScope(ctx, ask, other); err != nil {
			return err
		}
	}
	for _, d := range list {
		u := &supply{component: d.component, clusters: now.clusters, now: r.capacityTable(now.clusters, d, &now.span), lines: len(r.By) == 0 || slices.Equal(r.By, []string{clusterKey})}
		c := newColumn(d.name, Supply, func(a *sums.Answer) figures { return figures{sum: make([]sums.Sum, len(a.Groups)*(len(a.Edges)-1))} })
		c = c.withTimeUnit(r.Hours)
		if d.component == serviceUnits {
			c.Unit = "SU"
		}
		if before != nil {
			u.before = r.capacityTable(before.clusters, d, &before.span)
		}
		if d.word == utilization {
			c.Kind, c.Unit, c.of = Ratio, "", useFigures(len(s.now.Worths))
			s.now.Worths = append(s.now.Worths, r.useOf(s.now.Groups, now, u))
			if before != nil {
				w := r.useOf(s.before.Groups, before, u)
				w.Lacking[0].Used = nil
				s.before.Worths = append(s.before.Worths, w)
			}
		}
		c.supply = u
		s.Columns = append(s.Columns, c)
	}
	return nil
}

// useFigures are what was used of capacity, which is worth i of an answer; by what it is divided
// is set later.
func useFigures(i int) func(*sums.Answer) figures {
	return func(a *sums.Answer) figures {
		w := &a.Worths[i]
		return figures{sum: w.Sum, over: make([]sums.Sum, len(w.Sum)), lacking: w.Lacking[0].Used}
	}
}

// idleGroups are lines for what no one used.
func (r *Request) idleGroups(use *useInScope, list []demand) (groups []sums.Group) {
	for _, name := range use.clusters {
		for _, d := range list {
			if unlessZero(r.capacityTable([]string{name}, d, &use.span)) == nil {
				continue
			}
			if len(r.By) == 0 {
				groups = []sums.Group{{}}
			} else if slices.Equal(r.By, []string{clusterKey}) {
				groups = append(groups, sums.Group{Values: []string{name}, Lacks: []bool{false}})
			}
			break
		}
	}
	return groups
}

// useInScope has the clusters in the scope, the pieces of buckets, and who used what there.
type useInScope struct {
	clusters []string
	span     capacitySpan
	answer   *sums.Answer // nil where no one wants to know
}

// useInScope asks who used what of the clusters in the scope.
func (r *Request) useInScope(ctx context.Context, ask sums.AskFunc, edges []record.Time) (*useInScope, error) {
	clusters, err := r.clustersInScope()
	if err != nil {
		return nil, err
	}
	list := r.capacityDemands()
	u := &useInScope{clusters: clusters, span: r.capacityPieces(edges, clusters, list)}
	u.answer, err = r.askUse(ctx, ask, &u.span, list)
	return u, err
}

// askUse asks who used what of each cluster in each piece; nil when no one wants
// to know. It is a question of its own, since the groups of the table need not be
// by cluster.
func (r *Request) askUse(ctx context.Context, ask sums.AskFunc, s *capacitySpan, list []demand) (*sums.Answer, error) {
	by := r.By
	if !slices.Contains(by, clusterKey) {
		by = append(slices.Clone(by), clusterKey)
	}
	q := sums.Query{Edges: s.edges, By: by, Where: r.Where, Credit: r.Credit, Now: r.Now, MaxCells: moreCells, Components: []string{}}
	var weights []string
	for _, d := range list {
		switch {
		case d.word != utilization:
		case d.component == serviceUnits:
			weights = append(weights, serviceUnits)
		default:
			q.Components = append(q.Components, d.component)
		}
	}
	if len(q.Components)+len(weights) == 0 {
		return nil, nil
	}
	q.Unscored = q.Components
	q.Weights, q.Having = weights, r.Having
	a, err := ask(ctx, q)
	if errors.Is(err, sums.ErrTooMany) {
		return nil, tooMany(s.most)
	}
	return a, err
}

// useOf is what each group used in each bucket of clusters that have something; lacking is what
// it used where no capacity is known.
func (r *Request) useOf(groups []sums.Group, use *useInScope, u *supply) sums.Worth {
	a, span := use.answer, &use.span
	used, lacking := make([]sums.Sum, len(groups)*span.most), make([]sums.Sum, len(groups)*span.most)
	columns := u.useColumns(a)
	pieces := len(span.bucket)
	has := make([]bool, len(u.clusters)*pieces)
	for i, name := range u.clusters {
		for p := range pieces {
			there := r.capacityOf(name, demand{word: utilization, component: u.component}, span, p)
			has[i*pieces+p] = !there.IsZero()
		}
	}
	at := slices.Index(a.By, clusterKey)
	for g := range a.Groups {
		from := &a.Groups[g]
		to, found := slices.BinarySearchFunc(groups, sums.Group{Values: from.Values[:len(r.By)], Lacks: from.Lacks[:len(r.By)]}, compareGroups)
		if !found {
			continue // it came after the other groups were asked for
		}
		cluster := slices.Index(u.clusters, from.Values[at])
		for p, b := range span.bucket {
			if !r.isUseKnown(from.Values[at], span, p) {
				continue
			}
			into := lacking
			if !from.Lacks[at] && cluster >= 0 && has[cluster*pieces+p] {
				into = used
			}
			for _, c := range columns {
				into[to*span.most+b] = into[to*span.most+b].Add(c[g*pieces+p])
			}
		}
	}
	return sums.Worth{Name: u.component, Sum: used, Lacking: []sums.Unvalued{{Component: u.component, Used: lacking}}}
}

// useColumns are the columns of an answer that have the use of the component.
func (u *supply) useColumns(a *sums.Answer) (list [][]sums.Sum) {
	for i := range a.Worths {
		if u.component == serviceUnits && a.Worths[i].Name == serviceUnits {
			list = append(list, a.Worths[i].Sum)
		}
	}
	for i := range a.Components {
		if a.Components[i].Name == u.component {
			list = append(list, a.Components[i].Used)
		}
	}
	return list
}

// updateCapacity sets the capacity of all groups: of groups that were put together it is
// that of all their clusters, each once.
func (s *Table) updateCapacity() {
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.supply == nil {
			continue
		}
		c.supply.setClusters(s.Request, s.Groups)
		c.supply.fillCells(c.capacityFigures(&c.cells), c.supply.now, s.bucketCount())
		whole := c.supply.sumClusterBuckets(s.bucketCount())
		c.supply.fillCells(c.capacityFigures(c.whole), whole, 1)
		c.capacityFigures(c.total)[0] = totalOf(whole)
		if c.before != nil {
			c.supply.fillCells(c.capacityFigures(c.before), c.supply.before, 1)
		}
	}
}

// capacityFigures are the figures that are capacity.
func (c *Column) capacityFigures(f *figures) []sums.Sum {
	if c.Kind == Ratio {
		return f.over
	}
	return f.sum
}

// setClusters finds the clusters of groups that are none of several.
func (u *supply) setClusters(r *Request, groups []TableGroup) {
	old := u.of
	u.of = make([][]bool, len(groups))
	for g := range groups {
		if groups[g].Others > 0 {
			u.of[g] = old[g]
			continue
		}
		names, told := u.clustersOf(r, &groups[g])
		if !told {
			u.of = nil
			return
		}
		u.of[g] = make([]bool, len(u.clusters))
		for i, name := range u.clusters {
			u.of[g][i] = slices.Contains(names, name)
		}
	}
}

// clustersOf are the clusters of one group; false when the keys say nothing about clusters.
func (u *supply) clustersOf(r *Request, g *TableGroup) ([]string, bool) {
	at := slices.Index(r.By, clusterKey)
	switch {
	case at < 0:
		return r.Capacity.Within(u.clusters, r.By, g.Values, g.Lacks)
	case g.Lacks[at]:
		return nil, true
	}
	return g.Values[at : at+1], true
}

// isShared reports whether several groups have the capacity of the same cluster.
func (u *supply) isShared(groups int) bool {
	if u == nil || groups < 2 {
		return false
	}
	if u.of == nil {
		return true
	}
	for i := range u.clusters {
		n := 0
		for g := range u.of {
			if u.of[g][i] {
				n++
			}
		}
		if n > 1 {
			return true
		}
	}
	return false
}

// regroupClusters puts the clusters of groups together.
func (u *supply) regroupClusters(place []int, groups int) {
	if u == nil || u.of == nil {
		return
	}
	out := make([][]bool, groups)
	for g := range out {
		out[g] = make([]bool, len(u.clusters))
	}
	for g, p := range place {
		for i := range u.clusters {
			if p >= 0 && u.of[g][i] {
				out[p][i] = true
			}
		}
	}
	u.of = out
}

// sumClusterBuckets adds up the buckets of each cluster.
func (u *supply) sumClusterBuckets(buckets int) []sums.Sum {
	out := make([]sums.Sum, len(u.clusters))
	for i := range out {
		out[i] = totalOf(u.now[i*buckets : (i+1)*buckets])
	}
	return out
}

// fillCells sets the cells of all groups to what their clusters have.
func (u *supply) fillCells(to, table []sums.Sum, buckets int) {
	for cell := range to {
		g, b := cell/buckets, cell%buckets
		to[cell] = sums.Sum{}
		for i := range u.clusters {
			if u.of == nil || u.of[g][i] {
				to[cell] = to[cell].Add(table[i*buckets+b])
			}
		}
	}
}

// hasFigure reports whether there is anything in a cell. Capacity alone is nothing, unless
// each cluster is in one line only.
func (c *Column) hasFigure(f *figures, i int) bool {
	if c.supply == nil {
		return f.hasValue(i)
	}
	lacks := f.lacking != nil && !f.lacking[i].IsZero()
	return lacks || c.supply.lines && f.hasValue(i) || c.Kind == Ratio && !f.sum[i].IsZero()
}

// isInValueUnit reports whether sums are in the unit of [sums.Worth].
func (c *Column) isInValueUnit() bool {
	return c.Kind == Worth || c.supply != nil && c.supply.component == serviceUnits
}
