package usage

import "slices"

// chunkDays is the number of days in a chunk.
const chunkDays = 32

// chunks is what there is of a time, by number of a chunk of days; nil where there is
// nothing.
type chunks[T any] struct {
	base int32 // number of the first
	list []*T
}

// at returns the chunk of that number, made when it is missing.
func (c *chunks[T]) at(n int32) (chunk *T, made bool) {
	switch {
	case len(c.list) == 0:
		c.base, c.list = n, []*T{nil}
	case n < c.base:
		c.list = slices.Concat(make([]*T, c.base-n), c.list)
		c.base = n
	case int(n-c.base) >= len(c.list):
		c.list = append(c.list, make([]*T, int(n-c.base)+1-len(c.list))...)
	}
	if chunk = c.list[n-c.base]; chunk == nil {
		chunk, made = new(T), true
		c.list[n-c.base] = chunk
	}
	return chunk, made
}

// peek is at for readers: nil where nothing is.
func (c *chunks[T]) peek(n int32) *T {
	if i := n - c.base; i >= 0 && int(i) < len(c.list) {
		return c.list[i]
	}
	return nil
}

// end is the number behind the last chunk.
func (c *chunks[T]) end() int32 { return c.base + int32(len(c.list)) }

func chunkOf(d day) (n int32, at int) { return int32(d >> 5), int(d & (chunkDays - 1)) }

// line is a sum for each day.
type line struct{ chunks[lineChunk] }

// lineChunk has the lower halves of the days' sums, and the upper ones as soon as one
// of them is not 0, which is rare.
type lineChunk struct {
	lo  [chunkDays]uint64
	hi  *[chunkDays]int64
	all Sum // of all days
}

const (
	lineChunkBytes = chunkDays*8 + 8 + 16 + 8 // with the pointer to it
	lineHighBytes  = chunkDays * 8
)

// add adds to the sum of a day, and returns by how much the memory grew.
func (l *line) add(d day, s Sum) (bytes int) {
	if s.IsZero() {
		return 0
	}
	n, i := chunkOf(d)
	c, made := l.at(n)
	if made {
		bytes = lineChunkBytes
	}
	v := c.sum(i).Add(s)
	if c.hi == nil && v.hi != 0 {
		c.hi = new([chunkDays]int64)
		bytes += lineHighBytes
	}
	if c.lo[i] = v.lo; c.hi != nil {
		c.hi[i] = v.hi
	}
	c.all = c.all.Add(s)
	return bytes
}

// sum is that of a day of the chunk; of none it is 0.
func (c *lineChunk) sum(i int) Sum {
	switch {
	case c == nil:
		return Sum{}
	case c.hi == nil:
		return Sum{lo: c.lo[i]}
	}
	return Sum{hi: c.hi[i], lo: c.lo[i]}
}

// total is the sum of all days of the chunk.
func (c *lineChunk) total() Sum {
	if c == nil {
		return Sum{}
	}
	return c.all
}

// into adds the days of a window to a row of buckets.
func (l *line) into(row []Sum, w *window) {
	for n := max(w.firstChunk(), l.base); n < min(w.endChunk(), l.end()); n++ {
		c := l.list[n-l.base]
		if c == nil {
			continue
		}
		at, buckets := w.part(n)
		switch {
		case len(buckets) == chunkDays && buckets[0] == buckets[chunkDays-1]:
			u := &row[buckets[0]]
			*u = u.Add(c.all)
		case c.hi != nil:
			for i, b := range buckets {
				row[b] = row[b].Add(c.sum(at + i))
			}
		default:
			addLow(row, buckets, c.lo[at:])
		}
	}
}

// addLow adds days to their buckets.
func addLow(row []Sum, buckets []int32, days []uint64) {
	days = days[:len(buckets)]
	if first, n := int(buckets[0]), len(buckets); int(buckets[n-1])-first == n-1 { // a day is a bucket
		row = row[first:][:n]
		for i := range row {
			row[i] = row[i].Add(Sum{lo: days[i]})
		}
		return
	}
	for i, b := range buckets {
		row[b] = row[b].Add(Sum{lo: days[i]})
	}
}

// counter counts runs by day.
type counter struct{ chunks[counterChunk] }

// counterChunk says how many runs of a tuple with a shape came and went.
type counterChunk struct {
	started [chunkDays]uint32
	// left counts the runs that touch the day and none behind it.
	left [chunkDays]uint32
	// begun is how many started on all days, net how many of these did not leave.
	begun, net int64
}

const counterChunkBytes = chunkDays*8 + 16 + 8

// touching is how many runs touch the days from first, included, to end; only those
// that start in them when whole is false.
func (c *counter) touching(first, end day, whole bool) int64 {
	n, at := chunkOf(first)
	sum := int64(0)
	if whole {
		for k := c.base; k < min(n, c.end()); k++ {
			if chunk := c.list[k-c.base]; chunk != nil {
				sum += chunk.net
			}
		}
		if chunk := c.peek(n); chunk != nil {
			for i := range at {
				sum += int64(chunk.started[i]) - int64(chunk.left[i])
			}
		}
	}
	last, to := chunkOf(end)
	for k := max(n, c.base); k < min(last+1, c.end()); k++ {
		chunk := c.list[k-c.base]
		switch {
		case chunk == nil:
		case k > n && k < last:
			sum += chunk.begun
		default:
			sum += chunk.startedFrom(k == n, at, k == last, to)
		}
	}
	return sum
}

// startedFrom is how many started in a part of the chunk.
func (c *counterChunk) startedFrom(first bool, at int, last bool, to int) (sum int64) {
	if !first {
		at = 0
	}
	if !last {
		to = chunkDays
	}
	for _, n := range c.started[at:max(at, to)] {
		sum += int64(n)
	}
	return sum
}

// ledger counts all runs of a tuple by day, and their waits.
type ledger struct{ chunks[ledgerChunk] }

type ledgerChunk struct {
	started, stopped [chunkDays]uint32
	left             [chunkDays]uint32 // as in counterChunk
	waiters          [chunkDays]uint32
	waited           [chunkDays]uint64
	net              int64 // started - left of all days
}

const ledgerChunkBytes = chunkDays*(4*4+8) + 8 + 8

// running is how many runs started before the day and touch it.
func (l *ledger) running(d day) int64 {
	n, at := chunkOf(d)
	sum := int64(0)
	for k := l.base; k < min(n, l.end()); k++ {
		if c := l.list[k-l.base]; c != nil {
			sum += c.net
		}
	}
	if c := l.peek(n); c != nil {
		for i := range at {
			sum += int64(c.started[i]) - int64(c.left[i])
		}
	}
	return sum
}
