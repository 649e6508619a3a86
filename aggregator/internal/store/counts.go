package store

import "github.com/bursar-accounting/bursar/proto/record"

// Counts says what became of writes. It holds at every moment that
//
//	Pulled = Added + Merged + Unchanged + Stale + Withdrawn + Deleted + Conflicting + Quarantined
type Counts struct {
	Pulled      int64 // writes and quarantined jobs that came in
	Added       int64
	Merged      int64
	Unchanged   int64
	Stale       int64
	Withdrawn   int64
	Deleted     int64 // writes that found their id deleted
	Conflicting int64
	Quarantined int64
}

// Conserved reports whether nothing vanished and nothing was made up.
func (c Counts) Conserved() bool {
	return c.Pulled == c.Added+c.Merged+c.Unchanged+c.Stale+c.Withdrawn+c.Deleted+c.Conflicting+c.Quarantined
}

// Add adds o to c.
func (c *Counts) Add(o Counts) {
	sums := c.counterList()
	for i, v := range o.counterList() {
		*sums[i] += *v
	}
}

func (c *Counts) countOutcome(o record.Outcome) {
	c.Pulled++
	switch o {
	case record.Added:
		c.Added++
	case record.Merged:
		c.Merged++
	case record.Unchanged:
		c.Unchanged++
	case record.Stale:
		c.Stale++
	case record.Withdrawn:
		c.Withdrawn++
	case record.Deleted:
		c.Deleted++
	case record.Conflicting:
		c.Conflicting++
	}
}

func (c *Counts) countQuarantined() {
	c.Pulled++
	c.Quarantined++
}

// SourceCounts are the counts of one source since the cluster began. A push to
// an agent's receiver has that agent and no type and label; a push to the
// aggregator is [record.Pushed].
type SourceCounts struct {
	Source record.Origin
	Counts Counts
}

// counterList is the list of the counters, in the order in which they are stored.
func (c *Counts) counterList() [9]*int64 {
	return [...]*int64{&c.Pulled, &c.Added, &c.Merged, &c.Unchanged, &c.Stale, &c.Withdrawn, &c.Deleted, &c.Conflicting, &c.Quarantined}
}

func (c *Counts) visitFields(f fields) {
	for _, v := range c.counterList() {
		f.visitInt(v)
	}
}

func (c *Counts) encodeCounts() []byte {
	e := encoder{}
	c.visitFields(fields{e: &e})
	return e.b
}

// decodeCounts reads what encodeCounts wrote; nothing gives zero.
func decodeCounts(b []byte) (c Counts, err error) {
	if len(b) > 0 {
		d := decoder{b: b}
		c.visitFields(fields{d: &d})
		err = d.checkEnd("counters")
	}
	return c, err
}
