package sums

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"os"
	"path/filepath"
	"time"
)

// month is a file with the sums of the days of a chunk, of all series.
type month struct {
	name string
	size int64
	sum  uint32 // CRC32C of all of it
}

// monthMagic is what such a file begins with; the last byte is the version.
const monthMagic = "bursar sums of a month\x01"

// What the file has of a series are parts, each behind its number: lines are of series
// keys, counters of layouts.
const (
	partEnd = iota
	partRunning
	partQueued
	partLedger
	partLine    // + 2 × the number of the series key
	partCounter // + 2 × the number of the layout
)

// encodeMonth returns the sums of a chunk of days as the file of it has them, and what a
// head says of the file. Its name is a new one: a head never comes to name another file
// than was meant. Of a chunk that is away, base is the file that has it; nil otherwise.
func (s *sums) encodeMonth(n int32, base *storedReader) (m month, content []byte, err error) {
	w := &storedWriter{}
	w.b = append(w.b, monthMagic...)
	last := s.lasting[n]
	s.storeSeries(w, n, base)
	if base != nil {
		last = loadLasting(base, s).mergeWith(last, s.removed[n], s.layouts)
		if base.err != nil {
			return month{}, nil, fmt.Errorf("%w: %s", base.err, s.away[n].name)
		}
	}
	last.writeTo(w)
	m = month{name: fmt.Sprintf("month-%d-%s", n, rand.Text()), size: int64(len(w.b)), sum: crc32.Checksum(w.b, castagnoliTable())}
	return m, w.b, nil
}

// storeSeries writes what all series have of a chunk of days: what memory has, added to
// what base has, which may be nil.
func (s *sums) storeSeries(w *storedWriter, n int32, base *storedReader) {
	tuple, parts := base.nextSeries(len(s.tuples))
	for _, se := range s.series {
		switch {
		case se == nil:
		case tuple != int(se.tuple)+1:
			se.storeMonth(w, n)
		default:
			if s.writeMergedSeries(w, n, se, parts) != nil {
				base.fail()
			}
			tuple, parts = base.nextSeries(len(s.tuples))
		}
	}
	if tuple != 0 {
		base.fail() // each series of the file is in memory
	}
	w.putUint(0)
}

// writeMergedSeries writes what a series has of a chunk of days, in memory and in these parts.
func (s *sums) writeMergedSeries(w *storedWriter, n int32, se *series, parts []byte) error {
	if !se.hasChunk(n) {
		w.putUint(uint64(se.tuple) + 1)
		w.b = append(w.b, parts...)
		return nil
	}
	sum, r := &series{tuple: se.tuple}, &storedReader{b: parts}
	for part := r.readUint(); part != partEnd && r.err == nil; part = r.readUint() {
		s.loadPart(r, sum, n, part, sum.slotOf)
	}
	sum.addChunk(se, n)
	sum.storeMonth(w, n)
	return r.err
}

// nextSeries passes over the next series of a file of a month, and returns the number of
// its tuple + 1, and its parts; 0 behind the last one. A reader that is nil has none.
func (r *storedReader) nextSeries(tuples int) (tuple int, parts []byte) {
	if r == nil {
		return 0, nil
	}
	if tuple = r.readBelow(tuples + 1); tuple == 0 {
		return 0, nil
	}
	parts = r.b
	for part := r.readUint(); part != partEnd && r.err == nil; part = r.readUint() {
		r.skipPart(part)
	}
	return tuple, parts[:len(parts)-len(r.b)]
}

// skipPart passes over what a series has in a part.
func (r *storedReader) skipPart(part uint64) {
	switch {
	case part == partLedger:
		r.skipNumbers(5 * chunkDays)
	case part%2 == 1 && part > partLine:
		r.skipNumbers(2 * chunkDays)
	default:
		mask, high := r.readMask(), r.readBelow(2)
		r.skipNumbers(bits.OnesCount32(mask) * (1 + high))
	}
}

// storeMonth writes what the series has of a chunk of days, if that is anything.
func (s *series) storeMonth(w *storedWriter, n int32) {
	begun := false
	begin := func(part uint64) {
		if !begun {
			w.putUint(uint64(s.tuple) + 1)
			begun = true
		}
		w.putUint(part)
	}
	line := func(part uint64, l *line) {
		if c := l.findChunk(n); c != nil {
			begin(part)
			l.writeChunk(w, n, c)
		}
	}
	line(partRunning, &s.running)
	line(partQueued, &s.queued)
	if c := s.ledger.findChunk(n); c != nil {
		begin(partLedger)
		c.writeTo(w)
	}
	for _, l := range s.lines {
		line(partLine+2*uint64(l.n), &l.line)
	}
	for _, sl := range s.slots {
		if c := sl.runs.findChunk(n); c != nil {
			begin(partCounter + 2*uint64(sl.layout.id))
			c.writeTo(w)
		}
	}
	if begun {
		w.putUint(partEnd)
	}
}

// writeChunk writes which days of a chunk have something, then what: the lower halves, and
// the upper ones where there are some.
func (l *line) writeChunk(w *storedWriter, n int32, c *lineChunk) {
	mask := uint32(0)
	for i := range chunkDays {
		if !l.daySum(n, c, i).IsZero() {
			mask |= 1 << i
		}
	}
	w.putMask(mask)
	high := l.high[n]
	w.putUint(uint64(oneIf(high != nil)))
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		w.putUint(c[i])
		if high != nil {
			w.putInt(high[i])
		}
	}
}

// readChunk reads what writeChunk wrote into a chunk that is not there yet, and returns how
// much memory it takes.
func (l *line) readChunk(r *storedReader, n int32) (bytes int) {
	c, whole, _ := l.ensureChunk(n)
	mask, high := r.readMask(), r.readBelow(2) == 1
	bytes = lineChunkBytes
	for ; mask != 0; mask &= mask - 1 {
		i := bits.TrailingZeros32(mask)
		c[i] = r.readUint()
		if high {
			bytes += l.setHigh(n, i, r.readInt())
		}
		*whole = whole.Add(l.daySum(n, c, i))
	}
	return bytes
}

func (c *counterChunk) writeTo(w *storedWriter) { storeCounts(w, c.started[:], c.left[:]) }

func (c *counterChunk) readFrom(r *storedReader) (whole counterWhole) {
	loadCounts(r, c.started[:], c.left[:])
	for i := range chunkDays {
		whole.begun += int64(c.started[i])
		whole.net += int64(c.started[i]) - int64(c.left[i])
	}
	return whole
}

func (c *ledgerChunk) writeTo(w *storedWriter) {
	storeCounts(w, c.started[:], c.stopped[:], c.left[:], c.waiters[:])
	for _, v := range c.waited {
		w.putUint(uint64(v))
	}
}

func (c *ledgerChunk) readFrom(r *storedReader) (net int64) {
	loadCounts(r, c.started[:], c.stopped[:], c.left[:], c.waiters[:])
	for i := range chunkDays {
		c.waited[i] = int64(r.readUint())
		net += int64(c.started[i]) - int64(c.left[i])
	}
	return net
}

func storeCounts(w *storedWriter, lists ...[]int32) {
	for _, list := range lists {
		for _, v := range list {
			w.putUint(uint64(uint32(v)))
		}
	}
}

func loadCounts(r *storedReader, lists ...[]int32) {
	for _, list := range lists {
		for i := range list {
			list[i] = int32(r.readBelow(1 << 32))
		}
	}
}

// readFile returns the content of a file of a month, if it is the file that was written.
func (m *month) readFile(ctx context.Context, dir string) (*storedReader, error) {
	b, err := withDiskTimeout(ctx, func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, m.name)) })
	if err != nil {
		return nil, err
	}
	if int64(len(b)) != m.size || crc32.Checksum(b, castagnoliTable()) != m.sum || len(b) < len(monthMagic) || string(b[:len(monthMagic)]) != monthMagic {
		return nil, fmt.Errorf("%w: %s", errStored, m.name)
	}
	return &storedReader{b: b[len(monthMagic):]}, nil
}

// withDiskTimeout calls what reads or writes the disk, and waits no longer than diskWithin.
func withDiskTimeout[T any](ctx context.Context, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeoutCause(ctx, diskWithin, errDisk)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// diskWithin is how long the reading and the writing of a month may take.
const diskWithin = 30 * time.Second

var errDisk = errors.New("the disk did not answer within 30 s")

// loadMonth adds what a file has to sums that have nothing of these days.
func (s *sums) loadMonth(n int32, r *storedReader) error {
	s.held[n] = true
	for {
		tuple := r.readBelow(len(s.tuples) + 1)
		if r.err != nil || tuple == 0 {
			break
		}
		se := s.seriesFor(uint32(tuple - 1))
		s.bytes -= se.bytes
		for part := r.readUint(); part != partEnd && r.err == nil; part = r.readUint() {
			s.loadPart(r, se, n, part, func(l *layout) *partialSum { return s.partialSumFor(se.tuple, l) })
		}
		s.bytes += se.bytes
	}
	if l := loadLasting(r, s); l != nil {
		s.lasting[n] = l
		s.bytes += l.memoryBytes()
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail()
	}
	if r.err != nil {
		return fmt.Errorf("%w: %s", r.err, s.months[n].name)
	}
	return nil
}

// loadPart reads a part of a series, whose partial sum of a layout slot returns.
func (s *sums) loadPart(r *storedReader, se *series, n int32, part uint64, slot func(*layout) *partialSum) {
	line := func(l *line) { se.bytes += l.readChunk(r, n) }
	switch number := int(min(part-partLine, 1<<40) / 2); {
	case part == partRunning:
		line(&se.running)
	case part == partQueued:
		line(&se.queued)
	case part == partLedger:
		c, net := se.ledgerAt(n)
		*net = c.readFrom(r)
	case part%2 == 0 && number < len(s.seriesKeys.list):
		line(&se.lineOf(s.seriesKeys.list[number]).line)
	case part%2 == 1 && number < len(s.layouts.list):
		sl := slot(s.layouts.list[number])
		c, whole := sl.counterAt(n)
		*whole = c.readFrom(r)
	default:
		r.fail()
	}
}
