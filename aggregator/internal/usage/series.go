package usage

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

// book adds a closed run to its days, or with sign -1 takes it out.
func (s *partialSum) book(g *grid, r *run, sign int64) {
	first, last := g.days(r.start, r.stop)
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
	s.count(g, r, last, sign)
	if _, known := r.wait(); known {
		s.wait(g, r, sign)
	}
}

// wait adds the time in the queue.
func (s *series) wait(g *grid, r *run, sign int64) {
	first, last := g.days(r.submit, r.start)
	for d := first; d <= last; d++ {
		from, to := max(r.submit, g.start(d)), min(r.start, g.start(d+1))
		s.bytes += s.queued.add(d, SumOf(sign*int64(to-from)))
	}
}

// count counts the run, which touches no day behind last.
func (s *partialSum) count(g *grid, r *run, last day, sign int64) {
	step := uint32(sign) // adding it modulo 2^32 is adding or subtracting 1
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
		all.waited[i] += uint64(sign * wait)
	}
	n, i = chunkOf(last)
	c, whole = s.counterAt(n)
	c.left[i] += step
	whole.net -= sign
	all, net = s.ledgerAt(n)
	all.left[i] += step
	*net -= sign
	n, i = chunkOf(g.day(r.stop))
	all, _ = s.ledgerAt(n)
	all.stopped[i] += step
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
