package store

import "github.com/bursar-accounting/bursar/proto/record"

// CorrectCommand merges records in the place of those that clients pushed, as
// [record.Entry.Correction] gives them. A write of another kind, or one that is not
// valid, changes nothing. The result is a [DeleteResult] with how many took a place.
// Since version 3.
type CorrectCommand struct {
	Writes []record.Write
	Now    record.Time
}

// DismissStopsCommand forgets stops that wait for their records. One that was observed
// after Until stays, and so does one whose record has come. The result is a
// [DeleteResult]. Since version 3.
type DismissStopsCommand struct {
	IDs   []string
	Until int64 // by the clocks of the agents
}

func (*CorrectCommand) kind() kind      { return kindCorrect }
func (*DismissStopsCommand) kind() kind { return kindDismissStops }

func (*CorrectCommand) since() uint16      { return 3 }
func (*DismissStopsCommand) since() uint16 { return 3 }

func (c *CorrectCommand) fields(f fields) {
	list(f, &c.Writes, fields.write)
	f.time(&c.Now)
}

func (c *DismissStopsCommand) fields(f fields) {
	list(f, &c.IDs, fields.text)
	f.int(&c.Until)
}

func (c *CorrectCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Op != record.OpPut || !w.Origin.IsPushed() || checkWrite("", w) != nil {
			continue
		}
		sl, err := t.meet(hashText(w.ID), w.ID)
		if err != nil {
			return nil, err
		}
		if sl == nil {
			continue
		}
		if h := sl.entry.Holding(record.Pushed); h == nil || h.Record == nil {
			continue // the body went meanwhile
		}
		outcome := t.correct(sl, w)
		t.count(record.Pushed).outcome(outcome)
		if outcome == record.Merged || outcome == record.Conflicting {
			result.Changed++
		}
	}
	return result, nil
}

// correct merges a correction. One of a body that lost details has lost them too: it was
// made of what the store shows.
func (t *tx) correct(sl *slot, w *record.Write) record.Outcome {
	before := *sl.entry.Holding(record.Pushed)
	outcome := sl.entry.Merge(*w)
	if h := sl.entry.Holding(record.Pushed); h != nil && before.Archived && h.Record == w.Record {
		h.Archived = t.m.leaves(w.Record, w.Record, h.Shown().Stop)
	}
	return outcome
}

func (c *DismissStopsCommand) apply(t *tx) (any, error) {
	var result DeleteResult
	for _, id := range c.IDs {
		if record.ValidateID(id) != nil {
			continue
		}
		sl, err := t.meet(hashText(id), id)
		if err != nil {
			return nil, err
		}
		if sl != nil && sl.entry.DismissStop(c.Until) {
			result.Changed++
		}
	}
	return result, nil
}
