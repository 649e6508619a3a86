package store

import (
	"cmp"
	"errors"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

// Odd says how much of what is stored wants to be looked at. It is counted as it
// comes and goes, so that asking for it reads nothing.
type Odd struct {
	Quarantined uint64 // jobs
	Conflicts   uint64 // ids whose origins are in conflict
	Waiting     uint64 // ids with a stop that waits for its body
	Gaps        uint64
	// OldestQuarantined is the minute in which the oldest of the quarantined jobs came
	// first, NewestGap when the newest gap was noticed; None when there is none.
	OldestQuarantined, NewestGap record.Time
}

// Odd returns how much of what the view shows is odd.
func (v *View) Odd() Odd { return v.odd }

// QuarantinedOf returns how many jobs of a source are quarantined. Those of all sources
// together are Odd.Quarantined.
func (v *View) QuarantinedOf(source record.Origin) uint64 {
	if i, ok := v.sources.find(source); ok {
		return v.sources[i].jobs
	}
	return 0
}

// oddCounts are the counts of a state. They follow from the tables, so they are not
// stored: a store counts when it opens a database, and from then on what each
// command changes.
type oddCounts struct {
	conflicts, waiting, gaps uint64
	newestGap                record.Time
}

// quarantine counts the quarantined jobs, by when they came first and by source. As
// oddCounts it is not stored.
type quarantine struct {
	minutes minutes
	sources sourceJobs
}

// arrival is from which source a quarantined job came, and when.
type arrival struct {
	source record.Origin
	at     minute
}

// sourceJobs are sources that have quarantined jobs, sorted. A list is never changed, only
// replaced, so that views may keep it.
type sourceJobs []sourceCount

type sourceCount struct {
	source record.Origin
	jobs   uint64
}

func (s sourceJobs) find(source record.Origin) (int, bool) {
	return slices.BinarySearchFunc(s, source, func(c sourceCount, o record.Origin) int { return c.source.Compare(o) })
}

// all is the number of all jobs.
func (s sourceJobs) all() (n uint64) {
	for i := range s {
		n += s[i].jobs
	}
	return n
}

// change counts jobs that came, or went.
func (q *quarantine) change(counts map[arrival]int64) {
	if len(counts) == 0 {
		return
	}
	list := slices.Clone(q.sources)
	for a, n := range counts { // sums: the order does not matter
		q.minutes.add(a.at, n)
		i, ok := list.find(a.source)
		if !ok {
			list = slices.Insert(list, i, sourceCount{source: a.source})
		}
		list[i].jobs += uint64(n) // below zero it counts down
	}
	q.sources = slices.DeleteFunc(list, func(c sourceCount) bool { return c.jobs == 0 })
}

// minute is the time of a quarantined job, as it is counted.
type minute int64

func minuteOf(t record.Time) minute { return minute(t / (60 * record.Second)) }

// minutes counts the quarantined jobs by when they came first, oldest first.
type minutes []minuteCount

type minuteCount struct {
	at minute
	n  int64
}

// add counts n more jobs of a minute, or fewer.
func (m *minutes) add(at minute, n int64) {
	i, ok := slices.BinarySearchFunc(*m, at, func(c minuteCount, at minute) int { return cmp.Compare(c.at, at) })
	if !ok {
		*m = slices.Insert(*m, i, minuteCount{at: at})
	}
	if (*m)[i].n += n; (*m)[i].n == 0 {
		*m = slices.Delete(*m, i, i+1)
	}
}

// oldest returns the first minute; None when there is none.
func (m minutes) oldest() record.Time {
	if len(m) == 0 {
		return record.None
	}
	return record.Time(m[0].at) * 60 * record.Second
}

// shown returns the counts as a view has them.
func (c *oddCounts) shown(q quarantine) Odd {
	return Odd{Quarantined: q.sources.all(), Conflicts: c.conflicts, Waiting: c.waiting, Gaps: c.gaps, OldestQuarantined: q.minutes.oldest(), NewestGap: c.newestGap}
}

// loadOdd counts what a database has.
func (l *loaded) loadOdd(r pebble.Reader) error {
	c, q, err := countOdd(r)
	l.memory.odd, l.quarantine = c, q
	return err
}

func countOdd(r pebble.Reader) (c oddCounts, q quarantine, err error) {
	c.newestGap = record.None
	came := map[arrival]int64{}
	for table, see := range map[byte]func(value []byte) error{
		tableConflict: func([]byte) error { c.conflicts++; return nil },
		tableStop:     func([]byte) error { c.waiting++; return nil },
		tableGap:      func(value []byte) error { return c.gap(nil, value) },
		tableQuarantine: func(value []byte) error {
			job, err := decodeQuarantined(value)
			came[arrivalOf(&job)]++
			return err
		},
	} {
		if err := scan(r, []byte{table}, func(_, value []byte) error { return see(value) }); err != nil {
			return c, q, err
		}
	}
	q.change(came)
	return c, q, nil
}

func arrivalOf(q *Quarantined) arrival { return arrival{q.Source, minuteOf(q.First)} }

// gap counts a gap that came, or went.
func (c *oddCounts) gap(old, value []byte) error {
	if c.gaps += present(value) - present(old); value == nil {
		return nil
	}
	g, err := decodeGap(value)
	c.newestGap = max(c.newestGap, g.Noticed)
	return err
}

// present is 1 for a value that is there; the difference of two may be -1, which
// counts down.
func present(value []byte) uint64 {
	if value == nil {
		return 0
	}
	return 1
}

// countSmall counts a value of a small table that changes.
func (t *tx) countSmall(table byte, old, value []byte) error {
	switch table {
	case tableGap:
		return t.m.odd.gap(old, value)
	case tableQuarantine:
		return errors.Join(t.countQuarantined(old, -1), t.countQuarantined(value, 1))
	}
	return nil
}

// countQuarantined notes n more jobs of the source and the minute of that in value.
func (t *tx) countQuarantined(value []byte, n int64) error {
	if value == nil {
		return nil
	}
	q, err := decodeQuarantined(value)
	if t.quarantined == nil {
		t.quarantined = map[arrival]int64{}
	}
	t.quarantined[arrivalOf(&q)] += n
	return err
}
