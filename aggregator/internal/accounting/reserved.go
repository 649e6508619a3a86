package accounting

import (
	"context"
	"slices"
	"strconv"

	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// LimitKey is the meta key of a running record that says how many seconds it may run.
const LimitKey = "time_limit"

// addReserved adds what running runs may still use, and returns how many of them count.
func (r *reporter) addReserved(ctx context.Context) (open int, err error) {
	var present []*page
	for _, p := range r.all {
		if p.period.To > r.now {
			present = append(present, p)
		}
	}
	if len(present) == 0 {
		return 0, nil
	}
	for _, p := range present {
		p.cuts = p.changeTimes()
	}
	err = r.usage.Running(ctx, func(run *record.Record, counted record.Time) error {
		limit, limited := limitOf(run)
		counts := false
		for _, p := range present {
			from, to := max(min(counted, r.now), run.Start, p.period.From), p.period.To
			if limited {
				to = min(to, limit)
			}
			if !limited {
				counts = p.countUnlimited(run, min(max(from, r.now), to-1)) || counts
			} else if from < to {
				counts = p.reserveRun(run, from, to) || counts
			}
		}
		if counts {
			open++
		}
		return nil
	})
	return open, err
}

// limitOf is when a run will have reached its time limit.
func limitOf(r *record.Record) (record.Time, bool) {
	values := r.Meta.Get(LimitKey)
	if len(values) == 0 {
		return 0, false
	}
	seconds, err := strconv.ParseInt(values[0], 10, 64)
	if err != nil || seconds < 0 {
		return 0, false
	}
	if seconds > int64(record.MaxTime-max(r.Start, 0))/int64(record.Second) {
		return record.MaxTime, true
	}
	return r.Start + record.Time(seconds)*record.Second, true
}

// changeTimes are the instants at which keys or prices change.
func (p *page) changeTimes() []record.Time {
	var cuts []record.Time
	for _, name := range p.keys {
		if k, is := p.usage.Derivation.Key(name); is {
			cuts = append(cuts, k.Cuts...)
		}
	}
	if w, is := p.usage.Derivation.Weight(p.weight); is {
		cuts = append(cuts, w.Cuts...)
		for _, name := range w.From {
			if k, is := p.usage.Derivation.Key(name); is {
				cuts = append(cuts, k.Cuts...)
			}
		}
	}
	return sortDistinct(cuts)
}

// countUnlimited counts a run without a limit in the budgets whose scope it is in, and reports
// whether there is one.
func (p *page) countUnlimited(run *record.Record, at record.Time) bool {
	list := p.statementsOf(run, at)
	for _, s := range list {
		if !run.Meta.IsPart() {
			s.Unlimited++
		}
	}
	return len(list) > 0
}

// reserveRun adds what a run may use from one instant to another to the budgets whose scope it is
// in, and reports whether there is one.
func (p *page) reserveRun(run *record.Record, from, to record.Time) (counts bool) {
	met := map[*Statement]bool{}
	for at := from; at < to; {
		next := to
		if i, _ := slices.BinarySearch(p.cuts, at+1); i < len(p.cuts) {
			next = min(next, p.cuts[i])
		}
		if list := p.statementsOf(run, at); len(list) > 0 {
			counts = true
			worth, whole := p.runWorth(run, at, next-at)
			for _, s := range list {
				s.Reserved = s.Reserved.Add(worth)
				s.Unvalued = s.Unvalued || !whole
				if !met[s] && !run.Meta.IsPart() {
					met[s] = true
					s.Running++
				}
			}
		}
		at = next
	}
	return counts
}

// statementsOf are the statements whose scope a run is in at an instant.
func (p *page) statementsOf(run *record.Record, at record.Time) []*Statement {
	values, lacks := p.keyValues(run, p.keys, at)
	for _, lack := range lacks {
		if lack {
			return nil
		}
	}
	return p.of[encodeTuple(values)]
}

// runWorth is what a run uses in a span in which nothing changes. What is a total is not
// known before. False says that something has no price.
func (p *page) runWorth(run *record.Record, at, span record.Time) (sum Amount, whole bool) {
	whole = true
	var w *usage.Weight
	var values []string
	var lacks []bool
	if p.weight != "" {
		w, _ = p.usage.Derivation.Weight(p.weight) // addStatement has found it
		values, lacks = p.keyValues(run, w.From, at)
	}
	for i := range run.Components {
		c := &run.Components[i]
		switch {
		case c.Kind != record.Rate:
		case w == nil && c.Name == p.component:
			sum = sum.Add(priceAmount(c.Amount, span, 1e9))
		case w != nil:
			price, has := w.Of(c.Name, c.Kind, values, lacks, at)
			if has {
				sum = sum.Add(priceAmount(c.Amount, span, price))
			}
			whole = whole && (has || !slices.Contains(w.Components, c.Name))
		}
	}
	return sum, whole && (w == nil || w.Priced == nil) // of energy it is not said before
}

// keyValues are the values of keys for a run at an instant.
func (p *page) keyValues(run *record.Record, keys []string, at record.Time) (values []string, lacks []bool) {
	for _, name := range keys {
		v, has := "", false
		if k, is := p.usage.Derivation.Key(name); is {
			from, missing := make([]string, len(k.From)), make([]bool, len(k.From))
			for i, f := range k.From {
				from[i], has = p.metaValue(run.Meta, f)
				missing[i] = !has
			}
			v, has = k.Of(from, missing, at)
		} else {
			v, has = p.metaValue(run.Meta, name)
		}
		values, lacks = append(values, v), append(lacks, !has)
	}
	return values, lacks
}

func (p *page) metaValue(m record.Meta, key string) (string, bool) {
	if p.usage.Value != nil {
		return p.usage.Value(m, key)
	}
	if list := m.Get(key); len(list) > 0 {
		return list[0], true
	}
	return "", false
}
