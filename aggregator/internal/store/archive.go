package store

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/archived"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

// ArchiveOp is what an [ArchiveCommand] does.
type ArchiveOp uint8

// The operations. Their numbers are part of the log's format.
const (
	// ArchiveRemove takes the next step of the removal: it checks rows, and when all
	// are checked takes their details away.
	ArchiveRemove ArchiveOp = 1
	// ArchiveRestore gives rows their details again.
	ArchiveRestore ArchiveOp = 2
	// ArchiveEnd takes the next step of the end of a restore: it counts the rows that
	// lack details, and forgets the archive where there are none.
	ArchiveEnd ArchiveOp = 3
)

// ArchiveCommand takes a step of an archive's removal or restore. A step looks at a
// bounded number of blocks, so the leader proposes the command again until the result says
// that it is done; after a kill anyone goes on where it stood. The result is an
// [ArchiveResult]. Since version 6.
type ArchiveCommand struct {
	Op ArchiveOp
	// Archive is the statement. Of an ArchiveRestore and ArchiveEnd only the name counts.
	Archive ArchiveStatement
	// Rows are those of an ArchiveRestore, each as [archived.Row.Append] gives it.
	Rows [][]byte
}

// ArchiveStatement says which rows are in files, and what stays of them in the store. The
// rows are all that the store shows with their details, that stopped in [From, To) and
// have a number up to UpTo.
type ArchiveStatement struct {
	Name     string
	From, To record.Time
	UpTo     uint64
	Rows     archived.Sum
	// Keep are the meta keys that stay, sorted.
	Keep []string

	Location, Manifest, SHA256 string

	Sums []ArchiveTotal // sorted by name
}

// ArchiveTotal is a figure of the manifest.
type ArchiveTotal struct{ Name, Value string }

// ArchiveState says how far an archive is.
type ArchiveState uint8

// The states. Their numbers are part of the stored format.
const (
	ArchiveChecking  ArchiveState = 1 // nothing is removed yet
	ArchiveRemoving  ArchiveState = 2
	Archived         ArchiveState = 3
	ArchiveRestoring ArchiveState = 4
	ArchiveEnding    ArchiveState = 5 // rows that lack details are counted
)

// String returns the state's name; the end of a restore is part of it.
func (s ArchiveState) String() string {
	return [...]string{"unknown", "checking", "removing", "archived", "restoring", "restoring"}[min(s, ArchiveEnding)]
}

// Archive is a statement with how far it is.
type Archive struct {
	ArchiveStatement

	State ArchiveState
	// Removed is how many rows lost their details and did not get them back.
	Removed uint64
	// Since is the least start, or submit time, of the rows.
	Since record.Time

	after uint64       // the last change that the present pass has looked at
	seen  archived.Sum // by the present pass
}

// ArchiveResult says what a step did.
type ArchiveResult struct {
	// Refused says why nothing was changed; "" when it was not refused.
	Refused string
	State   ArchiveState // 0: there is no such archive (any more)
	Done    bool         // no step of this operation is left
	Changed uint64       // rows that lost or got details in this step
	Left    uint64       // of a done ArchiveEnd: rows of the archive that lack details
}

// archiveSpace is the space of the documents that archives are.
const archiveSpace = "archive"

const archiveFormat = 1

// archiveBlocks is how many blocks a step reads. It is part of the log's format: all nodes
// take the same steps.
const archiveBlocks = 8

func (*ArchiveCommand) commandKind() kind  { return kindArchive }
func (*ArchiveCommand) minVersion() uint16 { return 6 }

func (c *ArchiveCommand) visitFields(f fields) {
	visitByte(f, &c.Op)
	c.Archive.visitFields(f)
	visitList(f, &c.Rows, fields.visitView)
}

func (s *ArchiveStatement) visitFields(f fields) {
	f.visitText(&s.Name)
	f.visitTime(&s.From)
	f.visitTime(&s.To)
	f.visitUint(&s.UpTo)
	f.visitArchiveSum(&s.Rows)
	visitList(f, &s.Keep, fields.visitText)
	f.visitText(&s.Location)
	f.visitText(&s.Manifest)
	f.visitText(&s.SHA256)
	visitList(f, &s.Sums, func(f fields, t *ArchiveTotal) {
		f.visitText(&t.Name)
		f.visitText(&t.Value)
	})
}

func (f fields) visitArchiveSum(s *archived.Sum) {
	f.visitUint(&s.Count)
	f.visitFixed64(&s.Hi)
	f.visitFixed64(&s.Lo)
}

func (a *Archive) visitFields(f fields) {
	a.ArchiveStatement.visitFields(f)
	visitByte(f, &a.State)
	f.visitUint(&a.Removed)
	f.visitTime(&a.Since)
	f.visitUint(&a.after)
	f.visitArchiveSum(&a.seen)
}

// isSameAs reports whether two statements are one.
func (s *ArchiveStatement) isSameAs(o *ArchiveStatement) bool {
	return string(encodeValue(archiveFormat, s)) == string(encodeValue(archiveFormat, o))
}

// covers reports whether a closed row is one of those that the archive is about, details
// or not.
func (s *ArchiveStatement) covers(row *columns.Row) bool {
	stop := row.ShownStop()
	return !row.Tombstone && stop != record.None && s.From <= stop && stop < s.To && row.Seq <= s.UpTo
}

// keepsKey reports whether the key stays.
func (s *ArchiveStatement) keepsKey(key string) bool {
	_, ok := slices.BinarySearch(s.Keep, key)
	return ok
}

// withoutDetails returns the record without the details that leave.
func (s *ArchiveStatement) withoutDetails(r *record.Record) record.Record {
	out := *r
	out.State, out.Exit = "", record.Exit{}
	if r.Meta != nil {
		out.Meta = slices.DeleteFunc(slices.Clone(r.Meta), func(e record.MetaEntry) bool { return !s.keepsKey(e.Key) })
		if out.Meta == nil {
			out.Meta = record.Meta{} // an empty one is not an absent one
		}
	}
	return out
}

// ArchivedRow is a closed row as it is archived. It shares the slices of row.
func ArchivedRow(row *columns.Row) archived.Row {
	return archived.Row{Record: row.Record, Origin: row.Origin, Rank: row.Rank, Version: row.Version, Stop: row.Stop,
		StopObserved: row.StopObserved, Seq: row.Seq, Received: row.Received, Changed: row.Changed, Supersedes: row.Supersedes}
}

func (l *loaded) loadArchives(r pebble.Reader) error {
	return scanPrefix(r, documentKey(archiveSpace, ""), func(_, value []byte) error {
		a, err := decodeNew[Archive](value, archiveFormat, "archive")
		l.memory.archives = append(l.memory.archives, &a)
		return err
	})
}

// archiveByName returns a copy of the archive; nil for none.
func (m *memory) archiveByName(name string) *Archive {
	i, ok := findArchive(m.archives, name)
	if !ok {
		return nil
	}
	a := *m.archives[i]
	return &a
}

func findArchive(list []*Archive, name string) (int, bool) {
	return slices.BinarySearchFunc(list, name, func(a *Archive, name string) int { return cmp.Compare(a.Name, name) })
}

// setArchive keeps an archive, or forgets it.
func (t *tx) setArchive(name string, a *Archive) error {
	i, ok := findArchive(t.m.archives, name)
	list := slices.Clone(t.m.archives)
	var value []byte
	switch {
	case a == nil && ok:
		list = slices.Delete(list, i, i+1)
	case a != nil && ok:
		list[i] = a
	case a != nil:
		list = slices.Insert(list, i, a)
	}
	if a != nil {
		value = encodeValue(archiveFormat, a)
	}
	t.m.archives = list
	return t.putSmall(documentKey(archiveSpace, name), value)
}

func (c *ArchiveCommand) applyTo(t *tx) (any, error) {
	a := t.m.archiveByName(c.Archive.Name)
	switch {
	case c.Op == ArchiveRemove:
		return t.removeArchived(a, &c.Archive)
	case a == nil:
		return ArchiveResult{Done: true, Refused: fmt.Sprintf("archive %q not found", c.Archive.Name)}, nil
	case c.Op == ArchiveRestore:
		return t.restoreArchived(a, c.Rows)
	case c.Op == ArchiveEnd:
		return t.endArchive(a)
	}
	return ArchiveResult{Done: true, Refused: fmt.Sprintf("unknown operation %d on an archive", c.Op)}, nil
}

// removeArchived takes a step of a removal. While rows are checked, what the store shows
// up to a change only gets less, so rows that were checked and are shown later are in the
// files, whatever else came meanwhile.
func (t *tx) removeArchived(a *Archive, want *ArchiveStatement) (any, error) {
	if a == nil || a.State == ArchiveChecking && !a.isSameAs(want) {
		if refused := t.newArchiveProblem(want); refused != "" {
			return ArchiveResult{Done: true, Refused: refused}, nil
		}
		a = &Archive{ArchiveStatement: *want, State: ArchiveChecking, Since: want.To}
	}
	if !a.isSameAs(want) || a.State > Archived {
		refused := fmt.Sprintf("archive %q exists with other rows or files, or is being restored; restore it first, or use another name", a.Name)
		return ArchiveResult{Done: true, State: a.State, Refused: refused}, nil
	}
	switch a.State {
	case ArchiveChecking:
		return t.checkArchived(a)
	case ArchiveRemoving:
		return t.stripArchived(a)
	}
	return ArchiveResult{State: a.State, Done: true}, nil
}

// newArchiveProblem says why a new archive cannot begin; "" when it can. Archives of one time
// follow one another, so that each row without details belongs to the first that covers
// it.
func (t *tx) newArchiveProblem(s *ArchiveStatement) string {
	switch {
	case s.Name == "" || len(s.Name) > 200:
		return "the name of an archive must have 1 to 200 bytes"
	case s.From >= s.To:
		return "the period must end after its start"
	case s.UpTo >= t.m.Next:
		return fmt.Sprintf("the archive holds up to change %d; the store is at %d", s.UpTo, t.m.Next-1)
	case !slices.IsSorted(s.Keep):
		return "the keys to keep must be sorted"
	}
	for _, o := range t.m.archives {
		if o.Name == s.Name || o.From >= s.To || s.From >= o.To {
			continue
		}
		if o.State != Archived {
			return fmt.Sprintf("archive %q of the same time is %s; finish it first", o.Name, o.State)
		}
		if o.UpTo >= s.UpTo {
			return fmt.Sprintf("archive %q of the same time is as new; read the rows again after the next change", o.Name)
		}
	}
	return ""
}

// checkArchived adds up the rows of the next blocks and, at the end, compares them with
// the statement.
func (t *tx) checkArchived(a *Archive) (any, error) {
	var bytes []byte
	var other string
	end, err := t.archiveStep(a, func(row *columns.Row) bool {
		if a.covers(row) && !row.Archived {
			other = cmp.Or(other, t.m.coveredBy(row))
			out := ArchivedRow(row)
			bytes = out.Append(bytes[:0])
			a.seen.Add(bytes)
			a.Since = min(a.Since, row.Record.Start)
			if row.Record.Submit != record.None {
				a.Since = min(a.Since, row.Record.Submit)
			}
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	if other != "" {
		refused := fmt.Sprintf("archive %q has rows of that time that were restored; restore all of it first", other)
		return ArchiveResult{Done: true, Refused: refused}, t.setArchive(a.Name, nil)
	}
	if end && a.seen != a.Rows {
		refused := fmt.Sprintf("the store has %d rows of that time with the digest %s, the files have %d with %s; nothing was removed; read the rows again",
			a.seen.Count, a.seen.Digest(), a.Rows.Count, a.Rows.Digest())
		return ArchiveResult{Done: true, Refused: refused}, t.setArchive(a.Name, nil)
	}
	if end {
		a.State, a.after, a.seen = ArchiveRemoving, 0, archived.Sum{}
	}
	return ArchiveResult{State: a.State}, t.setArchive(a.Name, a)
}

// stripArchived removes the details of the rows of the next blocks.
func (t *tx) stripArchived(a *Archive) (any, error) {
	result := ArchiveResult{State: a.State}
	end, err := t.archiveStep(a, func(row *columns.Row) bool {
		if !a.covers(row) || row.Archived {
			return false
		}
		row.Record, row.Archived = a.withoutDetails(&row.Record), true
		result.Changed++
		return true
	})
	if err != nil {
		return nil, err
	}
	if a.Removed += result.Changed; end {
		a.State, a.after = Archived, 0
	}
	t.recordDrop(int(result.Changed))
	result.State, result.Done = a.State, end
	return result, t.setArchive(a.Name, a)
}

// endArchive counts the rows of the next blocks that lack details. The archive goes when
// there are none.
func (t *tx) endArchive(a *Archive) (any, error) {
	if a.State != ArchiveEnding {
		a.after, a.seen = 0, archived.Sum{}
	}
	if a.State == ArchiveChecking { // nothing was removed
		return ArchiveResult{Done: true}, t.setArchive(a.Name, nil)
	}
	a.State = ArchiveEnding
	end, err := t.archiveStep(a, func(row *columns.Row) bool {
		if row.Archived && t.m.archiveOf(row) == a.Name {
			a.seen.Count++
		}
		return false
	})
	if err != nil {
		return nil, err
	}
	if end {
		held, err := t.countHiddenBodies(a)
		if err != nil {
			return nil, err
		}
		a.seen.Count += held
	}
	result := ArchiveResult{State: a.State, Done: end, Left: a.seen.Count}
	switch {
	case end && a.seen.Count == 0:
		result.State = 0
		return result, t.setArchive(a.Name, nil)
	case end:
		a.State, a.Removed, a.after, a.seen = Archived, a.seen.Count, 0, archived.Sum{}
		result.State = Archived
	}
	return result, t.setArchive(a.Name, a)
}

// coveredBy returns the name of an archive that took the details of rows like this one; ""
// for none.
func (m *memory) coveredBy(row *columns.Row) string {
	for _, a := range m.archives {
		if a.State != ArchiveChecking && a.covers(row) {
			return a.Name
		}
	}
	return ""
}

// countHiddenBodies counts the bodies of the archive's time that lost details and are not shown.
func (t *tx) countHiddenBodies(a *Archive) (n uint64, err error) {
	err = scanPrefix(t.r, []byte{tableLeft}, func(key, _ []byte) error {
		sl, err := t.loadSlot(keyText(key))
		if err != nil {
			return err
		}
		best := sl.entry.Best()
		for i := range sl.entry.Holdings {
			h := &sl.entry.Holdings[i]
			if h == best || !h.Archived || h.Record == nil {
				continue
			}
			if stop := h.Shown().Stop; a.From <= stop && stop < a.To {
				n++
			}
		}
		return nil
	})
	return n, err
}

// archiveOf returns the name of the archive that a row without details belongs to: of
// those that cover it the one with the least UpTo, and where none does, since the row came
// again, the last of its time. "" for none.
func (m *memory) archiveOf(row *columns.Row) string {
	var first, last *Archive
	for _, a := range m.archives {
		if stop := row.ShownStop(); a.State == ArchiveChecking || stop < a.From || stop >= a.To {
			continue
		}
		if a.covers(row) && (first == nil || a.UpTo < first.UpTo) {
			first = a
		}
		if last == nil || a.UpTo > last.UpTo {
			last = a
		}
	}
	if a := cmp.Or(first, last); a != nil {
		return a.Name
	}
	return ""
}

// archiveStep calls change with the shown closed rows of the next blocks that have rows
// of the archive, and with those that wait where no block is left. A row that change
// reports as changed takes the place of what it was. end says that all were seen.
func (t *tx) archiveStep(a *Archive, change func(*columns.Row) bool) (end bool, err error) {
	read := 0
	for _, z := range t.m.zones { // changed below: a new list takes the place
		if z.Last <= a.after || z.MaxStop < a.From || z.MinStop >= a.To {
			continue
		}
		if read++; read > archiveBlocks {
			return false, nil
		}
		after := a.after
		err := t.rewriteBlock(z, func(row *columns.Row) bool { return row.Seq > after && change(row) })
		if err != nil {
			return false, fmt.Errorf("archive %s: block %d: %w", a.Name, z.First, err)
		}
		a.after = z.Last
	}
	return true, t.rewriteWaiting(func(row *columns.Row) bool { return row.Seq > a.after && change(row) })
}

// rewriteBlock calls change with each row of a block that is not superseded, and writes
// the block with what it changed. Rows keep their numbers and places.
func (t *tx) rewriteBlock(z *zone, change func(*columns.Row) bool) error {
	block, err := readBlock(t.r, z, t.s.blocks.reader)
	if err != nil {
		return err
	}
	mask, err := readMask(t.r, z)
	if err != nil {
		return err
	}
	sum, before, after := z.Sum, make([]columns.Row, 0, block.Len()), make([]columns.Row, 0, block.Len())
	changed := false
	for row, err := range block.Rows() {
		if err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		before = append(before, row)
		if i := len(after); !mask.Has(i) && !row.Tombstone && change(&row) {
			changed = true
			t.exchangeRowHash(&sum, &before[i], &row)
		}
		after = append(after, row)
	}
	if !changed {
		return nil
	}
	for i := range before {
		if err := t.dropPostings(z.First, &before[i]); err != nil {
			return err
		}
	}
	return t.replaceBlock(z, after, sum)
}

// exchangeRowHash takes the hash of a row out of the state's and of a sum, and that of another in.
func (t *tx) exchangeRowHash(sum *Hash, before, after *columns.Row) {
	was, now := t.hasher.hashRow(before), t.hasher.hashRow(after)
	for _, h := range []*Hash{&t.m.Hash, sum} {
		h.subtractHash(was)
		h.addHash(now)
	}
}

// replaceBlock writes rows in the place of those of a block, which has the same ones
// superseded.
func (t *tx) replaceBlock(z *zone, rows []columns.Row, sum Hash) error {
	enc, err := columns.EncodeBlock(t.m.dict, columns.Part{Rows: rows})
	if err != nil {
		return err
	}
	other := newZone(enc.Header, len(enc.Data))
	other.First, other.Dead, other.Sum = z.First, z.Dead, sum
	t.cloneZones()
	i, _ := findZone(t.m.zones, z.First)
	t.m.zones[i] = other
	t.s.blocks.evict(z.First)
	return t.storeBlock(other, enc)
}

// rewriteWaiting is [tx.rewriteBlock] of the rows that wait for a block.
func (t *tx) rewriteWaiting(change func(*columns.Row) bool) error {
	for i, w := range t.m.waiting {
		after := w.row
		if w.dead || w.row.Tombstone || !change(&after) {
			continue
		}
		t.cloneWaiting()
		sum := w.sum
		t.exchangeRowHash(&sum, &w.row, &after)
		other := &waitingRow{row: after, sum: sum}
		t.m.waiting[i] = other
		if err := t.b.Set(seqKey(tableWaiting, after.Seq), other.encodeWaiting(), nil); err != nil {
			return err
		}
	}
	return nil
}
