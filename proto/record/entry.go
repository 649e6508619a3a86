package record

import (
	"cmp"
	"slices"
)

// ConflictGap is how far the starts of two origins may lie apart before they
// are in conflict.
const ConflictGap = Minute

// Holding is what one origin says of one run. Rank and Version are those of
// the record or of the withdrawal, and zero while a stop waits.
//
// A source holds one register: the write with the greatest version, whose
// equals are settled by the greater digest. It is a record or a withdrawal.
//
// [Pushed] holds two: the body (the record with the least version, whose equals
// are settled by the lesser digest) and the stop (the last update of the stop,
// whose equals are settled by the later stop). A stop that has no body yet
// waits.
type Holding struct {
	Origin  Origin
	Rank    Rank
	Version Version

	// Record is the body: nil after a withdrawal and while a stop waits.
	Record *Record

	// Stop is the last update of the stop ([Pushed] only); None without one.
	Stop         Time
	StopObserved int64

	// Archived says that Record has lost details to an archive, as far as the store knows.
	// What the origin says next has all.
	Archived bool
}

// Withdrawn reports whether the origin took the run back.
func (h *Holding) Withdrawn() bool { return h.Record == nil && h.Version != Version{} }

// Waiting reports whether h is a stop that has no body yet.
func (h *Holding) Waiting() bool { return h.Record == nil && h.Stop != None }

// Shown returns the record as the origin says it, with the last stop; nil when
// there is none.
func (h *Holding) Shown() *Record {
	if h.Record == nil || h.Stop == None {
		return h.Record
	}
	r := *h.Record
	r.Stop = h.Stop
	return &r
}

// Effective returns the version of [Holding.Shown] by which origins are
// compared.
func (h *Holding) Effective() Version {
	v := h.Version
	if h.Record != nil && h.Stop != None {
		v.Ended = true
		v.Observed = max(v.Observed, h.StopObserved)
	}
	return v
}

// Entry is everything that is held under one record id. The zero Entry with an
// ID holds nothing.
type Entry struct {
	ID string
	// Deleted marks an id whose record was deleted. It holds nothing and beats
	// every later write; only [Entry.Undelete] lifts it.
	Deleted bool
	// DeletedAt is when, if it is known.
	DeletedAt Time
	// Holdings has at most one element an origin, sorted by origin.
	Holdings []Holding
}

// Holding returns what the origin holds; nil when it holds nothing.
func (e *Entry) Holding(o Origin) *Holding {
	i, ok := e.findHolding(o)
	if !ok {
		return nil
	}
	return &e.Holdings[i]
}

func (e *Entry) findHolding(o Origin) (int, bool) {
	return slices.BinarySearchFunc(e.Holdings, o, func(h Holding, o Origin) int { return h.Origin.Compare(o) })
}

// holdingOf returns the origin's holding, made when there was none.
func (e *Entry) holdingOf(o Origin) *Holding {
	i, ok := e.findHolding(o)
	if !ok {
		e.Holdings = slices.Insert(e.Holdings, i, Holding{Origin: o, Stop: None})
	}
	return &e.Holdings[i]
}

// Best returns the holding that is shown: that with a record and the greatest
// (ended, rank, observed, digest, origin). It is nil when nothing is shown, for
// a deleted entry among others.
func (e *Entry) Best() *Holding {
	if e.Deleted {
		return nil
	}
	var best *Holding
	for i := range e.Holdings {
		h := &e.Holdings[i]
		if h.Record != nil && (best == nil || compareShown(h, best) > 0) {
			best = h
		}
	}
	return best
}

func compareShown(a, b *Holding) int {
	v, w := a.Effective(), b.Effective()
	if v.Ended != w.Ended {
		return v.Compare(w)
	}
	if c := cmp.Or(cmp.Compare(a.Rank, b.Rank), v.Compare(w)); c != 0 {
		return c
	}
	return cmp.Or(a.Shown().Digest().Compare(b.Shown().Digest()), a.Origin.Compare(b.Origin))
}

// Shown returns the record that queries see; nil when there is none.
func (e *Entry) Shown() *Record {
	if h := e.Best(); h != nil {
		return h.Shown()
	}
	return nil
}

// Conflict reports whether two origins say that the run began more than
// [ConflictGap] apart: two runs under one id, by all appearance.
func (e *Entry) Conflict() bool {
	least, most := MaxTime, MinTime
	for i := range e.Holdings {
		if r := e.Holdings[i].Record; r != nil {
			least, most = min(least, r.Start), max(most, r.Start)
		}
	}
	return !e.Deleted && most > least && most-least > ConflictGap
}

// HasBody reports whether any origin holds a record.
func (e *Entry) HasBody() bool {
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Record != nil })
}

// Clone returns a copy that shares the records, which do not change.
func (e *Entry) Clone() Entry {
	return Entry{ID: e.ID, Deleted: e.Deleted, DeletedAt: e.DeletedAt, Holdings: slices.Clone(e.Holdings)}
}
