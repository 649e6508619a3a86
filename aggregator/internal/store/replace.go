package store

import "github.com/bursar-accounting/bursar/proto/record"

// ReplaceCommand puts a new record in the place of another one: the id of the old one is
// marked as deleted, and the new one has an id of its own. Both happen at once, so that no
// picture of the store has both of them, or none. The result is a [DeleteResult] with how many
// were replaced; the others stay as they are. Since version 9.
type ReplaceCommand struct {
	Replacements []Replacement
	By           string // for the marks
	Now          record.Time
}

// Replacement is a record that takes the place of another one.
type Replacement struct {
	// ID is that of the old one. Where the row that it shows is not Seq, is open, or lacks
	// archived details, nothing changes: the replacement was made of something else.
	ID  string
	Seq uint64
	// Write is an [record.OpPut] of a record with an id that the store has never heard of;
	// otherwise nothing changes.
	Write record.Write
}

func (*ReplaceCommand) commandKind() kind  { return kindReplace }
func (*ReplaceCommand) minVersion() uint16 { return 9 }

func (c *ReplaceCommand) visitFields(f fields) {
	visitList(f, &c.Replacements, fields.visitReplacement)
	f.visitText(&c.By)
	f.visitTime(&c.Now)
}

func (f fields) visitReplacement(r *Replacement) {
	f.visitText(&r.ID)
	f.visitUint(&r.Seq)
	f.visitWrite(&r.Write)
}

func (c *ReplaceCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for i := range c.Replacements {
		done, err := t.replaceRecord(&c.Replacements[i], c.By)
		if err != nil {
			return nil, err
		}
		if done {
			result.Changed++
		}
	}
	return result, nil
}

func (t *tx) replaceRecord(r *Replacement, by string) (bool, error) {
	w := &r.Write
	if valid := checkWrite(w.Origin.Agent, w) == nil; !valid || w.Op != record.OpPut || w.Record.Open() {
		return false, nil
	}
	old, err := t.findSlot(hashText(r.ID), r.ID)
	if err != nil || old == nil || !old.showsClosedRow(r.Seq) {
		return false, err
	}
	taken, err := t.findSlot(hashText(w.ID), w.ID)
	if err != nil || taken != nil {
		return false, err
	}
	added, err := t.ensureSlot(w.ID)
	if err != nil {
		return false, err
	}
	t.countsOf(w.Origin).countOutcome(added.entry.Merge(*w))
	t.markDeleted(old, by)
	return true, nil
}

// showsClosedRow reports whether an id that this command has not changed shows a closed row with its
// details, under that number.
func (sl *slot) showsClosedRow(seq uint64) bool {
	best := sl.entry.Best()
	return !sl.entry.Deleted && best != nil && sl.row != nil && sl.row.Seq == seq && sameShown(best, sl.row) && !isOpen(sl.row) && !sl.row.Archived
}
