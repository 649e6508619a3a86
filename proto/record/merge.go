package record

import (
	"cmp"
	"slices"
)

// Op is what a [Write] does.
type Op uint8

// The operations. Their numbers are part of the stored formats.
const (
	OpPut      Op = 1 // the origin says: this is the run
	OpStop     Op = 2 // the run stopped then ([Pushed] only)
	OpWithdraw Op = 3 // the origin takes back what it said of the run
	OpDelete   Op = 4 // an operator deletes the id, whatever the origins say
)

// Write is one statement about one run. Which fields count depends on Op.
type Write struct {
	ID      string
	Op      Op
	Origin  Origin
	Rank    Rank
	Version Version
	// Record is the record of an OpPut, with the same ID. For an OpWithdraw it may hold the
	// start and submit time of the run.
	Record *Record
	Stop   Time // OpStop
	// IDReused is set if the scheduler may give the id to other runs: see [Locate].
	IDReused bool
}

// Outcome says what a write did to an entry. Every write has exactly one, so
// that the outcomes of all writes add up to their number.
type Outcome uint8

// The outcomes. Their numbers are part of the stored formats.
const (
	Added       Outcome = 1 // the id shows a record and did not before
	Merged      Outcome = 2 // what is shown, or what else is held, changed
	Unchanged   Outcome = 3 // what is shown stays and is what the write says; at most versions were raised
	Stale       Outcome = 4 // the origin held something greater
	Withdrawn   Outcome = 5 // the origin's record is taken back
	Deleted     Outcome = 6 // the id is marked as deleted
	Conflicting Outcome = 7 // the write was taken and its origin is in conflict with another
)

// String returns the outcome's name.
func (o Outcome) String() string {
	names := [...]string{"none", "added", "merged", "unchanged", "stale", "withdrawn", "deleted", "conflicting"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// Merge takes w into e. It depends on nothing but e and w, and the entry after
// any number of merges depends only on the set of writes, not on their order or
// repetition. The outcome does depend on the order.
//
// What its origin cannot say – a stop by a source, a withdrawal by [Pushed], a
// record that is not there – changes nothing and is [Stale]; [Write.Validate]
// names it. An observation outside the range of clocks is
// taken for the nearest one in it.
func (e *Entry) Merge(w Write) Outcome {
	w.Version.Observed = min(max(w.Version.Observed, minObserved), maxObserved)
	return e.mergeWrite(w)
}

// The range of observations that others may make. Above it is room for
// [Entry.PutStop], which must come out above everything that is held.
const (
	minObserved = 1
	maxObserved = 1 << 62
)

func (e *Entry) mergeWrite(w Write) Outcome {
	if w.Op == OpDelete {
		e.markDeleted()
	}
	if e.Deleted {
		return Deleted
	}
	if !w.saysSomething() {
		return Stale
	}
	before := e.Shown()
	if !e.applyWrite(w) {
		return e.refusalOf(w)
	}
	return e.outcomeOf(w, before)
}

// saysSomething reports whether w says something that its origin can say.
func (w *Write) saysSomething() bool {
	switch w.Op {
	case OpPut:
		return w.Record != nil
	case OpStop:
		return w.Origin.IsPushed() && w.Stop != None
	case OpWithdraw:
		return !w.Origin.IsPushed()
	}
	return false
}

// markDeleted marks the entry and forgets what the origins said: an erased record
// must be gone.
func (e *Entry) markDeleted() { e.Deleted, e.Holdings = true, nil }

// outcomeOf names what a write did that was taken.
func (e *Entry) outcomeOf(w Write, before *Record) Outcome {
	after := e.Shown()
	switch {
	case w.Op == OpWithdraw:
		return Withdrawn
	case e.Conflict():
		return Conflicting
	case before == nil && after != nil:
		return Added
	case before != nil && after != nil && Same(before, after) && w.Op == OpPut && Same(w.Record, after):
		return Unchanged
	}
	return Merged
}

// refusalOf names why a write was not taken: it repeats what is held, or is older.
func (e *Entry) refusalOf(w Write) Outcome {
	h := e.Holding(w.Origin)
	if w.Op == OpPut && h != nil && h.Record != nil && Same(h.Record, w.Record) {
		return Unchanged
	}
	if w.Op == OpStop && h != nil && h.Stop == w.Stop {
		return Unchanged
	}
	if w.Op == OpWithdraw && h != nil && h.Withdrawn() {
		return Unchanged
	}
	return Stale
}

// applyWrite lets the origin's registers decide and reports whether one changed.
func (e *Entry) applyWrite(w Write) bool {
	h := e.holdingOf(w.Origin)
	if w.Op == OpStop {
		return h.applyStop(w)
	}
	if h.Version != (Version{}) && !winsOver(w, h) {
		return false
	}
	h.Rank, h.Version, h.Record, h.Archived = w.Rank, w.Version, w.Record, false
	if w.Op == OpWithdraw {
		h.Record = nil
	}
	return true
}

// winsOver reports whether w replaces what h holds: for a source the greater, for
// Pushed the lesser write. Both orders are total over all that the register has,
// so that two writes that differ never tie.
func winsOver(w Write, h *Holding) bool {
	if !w.Origin.IsPushed() {
		c := cmp.Or(w.Version.Compare(h.Version), cmp.Compare(w.Rank, h.Rank))
		return c > 0 || c == 0 && w.contentDigest().Compare(digestOf(h.Record)) > 0
	}
	c := cmp.Compare(w.Version.Observed, h.Version.Observed)
	if c == 0 {
		c = cmp.Or(w.contentDigest().Compare(digestOf(h.Record)), w.Version.Compare(h.Version), cmp.Compare(w.Rank, h.Rank))
	}
	return c < 0
}

// contentDigest is the digest of what w says.
func (w *Write) contentDigest() Digest {
	if w.Op == OpWithdraw {
		return Digest{}
	}
	return digestOf(w.Record)
}

// digestOf is the digest of a record, or zero for a withdrawal.
func digestOf(r *Record) Digest {
	if r == nil {
		return Digest{}
	}
	return r.Digest()
}

func (h *Holding) applyStop(w Write) bool {
	held := h.Stop != None
	if held && cmp.Or(cmp.Compare(w.Version.Observed, h.StopObserved), cmp.Compare(w.Stop, h.Stop)) <= 0 {
		return false
	}
	h.Stop, h.StopObserved = w.Stop, w.Version.Observed
	return true
}

// Join takes all that o holds into e: the merge of two entries of one id.
func (e *Entry) Join(o *Entry) {
	if e.Deleted || o.Deleted {
		e.markDeleted()
		return
	}
	for i := range o.Holdings {
		e.joinHolding(&o.Holdings[i])
	}
}

func (e *Entry) joinHolding(h *Holding) {
	if h.Version != (Version{}) {
		op := OpPut
		if h.Record == nil {
			op = OpWithdraw
		}
		e.applyWrite(Write{ID: e.ID, Op: op, Origin: h.Origin, Rank: h.Rank, Version: h.Version, Record: h.Record})
	}
	if h.Stop != None {
		e.applyWrite(Write{ID: e.ID, Op: OpStop, Origin: h.Origin, Rank: h.Rank, Version: Version{Observed: h.StopObserved}, Stop: h.Stop})
	}
}

// Post adds r as AUDITOR's POST does at the given time of a clock that never
// goes back. It is refused, and false returned, when any origin has a body or
// the id is deleted. A stop that waited closes r.
func (e *Entry) Post(r *Record, observed int64) bool {
	if e.Deleted || e.HasBody() {
		return false
	}
	e.Merge(Write{ID: e.ID, Op: OpPut, Origin: Pushed, Rank: RankPush,
		Version: Version{Ended: !r.Open(), Observed: observed}, Record: r})
	return true
}

// PutStop sets the stop of the shown record as AUDITOR's PUT does: a write of
// the shown origin above everything that it holds. It returns false, and
// changes nothing, when no record is shown.
func (e *Entry) PutStop(stop Time, observed int64) bool {
	h := e.Best()
	if h == nil {
		return false
	}
	observed = max(observed, h.Version.Observed+1, h.StopObserved+1)
	if h.Origin.IsPushed() {
		e.mergeWrite(Write{ID: e.ID, Op: OpStop, Origin: Pushed, Rank: h.Rank, Version: Version{Ended: true, Observed: observed}, Stop: stop})
		return true
	}
	r := *h.Record
	r.Stop = stop
	e.mergeWrite(Write{ID: e.ID, Op: OpPut, Origin: h.Origin, Rank: h.Rank, Version: Version{Ended: true, Observed: observed}, Record: &r})
	return true
}

// Correction returns the write by which r takes the place of the body that [Pushed]
// holds: it says that r was observed just before that body, and the first one counts.
// It is false when there is no such body, or nothing can be before it.
func (e *Entry) Correction(r *Record) (Write, bool) {
	h := e.Holding(Pushed)
	if h == nil || h.Record == nil || h.Version.Observed <= minObserved {
		return Write{}, false
	}
	return Write{ID: e.ID, Op: OpPut, Origin: Pushed, Rank: h.Rank, Version: Version{Ended: h.Version.Ended, Observed: h.Version.Observed - 1}, Record: r}, true
}

// DismissStop forgets a stop that waits for its body and was observed by then. It
// reports whether there was one. A client that says the stop again makes it wait again.
func (e *Entry) DismissStop(observed int64) bool {
	h := e.Holding(Pushed)
	if h == nil || !h.Waiting() || h.StopObserved > observed {
		return false
	}
	e.Holdings = slices.DeleteFunc(slices.Clone(e.Holdings), func(h Holding) bool { return h.Origin.IsPushed() })
	return true
}

// Undelete lifts the mark of deletion. The entry holds nothing until an origin
// says something again.
func (e *Entry) Undelete() { e.Deleted = false }

// Same reports whether a and b have the same content.
func Same(a, b *Record) bool { return a == b || a.Digest() == b.Digest() }
