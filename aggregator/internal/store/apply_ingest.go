package store

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

func (c *IngestCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	key := textKey(tableCursor, c.Agent)
	cursor, err := t.readCursor(c.Agent, key)
	if err != nil {
		return nil, err
	}
	if !cursor.isContinuedBy(c) {
		return IngestResult{Cursor: cursor}, nil
	}
	if err := t.ingestFrames(c); err != nil {
		return nil, err
	}
	cursor.advance(c)
	result := IngestResult{Accepted: true, Cursor: cursor, Counts: t.totalCounts()}
	return result, t.putSmall(key, encodeValue(cursorFormat, &cursor))
}

func (t *tx) readCursor(agent string, key []byte) (Cursor, error) {
	b, err := t.getSmall(key)
	if err != nil || b == nil {
		return Cursor{Agent: agent}, err
	}
	return decodeCursor(agent, b)
}

func (t *tx) ingestFrames(c *IngestCommand) error {
	if len(c.Rows) > 0 {
		if err := t.ingestRows(c); err != nil {
			return err
		}
	}
	for i := range c.Writes {
		c.Writes[i].IDReused = slices.Contains(c.Reusing, c.Writes[i].Origin)
		if err := t.ingestWrite(c.Agent, &c.Writes[i]); err != nil {
			return err
		}
	}
	for i := range c.Quarantine {
		if err := t.quarantineJob(&c.Quarantine[i]); err != nil {
			return err
		}
	}
	return t.ingestMetadata(c)
}

// ingestMetadata ingests what is neither a write nor a failure.
func (t *tx) ingestMetadata(c *IngestCommand) error {
	for i := range c.Resolved {
		if err := t.putSmall(quarantineKey(c.Resolved[i].Source, c.Resolved[i].ID), nil); err != nil {
			return err
		}
	}
	for i := range c.Gaps {
		if err := t.putGap(&c.Gaps[i]); err != nil {
			return err
		}
	}
	for i := range c.Facts {
		if err := t.putFact(&c.Facts[i]); err != nil {
			return err
		}
	}
	return nil
}

// sourceOf is whose counters a write moves: what was pushed to an agent counts
// for that agent.
func sourceOf(agent string, o record.Origin) record.Origin {
	if o.IsPushed() {
		return record.Origin{Agent: agent}
	}
	return o
}

func (t *tx) ingestRows(c *IngestCommand) error {
	batch, err := columns.ParseBatch(c.Rows)
	if err != nil {
		return fmt.Errorf("%w: rows: %w", ErrCommand, err)
	}
	p := &part{batch: batch, facts: newFacts(batch, c.Agent, &t.hasher), taken: make([]int32, 0, batch.Len())}
	p.facts.setReusing(c.Reusing)
	t.parts = append(t.parts, p)
	t.fresh.reserve(batch.Len())
	check := newRowChecker(c.Agent)
	for i := range batch.Len() {
		if i%prefetchAhead == 0 {
			t.prefetchIDs(batch, i)
		}
		if err := t.ingestBatchRow(p, i, check); err != nil {
			return err
		}
	}
	return nil
}

// prefetchIDs makes the filter ready for the ids of the next rows.
func (t *tx) prefetchIDs(batch *columns.Batch, from int) {
	t.ahead = t.ahead[:0]
	for i := from; i < min(from+prefetchAhead, batch.Len()); i++ {
		t.ahead = append(t.ahead, hashText(batch.ID(i)))
	}
	t.s.filter.prefetch(t.ahead)
}

// ingestBatchRow takes in row i of the part. t.ahead has its hash.
func (t *tx) ingestBatchRow(p *part, i int, check *rowChecker) error {
	p.batch.ReadOwn(&t.own, i)
	if !p.facts.isCertainlyValid(&t.own, i) {
		return t.ingestUncheckedRow(p, i, check)
	}
	return t.ingestValidRow(p, i, t.own.Record.ID, t.ahead[i%prefetchAhead])
}

// ingestValidRow adds row i of the part, which is valid, or merges it when its id is
// known. Most rows are new and are never put together.
func (t *tx) ingestValidRow(p *part, i int, id string, h uint64) error {
	sl, err := t.findSlot(h, id)
	if err != nil {
		return err
	}
	counts := p.facts.sourceCounts(t, i)
	outcome, err := t.putBatchRow(p, i, sl, h)
	if err == nil {
		counts.countOutcome(outcome)
	}
	return err
}

// putBatchRow adds row i of the part, which t.own has, or merges it: sl is the slot of its id, nil
// for a new one, and h the id's hash.
func (t *tx) putBatchRow(p *part, i int, sl *slot, h uint64) (record.Outcome, error) {
	reused := p.facts.reusesIDs(i)
	if sl == nil {
		fresh, err := t.isFresh(reused)
		if err != nil {
			return 0, err
		}
		if fresh {
			t.addFreshRow(p, i, h)
			return record.Added, nil
		}
	}
	row := p.batch.Row(i)
	if sl != nil && sl.isRepeatedBy(&row) {
		return record.Unchanged, nil
	}
	body := row.Record
	w := record.Write{ID: body.ID, Op: record.OpPut, Origin: row.Origin, Rank: row.Rank, Version: row.Version, Record: &body, IDReused: reused}
	at, err := t.slotForWrite(sl, &w)
	if err != nil {
		return 0, err
	}
	return t.mergeIntoSlot(at, w), nil
}

// isFresh reports whether the row that t.own has belongs under its own id, which is new.
// Most rows do, and are never put together for that.
func (t *tx) isFresh(reused bool) (bool, error) {
	if !reused || t.own.Record.Submit == record.None {
		return true, nil // nothing else tells runs with a new id apart
	}
	id := t.own.Record.ID
	t.later = record.AppendSuffix(append(t.later[:0], id...), &t.own.Record)
	named := strings.HasSuffix(id, string(t.later[len(id):]))
	if !named && len(t.later) <= record.MaxGraphemes && !t.s.filter.mayContain(hashID(t.later)) {
		t.later = record.AppendStart(t.later[:len(id)], &t.own.Record)
		if len(t.later) <= record.MaxGraphemes && !t.s.filter.mayContain(hashID(t.later)) {
			return true, nil // the other ids are new, too
		}
	}
	w := record.Write{ID: id, Op: record.OpPut, Record: &t.own.Record, IDReused: reused}
	at, err := t.locateID(nil, &w)
	return at == id, err
}

// slotForWrite returns the slot under which a write belongs; sl is that of the write's own id, nil
// for a new one. The write gets the id.
func (t *tx) slotForWrite(sl *slot, w *record.Write) (*slot, error) {
	id, err := t.locateID(sl, w)
	if err != nil {
		return nil, err
	}
	if id == w.ID && sl != nil {
		return sl, nil
	}
	w.ID = id
	if w.Op == record.OpPut {
		w.Record.ID = id
	}
	return t.ensureSlot(id)
}

// locateID returns the id under which a write belongs; sl is the slot of its own id.
func (t *tx) locateID(sl *slot, w *record.Write) (string, error) {
	if !w.IDReused {
		return w.ID, nil
	}
	var failed error
	id := record.Locate(w, func(id string) *record.Entry {
		at, err := sl, error(nil)
		if id != w.ID {
			at, err = t.findSlot(hashText(id), id)
		}
		if failed = errors.Join(failed, err); at == nil {
			return nil
		}
		return &at.entry
	})
	return id, failed
}

// ingestUncheckedRow adds or merges row i of the part, which is checked as a whole.
func (t *tx) ingestUncheckedRow(p *part, i int, check *rowChecker) error {
	row := p.batch.Row(i)
	if problem := check.checkRow(&row); problem != nil {
		return t.quarantineInvalid(sourceOf(check.agent, check.permittedOrigin(&row)), &row.Record, problem)
	}
	h := hashText(row.Record.ID)
	sl, err := t.findSlot(h, row.Record.ID)
	if err != nil {
		return err
	}
	outcome, err := t.putBatchRow(p, i, sl, h)
	if err == nil {
		t.countsOf(check.source).countOutcome(outcome)
	}
	return err
}

// addFreshRow adds row i of the last part, whose id no one has heard of.
func (t *tx) addFreshRow(p *part, i int, hash uint64) {
	t.s.filter.addID(hash)
	t.fresh.addID(hash, len(t.parts)-1, i)
	p.taken = append(p.taken, int32(i))
}

func (t *tx) mergeWrite(source record.Origin, w record.Write) error {
	sl, err := t.findSlot(hashText(w.ID), w.ID)
	if err == nil {
		sl, err = t.slotForWrite(sl, &w)
	}
	if err != nil {
		return err
	}
	if w.Op == record.OpStop && movesArchived(sl, w.Stop) {
		problem := fieldError(w.ID, "stop_time", "is not that of the archived record; restore the archive of its month, then retry")
		return t.quarantineInvalid(source, &record.Record{ID: w.ID, Start: record.None, Stop: w.Stop, Submit: record.None}, problem)
	}
	t.countsOf(source).countOutcome(t.mergeIntoSlot(sl, w))
	return nil
}

// mergeIntoSlot merges a write. One that says of an archived run what the store still has of
// it is merged without the details: they are in the archive, and the run keeps its row.
func (t *tx) mergeIntoSlot(sl *slot, w record.Write) record.Outcome {
	if w.Op != record.OpPut || w.Record == nil {
		return sl.entry.Merge(w)
	}
	left := t.archivedBody(&sl.entry, w.Record)
	if left == nil {
		return sl.entry.Merge(w)
	}
	w.Record = left
	outcome := sl.entry.Merge(w)
	if h := sl.entry.Holding(w.Origin); h != nil && h.Record == left {
		h.Archived = true
	}
	return outcome
}

func (t *tx) ingestWrite(agent string, w *record.Write) error {
	source := sourceOf(agent, w.Origin)
	if !mayWrite(agent, w.Origin) {
		source = sourceOf(agent, record.Pushed)
	}
	if problem := checkWrite(agent, w); problem != nil {
		r := w.Record
		if r == nil {
			r = &record.Record{ID: w.ID, Start: record.None, Stop: w.Stop, Submit: record.None}
		}
		return t.quarantineInvalid(source, r, problem)
	}
	return t.mergeWrite(source, *w)
}

// rowChecker checks rows as a whole.
type rowChecker struct {
	agent  string
	source record.Origin // of the last row
}

func newRowChecker(agent string) *rowChecker { return &rowChecker{agent: agent} }

// permittedOrigin returns the row's origin when the agent may speak for it, else the
// agent's pushes.
func (c *rowChecker) permittedOrigin(row *columns.Row) record.Origin {
	if mayWrite(c.agent, row.Origin) {
		return row.Origin
	}
	return record.Pushed
}

func (c *rowChecker) checkRow(row *columns.Row) error {
	c.source = sourceOf(c.agent, row.Origin)
	if err := checkOrigin(c.agent, row.Origin, row.Rank, row.Version); err != nil {
		return err
	}
	if row.Tombstone || row.Stop != record.None {
		return fieldError(row.Record.ID, "record", "is no plain record")
	}
	return row.Record.Validate()
}

func mayWrite(agent string, o record.Origin) bool { return o.IsPushed() || o.Agent == agent }

func checkOrigin(agent string, o record.Origin, rank record.Rank, v record.Version) error {
	switch {
	case !mayWrite(agent, o):
		return fieldError("", "origin", fmt.Sprintf("%s is not a source of agent %s", o, agent))
	case !rank.Valid():
		return fieldError("", "rank", fmt.Sprintf("%d is no rank", rank))
	case v.Observed <= 0:
		return fieldError("", "observed", "is missing")
	}
	return nil
}

func checkWrite(agent string, w *record.Write) error {
	if err := checkOrigin(agent, w.Origin, w.Rank, w.Version); err != nil {
		return err
	}
	if err := record.ValidateID(w.ID); err != nil {
		return err
	}
	switch {
	case w.Op == record.OpPut && w.Record != nil:
		return w.Record.Validate()
	case w.Op == record.OpStop && w.Origin.IsPushed():
		return checkStop(w.ID, w.Stop)
	case w.Op == record.OpWithdraw:
		return nil
	}
	return fieldError(w.ID, "op", fmt.Sprintf("%d is no operation of this origin", w.Op))
}

func checkStop(id string, stop record.Time) error {
	if stop < record.MinTime || stop > record.MaxTime {
		return fieldError(id, "stop_time", "is missing or outside the years 0 to 9999")
	}
	return nil
}

func fieldError(id, field, problem string) error {
	return &record.FieldError{ID: id, Field: field, Problem: problem}
}

// invalidPrefix begins the ids of records that were not valid.
const invalidPrefix = "apply-"

// IsRecord reports whether what is quarantined is a record that was not valid, which no
// mapping made here, and not a job.
func (q *Quarantined) IsRecord() bool { return strings.HasPrefix(q.ID, invalidPrefix) }

// quarantineInvalid puts a record that is not valid into quarantine, under an id that is
// the same whenever it comes again.
func (t *tx) quarantineInvalid(source record.Origin, r *record.Record, problem error) error {
	digest := r.Digest()
	return t.quarantineJob(&Quarantined{Source: source, ID: invalidPrefix + hex.EncodeToString(digest[:]), Reason: "validation",
		Message: replaceInvalidUTF8(problem.Error()), RecordID: replaceInvalidUTF8(r.ID), Raw: rawRecord(r)})
}

func replaceInvalidUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func rawRecord(r *record.Record) []byte {
	raw, err := json.Marshal(r)
	if err != nil {
		raw = fmt.Appendf(nil, "%+v", *r)
	}
	return raw[:min(len(raw), maxRaw)]
}

// maxRaw bounds the raw input of a quarantined job, in bytes.
const maxRaw = 64 << 10

// quarantineJob keeps a job that gave no record, and counts it as one write.
func (t *tx) quarantineJob(q *Quarantined) error {
	t.countsOf(q.Source).countQuarantined()
	key := quarantineKey(q.Source, q.ID)
	old, err := t.getSmall(key)
	if err != nil {
		return err
	}
	item := *q
	item.First, item.Last, item.Count = t.now, t.now, 1
	if old != nil {
		before, err := decodeQuarantined(old)
		if err != nil {
			return err
		}
		item.First, item.Count = before.First, before.Count+1
	}
	return t.putSmall(key, encodeValue(smallFormat, &item))
}

const smallFormat = 1

func decodeQuarantined(b []byte) (Quarantined, error) {
	return decodeNew[Quarantined](b, smallFormat, "quarantined job")
}

func decodeGap(b []byte) (Gap, error)   { return decodeNew[Gap](b, smallFormat, "gap") }
func decodeFact(b []byte) (Fact, error) { return decodeNew[Fact](b, smallFormat, "fact") }

// putGap keeps a gap; the same one again changes nothing.
func (t *tx) putGap(g *Gap) error {
	key := gapKey(g)
	old, err := t.getSmall(key)
	if err != nil || old != nil {
		return err
	}
	item := *g
	item.Noticed = t.now
	return t.putSmall(key, encodeValue(smallFormat, &item))
}

// putFact keeps a fact, unless a newer one is there.
func (t *tx) putFact(f *Fact) error {
	key := factKey(f)
	old, err := t.getSmall(key)
	if err != nil {
		return err
	}
	if old != nil {
		before, err := decodeFact(old)
		if err != nil || f.Kind != FactBegin && before.At > f.At || f.Kind == FactBegin && before.At <= f.At {
			return err
		}
	}
	return t.putSmall(key, encodeValue(smallFormat, f))
}
