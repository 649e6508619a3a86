package sums

import (
	"context"
	"maps"
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/bursar-accounting/bursar/proto/record"
)

// diskQuery is what a question needs of the months that are on disk alone. It adds to what
// memory has: sums, and numbers of runs, add up. The index may move meanwhile.
type diskQuery struct {
	*groupedSums // with lists that do not grow any more
	dir          string
	window       *window
	months       []diskMonth
}

// diskMonth is a month on disk.
type diskMonth struct {
	n int32
	month
	days    bool            // whether the sums of its days are wanted
	edges   []piece         // pieces of days of which the runs that last are wanted
	removed map[uint64]bool // runs that last, and are in the index no more
}

// diskQueryFor returns what a question needs of the disk; nil is nothing. The index does not
// move meanwhile.
func (x *Index) diskQueryFor(q *Query, k *groupedSums, edges []piece) *diskQuery {
	if len(x.away) == 0 {
		return nil
	}
	d := &diskQuery{dir: x.sumsFolder(), window: newWindow(q, x.grid)}
	d.groupedSums = &groupedSums{groups: k.groups, who: k.who, sums: &sums{
		keys: &keys{tuples: x.tuples}, layouts: &layouts{list: x.layouts.list}, seriesKeys: &seriesKeys{list: x.seriesKeys.list},
	}}
	first, last := chunkAt(x.grid, q.Edges[0]), chunkAt(x.grid, q.Edges[len(q.Edges)-1])
	for n := first; n <= last; n++ {
		file, away := x.away[n]
		if !away {
			continue
		}
		m := diskMonth{n: n, month: file}
		if n >= d.window.firstChunk() && n < d.window.endChunk() {
			_, buckets := d.window.chunkPart(n)
			m.days = q.Counts || q.People != "" || !d.window.inOne(buckets)
		}
		for _, p := range edges {
			if chunkAt(x.grid, p.from) == n {
				m.edges, m.removed = append(m.edges, p), maps.Clone(x.removed[n])
			}
		}
		if m.days || m.edges != nil {
			d.months = append(d.months, m)
		}
	}
	if d.months == nil {
		return nil
	}
	return d
}

// addMonths adds the months to an accumulator, on all processors. A file that is not there
// has been replaced, if the index moved.
func (d *diskQuery) addMonths(ctx context.Context, t *accumulator) error {
	if d == nil {
		return nil
	}
	var next atomic.Int64
	parts := make([]*accumulator, min(len(d.months), runtime.GOMAXPROCS(0), 16))
	errs := make([]error, len(parts))
	var wait sync.WaitGroup
	for i := range parts {
		parts[i] = t
		if i > 0 {
			parts[i] = emptyAccumulator(t.q)
			parts[i].groups, parts[i].memory, parts[i].known = t.groups, t.memory, math.MaxInt
		}
		wait.Go(func() {
			charged := int64(0)
			for k := next.Add(1) - 1; int(k) < len(d.months) && errs[i] == nil; k = next.Add(1) - 1 {
				m := &d.months[k]
				parts[i].grown += max(0, m.size-charged)
				charged = max(charged, m.size)
				if errs[i] = parts[i].chargeMemory(); errs[i] == nil {
					errs[i] = d.addMonth(ctx, parts[i], m)
				}
			}
		})
	}
	wait.Wait()
	for _, part := range parts[1:] {
		t.merge(part)
	}
	return firstError(errs...)
}

// addMonth adds a month.
func (d *diskQuery) addMonth(ctx context.Context, t *accumulator, m *diskMonth) error {
	r, err := m.readFile(ctx, d.dir)
	if err != nil {
		return err
	}
	for tuple, parts := r.nextSeries(len(d.tuples)); tuple != 0; tuple, parts = r.nextSeries(len(d.tuples)) {
		if group := d.groups[tuple-1]; m.days && group >= 0 {
			s := &storedReader{b: parts}
			for part := s.readUint(); part != partEnd && s.err == nil; part = s.readUint() {
				d.addPart(t, s, m.n, part, uint32(group), uint32(tuple-1))
			}
			if s.err != nil {
				return s.err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if m.edges != nil {
		if l := loadLasting(r, d.sums); l != nil {
			for _, p := range m.edges {
				d.addLasting(t, l, p, m.removed)
			}
		}
	}
	return r.err
}

// addPart adds a part of a series.
func (d *diskQuery) addPart(t *accumulator, r *storedReader, n int32, part uint64, group, tuple uint32) {
	at, buckets := d.window.chunkPart(n)
	switch number := int(min(part-partLine, 1<<40) / 2); {
	case part == partRunning && t.levelsOf(group):
		d.addLine(t, r, n, group, []*column{t.columnFor(columnName{of: running})})
	case part == partQueued && t.levelsOf(group):
		d.addLine(t, r, n, group, []*column{t.columnFor(columnName{of: queued})})
	case part == partLedger && (t.q.Counts || t.q.People != ""):
		var c ledgerChunk
		c.readFrom(r)
		c.addToBuckets(t.zeroCounts(), d.window, n, 0)
		t.addCounted(group, d.personOf(tuple), int(buckets[0]), int(buckets[len(buckets)-1])+1)
	case part >= partLine && part%2 == 0 && number < len(d.seriesKeys.list):
		d.addLine(t, r, n, group, t.columnsOfSeriesKey(d.seriesKeys.list[number]))
	case part >= partLine && part%2 == 1 && number < len(d.layouts.list) && len(buckets) < chunkDays:
		var c counterChunk
		c.readFrom(r)
		runs := c.countStarted(at, at+len(buckets))
		if n == d.window.firstChunk() && d.window.spans[0].first {
			runs += c.netBefore(at)
		}
		t.layoutRuns(d.layouts.list[number], uint64(runs))
	default:
		r.skipPart(part)
	}
}

// addLine adds the days of a line to columns, unless memory has what the chunk comes to.
func (d *diskQuery) addLine(t *accumulator, r *storedReader, n int32, group uint32, columns []*column) {
	at, buckets := d.window.chunkPart(n)
	mask, high := r.readMask(), r.readBelow(2)
	if len(columns) == 0 || d.window.inOne(buckets) {
		r.skipNumbers(bits.OnesCount32(mask) * (1 + high))
		return
	}
	for ; mask != 0; mask &= mask - 1 {
		sum := Sum{lo: r.readUint()}
		if high == 1 {
			sum.hi = r.readInt()
		}
		i := bits.TrailingZeros32(mask) - at
		if i < 0 || i >= len(buckets) {
			continue
		}
		for _, c := range columns {
			to := &t.rowOf(c, group)[buckets[i]]
			*to = to.Add(sum)
		}
	}
}

func chunkAt(g *grid, t record.Time) int32 {
	n, _ := chunkOf(g.dayOf(t))
	return n
}
