package record

import (
	"slices"
	"strconv"
	"strings"
)

// Locate returns the id under which w belongs and which it is to have. For a source whose
// ids recur ([Write.Recurs]) that is its own or, where what is held there is another run's,
// its own with the run's time of submission in seconds behind it; also the other way round,
// where the source adds that to an id which this run has without it. The scheduler may have
// forgotten either run.
//
// Entry returns what is held under an id, nil for nothing; it is asked for two ids at most.
// The result depends on that alone.
func Locate(w *Write, entry func(id string) *Entry) string {
	if !w.Recurs || w.Record == nil || w.Op != OpPut && w.Op != OpWithdraw {
		return w.ID
	}
	submitted := w.Record.Submit != None
	if first, ok := strings.CutSuffix(w.ID, suffix(w.Record)); ok && submitted && first != "" {
		if e := entry(first); e != nil && e.holdsRun(w.Record) {
			return first
		}
		return w.ID
	}
	later := w.ID + suffix(w.Record)
	switch e := entry(w.ID); {
	case e != nil && e.isOfOther(w):
		return later
	case submitted && (e == nil || !e.Deleted && !e.HasBody()):
		if e := entry(later); e != nil && (e.Deleted || e.holdsRun(w.Record)) {
			return later
		}
	}
	return w.ID
}

// suffix is what tells a run from others of its id.
func suffix(r *Record) string {
	at := r.Submit
	if at == None {
		at = r.Start
	}
	return "-" + strconv.FormatInt(at.Std().Unix(), 10)
}

// holdsRun reports whether an origin says that the run was submitted when r was.
func (e *Entry) holdsRun(r *Record) bool {
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Record != nil && h.Record.Submit == r.Submit })
}

// isOfOther reports whether e is of another run than w speaks of.
func (e *Entry) isOfOther(w *Write) bool {
	if e.Deleted {
		return w.Record.Submit != None && w.Record.Submit > e.DeletedAt
	}
	if h := e.Holding(w.Origin); h != nil && h.Record != nil {
		return differ(h.Record, w.Record)
	}
	return slices.ContainsFunc(e.Holdings, func(h Holding) bool { return h.Record != nil && apart(h.Shown(), w.Record) })
}

// differ reports whether two records of one origin are of two runs.
func differ(a, b *Record) bool { return a.Submit != None && b.Submit != None && a.Submit != b.Submit }

// apart reports whether records of two origins are of two runs: one was submitted after the
// other had ended. Not all origins know when a run was submitted.
func apart(a, b *Record) bool { return follows(a, b) || follows(b, a) }

func follows(a, b *Record) bool {
	if a.Submit == None || b.Stop == None || b.Stop < b.Start || a.Submit == b.Submit {
		return false
	}
	return a.Submit > b.Stop || a.Submit == b.Stop && b.Submit != None
}
