package store

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
)

// restoreArchived gives rows their details again, as far as the store still has of them
// what the archive left. What changed since stays as it is.
func (t *tx) restoreArchived(a *Archive, rows [][]byte) (any, error) {
	if a.State == ArchiveChecking {
		return ArchiveResult{Done: true, State: a.State, Refused: fmt.Sprintf("archive %q has removed nothing", a.Name)}, nil
	}
	list := make([]archived.Row, len(rows))
	for i, data := range rows {
		var err error
		if list[i], err = archived.Decode(data); err != nil {
			return ArchiveResult{Done: true, State: a.State, Refused: err.Error()}, nil //nolint:nilerr // the result says it
		}
		if refused := a.rowProblem(&list[i]); refused != "" {
			return ArchiveResult{Done: true, State: a.State, Refused: refused}, nil
		}
	}
	full := map[uint64]record.Record{} // by the number of the shown row
	for i := range list {
		if err := t.restoreRow(a, &list[i], full); err != nil {
			return nil, err
		}
	}
	changed, err := t.fillRecords(full)
	if err != nil {
		return nil, fmt.Errorf("restore archive %s: %w", a.Name, err)
	}
	a.State, a.Removed = ArchiveRestoring, a.Removed-min(changed, a.Removed)
	return ArchiveResult{State: a.State, Done: true, Changed: changed}, t.setArchive(a.Name, a)
}

// rowProblem says why a row cannot be one of the archive; "" when it can.
func (a *Archive) rowProblem(row *archived.Row) string {
	stop := row.ShownStop()
	switch {
	case stop == record.None || stop < a.From || stop >= a.To || row.Seq == 0 || row.Seq > a.UpTo:
		return fmt.Sprintf("row %d of %q is not one of archive %q", row.Seq, row.Record.ID, a.Name)
	case row.Record.Validate() != nil:
		return fmt.Sprintf("row %d of %q is not valid: %v", row.Seq, row.Record.ID, row.Record.Validate())
	}
	return ""
}

// restoreRow gives what is held under a row's id its details again, and notes the shown
// row that lacks them.
func (t *tx) restoreRow(a *Archive, row *archived.Row, full map[uint64]record.Record) error {
	sl, err := t.findSlot(hashText(row.Record.ID), row.Record.ID)
	if err != nil || sl == nil {
		return err
	}
	left := a.withoutDetails(&row.Record)
	for i := range sl.entry.Holdings {
		h := &sl.entry.Holdings[i]
		if h.Archived && h.Record != nil && sameRecord(&left, h.Record) {
			h.Record, h.Archived = &row.Record, false
		}
	}
	if r := sl.row; r != nil && r.Archived && sameRecord(&left, &r.Record) {
		whole := *r
		whole.Record, whole.Archived = row.Record, false
		full[r.Seq], sl.row = row.Record, &whole
	}
	return nil
}

// fillRecords puts whole records into the rows of the numbers.
func (t *tx) fillRecords(full map[uint64]record.Record) (changed uint64, err error) {
	change := func(row *columns.Row) bool {
		whole, ok := full[row.Seq]
		if !ok || !row.Archived {
			return false
		}
		row.Record, row.Archived = whole, false
		changed++
		return true
	}
	last := uint64(0) // of the block that was rewritten last
	for _, seq := range sortedKeys(full) {
		if seq <= last {
			continue
		}
		i, ok := findZone(t.m.zones, seq)
		if !ok {
			continue // it waits
		}
		z := t.m.zones[i]
		last = z.Last
		if err := t.rewriteBlock(z, change); err != nil {
			return 0, err
		}
	}
	return changed, t.rewriteWaiting(change)
}

// archivedBody returns a body that is what an archive left of the record; nil for none. What an
// origin says of the run then is no news: only its version is.
func (t *tx) archivedBody(e *record.Entry, r *record.Record) *record.Record {
	for i := range e.Holdings {
		h := &e.Holdings[i]
		if h.Archived && h.Record != nil && t.m.isArchivedAs(r, h.Record, h.Shown().Stop) {
			return h.Record
		}
	}
	return nil
}

// isArchivedAs reports whether an archive of the time of a stop leaves what is left of a record.
func (m *memory) isArchivedAs(r, left *record.Record, stop record.Time) bool {
	for _, a := range m.archives {
		if a.State == ArchiveChecking || stop < a.From || stop >= a.To {
			continue
		}
		if thin := a.withoutDetails(r); sameRecord(&thin, left) {
			return true
		}
	}
	return false
}

// hidesArchivedBody reports whether a body that lost details is held and not shown.
func hidesArchivedBody(e *record.Entry) bool {
	best := e.Best()
	for i := range e.Holdings {
		h := &e.Holdings[i]
		if h.Archived && h.Record != nil && (!best.Archived || h.Record != best.Record && !record.Same(h.Record, best.Record)) {
			return true
		}
	}
	return false
}

// movesArchived reports whether a stop would change a run whose details were archived:
// then it would be of another time than its archive.
func movesArchived(sl *slot, stop record.Time) bool {
	h := sl.entry.Holding(record.Pushed)
	return h != nil && h.Archived && h.Record != nil && h.Shown().Stop != stop
}
