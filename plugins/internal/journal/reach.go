package journal

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/facts"
)

// Reach is how far a source has come, beside what only its scheduler has: a part of its
// checkpoint.
type Reach struct {
	Look    time.Time // when everything was last known to be sent
	First   time.Time // when all runs were listed first; zero: not known
	Journal string    // the id of the journal with what else is known
	Told    facts.Told
	Batches uint64 // how many told of something that is told once
}

// WrittenReach is a Reach as a checkpoint has it.
type WrittenReach struct {
	Look    int64      `json:"look"` // microseconds since 1970
	First   int64      `json:"first,omitempty"`
	Journal string     `json:"journal,omitempty"`
	Told    facts.Told `json:"told,omitzero"`
	Batches uint64     `json:"batches,omitempty"`
}

const maxLook = 253402300799e6 // the end of the year 9999

// Check says what no plugin has written.
func (w *WrittenReach) Check() error {
	for _, at := range []int64{w.Look, w.First} {
		if at < 0 || at > maxLook {
			return fmt.Errorf("%d is not a time", at)
		}
	}
	return nil
}

// Written is r as a checkpoint has it.
func (r *Reach) Written() WrittenReach {
	return WrittenReach{Look: unixMicros(r.Look), First: unixMicros(r.First), Journal: r.Journal, Told: r.Told, Batches: r.Batches}
}

// Reach is what was written.
func (w *WrittenReach) Reach() Reach {
	return Reach{Look: timeOf(w.Look), First: timeOf(w.First), Journal: w.Journal, Told: w.Told, Batches: w.Batches}
}

func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func timeOf(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Advance notes that everything is known up to then.
func (r *Reach) Advance(at time.Time) {
	if r.Look.IsZero() {
		r.First = at
	}
	r.Look = at
}

// CompleteFrom is from when there are all runs, of those that are wanted since earliest: a
// scheduler forgets, so what ended before the first look may be missing. It is zero where
// that is not known, after an older checkpoint.
func (r *Reach) CompleteFrom(earliest time.Time) time.Time {
	if earliest.After(r.First) {
		return earliest
	}
	return r.First
}
