package store

import (
	"cmp"
	"errors"
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

// Anomalies says how much of what is stored wants to be looked at. It is counted as it
// comes and goes, so that asking for it reads nothing.
type Anomalies struct {
	Quarantined uint64 // jobs
	Conflicts   uint64 // ids whose origins are in conflict
	Waiting     uint64 // ids with a stop that waits for its body
	Gaps        uint64
	// OldestQuarantined is the minute in which the oldest of the quarantined jobs came
	// first, NewestGap when the newest gap was noticed; None when there is none.
	OldestQuarantined, NewestGap record.Time
}

// Anomalies returns how much of what the view shows is odd.
func (v *View) Anomalies() Anomalies { return v.anomalies }

// QuarantinedOf returns how many jobs of a source are quarantined. Those of all sources
// together are Anomalies.Quarantined.
func (v *View) QuarantinedOf(source record.Origin) uint64 {
	if i, ok := v.sources.findSource(source); ok {
		return v.sources[i].jobs
	}
	return 0
}

// anomalyCounts are the counts of a state. They follow from the tables, so they are not
// stored: a store counts when it opens a database, and from then on what each
// command changes.
type anomalyCounts struct {
	conflicts, waiting, gaps uint64
	newestGap                record.Time
}

// quarantineCounts counts the quarantined jobs, by when they came first and by source. As
// anomalyCounts it is not stored.
type quarantineCounts struct {
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

func (s sourceJobs) findSource(source record.Origin) (int, bool) {
	return slices.BinarySearchFunc(s, source, func(c sourceCount, o record.Origin) int { return c.source.Compare(o) })
}

// totalJobs is the number of all jobs.
func (s sourceJobs) totalJobs() (n uint64) {
	for i := range s {
		n += s[i].jobs
	}
	return n
}

// countArrivals counts jobs that came, or went.
func (q *quarantineCounts) countArrivals(counts map[arrival]int64) {
	if len(counts) == 0 {
		return
	}
	list := slices.Clone(q.sources)
	for a, n := range counts { // sums: the order does not matter
		q.minutes.addJobs(a.at, n)
		i, ok := list.findSource(a.source)
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

// addJobs counts n more jobs of a minute, or fewer.
func (m *minutes) addJobs(at minute, n int64) {
	i, ok := slices.BinarySearchFunc(*m, at, func(c minuteCount, at minute) int { return cmp.Compare(c.at, at) })
	if !ok {
		*m = slices.Insert(*m, i, minuteCount{at: at})
	}
	if (*m)[i].n += n; (*m)[i].n == 0 {
		*m = slices.Delete(*m, i, i+1)
	}
}

// oldestTime returns the first minute; None when there is none.
func (m minutes) oldestTime() record.Time {
	if len(m) == 0 {
		return record.None
	}
	return record.Time(m[0].at) * 60 * record.Second
}

// forView returns the counts as a view has them.
func (c *anomalyCounts) forView(q quarantineCounts) Anomalies {
	return Anomalies{Quarantined: q.sources.totalJobs(), Conflicts: c.conflicts, Waiting: c.waiting, Gaps: c.gaps, OldestQuarantined: q.minutes.oldestTime(), NewestGap: c.newestGap}
}

// loadAnomalies counts what of a database is odd.
func (l *loaded) loadAnomalies(r pebble.Reader) error {
	c, q, err := countAnomalies(r)
	l.memory.anomalies, l.quarantine = c, q
	return err
}

func countAnomalies(r pebble.Reader) (c anomalyCounts, q quarantineCounts, err error) {
	c.newestGap = record.None
	came := map[arrival]int64{}
	for table, see := range map[byte]func(value []byte) error{
		tableConflict: func([]byte) error { c.conflicts++; return nil },
		tableStop:     func([]byte) error { c.waiting++; return nil },
		tableGap:      func(value []byte) error { return c.countGap(nil, value) },
		tableQuarantine: func(value []byte) error {
			job, err := decodeQuarantined(value)
			came[arrivalOf(&job)]++
			return err
		},
	} {
		if err := scanPrefix(r, []byte{table}, func(_, value []byte) error { return see(value) }); err != nil {
			return c, q, err
		}
	}
	q.countArrivals(came)
	return c, q, nil
}

func arrivalOf(q *Quarantined) arrival { return arrival{q.Source, minuteOf(q.First)} }

// countGap counts a gap that came, or went.
func (c *anomalyCounts) countGap(old, value []byte) error {
	if c.gaps += oneIfPresent(value) - oneIfPresent(old); value == nil {
		return nil
	}
	g, err := decodeGap(value)
	c.newestGap = max(c.newestGap, g.Noticed)
	return err
}

// oneIfPresent is 1 for a value that is there; the difference of two may be -1, which
// counts down.
func oneIfPresent(value []byte) uint64 {
	if value == nil {
		return 0
	}
	return 1
}

// countSmall counts a value of a small table that changes.
func (t *tx) countSmall(table byte, old, value []byte) error {
	switch table {
	case tableGap:
		return t.m.anomalies.countGap(old, value)
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
