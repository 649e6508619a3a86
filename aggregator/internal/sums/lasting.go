package sums

import (
	"encoding/binary"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// lasts is how long a short run takes at most, with its wait. The blocks of the store lie
// in the order in which runs were told of, mostly that of stops: with the few runs that
// last longer kept apart, the rows of a piece of a day are in the blocks of little more
// than that day.
const lasts = 12 * record.Hour

// timeSpan is the time that a closed run and its wait take.
func (r *run) timeSpan() (from, to record.Time) {
	if _, known := r.waitTime(); known {
		return r.submit, r.stop
	}
	return r.start, r.stop
}

// isLasting reports whether a closed run is not a short one.
func (r *run) isLasting() bool {
	from, to := r.timeSpan()
	return to-from > lasts
}

// lastingRuns are the runs of a chunk of days that last. Edges that cut a day take them
// from here, and only the short ones from the rows.
type lastingRuns struct {
	from, to []record.Time // the spans
	at       []uint32      // where in text the rest of a run is
	text     []byte
	left     int // bytes of text of runs that were taken out
}

// lastingBytes is what a run takes beside its text.
const lastingBytes = 8 + 8 + 4

// memoryBytes is how much memory the runs take.
func (l *lastingRuns) memoryBytes() int { return len(l.from)*lastingBytes + len(l.text) - l.left }

// addRun adds a run, and returns by how much the memory grew.
func (l *lastingRuns) addRun(r *run) int {
	from, to := r.timeSpan()
	before := len(l.text)
	l.from, l.to, l.at = append(l.from, from), append(l.to, to), append(l.at, uint32(before))
	b := binary.AppendUvarint(l.text, r.seq)
	b = binary.AppendUvarint(b, uint64(r.tuple))
	b = binary.AppendUvarint(b, uint64(r.layout.id))
	b = binary.AppendVarint(b, int64(r.start-from))
	_, known := r.waitTime()
	b = append(b, byte(oneIf(known)))
	for _, amount := range r.amounts {
		b = binary.AppendVarint(b, amount)
	}
	l.text = b
	return lastingBytes + len(b) - before
}

// readRun sets r to run i, and returns how many bytes of text it takes.
func (l *lastingRuns) readRun(r *run, i int, layouts *layouts) int {
	s := storedReader{b: l.text[l.at[i]:]}
	r.start, r.stop = l.from[i], l.to[i]
	s.readLasting(r, layouts)
	return len(l.text) - int(l.at[i]) - len(s.b)
}

// readLasting reads the text of a run whose span begins at its start, or before.
func (s *storedReader) readLasting(r *run, layouts *layouts) {
	r.seq, r.tuple = s.readUint(), uint32(s.readUint())
	r.layout = layouts.list[s.readBelow(len(layouts.list))]
	from := r.start
	r.start += record.Time(s.readInt())
	if r.submit = record.None; s.readBelow(2) == 1 {
		r.submit = from
	}
	r.amounts = r.amounts[:0]
	for range r.layout.parts {
		r.amounts = append(r.amounts, s.readInt())
	}
}

// removeRun takes a run out, and returns by how much the memory shrank.
func (l *lastingRuns) removeRun(r *run, layouts *layouts) int {
	from, to := r.timeSpan()
	var found run
	for i := range l.from {
		if l.from[i] != from || l.to[i] != to {
			continue
		}
		n := l.readRun(&found, i, layouts)
		if found.seq != r.seq {
			continue
		}
		last := len(l.from) - 1
		l.from[i], l.to[i], l.at[i] = l.from[last], l.to[last], l.at[last]
		l.from, l.to, l.at = l.from[:last], l.to[:last], l.at[:last]
		if l.left += n; 2*l.left > len(l.text) {
			l.packText(layouts)
		}
		return lastingBytes + n
	}
	return 0
}

// packText drops the text of runs that were taken out.
func (l *lastingRuns) packText(layouts *layouts) {
	var r run
	text := make([]byte, 0, len(l.text)-l.left)
	for i, at := range l.at {
		n := l.readRun(&r, i, layouts)
		l.at[i] = uint32(len(text))
		text = append(text, l.text[at:int(at)+n]...)
	}
	l.text, l.left = text, 0
}

// recordSpan notes the time of a run that is added to the days, or with sign -1 is taken
// out, for those who read a piece of a day.
func (s *sums) recordSpan(r *run, sign int64, first, last day) {
	if !r.isLasting() {
		if sign > 0 {
			s.noteShort(r)
		}
		return
	}
	for n := int32(first >> 5); n <= int32(last>>5); n++ {
		l := s.lasting[n]
		if sign < 0 {
			s.bytes -= s.removeLasting(n, l, r)
			continue
		}
		if l == nil {
			l = &lastingRuns{}
			s.lasting[n] = l
		}
		s.bytes += l.addRun(r)
	}
}

// removeLasting takes a run out of a chunk of days, whose runs in memory these are; nil is
// none. It returns by how much the memory shrank.
func (s *sums) removeLasting(n int32, l *lastingRuns, r *run) (bytes int) {
	if l != nil {
		bytes = l.removeRun(r, s.layouts)
	}
	if _, away := s.away[n]; away && bytes == 0 { // the file has it
		if s.removed[n] == nil {
			s.removed[n] = map[uint64]bool{}
		}
		s.removed[n][r.seq] = true
	}
	return bytes
}

// fewSeqs is how many changes, a power of 2, have one number in sums.short.
const fewSeqs = 1 << 12

// noteShort notes from when on a short run and its wait are.
func (s *sums) noteShort(r *run) {
	from, _ := r.timeSpan()
	i := int(r.seq / fewSeqs)
	for len(s.short) <= i {
		s.short = append(s.short, record.MaxTime)
	}
	s.short[i] = min(s.short[i], from)
}

// shortBefore returns a function that reports whether one of some changes is a short run, or
// its wait, that is there before an instant.
func (s *sums) shortBefore(to record.Time) func(first, last uint64) bool {
	return func(first, last uint64) bool {
		list := s.short[min(first/fewSeqs, uint64(len(s.short))):min(last/fewSeqs+1, uint64(len(s.short)))]
		return slices.ContainsFunc(list, func(from record.Time) bool { return from < to })
	}
}

// lastingIn adds the runs that last and are in a piece of a day.
func (k *groupedSums) lastingIn(t *accumulator, p piece) {
	if l := k.lasting[int32(k.grid.dayOf(p.from)>>5)]; l != nil {
		k.addLasting(t, l, p, nil)
	}
}

// addLasting adds the runs that are in a piece of a day, but for some changes.
func (k *groupedSums) addLasting(t *accumulator, l *lastingRuns, p piece, without map[uint64]bool) {
	pieces := []piece{p}
	var r run
	for i := range l.from {
		if l.from[i] >= p.to || l.to[i] < p.from { // a run that stops as the piece begins counts as stopped
			continue
		}
		if l.readRun(&r, i, k.layouts); !without[r.seq] {
			k.addToGroup(t, &r, pieces)
		}
	}
}

// mergeWith returns the runs of both lists, but for some changes in the first; nil is an empty
// list.
func (l *lastingRuns) mergeWith(o *lastingRuns, without map[uint64]bool, layouts *layouts) *lastingRuns {
	both := &lastingRuns{}
	add := func(l *lastingRuns, without map[uint64]bool) {
		var r run
		for i := range l.from {
			if l.readRun(&r, i, layouts); !without[r.seq] {
				both.addRun(&r)
			}
		}
	}
	if l != nil {
		add(l, without)
	}
	if o != nil {
		add(o, nil)
	}
	return both
}

// writeTo writes the runs.
func (l *lastingRuns) writeTo(w *storedWriter) {
	if l == nil || len(l.from) == 0 {
		w.putUint(0)
		return
	}
	w.putUint(uint64(len(l.from)))
	for i := range l.from {
		w.putFixed(uint64(l.from[i]))
		w.putFixed(uint64(l.to[i]))
		w.putUint(uint64(l.at[i]))
	}
	w.putText(string(l.text))
}

// loadLasting reads what writeTo wrote; nil when there are none.
func loadLasting(r *storedReader, s *sums) *lastingRuns {
	n := r.readCount()
	if n == 0 || len(s.layouts.list) == 0 {
		return nil
	}
	l := &lastingRuns{from: make([]record.Time, n), to: make([]record.Time, n), at: make([]uint32, n)}
	for i := range n {
		l.from[i], l.to[i], l.at[i] = record.Time(r.readFixed()), record.Time(r.readFixed()), uint32(r.readUint())
	}
	l.text = slices.Clone(r.readBytes(r.readUint()))
	l.left = len(l.text)
	var run run
	for _, at := range l.at { // who reads a run later need not look again
		text := storedReader{b: l.text[min(int(at), len(l.text)):]}
		before := len(text.b)
		if text.readLasting(&run, s.layouts); text.err != nil || int(run.tuple) >= len(s.tuples) {
			r.fail()
			return nil
		}
		l.left -= before - len(text.b)
	}
	return l
}
