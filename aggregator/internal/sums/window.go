package sums

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
func newWindow(q *Query, g *grid) *window {
	w := &window{spans: make([]span, len(q.Edges)-1)}
	w.first, w.end = g.wholeDays(q)
	for i := range w.spans {
		from, to := g.dayOf(q.Edges[i]), g.dayOf(q.Edges[i+1])
		s := span{from: max(from, w.first), to: min(to, w.end), first: g.dayStart(from) == q.Edges[i]}
		for range s.to - s.from {
			w.bucketOf = append(w.bucketOf, int32(i))
		}
		w.spans[i] = s
	}
	return w
}

// firstChunk and endChunk bound the chunks that have days of the window.
func (w *window) firstChunk() int32 { return int32(w.first >> 5) }
func (w *window) endChunk() int32   { return int32((w.end-1)>>5) + 1 }

// chunkPart says from which of its days on a chunk is in the window, and to which buckets
// these days go.
func (w *window) chunkPart(n int32) (at int, buckets []int32) {
	begin := day(n << 5)
	from, end := max(begin, w.first), min(begin+chunkDays, w.end)
	return int(from - begin), w.bucketOf[from-w.first : end-w.first]
}

// inOne reports whether these are all days of a chunk, in one bucket.
func (w *window) inOne(buckets []int32) bool {
	return len(buckets) == chunkDays && buckets[0] == buckets[chunkDays-1]
}

// addSeries adds the days of a series to a group.
func (t *accumulator) addSeries(s *series, group uint32, who string, w *window) {
	for _, sl := range s.slots {
		t.layoutRuns(sl.layout, uint64(sl.runs.countTouching(w.first, w.end, w.spans[0].first)))
	}
	for _, l := range s.lines {
		for _, column := range t.columnsOfSeriesKey(l.seriesKey) {
			l.addWindowTo(t.rowOf(column, group), w)
		}
	}
	if t.levelsOf(group) {
		s.running.addWindowTo(t.rowOf(t.columnFor(columnName{of: running}), group), w)
		s.queued.addWindowTo(t.rowOf(t.columnFor(columnName{of: queued}), group), w)
	}
	if t.q.Counts || t.q.People != "" {
		t.addLedger(&s.ledger, group, who, w)
	}
}

// addLedger adds the numbers of runs of a series to a group.
func (t *accumulator) addLedger(l *ledger, group uint32, who string, w *window) {
	going := int64(0) // as a chunk begins
	for _, net := range l.wholesBefore(w.firstChunk()) {
		going += net
	}
	row := t.zeroCounts()
	for n := w.firstChunk(); n < w.endChunk(); n++ {
		l.findChunk(n).addToBuckets(row, w, n, going)
		going += l.wholeOf(n)
	}
	t.addCounted(group, who, 0, t.buckets)
}

// zeroCounts is a row of zeros, to count runs of a group in.
func (t *accumulator) zeroCounts() []counts {
	if t.scratch == nil {
		t.scratch = make([]counts, t.buckets)
	}
	return t.scratch
}

// addCounted adds what was counted in some buckets of that row to a group, and makes them
// zeros again.
func (t *accumulator) addCounted(group uint32, who string, from, to int) {
	row := t.countsOf(group)
	for b := from; b < to; b++ {
		c := &t.scratch[b]
		if *c == (counts{}) {
			continue
		}
		if c.records != 0 && t.q.People != "" {
			t.notePerson(group, b, who, c.records)
		}
		if t.q.Counts {
			row[b].add(c)
		}
		*c = counts{}
	}
}

// addToBuckets adds the days of chunk n that are in a window to a row of buckets; nil has none.
// So many runs go on as the chunk begins.
func (c *ledgerChunk) addToBuckets(row []counts, w *window, n int32, going int64) {
	at, buckets := w.chunkPart(n)
	going += c.netBefore(at)
	for i := 0; i < len(buckets); {
		to, s := &row[buckets[i]], &w.spans[buckets[i]]
		day := day(n<<5) + day(at+i)
		if s.from == day && s.first {
			to.records += uint64(going)
		}
		next := min(len(buckets), i+int(s.to-day))
		if c != nil {
			going += c.addDays(to, at+i, at+next)
		}
		i = next
	}
}

// addDays adds some days to a bucket, and returns by how many more runs go on after them.
func (c *ledgerChunk) addDays(to *counts, at, end int) (more int64) {
	for i := at; i < end; i++ {
		to.records += uint64(c.started[i])
		to.started += uint64(c.started[i])
		to.stopped += uint64(c.stopped[i])
		to.waiters += uint64(c.waiters[i])
		to.waited = to.waited.Add(SumOf(c.waited[i]))
		more += int64(c.started[i]) - int64(c.left[i])
	}
	return more
}

func (c *counts) add(o *counts) {
	c.records += o.records
	c.started += o.started
	c.stopped += o.stopped
	c.waiters += o.waiters
	c.waited = c.waited.Add(o.waited)
}
