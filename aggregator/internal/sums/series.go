package sums

import "slices"

// series is what one tuple of dimensions used, by day.
type series struct {
	tuple uint32
	bytes int // about how much memory it takes
	lines []*seriesKeyLine
	slots []*partialSum
	// running is the time that its runs took, queued the time that they waited,
	// both in microseconds.
	running, queued line
	ledger          ledger
}

// seriesKeyLine is what a series used of a component, by the key of both.
type seriesKeyLine struct {
	*seriesKey
	line
}

// partialSum is where the runs of a series go that have one layout.
type partialSum struct {
	*series
	layout *layout
	lines  []*seriesKeyLine // of each part
	runs   counter
}

// seriesBytes and partialSumBytes are about what these take without their days.
const (
	seriesBytes     = 256
	partialSumBytes = 128
)

// addPartialSum adds the partial sum of a layout, and returns it.
func (s *series) addPartialSum(sh *layout, list []*seriesKey) *partialSum {
	sl := &partialSum{series: s, layout: sh}
	for _, st := range list {
		sl.lines = append(sl.lines, s.lineOf(st))
	}
	s.slots = append(s.slots, sl)
	return sl
}

func (s *series) lineOf(st *seriesKey) *seriesKeyLine {
	for _, l := range s.lines {
		if l.seriesKey == st {
			return l
		}
	}
	l := &seriesKeyLine{seriesKey: st}
	s.lines = append(s.lines, l)
	return l
}

// addToDays adds a closed run to its days, or with sign -1 takes it out. It returns the first
// and the last day that have changed.
func (s *partialSum) addToDays(g *grid, r *run, sign int64) (first, last day) {
	first, last = g.daysOf(r.start, r.stop)
	for d := first; d <= last; d++ {
		from, to := max(r.start, g.dayStart(d)), min(r.stop, g.dayStart(d+1))
		for k, l := range s.lines {
			used := r.usedBetween(k, r.stop, from, to)
			if sign < 0 {
				used = Sum{}.Sub(used)
			}
			s.bytes += l.addDay(d, used)
		}
		s.bytes += s.running.addDay(d, SumOf(sign*int64(to-from)))
	}
	stop := s.countRun(g, r, last, sign)
	if _, known := r.waitTime(); known {
		first = s.addWait(g, r, sign)
	}
	return first, stop
}

// addWait adds the time in the queue, and returns its first day.
func (s *series) addWait(g *grid, r *run, sign int64) (first day) {
	first, last := g.daysOf(r.submit, r.start)
	for d := first; d <= last; d++ {
		from, to := max(r.submit, g.dayStart(d)), min(r.start, g.dayStart(d+1))
		s.bytes += s.queued.addDay(d, SumOf(sign*int64(to-from)))
	}
	return first
}

// countRun counts the run, which touches no day behind last, and returns the day on which
// it stopped.
func (s *partialSum) countRun(g *grid, r *run, last day, sign int64) (stop day) {
	step := int32(sign)
	n, i := chunkOf(g.dayOf(r.start))
	c, whole := s.counterAt(n)
	c.started[i] += step
	whole.begun += sign
	whole.net += sign
	all, net := s.ledgerAt(n)
	all.started[i] += step
	*net += sign
	if wait, known := r.waitTime(); known {
		all.waiters[i] += step
		all.waited[i] += sign * wait
	}
	n, i = chunkOf(last)
	c, whole = s.counterAt(n)
	c.left[i] += step
	whole.net -= sign
	all, net = s.ledgerAt(n)
	all.left[i] += step
	*net -= sign
	stop = g.dayOf(r.stop)
	n, i = chunkOf(stop)
	all, _ = s.ledgerAt(n)
	all.stopped[i] += step
	return stop
}

// slotOf returns the partial sum of a layout, for what is added up apart from an index.
func (s *series) slotOf(sh *layout) *partialSum {
	for _, sl := range s.slots {
		if sl.layout == sh {
			return sl
		}
	}
	return s.addPartialSum(sh, nil)
}

// hasChunk reports whether memory has something of a chunk of days.
func (s *series) hasChunk(n int32) bool {
	return s.running.findChunk(n) != nil || s.queued.findChunk(n) != nil || s.ledger.findChunk(n) != nil ||
		slices.ContainsFunc(s.lines, func(l *seriesKeyLine) bool { return l.findChunk(n) != nil }) ||
		slices.ContainsFunc(s.slots, func(sl *partialSum) bool { return sl.runs.findChunk(n) != nil })
}

// addChunk adds what another series has of a chunk of days, but not what it comes to as a
// whole.
func (s *series) addChunk(o *series, n int32) {
	s.running.addChunk(&o.running, n)
	s.queued.addChunk(&o.queued, n)
	for _, l := range o.lines {
		s.lineOf(l.seriesKey).addChunk(&l.line, n)
	}
	if from := o.ledger.findChunk(n); from != nil {
		to, _ := s.ledgerAt(n)
		addCells(to.started[:], from.started[:])
		addCells(to.stopped[:], from.stopped[:])
		addCells(to.left[:], from.left[:])
		addCells(to.waiters[:], from.waiters[:])
		addCells(to.waited[:], from.waited[:])
	}
	for _, sl := range o.slots {
		if from := sl.runs.findChunk(n); from != nil {
			to, _ := s.slotOf(sl.layout).counterAt(n)
			addCells(to.started[:], from.started[:])
			addCells(to.left[:], from.left[:])
		}
	}
}

func addCells[T int32 | int64](to, from []T) {
	for i := range to {
		to[i] += from[i]
	}
}

// dropDays forgets the days of a chunk, which take no memory then. What has a place for the
// chunk keeps it, and what the chunk comes to as a whole with it; places are counted as memory
// from the first time on.
func (s *series) dropDays(n int32, first bool) {
	places := 0
	line := func(l *line) {
		if l.high[n] != nil {
			delete(l.high, n)
			s.bytes -= lineHighBytes
		}
		if l.dropChunk(n) {
			s.bytes -= lineChunkBytes
			places += linePlaceBytes
		}
	}
	line(&s.running)
	line(&s.queued)
	for _, l := range s.lines {
		line(&l.line)
	}
	if s.ledger.dropChunk(n) {
		s.bytes -= ledgerChunkBytes
		places += ledgerPlaceBytes
	}
	for _, sl := range s.slots {
		if sl.runs.dropChunk(n) {
			s.bytes -= counterChunkBytes
			places += counterPlaceBytes
		}
	}
	if first {
		s.bytes += places
	}
}

func (s *partialSum) counterAt(n int32) (*counterChunk, *counterWhole) {
	c, whole, made := s.runs.ensureChunk(n)
	if made {
		s.bytes += counterChunkBytes
	}
	return c, whole
}

func (s *series) ledgerAt(n int32) (*ledgerChunk, *int64) {
	c, net, made := s.ledger.ensureChunk(n)
	if made {
		s.bytes += ledgerChunkBytes
	}
	return c, net
}
