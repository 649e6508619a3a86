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

func (*CorrectCommand) commandKind() kind      { return kindCorrect }
func (*DismissStopsCommand) commandKind() kind { return kindDismissStops }

func (*CorrectCommand) minVersion() uint16      { return 3 }
func (*DismissStopsCommand) minVersion() uint16 { return 3 }

func (c *CorrectCommand) visitFields(f fields) {
	visitList(f, &c.Writes, fields.visitWrite)
	f.visitTime(&c.Now)
}

func (c *DismissStopsCommand) visitFields(f fields) {
	visitList(f, &c.IDs, fields.visitText)
	f.visitInt(&c.Until)
}

func (c *CorrectCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for i := range c.Writes {
		w := &c.Writes[i]
		if w.Op != record.OpPut || !w.Origin.IsPushed() || checkWrite("", w) != nil {
			continue
		}
		sl, err := t.findSlot(hashText(w.ID), w.ID)
		if err != nil {
			return nil, err
		}
		if sl == nil {
			continue
		}
		if h := sl.entry.Holding(record.Pushed); h == nil || h.Record == nil {
			continue // the body went meanwhile
		}
		outcome := t.mergeCorrection(sl, w)
		t.countsOf(record.Pushed).countOutcome(outcome)
		if outcome == record.Merged || outcome == record.Conflicting {
			result.Changed++
		}
	}
	return result, nil
}

// mergeCorrection merges a correction. One of a body that lost details has lost them too: it was
// made of what the store shows.
func (t *tx) mergeCorrection(sl *slot, w *record.Write) record.Outcome {
	before := *sl.entry.Holding(record.Pushed)
	outcome := sl.entry.Merge(*w)
	if h := sl.entry.Holding(record.Pushed); h != nil && before.Archived && h.Record == w.Record {
		h.Archived = t.m.isArchivedAs(w.Record, w.Record, h.Shown().Stop)
	}
	return outcome
}

func (c *DismissStopsCommand) applyTo(t *tx) (any, error) {
	var result DeleteResult
	for _, id := range c.IDs {
		if record.ValidateID(id) != nil {
			continue
		}
		sl, err := t.findSlot(hashText(id), id)
		if err != nil {
			return nil, err
		}
		if sl != nil && sl.entry.DismissStop(c.Until) {
			result.Changed++
		}
	}
	return result, nil
}
