package usage

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// mostNamed bounds the lists of a [sums.MeterBasis].
const mostNamed = 20

// wantedMeters are the meters that a weight asks for; nil: none does.
func (p *plan) wantedMeters() []*sums.Meter {
	for i := range p.weights {
		if w := p.weights[i].Weight; w.ofMeters() {
			return w.Energy.Meters
		}
	}
	return nil
}

// ofMeters reports whether the weight needs meters.
func (w *Weight) ofMeters() bool {
	return w.Energy != nil && (w.Part == EnergyMetered || w.Part == EnergyIdle)
}

// checkMeters refuses questions that are not about all jobs: a meter counts what all of them
// draw.
func (p *plan) checkMeters() error {
	q := p.q
	if p.wantedMeters() == nil {
		return nil
	}
	switch {
	case len(q.By) > 0:
		return fmt.Errorf("%w: a meter counts the energy of the whole site; ask for energy_metered and energy_idle without by", sums.ErrQuery)
	case len(q.Having) > 0 || isFiltered(&q.Where):
		return fmt.Errorf("%w: a meter counts the energy of the whole site; ask for energy_metered and energy_idle without filters", sums.ErrQuery)
	case q.Credit == sums.AtStop:
		return fmt.Errorf("%w: a meter counts energy when it is drawn; ask for energy_metered and energy_idle without credit=stop", sums.ErrQuery)
	}
	return nil
}

// isFiltered reports whether a query leaves records out.
func isFiltered(q *store.Query) bool {
	return q.TestsRows() || q.Running != nil || len(q.Meta) > 0 || q.Allowed != nil
}

// passedPart is the part of a bucket that has passed.
func (f *folding) passedPart(bucket int) (from, to record.Time) {
	from = f.q.Edges[bucket]
	return from, max(from, min(f.q.Edges[bucket+1], f.q.Now))
}

// meteredEnergy is what the meters counted in each bucket. Unknown is not 0 where one has no
// reading for a part of the bucket that has passed.
func (f *folding) meteredEnergy() (sum, unknown []sums.Sum) {
	sum, unknown = make([]sums.Sum, f.cells.Cells()), make([]sums.Sum, f.cells.Cells())
	for b := range sum {
		from, to := f.passedPart(b)
		for _, m := range f.wantedMeters() {
			if from == to || !m.Covers(from, to) {
				sum[b], unknown[b] = sums.Sum{}, sums.SumOf(1)
				break
			}
			sum[b] = sum[b].Add(m.Until(to).Sub(m.Until(from)))
		}
	}
	return sum, unknown
}

// applyMeters turns the energy of the jobs into that of the meters, or the rest, which is the idle
// part: jobs and rest are the meter. It is negative where the jobs exceed the meter.
func (f *folding) applyMeters(v *sums.Worth, part EnergyPart) {
	sum, unknown := f.meteredEnergy()
	v.Strict = true
	if part == EnergyMetered {
		v.Sum, v.Beside = sum, unknown
		return
	}
	for b := range sum {
		jobless := v.Sum[b].IsZero() && !v.Beside[b].IsZero()
		v.Beside[b] = unknown[b]
		if from, to := f.passedPart(b); !unknown[b].IsZero() || jobless || !f.q.Known.Covers(from, to) {
			v.Sum[b], v.Beside[b] = sums.Sum{}, sums.SumOf(1)
			continue
		}
		v.Sum[b] = sum[b].Sub(v.Sum[b])
	}
}

// meterBasis is what the meters leave unknown or contradict; nil where none is asked for.
func (f *folding) meterBasis(e *sums.EnergySums) *sums.MeterBasis {
	meters := f.wantedMeters()
	if meters == nil {
		return nil
	}
	b := &sums.MeterBasis{}
	from, to := f.q.Edges[0], f.q.Edges[len(f.q.Edges)-1]
	for _, m := range meters {
		m.Gaps(from, max(from, min(to, f.q.Now)), func(from, to record.Time) {
			if len(b.Gaps) < mostNamed {
				b.Gaps = append(b.Gaps, sums.MeterGap{Meter: m.Name, From: from, To: to})
			} else {
				b.More++
			}
		})
	}
	idle := sums.Worth{Sum: make([]sums.Sum, f.cells.Cells()), Beside: make([]sums.Sum, f.cells.Cells())}
	sums.AddSums(idle.Sum, e.Measured)
	sums.AddSums(idle.Sum, e.Modelled)
	f.applyMeters(&idle, EnergyIdle)
	for i, s := range idle.Sum {
		if !s.Less(sums.Sum{}) {
			continue
		}
		if len(b.Exceeded) == mostNamed {
			b.More++
			continue
		}
		from, to := f.passedPart(i)
		b.Exceeded = append(b.Exceeded, sums.MeterExcess{From: from, To: to, By: sums.Sum{}.Sub(s)})
	}
	return b
}
