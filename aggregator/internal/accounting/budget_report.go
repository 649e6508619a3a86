package accounting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// UsageReader is where a report finds what was used and what runs.
type UsageReader struct {
	// Ask answers a question of all records.
	Ask sums.AskFunc
	// Derivation is what Ask derives by; nil derives nothing.
	Derivation *usage.Derivation
	// Running calls yield with every run that goes on, and up to when its source is
	// complete: Ask counts it up to then, and no further than now.
	Running func(ctx context.Context, yield func(r *record.Record, counted record.Time) error) error
	// Value returns the value of a key that is not one of Derivation for a record; nil: it is the
	// first of its meta.
	Value func(m record.Meta, key string) (string, bool)
	// KnownFrom returns from when records are known, by the clock of a zone; nil: always.
	// What was used before is unknown, and the pace is of the time after it.
	KnownFrom func(*time.Location) record.Time
}

// Asking for what there is not is one of these, wrapped.
var (
	ErrBudget = errors.New("no such budget")
	ErrTime   = errors.New("no such time")
)

// StatementRequest is what is asked of budgets.
type StatementRequest struct {
	// Name is that of a budget; "" asks for all.
	Name string
	// At is a point in the period, in words of package calendar by the clock of each
	// budget's zone; "" is now. A single period is answered whatever it is.
	At string
	// Now is the present.
	Now record.Time
}

// Report says how budgets stand, by name, and how many records that go on count in some of
// them.
func (b *Budgets) Report(ctx context.Context, reader UsageReader, q StatementRequest) (list []Statement, open int, err error) {
	if reader.Derivation == nil {
		reader.Derivation = &usage.Derivation{}
	}
	r := reporter{usage: reader, now: q.Now, list: []Statement{}}
	for i := range b.list {
		if q.Name == "" || q.Name == b.list[i].Name {
			if err := r.addStatement(&b.list[i], q.At); err != nil {
				return nil, 0, err
			}
		}
	}
	if q.Name != "" && len(r.list) == 0 {
		return nil, 0, fmt.Errorf("%w: there is none of the name %q", ErrBudget, q.Name)
	}
	for _, s := range r.groupStatements() {
		if err := s.fillUsage(ctx); err != nil {
			return nil, 0, err
		}
	}
	open, err = r.addReserved(ctx)
	return r.list, open, err
}

// reporter makes statements.
type reporter struct {
	usage UsageReader
	now   record.Time
	list  []Statement
	all   []*page // set by groupStatements
}

// page are statements that one question answers.
type page struct {
	*reporter
	measure

	keys     []string
	period   Period
	paceFrom record.Time   // None: not asked
	cuts     []record.Time // at which keys or prices change
	of       map[string][]*Statement
}

// addStatement begins the statement of a budget.
func (r *reporter) addStatement(b *Budget, word string) error {
	at, err := r.now, error(nil)
	if word != "" {
		at, err = calendar.Point(word, r.now, b.location())
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrTime, err)
	}
	p, err := b.periodAt(at)
	if err != nil {
		return fmt.Errorf("budget %q: %w", b.Name, err)
	}
	s := Statement{Budget: b, Period: p, Unit: b.Unit, Now: r.now, KnownFrom: record.MinTime, Gone: record.None, PaceFrom: record.None}
	if r.usage.KnownFrom != nil {
		s.KnownFrom = r.usage.KnownFrom(b.location())
	}
	if s.State() == "present" {
		if s.PaceFrom, err = b.paceFrom(p, r.now); err != nil {
			return fmt.Errorf("budget %q: %w", b.Name, err)
		}
		s.PaceFrom = max(s.PaceFrom, s.KnownFrom)
		s.Paced = s.PaceFrom < r.now
	}
	if name := b.measure().weight; name != "" {
		w, known := r.usage.Derivation.Weight(name)
		if known {
			s.Unit = w.Unit
		} else {
			s.Problem = fmt.Sprintf("no prices or factors configured for %s", b.Unit)
		}
	}
	if b.Unit == KWh || b.Unit == CO2Unit {
		s.Energy = &sums.EnergyBasis{}
	}
	r.list = append(r.list, s)
	return nil
}

// groupStatements puts statements together that one question answers.
func (r *reporter) groupStatements() []*page {
	found := map[string]*page{}
	for i := range r.list {
		s := &r.list[i]
		if s.Problem != "" || s.State() == "future" {
			continue
		}
		keys, values := s.Budget.scope()
		m := s.Budget.measure()
		pace := record.None
		if s.Paced {
			pace = s.PaceFrom
		}
		name := fmt.Sprintf("%q %q %q %d %d %d", m.weight, m.component, keys, s.Period.From, s.Period.To, pace)
		p := found[name]
		if p == nil {
			p = &page{reporter: r, measure: m, keys: keys, period: s.Period, paceFrom: pace, of: map[string][]*Statement{}}
			found[name] = p
			r.all = append(r.all, p)
		}
		p.of[encodeTuple(values)] = append(p.of[encodeTuple(values)], s)
	}
	return r.all
}

// encodeTuple makes one text of values.
func encodeTuple(values []string) string {
	var b []byte
	for _, v := range values {
		b = appendValue(b, v)
	}
	return string(b)
}

// countedEnd is up to when usage counts.
func (p *page) countedEnd() record.Time { return min(p.period.To, p.now) }

// fillUsage asks what was used.
func (p *page) fillUsage(ctx context.Context) error {
	edges := []record.Time{p.period.From, p.countedEnd()}
	if p.paceFrom.Present() {
		edges = append(edges, p.paceFrom)
	}
	edges = sortDistinct(edges)
	if len(edges) < 2 {
		return nil // the period begins now
	}
	err := p.queryBuckets(ctx, edges, func(list []*Statement, c *cells) {
		for b, from := range edges[:len(edges)-1] {
			used := c.usedIn(b)
			for _, s := range list {
				if from >= p.period.From {
					s.Used, s.apart = s.Used.Add(used), s.apart.Add(c.apartIn(b))
					c.addLacking(b, s)
					c.addEnergyBasis(b, s)
				}
				if p.paceFrom.Present() && from >= p.paceFrom {
					s.Recent = s.Recent.Add(used)
				}
			}
		}
	})
	if err != nil {
		return err
	}
	var gone []*Statement
	for _, list := range p.of {
		for _, s := range list {
			s.forecast()
			if s.Exhausted() {
				gone = append(gone, s)
			}
		}
	}
	return p.findExhaustion(ctx, gone)
}

// queryBuckets asks what was used in buckets, and hands out the figures of each group that has
// budgets.
func (p *page) queryBuckets(ctx context.Context, edges []record.Time, each func([]*Statement, *cells)) error {
	q := sums.Query{Edges: edges, By: p.keys, Now: p.now, Components: []string{p.component}}
	if p.weight != "" {
		w, _ := p.usage.Derivation.Weight(p.weight) // addStatement has found it
		q.Weights, q.Components, q.Bases = []string{p.weight}, w.Components, w.Energy != nil
	}
	q.Unscored = q.Components
	a, err := p.usage.Ask(ctx, q)
	if err != nil {
		return fmt.Errorf("what was used by %s from %s to %s: %w", strings.Join(p.keys, ", "), edges[0], edges[len(edges)-1], err)
	}
	for g := range a.Groups {
		group := &a.Groups[g]
		if list := p.of[encodeTuple(group.Values)]; list != nil && !slices.Contains(group.Lacks, true) {
			each(list, &cells{page: p, answer: a, at: g * (len(edges) - 1)})
		}
	}
	return nil
}

// cells are the figures of a group.
type cells struct {
	*page

	answer *sums.Answer
	at     int
}

// usedIn is what was used in a bucket.
func (c *cells) usedIn(bucket int) Amount {
	if c.weight != "" {
		return AmountOf(c.answer.Worths[0].Sum[c.at+bucket])
	}
	for i := range c.answer.Components {
		if p := &c.answer.Components[i]; p.Name == c.component && p.Kind == record.Rate {
			return AmountOfHours(p.Used[c.at+bucket])
		}
	}
	return Amount{}
}

// apartIn is what of it is known whatever the rest is.
func (c *cells) apartIn(bucket int) Amount {
	if c.weight == "" || c.answer.Worths[0].Apart == nil {
		return Amount{}
	}
	return AmountOf(c.answer.Worths[0].Apart[c.at+bucket])
}

// addLacking notes what has no price.
func (c *cells) addLacking(bucket int, s *Statement) {
	if c.weight == "" {
		return
	}
	for _, l := range c.answer.Worths[0].Lacking {
		s.addUnpriced(l.Component, l.Kind, l.Used[c.at+bucket])
	}
}

// addEnergyBasis adds what the energy or the CO2 of a bucket rests on.
func (c *cells) addEnergyBasis(bucket int, s *Statement) {
	if s.Energy != nil && c.answer.Bases != nil {
		s.Energy.Add(&c.answer.Bases[c.at+bucket])
	}
}

// findExhaustion finds when budgets were used up: the day, in it the hour, in it the minute.
func (p *page) findExhaustion(ctx context.Context, gone []*Statement) error {
	if len(gone) == 0 {
		return nil
	}
	before := make(map[*Statement]Amount, len(gone))
	for _, s := range gone {
		before[s] = Amount{}
	}
	return p.narrowExhaustion(ctx, calendar.Window{From: p.period.From, To: p.countedEnd()}, calendar.Day, before)
}

// narrowExhaustion finds in which part of a window budgets were used up, of which this much was
// used before it.
func (p *page) narrowExhaustion(ctx context.Context, w calendar.Window, u calendar.Unit, before map[*Statement]Amount) error {
	edges, err := p.splitWindow(w, u, before)
	if err != nil {
		return err
	}
	type part struct{ from, to record.Time }
	in := map[part]map[*Statement]Amount{}
	err = p.queryBuckets(ctx, edges, func(list []*Statement, c *cells) {
		for _, s := range list {
			sum, wanted := before[s]
			for b := 0; wanted && b < len(edges)-1; b++ {
				next := sum.Add(c.usedIn(b))
				if next.Cmp(s.Budget.Amount) < 0 {
					sum = next
					continue
				}
				s.Gone = edges[b+1]
				at := part{edges[b], edges[b+1]}
				if in[at] == nil {
					in[at] = map[*Statement]Amount{}
				}
				in[at][s] = sum
				break
			}
		}
	})
	if err != nil || u == calendar.None {
		return err
	}
	for at, list := range in {
		finer := calendar.Hour
		if u == calendar.Hour {
			finer = calendar.None
		}
		if err := p.narrowExhaustion(ctx, calendar.Window{From: at.from, To: at.to}, finer, list); err != nil {
			return err
		}
	}
	return nil
}

// splitWindow cuts a window into days or hours as a budget's zone has them, or minutes.
func (p *page) splitWindow(w calendar.Window, u calendar.Unit, of map[*Statement]Amount) ([]record.Time, error) {
	if u == calendar.None {
		var edges []record.Time
		for t := w.From; t < w.To; t = (t/record.Minute + 1) * record.Minute {
			edges = append(edges, t)
		}
		return append(edges, w.To), nil
	}
	for s := range of { // any: one page may have several zones, and each is right
		return calendar.Edges(w, u, s.Budget.location(), maxParts)
	}
	return nil, nil
}

// maxParts bounds the days of a period.
const maxParts = 40_000
