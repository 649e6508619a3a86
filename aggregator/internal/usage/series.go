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
	waited  [chunkDays]Sum
	// balance is started - stopped of all days.
	balance int64
}

// chunkBytes is the memory of a chunk beside its parts'.
const chunkBytes = chunkDays*(4*4+16) + 40

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
func (s *series) book(r *run, sign int64) {
	first, last := days(r.start, r.stop)
	for d := first; d <= last; d++ {
		c, i := s.at(d)
		from, to := max(r.start, d.start()), min(r.stop, (d+1).start())
		for k := range s.shape.parts {
			u := &c.used[k*chunkDays+i]
			if used := r.used(k, r.stop, from, to); sign > 0 {
				*u = u.Add(used)
			} else {
				*u = u.Sub(used)
			}
		}
	}
	s.count(r, sign)
}

func (s *series) count(r *run, sign int64) {
	n := uint32(sign) // adding it modulo 2^32 is adding or subtracting 1
	c, i := s.at(dayOf(r.start))
	c.started[i] += n
	c.balance += sign
	if wait, known := r.wait(); known {
		c.waiters[i] += n
		c.waited[i] = c.waited[i].Add(SumOf(sign * wait))
	}
	d := dayOf(r.stop)
	c, i = s.at(d)
	c.stopped[i] += n
	c.balance -= sign
	if d.start() == r.stop && r.start < r.stop {
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

// series adds the days of a series to the buckets of a group.
func (t *tally) series(s *series, group uint32, who string, buckets []span) {
	var a *account
	first := buckets[0].from
	before := s.running(first) // and then what started less what stopped before each bucket
	if c := s.peek(int32(first >> 5)); c != nil {
		before += int64(c.sharp[first&(chunkDays-1)])
	}
	for b := range buckets {
		span := &buckets[b]
		sharp := int64(0)
		if c := s.peek(int32(span.from >> 5)); c != nil {
			sharp = int64(c.sharp[span.from&(chunkDays-1)])
		}
		var sum counts
		for d := span.from; d < span.to; {
			c, at := s.peek(int32(d>>5)), int(d&(chunkDays-1))
			n := min(chunkDays-at, int(span.to-d))
			d += day(n)
			if c == nil {
				continue
			}
			if a == nil {
				a = t.account(group, s.shape)
			}
			c.addTo(a, b, t.buckets, at, at+n)
			c.count(&sum, at, at+n)
		}
		going := uint64(0)
		if span.first {
			going = uint64(before - sharp)
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

// addTo adds the days from at to end to a bucket.
func (c *chunk) addTo(a *account, bucket, buckets, at, end int) {
	for k := range a.shape.parts {
		u := &a.used[k*buckets+bucket]
		for _, used := range c.used[k*chunkDays+at : k*chunkDays+end] {
			*u = u.Add(used)
		}
	}
}

func (c *chunk) count(sum *counts, at, end int) {
	for i := at; i < end; i++ {
		sum.started += uint64(c.started[i])
		sum.stopped += uint64(c.stopped[i])
		sum.waiters += uint64(c.waiters[i])
		sum.waited = sum.waited.Add(c.waited[i])
	}
}

func (c *counts) add(o *counts) {
	c.records += o.records
	c.started += o.started
	c.stopped += o.stopped
	c.waiters += o.waiters
	c.waited = c.waited.Add(o.waited)
}
