package usage

import "slices"

// chunkDays is the number of days in a chunk.
const chunkDays = 32

// series is what one tuple of dimensions used with one shape, by day.
type series struct {
	tuple  uint32
	shape  *shape
	base   int32 // number of the first chunk
	bytes  int   // of the chunks
	chunks []*chunk
}

// chunk is about a month of a series. The figures of part k on day i are at
// k × chunkDays + i.
type chunk struct {
	used []Sum

	started, stopped [chunkDays]uint32
	// sharp counts the runs among stopped that stopped at the first instant of the
	// day, after they had started before it: they do not touch the day.
	sharp   [chunkDays]uint32
	waiters [chunkDays]uint32
	waited  [chunkDays]uint64
	// balance is started - stopped of all days.
	balance int64
}

// chunkBytes is the memory of a chunk beside its parts'.
const chunkBytes = chunkDays*(4*4+8) + 40

// at returns the chunk that has the day, made when it is missing, and where the day
// is in it.
func (s *series) at(d day) (*chunk, int) {
	n := int32(d >> 5)
	switch {
	case len(s.chunks) == 0:
		s.base, s.chunks = n, []*chunk{nil}
	case n < s.base:
		s.chunks = slices.Concat(make([]*chunk, s.base-n), s.chunks)
		s.base = n
	case int(n-s.base) >= len(s.chunks):
		s.chunks = append(s.chunks, make([]*chunk, int(n-s.base)+1-len(s.chunks))...)
	}
	c := s.chunks[n-s.base]
	if c == nil {
		c = &chunk{used: make([]Sum, chunkDays*len(s.shape.parts))}
		s.bytes += chunkBytes + 16*len(c.used)
		s.chunks[n-s.base] = c
	}
	return c, int(d & (chunkDays - 1))
}

// peek is at for readers: nil where nothing is.
func (s *series) peek(n int32) *chunk {
	if i := n - s.base; i >= 0 && int(i) < len(s.chunks) {
		return s.chunks[i]
	}
	return nil
}

// book adds a closed run to its days, or with sign -1 takes it out.
func (s *series) book(g *grid, r *run, sign int64) {
	first, last := g.days(r.start, r.stop)
	for d := first; d <= last; d++ {
		c, i := s.at(d)
		from, to := max(r.start, g.start(d)), min(r.stop, g.start(d+1))
		for k := range s.shape.parts {
			u := &c.used[k*chunkDays+i]
			if used := r.used(k, r.stop, from, to); sign > 0 {
				*u = u.Add(used)
			} else {
				*u = u.Sub(used)
			}
		}
	}
	s.count(g, r, sign)
}

func (s *series) count(g *grid, r *run, sign int64) {
	n := uint32(sign) // adding it modulo 2^32 is adding or subtracting 1
	c, i := s.at(g.day(r.start))
	c.started[i] += n
	c.balance += sign
	if wait, known := r.wait(); known {
		c.waiters[i] += n
		c.waited[i] += uint64(sign * wait)
	}
	d := g.day(r.stop)
	c, i = s.at(d)
	c.stopped[i] += n
	c.balance -= sign
	if g.start(d) == r.stop && r.start < r.stop {
		c.sharp[i] += n
	}
}

// running is how many runs started before the day's first instant and go on after
// it.
func (s *series) running(d day) int64 {
	n, chunk := int64(0), int32(d>>5)
	for i := s.base; i < chunk && int(i-s.base) < len(s.chunks); i++ {
		if c := s.chunks[i-s.base]; c != nil {
			n += c.balance
		}
	}
	c := s.peek(chunk)
	if c == nil {
		return n
	}
	at := int(d & (chunkDays - 1))
	for i := range at {
		n += int64(c.started[i]) - int64(c.stopped[i])
	}
	return n - int64(c.sharp[at])
}

// window is the whole days of a question, and where they go.
type window struct {
	first, end day
	bucketOf   []int32 // of each day from first on
	spans      []span
}

// span is a bucket of whole days.
type span struct {
	from, to day
	// first is as in piece.
	first bool
}

// newWindow lays out the whole days of a question.
func newWindow(q *Question, g *grid) *window {
	w := &window{spans: make([]span, len(q.Edges)-1)}
	w.first, w.end = g.whole(q)
	for i := range w.spans {
		from, to := g.day(q.Edges[i]), g.day(q.Edges[i+1])
		s := span{from: max(from, w.first), to: min(to, w.end), first: g.start(from) == q.Edges[i]}
		for range s.to - s.from {
			w.bucketOf = append(w.bucketOf, int32(i))
		}
		w.spans[i] = s
	}
	return w
}

// series adds the days of a series to a group.
func (t *tally) series(s *series, group uint32, who string, w *window) {
	to := t.target(s.shape)
	if w.spans[0].first {
		to.runs += uint64(s.running(w.first))
	}
	for n := max(int32(w.first>>5), s.base); n <= int32((w.end-1)>>5) && int(n-s.base) < len(s.chunks); n++ {
		c := s.chunks[n-s.base]
		if c == nil {
			continue
		}
		begin := day(n << 5)
		from, end := max(begin, w.first), min(begin+chunkDays, w.end)
		buckets := w.bucketOf[from-w.first : end-w.first]
		for _, n := range c.started[from-begin:][:len(buckets)] {
			to.runs += uint64(n)
		}
		for k, columns := range to.of {
			days := c.used[k*chunkDays+int(from-begin):][:len(buckets)]
			for _, column := range columns {
				addDays(t.row(column, group), buckets, days)
			}
		}
	}
	if t.q.Counts || t.q.People != "" {
		t.runs(s, group, who, w)
	}
}

// addDays adds each day to its bucket.
func addDays(row []Sum, buckets []int32, days []Sum) {
	for i, used := range days {
		u := &row[buckets[i]]
		*u = u.Add(used)
	}
}

// runs counts the runs of a series.
func (t *tally) runs(s *series, group uint32, who string, w *window) {
	before := s.running(w.first) + s.sharp(w.first) // what started less what stopped before the bucket
	for b := range w.spans {
		span := &w.spans[b]
		var sum counts
		for d := span.from; d < span.to; {
			c, at := s.peek(int32(d>>5)), int(d&(chunkDays-1))
			n := min(chunkDays-at, int(span.to-d))
			if d += day(n); c != nil {
				c.count(&sum, at, at+n)
			}
		}
		going := uint64(0)
		if span.first {
			going = uint64(before - s.sharp(span.from))
		}
		before += int64(sum.started) - int64(sum.stopped)
		sum.records = going + sum.started
		if sum.records > 0 && t.q.People != "" {
			t.met(group, b, who)
		}
		if t.q.Counts && sum != (counts{}) {
			t.cell(group, b).add(&sum)
		}
	}
}

// sharp is how many runs stopped at the first instant of the day.
func (s *series) sharp(d day) int64 {
	if c := s.peek(int32(d >> 5)); c != nil {
		return int64(c.sharp[d&(chunkDays-1)])
	}
	return 0
}

func (c *chunk) count(sum *counts, at, end int) {
	for i := at; i < end; i++ {
		sum.started += uint64(c.started[i])
		sum.stopped += uint64(c.stopped[i])
		sum.waiters += uint64(c.waiters[i])
		sum.waited = sum.waited.Add(Sum{lo: c.waited[i]})
	}
}

func (c *counts) add(o *counts) {
	c.records += o.records
	c.started += o.started
	c.stopped += o.stopped
	c.waiters += o.waiters
	c.waited = c.waited.Add(o.waited)
}
