package usage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// maxFound is how many differences are told one by one.
const maxFound = 20

// Check compares the index with a new index of the records, and returns
// what differs, in words. Questions wait for the comparison, not for the making.
func (x *Index) Check(ctx context.Context) ([]string, error) {
	fresh, err := NewIndex(x.Options, x.dims)
	if err == nil {
		err = fresh.Follow(ctx)
	}
	if err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	v, err := x.Views.View()
	if err != nil {
		return nil, err
	}
	err = errors.Join(x.reach(ctx, v), fresh.reach(ctx, v))
	return compare(&x.sums, &fresh.sums, x.zone()), errors.Join(err, v.Close())
}

func (x *Index) zone() string {
	if x.Zone == nil {
		return "UTC"
	}
	return x.Zone.String()
}

// differences are what was found, in words.
type differences struct {
	zone string
	n    int
	list []string
}

func (d *differences) add(what string, is, should any) {
	if d.n++; d.n <= maxFound {
		d.list = append(d.list, fmt.Sprintf("usage in %s: %s is %v, and the records say %v", d.zone, what, is, should))
	}
}

// compare says how an index differs from what it should be.
func compare(is, should *sums, zone string) []string {
	d := &differences{zone: zone}
	have, want := is.byName(), should.byName()
	for _, name := range union(have, want) {
		d.series(is.grid, name, have[name], want[name])
	}
	alone, right := is.alone(), should.alone()
	for _, name := range union(alone, right) {
		if alone[name] != right[name] {
			d.add(name, alone[name], right[name])
		}
	}
	if d.n > maxFound {
		d.list = append(d.list, fmt.Sprintf("usage in %s: and %d other differences", zone, d.n-maxFound))
	}
	return d.list
}

// union is the names of both, in their order.
func union[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// byName has the series of an index by whom they are about.
func (s *sums) byName() map[string]*series {
	out := map[string]*series{}
	for _, se := range s.series {
		if se != nil {
			out[s.who(&s.tuples[se.tuple])] = se
		}
	}
	return out
}

// name says what a run is about.
func (s *sums) name(t *tuple, sh *layout) string { return s.who(t) + sh.String() }

func (s *layout) String() string {
	var b strings.Builder
	for i := range s.parts {
		fmt.Fprintf(&b, "%s ", s.parts[i].String())
	}
	return b.String()
}

func (p *part) String() string { return fmt.Sprintf("%s (%s)%v", p.name, p.kind, p.scores) }

func (st *seriesKey) String() string {
	text := st.part.String()
	if st.again {
		text += " once more"
	}
	return fmt.Sprintf("%s beside %v", text, st.mates)
}

// who says whom a series is about.
func (s *sums) who(t *tuple) string {
	var b strings.Builder
	for i, key := range s.names {
		if !t.lacks[i] {
			fmt.Fprintf(&b, "%s=%q ", key, t.values[i])
		}
		if t.several[i] {
			fmt.Fprintf(&b, "and more ")
		}
	}
	return b.String()
}

// series compares two series, of which one may be missing.
func (d *differences) series(g *grid, name string, is, should *series) {
	if is == nil {
		is = &series{}
	}
	if should == nil {
		should = &series{}
	}
	have, want := is.linesByName(), should.linesByName()
	for _, line := range union(have, want) {
		d.line(g, name, line, have[line], want[line])
	}
	d.ledger(g, name, &is.ledger, &should.ledger)
	slots, right := is.slotsByName(), should.slotsByName()
	for _, layout := range union(slots, right) {
		d.counter(g, name+layout, slots[layout], right[layout])
	}
}

func (s *series) linesByName() map[string]*line {
	out := map[string]*line{"time of runs": &s.running, "time of waits": &s.queued}
	for _, l := range s.lines {
		out[l.seriesKey.String()] = &l.line
	}
	return out
}

func (s *series) slotsByName() map[string]*counter {
	out := map[string]*counter{}
	for _, sl := range s.slots {
		out[sl.layout.String()] = &sl.runs
	}
	return out
}

// on names a day of a series.
func on(g *grid, name string, n int32, i int) string {
	return fmt.Sprintf("%son the day from %s, ", name, g.starts[int(n)<<5+i])
}

// eachChunk calls do with the chunks of both that have the same number.
func eachChunk[Days any, Whole comparable](a, b *chunks[Days, Whole], do func(n int32, a, b *Days), whole func(n int32, a, b Whole)) {
	for n := min(a.base, b.base); n < max(a.end(), b.end()); n++ {
		x, y := a.peek(n), b.peek(n)
		if x == nil && y == nil {
			continue
		}
		do(n, x, y)
		if v, w := a.wholeOf(n), b.wholeOf(n); v != w {
			whole(n, v, w)
		}
	}
}

func (c *chunks[Days, Whole]) wholeOf(n int32) (none Whole) {
	if c.peek(n) == nil {
		return none
	}
	return c.whole[n-c.base]
}

// whole returns what notes a difference of a whole chunk.
func whole[Whole any](d *differences, g *grid, name, what string) func(n int32, a, b Whole) {
	return func(n int32, a, b Whole) { d.add(on(g, name, n, 0)+what+" of a chunk of days", a, b) }
}

func (d *differences) line(g *grid, name, what string, is, should *line) {
	if is == nil {
		is = &line{}
	}
	if should == nil {
		should = &line{}
	}
	eachChunk(&is.chunks, &should.chunks, func(n int32, x, y *lineChunk) {
		for i := range chunkDays {
			if a, b := x.sum(i), y.sum(i); a != b {
				d.add(on(g, name, n, i)+what, a, b)
			}
		}
	}, whole[Sum](d, g, name, what))
}

func (d *differences) ledger(g *grid, name string, is, should *ledger) {
	eachChunk(&is.chunks, &should.chunks, func(n int32, x, y *ledgerChunk) {
		for i := range chunkDays {
			if a, b := x.on(i), y.on(i); a != b {
				d.add(on(g, name, n, i)+"the number of runs", a, b)
			}
		}
	}, whole[int64](d, g, name, "the number of runs"))
}

// on are the numbers of runs of a day.
func (c *ledgerChunk) on(i int) [5]uint64 {
	if c == nil {
		return [5]uint64{}
	}
	return [5]uint64{uint64(c.started[i]), uint64(c.stopped[i]), uint64(c.left[i]), uint64(c.waiters[i]), c.waited[i]}
}

func (d *differences) counter(g *grid, name string, is, should *counter) {
	if is == nil {
		is = &counter{}
	}
	if should == nil {
		should = &counter{}
	}
	eachChunk(&is.chunks, &should.chunks, func(n int32, x, y *counterChunk) {
		for i := range chunkDays {
			if a, b := x.on(i), y.on(i); a != b {
				d.add(on(g, name, n, i)+"the number of runs", a, b)
			}
		}
	}, whole[counterWhole](d, g, name, "the number of runs"))
}

// on are the numbers of runs of a day.
func (c *counterChunk) on(i int) [2]uint32 {
	if c == nil {
		return [2]uint32{}
	}
	return [2]uint32{c.started[i], c.left[i]}
}

// alone are the runs that are kept one by one.
func (s *sums) alone() map[string]string {
	out := map[string]string{}
	add := func(kind string, r *run) {
		stop := "now"
		if r.stop != record.None {
			stop = r.stop.String()
		}
		name := fmt.Sprintf("the %s run %q, change %d", kind, r.id, r.seq)
		out[name] = fmt.Sprintf("%s%d from %s to %s", s.name(&s.tuples[r.tuple], r.layout), r.amounts, r.start, stop)
	}
	for _, r := range s.open {
		add("open", r)
	}
	for _, r := range s.long {
		add("long", r)
	}
	return out
}

// Check compares all indexes with the records.
func (k *Keeper) Check(ctx context.Context) (found []string, err error) {
	for _, x := range k.indexes() {
		list, err := x.Check(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}
