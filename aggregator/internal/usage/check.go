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

// Check compares the index with one that is made anew from the records, and returns
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

// byName has the series of an index by what they are about.
func (s *sums) byName() map[string]*series {
	out := map[string]*series{}
	for _, se := range s.series {
		out[s.name(&s.tuples[se.tuple], se.shape)] = se
	}
	return out
}

// name says what a series is about.
func (s *sums) name(t *tuple, sh *shape) string {
	var b strings.Builder
	for i, key := range s.names {
		if !t.lacks[i] {
			fmt.Fprintf(&b, "%s=%q ", key, t.values[i])
		}
		if t.several[i] {
			fmt.Fprintf(&b, "and more ")
		}
	}
	for _, p := range sh.parts {
		fmt.Fprintf(&b, "%s (%s)%v ", p.name, p.kind, p.scores)
	}
	return b.String()
}

// series compares two series, of which one may be missing.
func (d *differences) series(g *grid, name string, is, should *series) {
	some := is
	if is == nil {
		some = should
	}
	none := &series{shape: some.shape, base: some.base}
	if is == nil {
		is = none
	}
	if should == nil {
		should = none
	}
	empty := &chunk{used: make([]Sum, chunkDays*len(some.shape.parts))}
	first := min(is.base, should.base)
	for n := first; n < max(is.base+int32(len(is.chunks)), should.base+int32(len(should.chunks))); n++ {
		a, b := is.peek(n), should.peek(n)
		if a == nil {
			a = empty
		}
		if b == nil {
			b = empty
		}
		d.chunk(g, name, some.shape, day(n<<5), a, b)
	}
}

func (d *differences) chunk(g *grid, name string, sh *shape, first day, is, should *chunk) {
	for i := range chunkDays {
		on := func() string { return fmt.Sprintf("%son the day from %s, ", name, g.starts[int(first)+i]) }
		for k := range sh.parts {
			if a, b := is.used[k*chunkDays+i], should.used[k*chunkDays+i]; a != b {
				d.add(on()+sh.parts[k].name, a, b)
			}
		}
		if a, b := is.runsOn(i), should.runsOn(i); a != b {
			d.add(on()+"the number of runs", a, b)
		}
	}
}

// runsOn are the numbers of runs of a day.
func (c *chunk) runsOn(i int) [5]uint64 {
	return [5]uint64{uint64(c.started[i]), uint64(c.stopped[i]), uint64(c.sharp[i]), uint64(c.waiters[i]), c.waited[i]}
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
		out[name] = fmt.Sprintf("%s%d from %s to %s", s.name(&s.tuples[r.tuple], r.shape), r.amounts, r.start, stop)
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
