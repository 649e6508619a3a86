package sums

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

// ensureChunk returns the chunk of that number, which it makes when it is missing.
func (c *chunks[Days, Whole]) ensureChunk(n int32) (days *Days, whole *Whole, made bool) {
	switch {
	case len(c.list) == 0:
		c.base = n
		c.growBy(1)
	case n < c.base:
		c.list = slices.Concat(make([]*Days, c.base-n), c.list)
		c.whole = slices.Concat(make([]Whole, c.base-n), c.whole)
		c.base = n
	case int(n-c.base) >= len(c.list):
		c.growBy(int(n-c.base) + 1 - len(c.list))
	}
	i := n - c.base
	if days = c.list[i]; days == nil {
		days, made = new(Days), true
		c.list[i] = days
	}
	return days, &c.whole[i], made
}

func (c *chunks[Days, Whole]) growBy(more int) {
	c.list = append(c.list, make([]*Days, more)...)
	c.whole = append(c.whole, make([]Whole, more)...)
}

// findChunk returns the chunk of that number; nil where there is none.
func (c *chunks[Days, Whole]) findChunk(n int32) *Days {
	if i := n - c.base; i >= 0 && int(i) < len(c.list) {
		return c.list[i]
	}
	return nil
}

// dropChunk forgets the days of a chunk, but not what they come to as a whole, and reports
// whether there were any.
func (c *chunks[Days, Whole]) dropChunk(n int32) bool {
	if c.findChunk(n) == nil {
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

// wholesBefore are the chunks that end before the one of that number.
func (c *chunks[Days, Whole]) wholesBefore(n int32) []Whole {
	return c.whole[:max(0, min(len(c.whole), int(n-c.base)))]
}

// endNumber is the number behind the last chunk.
func (c *chunks[Days, Whole]) endNumber() int32 { return c.base + int32(len(c.list)) }

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

// addDay adds to the sum of a day, and returns by how much the memory grew.
func (l *line) addDay(d day, s Sum) (bytes int) {
	if s.IsZero() {
		return 0
	}
	n, i := chunkOf(d)
	c, whole, made := l.ensureChunk(n)
	if made {
		bytes = lineChunkBytes
	}
	v := l.daySum(n, c, i).Add(s)
	if c[i] = v.lo; v.hi != 0 || l.high != nil {
		bytes += l.setHigh(n, i, v.hi)
	}
	*whole = whole.Add(s)
	return bytes
}

// addChunk adds the days of a chunk of another line.
func (l *line) addChunk(o *line, n int32) {
	if c := o.findChunk(n); c != nil {
		for i := range chunkDays {
			l.addDay(day(n<<5)+day(i), o.daySum(n, c, i))
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

// daySum is that of a day of chunk n, which is c; of none it is 0.
func (l *line) daySum(n int32, c *lineChunk, i int) Sum {
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

// addWindowTo adds the days of a window to a row of buckets.
func (l *line) addWindowTo(row []Sum, w *window) {
	for n := max(w.firstChunk(), l.base); n < min(w.endChunk(), l.endNumber()); n++ {
		at, buckets := w.chunkPart(n)
		c := l.list[n-l.base]
		switch {
		case w.inOne(buckets):
			u := &row[buckets[0]]
			*u = u.Add(l.whole[n-l.base])
		case c == nil:
		case l.high != nil && l.high[n] != nil:
			for i, b := range buckets {
				row[b] = row[b].Add(l.daySum(n, c, at+i))
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

// countTouching is how many runs touch the days from first, included, to end; only those
// that start in them when whole is false.
func (c *counter) countTouching(first, end day, whole bool) int64 {
	n, at := chunkOf(first)
	last, to := chunkOf(end)
	sum := int64(0)
	if whole {
		for _, w := range c.wholesBefore(n) {
			sum += w.net
		}
		sum += c.findChunk(n).netBefore(at)
	}
	if n == last {
		return sum + c.findChunk(n).countStarted(at, to)
	}
	sum += c.findChunk(last).countStarted(0, to)
	if at > 0 {
		sum += c.findChunk(n).countStarted(at, chunkDays)
		n++
	}
	for _, w := range c.wholesBefore(last)[len(c.wholesBefore(n)):] {
		sum += w.begun
	}
	return sum
}

// countStarted is how many started on some days of the chunk.
func (c *counterChunk) countStarted(at, to int) (sum int64) {
	if c == nil {
		return 0
	}
	for _, n := range c.started[at:max(at, to)] {
		sum += int64(n)
	}
	return sum
}

// netBefore is how many started less how many left on the days before one of the chunk.
func (c *counterChunk) netBefore(at int) (sum int64) {
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

// netBefore is how many started less how many left on the days before one of the chunk.
func (c *ledgerChunk) netBefore(at int) (sum int64) {
	if c == nil {
		return 0
	}
	for i := range at {
		sum += int64(c.started[i]) - int64(c.left[i])
	}
	return sum
}
