package record

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// Locate returns the record id of the run that w describes. For a source that reuses ids
// ([Write.IDReused]) it is w's id, or, if that id belongs to another run, w's id followed by
// the run's submit time in seconds. Conversely, if w's id ends with the submit time and the
// run is already held under the id without it, Locate returns the shorter id. The scheduler
// may have forgotten either run. A run whose submit time was not known before is held under
// w's id followed by its start in seconds, and stays there.
//
// Entry returns the entry of an id, or nil; it is called for at most three ids. The result
// depends on nothing else.
func Locate(w *Write, entry func(id string) *Entry) string {
	if !w.IDReused || w.Record == nil || w.Op != OpPut && w.Op != OpWithdraw {
		return w.ID
	}
	submitted, behind := w.Record.Submit != None, string(AppendSuffix(nil, w.Record))
	if first, ok := strings.CutSuffix(w.ID, behind); ok && submitted && first != "" {
		if e := entry(first); e != nil && !e.Deleted && e.beganAs(w.Record) {
			return first
		}
		if id := startID(first, w.Record); id != w.ID && entry(id).beganAs(w.Record) {
			return id
		}
		return w.ID
	}
	later := laterID(w.ID, behind)
	e := entry(w.ID)
	other := e != nil && e.holdsOther(w)
	if submitted && (other || e == nil || !e.Deleted && !e.HasBody()) {
		if id := startID(w.ID, w.Record); id != later && entry(id).beganAs(w.Record) {
			return id
		}
		if e := entry(later); e != nil && (e.Deleted || e.holdsRun(w.Record)) {
			return later
		}
	}
	if other {
		return later
	}
	return w.ID
}

// startID is the id of a later run of which the submit time is not known.
func startID(id string, r *Record) string { return laterID(id, string(AppendStart(nil, r))) }

// appendSecond appends what distinguishes runs of one id: a dash and an instant in seconds.
func appendSecond(b []byte, at Time) []byte {
	return strconv.AppendInt(append(b, '-'), at.Std().Unix(), 10)
}

// beganAs reports whether e is of the run of r, by its submit time or, while that was not
// known, by its start; or is deleted. A nil entry is of none.
func (e *Entry) beganAs(r *Record) bool {
	if e == nil || e.Deleted {
		return e != nil
	}
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool {
		return h.Record != nil && (h.Record.Submit == r.Submit || h.Record.Submit == None && h.Record.Start.Std().Unix() == r.Start.Std().Unix())
	})
}

// laterID returns an id with a suffix; of an id that would be too long, its hash with the
// suffix.
func laterID(id, suffix string) string {
	if long := id + suffix; ValidateID(long) == nil {
		return long
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + suffix
}

// AppendSuffix appends what [Locate] adds to the id of r to distinguish it from other runs:
// its submit time, or else its start, in seconds.
func AppendSuffix(b []byte, r *Record) []byte {
	at := r.Submit
	if at == None {
		at = r.Start
	}
	return appendSecond(b, at)
}

// AppendStart appends what [Locate] adds to the id of r while its submit time is not known.
func AppendStart(b []byte, r *Record) []byte { return appendSecond(b, r.Start) }

// holdsRun reports whether e holds a record with the submit time of r.
func (e *Entry) holdsRun(r *Record) bool {
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Record != nil && h.Record.Submit == r.Submit })
}

// holdsOther reports whether e belongs to another run than w describes.
func (e *Entry) holdsOther(w *Write) bool {
	if e.Deleted {
		return w.Record.Submit != None && w.Record.Submit > e.DeletedAt
	}
	if h := e.Holding(w.Origin); h != nil && h.Record != nil {
		return areDifferentRuns(h.Record, w.Record)
	}
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Record != nil && areApart(h.Shown(), w.Record) })
}

// areDifferentRuns reports whether two records of one origin describe different runs. What an
// epilog alone says has no submit time: such a run is another where it began after the end.
func areDifferentRuns(a, b *Record) bool {
	if a.Submit != None && b.Submit != None {
		return a.Submit != b.Submit
	}
	return areApart(a, b) || beginsAfter(a, b) || beginsAfter(b, a)
}

// beginsAfter reports whether a run without submit time began after the end of another, and
// not with it: the clocks that the two starts are by may differ.
func beginsAfter(a, b *Record) bool {
	return a.Submit == None && b.Stop != None && a.Start >= b.Stop && a.Start-b.Start > ConflictGap
}

// areApart reports whether records of two origins describe different runs: one was submitted
// after the other had ended or, where neither has a submit time, began then.
func areApart(a, b *Record) bool { return followsAfter(a, b) || followsAfter(b, a) }

func followsAfter(a, b *Record) bool {
	switch {
	case b.Stop == None || b.Stop < b.Start:
		return false
	case a.Submit == None && b.Submit == None:
		return a.Start >= b.Stop && a.Start > b.Start
	case a.Submit == None || a.Submit == b.Submit:
		return false
	}
	return a.Submit > b.Stop || a.Submit == b.Stop && b.Submit != None
}
