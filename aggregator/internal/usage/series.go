package usage

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

// partialSum returns the one of a layout, which is new.
func (s *series) partialSum(sh *layout, list []*seriesKey) *partialSum {
	sl := &partialSum{series: s, layout: sh}
	for _, st := range list {
		sl.lines = append(sl.lines, s.line(st))
	}
	s.slots = append(s.slots, sl)
	return sl
}

func (s *series) line(st *seriesKey) *seriesKeyLine {
	for _, l := range s.lines {
		if l.seriesKey == st {
			return l
		}
	}
	l := &seriesKeyLine{seriesKey: st}
	s.lines = append(s.lines, l)
	return l
}

// book adds a closed run to its days, or with sign -1 takes it out. It returns the first
// and the last day that have changed.
func (s *partialSum) book(g *grid, r *run, sign int64) (first, last day) {
	first, last = g.days(r.start, r.stop)
	for d := first; d <= last; d++ {
		from, to := max(r.start, g.start(d)), min(r.stop, g.start(d+1))
		for k, l := range s.lines {
			used := r.used(k, r.stop, from, to)
			if sign < 0 {
				used = Sum{}.Sub(used)
			}
			s.bytes += l.add(d, used)
		}
		s.bytes += s.running.add(d, SumOf(sign*int64(to-from)))
	}
	stop := s.count(g, r, last, sign)
	if _, known := r.wait(); known {
		first = s.wait(g, r, sign)
	}
	return first, stop
}

// wait adds the time in the queue, and returns its first day.
func (s *series) wait(g *grid, r *run, sign int64) (first day) {
	first, last := g.days(r.submit, r.start)
	for d := first; d <= last; d++ {
		from, to := max(r.submit, g.start(d)), min(r.start, g.start(d+1))
		s.bytes += s.queued.add(d, SumOf(sign*int64(to-from)))
	}
	return first
}

// count counts the run, which touches no day behind last, and returns the day on which
// it stopped.
func (s *partialSum) count(g *grid, r *run, last day, sign int64) (stop day) {
	step := int32(sign)
	n, i := chunkOf(g.day(r.start))
	c, whole := s.counterAt(n)
	c.started[i] += step
	whole.begun += sign
	whole.net += sign
	all, net := s.ledgerAt(n)
	all.started[i] += step
	*net += sign
	if wait, known := r.wait(); known {
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
	stop = g.day(r.stop)
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
	return s.partialSum(sh, nil)
}

// has reports whether memory has something of a chunk of days.
func (s *series) has(n int32) bool {
	return s.running.peek(n) != nil || s.queued.peek(n) != nil || s.ledger.peek(n) != nil ||
		slices.ContainsFunc(s.lines, func(l *seriesKeyLine) bool { return l.peek(n) != nil }) ||
		slices.ContainsFunc(s.slots, func(sl *partialSum) bool { return sl.runs.peek(n) != nil })
}

// plus adds what another series has of a chunk of days, but not what it comes to as a
// whole.
func (s *series) plus(o *series, n int32) {
	s.running.plus(&o.running, n)
	s.queued.plus(&o.queued, n)
	for _, l := range o.lines {
		s.line(l.seriesKey).plus(&l.line, n)
	}
	if from := o.ledger.peek(n); from != nil {
		to, _ := s.ledgerAt(n)
		addCells(to.started[:], from.started[:])
		addCells(to.stopped[:], from.stopped[:])
		addCells(to.left[:], from.left[:])
		addCells(to.waiters[:], from.waiters[:])
		addCells(to.waited[:], from.waited[:])
	}
	for _, sl := range o.slots {
		if from := sl.runs.peek(n); from != nil {
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

// drop forgets the days of a chunk, and returns how much memory they took. What has a
// place for the chunk keeps it, and what the chunk comes to as a whole with it; places are
// counted as memory from the first time on.
func (s *series) drop(n int32, first bool) {
	places := 0
	line := func(l *line) {
		if l.high[n] != nil {
			delete(l.high, n)
			s.bytes -= lineHighBytes
		}
		if l.drop(n) {
			s.bytes -= lineChunkBytes
			places += linePlaceBytes
		}
	}
	line(&s.running)
	line(&s.queued)
	for _, l := range s.lines {
		line(&l.line)
	}
	if s.ledger.drop(n) {
		s.bytes -= ledgerChunkBytes
		places += ledgerPlaceBytes
	}
	for _, sl := range s.slots {
		if sl.runs.drop(n) {
			s.bytes -= counterChunkBytes
			places += counterPlaceBytes
		}
	}
	if first {
		s.bytes += places
	}
}

func (s *partialSum) counterAt(n int32) (*counterChunk, *counterWhole) {
	c, whole, made := s.runs.at(n)
	if made {
		s.bytes += counterChunkBytes
	}
	return c, whole
}

func (s *series) ledgerAt(n int32) (*ledgerChunk, *int64) {
	c, net, made := s.ledger.at(n)
	if made {
		s.bytes += ledgerChunkBytes
	}
	return c, net
}
