package sums

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/record"
)

// maxFound is how many differences are told one by one.
const maxFound = 20

// Check compares the index with a new index of the records, and returns
// what differs, in words. Questions wait for the comparison, not for the making.
func (x *Index) Check(ctx context.Context) (differs []string, err error) {
	o := x.Options
	if x.Dir != "" {
		if o.Dir, err = tempFolder(x.Dir); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	fresh, err := NewIndex(o, x.dims)
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
	d := &differences{zone: x.zoneName()}
	if err = errors.Join(x.advanceTo(ctx, v), fresh.advanceTo(ctx, v)); err == nil {
		err = d.compareIndexes(ctx, x, fresh)
	}
	return d.listFound(), errors.Join(err, v.Close())
}

// tempFolder makes a folder for a time.
func tempFolder(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(dir, "check-")
}

// compareIndexes compares what both have in memory, and month by month what one of them has
// on disk alone.
func (d *differences) compareIndexes(ctx context.Context, is, should *Index) error {
	d.away = maps.Clone(is.away)
	maps.Copy(d.away, should.away)
	d.compareSums(&is.sums, &should.sums)
	for n := range d.away { // in any order
		have, err := is.sumsOfMonth(ctx, n)
		if err != nil {
			return err
		}
		want, err := should.sumsOfMonth(ctx, n)
		if err != nil {
			return err
		}
		apart := &differences{zone: d.zone}
		apart.compareSums(have, want)
		d.n, d.list = d.n+apart.n, append(d.list, apart.list...)
	}
	return nil
}

// sumsOfMonth returns sums of a chunk of days and nothing else. The caller has the lock.
func (x *Index) sumsOfMonth(ctx context.Context, n int32) (*sums, error) {
	var base *storedReader
	if m, away := x.away[n]; away {
		var err error
		if base, err = m.readFile(ctx, x.sumsFolder()); err != nil {
			return nil, asDamaged(err)
		}
	}
	m, content, err := x.encodeMonth(n, base)
	if err != nil {
		return nil, err
	}
	s := newSums(x.grid, x.dims, x.Classes)
	s.keys, s.layouts, s.seriesKeys, s.months[n] = x.keys, x.layouts, x.seriesKeys, m
	return &s, s.loadMonth(n, &storedReader{b: content[len(monthMagic):]})
}

func (x *Index) zoneName() string {
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
	away map[int32]month // chunks of which only the wholes are compared
}

func (d *differences) addDifference(what string, is, should any) {
	if d.n++; d.n <= maxFound {
		d.list = append(d.list, fmt.Sprintf("usage in %s: %s is %v, and the records say %v", d.zone, what, is, should))
	}
}

// compareSums compares sums with what they should be.
func (d *differences) compareSums(is, should *sums) {
	have, want := is.byName(), should.byName()
	for _, name := range unionNames(have, want) {
		d.compareSeries(is.grid, name, have[name], want[name])
	}
	alone, right := is.singleRunsByName(d.away), should.singleRunsByName(d.away)
	for _, name := range unionNames(alone, right) {
		if alone[name] != right[name] {
			d.addDifference(name, alone[name], right[name])
		}
	}
}

// listFound returns the differences, or the first of very many.
func (d *differences) listFound() []string {
	if d.n > maxFound {
		return append(d.list[:maxFound], fmt.Sprintf("usage in %s: and %d other differences", d.zone, d.n-maxFound))
	}
	return d.list
}

// unionNames are the names of both, in their order.
func unionNames[V any](a, b map[string]V) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// byName has the series of an index by whom they are about.
func (s *sums) byName() map[string]*series {
	out := map[string]*series{}
	for _, se := range s.series {
		if se != nil {
			out[s.tupleName(&s.tuples[se.tuple])] = se
		}
	}
	return out
}

// runName says what a run is about.
func (s *sums) runName(t *tuple, sh *layout) string { return s.tupleName(t) + sh.String() }

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

// tupleName says whom a series is about.
func (s *sums) tupleName(t *tuple) string {
	var b strings.Builder
	for i, key := range s.names {
		if !t.lacks[i] {
			fmt.Fprintf(&b, "%s=%q ", key, t.values[i])
		}
		if t.several[i] {
			fmt.Fprintf(&b, "and more ")
		}
	}
	if t.part {
		b.WriteString("parts of runs, ")
	}
	return b.String()
}

// compareSeries compares two series, of which one may be missing.
func (d *differences) compareSeries(g *grid, name string, is, should *series) {
	if is == nil {
		is = &series{}
	}
	if should == nil {
		should = &series{}
	}
	have, want := is.linesByName(), should.linesByName()
	for _, line := range unionNames(have, want) {
		d.compareLines(g, name, line, have[line], want[line])
	}
	d.compareLedgers(g, name, &is.ledger, &should.ledger)
	slots, right := is.slotsByName(), should.slotsByName()
	for _, layout := range unionNames(slots, right) {
		d.compareCounters(g, name+layout, slots[layout], right[layout])
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

// dayName names a day of a series.
func dayName(g *grid, name string, n int32, i int) string {
	return fmt.Sprintf("%son the day from %s, ", name, g.starts[int(n)<<5+i])
}

// eachChunk calls do with the chunks of both that have the same number.
func eachChunk[Days any, Whole comparable](away map[int32]month, a, b *chunks[Days, Whole], do func(n int32, a, b *Days), whole func(n int32, a, b Whole)) {
	for n := min(a.base, b.base); n < max(a.endNumber(), b.endNumber()); n++ {
		if _, away := away[n]; !away {
			do(n, a.findChunk(n), b.findChunk(n))
		}
		if v, w := a.wholeOf(n), b.wholeOf(n); v != w {
			whole(n, v, w)
		}
	}
}

// noteWholeChunk returns a function that notes the difference of a whole chunk.
func noteWholeChunk[Whole any](d *differences, g *grid, name, what string) func(n int32, a, b Whole) {
	return func(n int32, a, b Whole) { d.addDifference(dayName(g, name, n, 0)+what+" of a chunk of days", a, b) }
}

func (d *differences) compareLines(g *grid, name, what string, is, should *line) {
	if is == nil {
		is = &line{}
	}
	if should == nil {
		should = &line{}
	}
	eachChunk(d.away, &is.chunks, &should.chunks, func(n int32, x, y *lineChunk) {
		for i := range chunkDays {
			if a, b := is.daySum(n, x, i), should.daySum(n, y, i); a != b {
				d.addDifference(dayName(g, name, n, i)+what, a, b)
			}
		}
	}, noteWholeChunk[Sum](d, g, name, what))
}

func (d *differences) compareLedgers(g *grid, name string, is, should *ledger) {
	eachChunk(d.away, &is.chunks, &should.chunks, func(n int32, x, y *ledgerChunk) {
		for i := range chunkDays {
			if a, b := x.dayCounts(i), y.dayCounts(i); a != b {
				d.addDifference(dayName(g, name, n, i)+"the number of runs", a, b)
			}
		}
	}, noteWholeChunk[int64](d, g, name, "the number of runs"))
}

// dayCounts are the numbers of runs of a day.
func (c *ledgerChunk) dayCounts(i int) [5]int64 {
	if c == nil {
		return [5]int64{}
	}
	return [5]int64{int64(c.started[i]), int64(c.stopped[i]), int64(c.left[i]), int64(c.waiters[i]), c.waited[i]}
}

func (d *differences) compareCounters(g *grid, name string, is, should *counter) {
	if is == nil {
		is = &counter{}
	}
	if should == nil {
		should = &counter{}
	}
	eachChunk(d.away, &is.chunks, &should.chunks, func(n int32, x, y *counterChunk) {
		for i := range chunkDays {
			if a, b := x.dayCounts(i), y.dayCounts(i); a != b {
				d.addDifference(dayName(g, name, n, i)+"the number of runs", a, b)
			}
		}
	}, noteWholeChunk[counterWhole](d, g, name, "the number of runs"))
}

// dayCounts are the numbers of runs of a day.
func (c *counterChunk) dayCounts(i int) [2]int32 {
	if c == nil {
		return [2]int32{}
	}
	return [2]int32{c.started[i], c.left[i]}
}

// singleRunsByName are the runs that are kept one by one, but for those of some chunks of days.
func (s *sums) singleRunsByName(away map[int32]month) map[string]string {
	out := map[string]string{}
	add := func(kind string, r *run) {
		stop := "now"
		if r.stop != record.None {
			stop = r.stop.String()
		}
		name := fmt.Sprintf("the %s run %q, change %d", kind, r.id, r.seq)
		out[name] = fmt.Sprintf("%s%d from %s to %s", s.runName(&s.tuples[r.tuple], r.layout), r.amounts, r.start, stop)
	}
	for _, r := range s.open {
		add("open", r)
	}
	for _, r := range s.long {
		add("long", r)
	}
	for n, l := range s.lasting { // each by itself: the order does not matter
		if _, away := away[n]; away {
			continue
		}
		for i := range l.from {
			r := &run{}
			l.readRun(r, i, s.layouts)
			add(fmt.Sprintf("lasting, in chunk %d of days,", n), r)
		}
	}
	return out
}

// Check compares all indexes with the records.
func (k *Keeper) Check(ctx context.Context) (found []string, err error) {
	k.disk.Lock() // what it makes anew may be on disk
	defer k.disk.Unlock()
	for _, x := range k.currentIndexes() {
		list, err := x.Check(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, list...)
	}
	return found, nil
}
