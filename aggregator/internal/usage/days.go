package usage

import "slices"

// chunkDays is the number of days in a chunk.
const chunkDays = 32

// chunks is what there is of a time, by number of a chunk of days; nil where there is
// nothing. What a chunk comes to as a whole stands apart from it: long windows read that
// alone, and it lies close together.
type chunks[Days, Whole any] struct {
	base  int32 // number of the first
	list  []*Days
	whole []Whole
}

// at returns the chunk of that number, made when it is missing.
func (c *chunks[Days, Whole]) at(n int32) (days *Days, whole *Whole, made bool) {
	switch {
	case len(c.list) == 0:
		c.base = n
		c.grow(1)
	case n < c.base:
		c.list = slices.Concat(make([]*Days, c.base-n), c.list)
		c.whole = slices.Concat(make([]Whole, c.base-n), c.whole)
		c.base = n
	case int(n-c.base) >= len(c.list):
		c.grow(int(n-c.base) + 1 - len(c.list))
	}
	i := n - c.base
	if days = c.list[i]; days == nil {
		days, made = new(Days), true
		c.list[i] = days
	}
	return days, &c.whole[i], made
}

func (c *chunks[Days, Whole]) grow(more int) {
	c.list = append(c.list, make([]*Days, more)...)
	c.whole = append(c.whole, make([]Whole, more)...)
}

// peek is at for readers: nil where nothing is.
func (c *chunks[Days, Whole]) peek(n int32) *Days {
	if i := n - c.base; i >= 0 && int(i) < len(c.list) {
		return c.list[i]
	}
	return nil
}

// drop forgets the days of a chunk, but not what they come to as a whole, and reports
// whether there were any.
func (c *chunks[Days, Whole]) drop(n int32) bool {
	if c.peek(n) == nil {
		return false
	}
	c.list[n-c.base] = nil
	return true
}

// wholeOf is what the chunk of that number comes to.
func (c *chunks[Days, Whole]) wholeOf(n int32) (none Whole) {
	if i := n - c.base; i >= 0 && int(i) < len(c.whole) {
		return c.whole[i]
	}
	return none
}

// before are the chunks that end before the one of that number.
func (c *chunks[Days, Whole]) before(n int32) []Whole {
	return c.whole[:max(0, min(len(c.whole), int(n-c.base)))]
}

// end is the number behind the last chunk.
func (c *chunks[Days, Whole]) end() int32 { return c.base + int32(len(c.list)) }

func chunkOf(d day) (n int32, at int) { return int32(d >> 5), int(d & (chunkDays - 1)) }

// line is a sum for each day: the lower halves, and the upper ones of chunks in which
// one of them is not 0, which are rare.
type line struct {
	chunks[lineChunk, Sum]
	high map[int32]*[chunkDays]int64
}

// lineChunk has no pointers, so that the garbage collector does not look into it.
type lineChunk [chunkDays]uint64

const (
	linePlaceBytes = 16 + 8 // the whole, and the pointer to the chunk
	lineChunkBytes = chunkDays*8 + linePlaceBytes
	lineHighBytes  = chunkDays*8 + 16
)

// add adds to the sum of a day, and returns by how much the memory grew.
func (l *line) add(d day, s Sum) (bytes int) {
	if s.IsZero() {
		return 0
	}
	n, i := chunkOf(d)
	c, whole, made := l.at(n)
	if made {
		bytes = lineChunkBytes
	}
	v := l.sum(n, c, i).Add(s)
	if c[i] = v.lo; v.hi != 0 || l.high != nil {
		bytes += l.setHigh(n, i, v.hi)
	}
	*whole = whole.Add(s)
	return bytes
}

// plus adds the days of a chunk of another line.
func (l *line) plus(o *line, n int32) {
	if c := o.peek(n); c != nil {
		for i := range chunkDays {
			l.add(day(n<<5)+day(i), o.sum(n, c, i))
		}
	}
}

// setHigh sets the upper half of a day, and returns by how much the memory grew.
func (l *line) setHigh(n int32, i int, hi int64) (bytes int) {
	high := l.high[n]
	if high == nil {
		if hi == 0 {
			return 0
		}
		if l.high == nil {
			l.high = map[int32]*[chunkDays]int64{}
		}
		high, bytes = new([chunkDays]int64), lineHighBytes
		l.high[n] = high
	}
	high[i] = hi
	return bytes
}

// sum is that of a day of chunk n, which is c; of none it is 0.
func (l *line) sum(n int32, c *lineChunk, i int) Sum {
	if c == nil {
		return Sum{}
	}
	s := Sum{lo: c[i]}
	if l.high != nil {
		if high := l.high[n]; high != nil {
			s.hi = high[i]
		}
	}
	return s
}

// into adds the days of a window to a row of buckets.
func (l *line) into(row []Sum, w *window) {
	for n := max(w.firstChunk(), l.base); n < min(w.endChunk(), l.end()); n++ {
		at, buckets := w.part(n)
		c := l.list[n-l.base]
		switch {
		case w.inOne(buckets):
			u := &row[buckets[0]]
			*u = u.Add(l.whole[n-l.base])
		case c == nil:
		case l.high != nil && l.high[n] != nil:
			for i, b := range buckets {
				row[b] = row[b].Add(l.sum(n, c, at+i))
			}
		default:
			addLow(row, buckets, c[at:])
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
type counter struct {
	chunks[counterChunk, counterWhole]
}

// counterChunk says how many runs of a tuple with a layout came and went. What is added to
// a file may be negative.
type counterChunk struct {
	started [chunkDays]int32
	// left counts the runs that touch the day and none behind it.
	left [chunkDays]int32
}

// counterWhole is how many started on all days of a chunk, and how many of these did
// not leave.
type counterWhole struct{ begun, net int64 }

const (
	counterPlaceBytes = 16 + 8
	counterChunkBytes = chunkDays*8 + counterPlaceBytes
)

// touching is how many runs touch the days from first, included, to end; only those
// that start in them when whole is false.
func (c *counter) touching(first, end day, whole bool) int64 {
	n, at := chunkOf(first)
	last, to := chunkOf(end)
	sum := int64(0)
	if whole {
		for _, w := range c.before(n) {
			sum += w.net
		}
		sum += c.peek(n).net(at)
	}
	if n == last {
		return sum + c.peek(n).begun(at, to)
	}
	sum += c.peek(last).begun(0, to)
	if at > 0 {
		sum += c.peek(n).begun(at, chunkDays)
		n++
	}
	for _, w := range c.before(last)[len(c.before(n)):] {
		sum += w.begun
	}
	return sum
}

// begun is how many started on some days of the chunk.
func (c *counterChunk) begun(at, to int) (sum int64) {
	if c == nil {
		return 0
	}
	for _, n := range c.started[at:max(at, to)] {
		sum += int64(n)
	}
	return sum
}

// net is how many started less how many left on the days before one of the chunk.
func (c *counterChunk) net(at int) (sum int64) {
	if c == nil {
		return 0
	}
	for i := range at {
		sum += int64(c.started[i]) - int64(c.left[i])
	}
	return sum
}

// ledger counts all runs of a tuple by day, and their waits. The whole of a chunk is
// how many started less how many left.
type ledger struct{ chunks[ledgerChunk, int64] }

type ledgerChunk struct {
	started, stopped [chunkDays]int32
	left             [chunkDays]int32 // as in counterChunk
	waiters          [chunkDays]int32
	waited           [chunkDays]int64
}

const (
	ledgerPlaceBytes = 8 + 8
	ledgerChunkBytes = chunkDays*(4*4+8) + ledgerPlaceBytes
)

// net is how many started less how many left on the days before one of the chunk.
func (c *ledgerChunk) net(at int) (sum int64) {
	if c == nil {
		return 0
	}
	for i := range at {
		sum += int64(c.started[i]) - int64(c.left[i])
	}
	return sum
}
