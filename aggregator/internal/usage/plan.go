package usage

import (
	"context"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxCells bounds groups × buckets of the queries without derived keys, which have
// more of both than those that they answer.
const maxCells = 4_000_000

// Key returns the derived key of a name.
func (b *Derivation) Key(name string) (*Key, bool) {
	i := slices.IndexFunc(b.Keys, func(k Key) bool { return k.Name == name })
	if i < 0 {
		return nil, false
	}
	return &b.Keys[i], true
}

// Weight returns the weight of a name.
func (b *Derivation) Weight(name string) (*Weight, bool) {
	i := slices.IndexFunc(b.Weights, func(w Weight) bool { return w.Name == name })
	if i < 0 {
		return nil, false
	}
	return &b.Weights[i], true
}

// Answer answers a query. Errors are those of ask, or wrap [sums.ErrQuery].
func (b *Derivation) Answer(ctx context.Context, ask sums.AskFunc, q sums.Query) (*sums.Answer, error) {
	p, err := b.planQuery(&q)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return ask(ctx, q)
	}
	a, err := ask(ctx, p.base)
	if err != nil {
		return nil, err
	}
	return p.foldAnswer(a)
}

// plan is how a query is answered by one without derived keys.
type plan struct {
	q       *sums.Query
	base    sums.Query
	columns []keyColumn
	by      []int // where the columns of the query's By are
	having  []int // of its Having
	people  int   // of its People; -1 when no one asks
	weights []weighing
	// phases are the times in which all columns and weights stay as they are: the
	// first instants of the window and of what follows a cut.
	phases []record.Time
	// pieces are the buckets of base.
	pieces []sums.BucketTarget
}

// keyColumn is a key that is needed: where its values come from.
type keyColumn struct {
	name string
	key  *Key  // nil: a meta key
	from []int // places in the groups of base
}

// weighing is a weight with the columns that it needs.
type weighing struct {
	*Weight
	columns []int
}

// planQuery returns nil when the query can be asked as it is.
func (b *Derivation) planQuery(q *sums.Query) (*plan, error) {
	p := &plan{q: q, base: *q, people: -1}
	p.base.By, p.base.MaxCells = nil, maxCells
	p.base.Weights, p.base.Having = nil, nil
	derived := len(q.Weights) > 0 || len(q.Having) > 0
	for _, name := range q.By {
		_, is := b.Key(name)
		derived = derived || is
	}
	_, is := b.Key(q.People)
	if !derived && !is {
		return nil, nil
	}
	for _, name := range q.By {
		p.by = append(p.by, p.columnFor(b, name))
	}
	for _, f := range q.Having {
		p.having = append(p.having, p.columnFor(b, f.Key))
	}
	if q.People != "" {
		p.people = p.columnFor(b, q.People)
		p.base.People, p.base.Counts = "", true
	}
	if err := p.addWeights(b); err != nil {
		return nil, err
	}
	if err := p.checkMeters(); err != nil {
		return nil, err
	}
	p.cutPieces()
	if len(q.Having) > 0 {
		p.base.Keep = p.keepsGroup
	}
	return p, nil
}

// columnFor returns the number of the column of a key, made when it is missing.
func (p *plan) columnFor(b *Derivation, name string) int {
	if at := slices.IndexFunc(p.columns, func(c keyColumn) bool { return c.name == name }); at >= 0 {
		return at
	}
	c := keyColumn{name: name}
	from := []string{name}
	if key, is := b.Key(name); is {
		c.key, from = key, key.From
	}
	for _, f := range from {
		at := slices.Index(p.base.By, f)
		if at < 0 {
			at = len(p.base.By)
			p.base.By = append(p.base.By, f)
		}
		c.from = append(c.from, at)
	}
	p.columns = append(p.columns, c)
	return len(p.columns) - 1
}

// addWeights adds what the weights need.
func (p *plan) addWeights(b *Derivation) error {
	for _, name := range p.q.Weights {
		w, is := b.Weight(name)
		if !is {
			return fmt.Errorf("%w: unknown weight %q", sums.ErrQuery, name)
		}
		use := weighing{Weight: w}
		if w.Energy != nil {
			p.base.Energy = w.Energy
			p.weights = append(p.weights, use)
			continue
		}
		for _, key := range w.From {
			use.columns = append(use.columns, p.columnFor(b, key))
		}
		p.weights = append(p.weights, use)
		if w.Priced != nil {
			p.base.Energy = w.Priced
		}
		p.addComponents(w.Components)
	}
	return nil
}

// addComponents asks for components that the query may have left out.
func (p *plan) addComponents(names []string) {
	if p.base.Components == nil {
		return
	}
	for _, name := range names {
		if !slices.Contains(p.base.Components, name) {
			p.base.Components = append(slices.Clip(p.base.Components), name)
			p.base.Unscored = append(slices.Clip(p.base.Unscored), name)
		}
	}
}

// cutPieces lays out the pieces.
func (p *plan) cutPieces() {
	edges := p.q.Edges
	var cuts []record.Time
	for _, c := range p.columns {
		if c.key != nil {
			cuts = append(cuts, c.key.Cuts...)
		}
	}
	for _, w := range p.weights {
		if w.Energy == nil {
			cuts = append(cuts, w.Cuts...)
		}
	}
	cuts = slices.DeleteFunc(cuts, func(t record.Time) bool { return t <= edges[0] || t >= edges[len(edges)-1] })
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	p.phases = append([]record.Time{edges[0]}, cuts...)
	p.base.Edges = append(slices.Clone(edges), cuts...)
	slices.Sort(p.base.Edges)
	p.base.Edges = slices.Compact(p.base.Edges)
	bucket, phase := 0, 0
	for _, from := range p.base.Edges[:len(p.base.Edges)-1] {
		for edges[bucket+1] <= from {
			bucket++
		}
		for phase+1 < len(p.phases) && p.phases[phase+1] <= from {
			phase++
		}
		p.pieces = append(p.pieces, sums.BucketTarget{Bucket: bucket, Phase: phase})
	}
}

// keepsGroup reports whether the conditions hold for a group at any time.
func (p *plan) keepsGroup(values []string, lacks []bool) bool {
	r := reading{plan: p, values: values, lacks: lacks}
	for phase := range p.phases {
		r.readPhase(phase)
		if r.meetsConditions() {
			return true
		}
	}
	return false
}
