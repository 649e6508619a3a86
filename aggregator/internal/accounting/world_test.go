package accounting

import (
	"context"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"

	"github.com/bursar-accounting/bursar/proto/record"
)

// world answers questions about records the obvious way.
type world struct {
	records []record.Record
	counted record.Time // up to when runs that go on are known; 0: now
	asked   int
}

func (w *world) end(r *record.Record, now record.Time) record.Time {
	switch {
	case r.Stop.Present():
		return r.Stop
	case w.counted != 0:
		return min(now, w.counted)
	}
	return now
}

func (w *world) ask(_ context.Context, q sums.Query) (*sums.Answer, error) {
	w.asked++
	a := &sums.Answer{Edges: q.Edges, By: q.By}
	buckets := len(q.Edges) - 1
	for i := range w.records {
		r := &w.records[i]
		g := sums.Group{}
		for _, k := range q.By {
			v := r.Meta.Get(k)
			g.Values, g.Lacks = append(g.Values, append(v, "")[0]), append(g.Lacks, v == nil)
		}
		at := slices.IndexFunc(a.Groups, func(o sums.Group) bool {
			return slices.Equal(o.Values, g.Values) && slices.Equal(o.Lacks, g.Lacks)
		})
		if at < 0 {
			at = len(a.Groups)
			a.Groups = append(a.Groups, g)
		}
		for _, c := range r.Components {
			if q.Components != nil && !slices.Contains(q.Components, c.Name) {
				continue
			}
			k := slices.IndexFunc(a.Components, func(o sums.Component) bool { return o.Name == c.Name && o.Kind == c.Kind })
			if k < 0 {
				k = len(a.Components)
				a.Components = append(a.Components, sums.Component{Name: c.Name, Kind: c.Kind})
			}
			used := &a.Components[k].Used
			for len(*used) < len(a.Groups)*buckets {
				*used = append(*used, sums.Sum{})
			}
			for b := range buckets {
				cell := &(*used)[at*buckets+b]
				*cell = cell.Add(w.used(r, &c, max(q.Edges[b], r.Start), min(q.Edges[b+1], w.end(r, q.Now)), q.Now))
			}
		}
	}
	for k := range a.Components {
		for len(a.Components[k].Used) < len(a.Groups)*buckets {
			a.Components[k].Used = append(a.Components[k].Used, sums.Sum{})
		}
	}
	return a, nil
}

func (w *world) used(r *record.Record, c *record.Component, from, to, now record.Time) sums.Sum {
	if to <= from {
		return sums.Sum{}
	}
	if c.Kind == record.Rate {
		return sums.SumOf(c.Amount * int64(to-from))
	}
	part := func(t record.Time) int64 {
		return c.Amount * 1e6 / int64(w.end(r, now)-r.Start) * int64(t-r.Start)
	}
	return sums.SumOf(part(to) - part(from))
}

// books are those of a world with prices.
func (w *world) books(p *Prices, keys ...usage.Key) UsageReader {
	book := &usage.Derivation{Keys: keys}
	if weight, has := p.Weight(); has {
		book.Weights = append(book.Weights, weight)
	}
	return UsageReader{
		Derivation: book,
		Ask: func(ctx context.Context, q sums.Query) (*sums.Answer, error) {
			return book.Answer(ctx, w.ask, q)
		},
		Running: func(_ context.Context, yield func(*record.Record, record.Time) error) error {
			for i := range w.records {
				if r := &w.records[i]; !r.Stop.Present() {
					counted := w.counted
					if counted == 0 {
						counted = record.MaxTime
					}
					if err := yield(r, counted); err != nil {
						return err
					}
				}
			}
			return nil
		},
	}
}

// moment reads a time.
func moment(t testing.TB, s string) record.Time {
	t.Helper()
	if s == "" {
		return record.None
	}
	at, err := record.ParseTime(s)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// job makes a record; a stop of "" is none.
func job(t testing.TB, start, stop string, cores int64, meta ...string) record.Record {
	t.Helper()
	r := record.Record{Start: moment(t, start), Stop: moment(t, stop), Components: []record.Component{{Name: "Cores", Amount: cores}}}
	for i := 0; i < len(meta); i += 2 {
		r.Meta = append(r.Meta, record.MetaEntry{Key: meta[i], Values: []string{meta[i+1]}})
	}
	r.Meta = r.Meta.Sorted()
	return r
}

// rate makes a price for an hour in millionths.
func rate(component string, millionths int64, when ...string) PriceRule {
	r := PriceRule{Component: component, Billionths: millionths * 1000}
	for i := 0; i < len(when); i += 2 {
		r.When = append(r.When, PriceCondition{when[i], when[i+1]})
	}
	return r
}

// always is a list without an end.
func always(rules ...PriceRule) PriceList {
	return PriceList{Name: "standard", Currency: "EUR", From: record.None, To: record.None, Rules: rules}
}
