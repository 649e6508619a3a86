package store

import (
	"cmp"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

func (c *PostCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	return t.postBatches([][]byte{c.Rows}, c.IgnoreExisting)
}

// postBatches adds the records of all batches, or none.
func (t *tx) postBatches(batches [][]byte, ignoreExisting bool) (any, error) {
	var result PostResult
	for _, data := range batches {
		if len(data) == 0 {
			continue
		}
		if err := t.postBatch(data, &result); err != nil {
			return nil, err
		}
		if result.Refused != "" {
			break
		}
	}
	if result.Refused != "" || len(result.Existing) > 0 && !ignoreExisting {
		t.abort()
		result.Added = 0
	}
	return func() any {
		result.Seq = t.m.Next - 1
		return result
	}, nil
}

func (t *tx) postBatch(data []byte, result *PostResult) error {
	batch, err := columns.ParseBatch(data)
	if err != nil {
		return fmt.Errorf("%w: rows: %w", ErrCommand, err)
	}
	p := &part{}
	if t.m.Version >= batchPosts && batch.Pushed() {
		p = &part{batch: batch, facts: newFacts(batch, "", &t.hasher), observed: make([]uint64, batch.Len())}
	}
	t.parts = append(t.parts, p)
	t.fresh.reserve(batch.Len())
	counts := t.countsOf(record.Pushed)
	for i := range batch.Len() {
		if i%prefetchAhead == 0 {
			t.prefetchIDs(batch, i)
		}
		if p.batch == nil || !t.isValidPost(p, i) {
			r := batch.Row(i).Record
			if err := r.Validate(); err != nil {
				result.Refused = err.Error()
				return nil //nolint:nilerr // the result says it
			}
		}
		if err := t.postRow(p, batch, i, counts, result); err != nil {
			return err
		}
	}
	return nil
}

// isValidPost reports whether row i of a posted batch is certainly valid.
func (t *tx) isValidPost(p *part, i int) bool {
	p.batch.ReadOwn(&t.own, i)
	t.own.Version.Observed = 1 // it will be set
	return p.facts.isCertainlyValid(&t.own, i)
}

// postRow adds row i of the batch, which is valid. t.ahead has its hash.
func (t *tx) postRow(p *part, batch *columns.Batch, i int, counts *Counts, result *PostResult) error {
	h, id := t.ahead[i%prefetchAhead], batch.ID(i)
	sl, err := t.findSlot(h, id)
	if err != nil {
		return err
	}
	outcome := record.Added
	switch {
	case sl == nil && p.batch != nil:
		p.observed[i] = uint64(t.m.tickClock(t.now))
		t.addFreshRow(p, i, h)
	case sl == nil:
		r := batch.Row(i).Record
		p.rows = append(p.rows, t.pushedRow(&r))
		t.addFreshRow(p, len(p.rows)-1, h)
	default:
		outcome = t.postExisting(sl, batch.Row(i).Record, result)
	}
	if counts.countOutcome(outcome); outcome == record.Added {
		result.Added++
	}
	return nil
}

// postExisting adds a record whose id the store or the command knows, unless it shows one.
func (t *tx) postExisting(sl *slot, r record.Record, result *PostResult) record.Outcome {
	if sl.entry.Post(&r, t.m.peekClock(t.now)) {
		t.m.tickClock(t.now)
		return record.Added
	}
	if len(result.Existing) < MaxExisting {
		result.Existing = append(result.Existing, replaceInvalidUTF8(r.ID))
	}
	return refusedOutcome(&sl.entry)
}

func refusedOutcome(e *record.Entry) record.Outcome {
	if e.Deleted {
		return record.Deleted
	}
	return record.Stale
}

func (t *tx) pushedRow(r *record.Record) columns.Row {
	return columns.Row{Record: *r, Origin: record.Pushed, Rank: record.RankPush,
		Version: record.Version{Ended: !r.Open(), Observed: t.m.tickClock(t.now)}, Stop: record.None}
}

func (c *PutStopCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	return t.putStop(PutStop{ID: c.ID, Stop: c.Stop})
}

func (c *PutStopsCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	results := make([]any, 0, len(c.Puts))
	for _, p := range c.Puts {
		result, err := t.putStop(p)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return results, nil
}

func (t *tx) putStop(p PutStop) (PutResult, error) {
	if record.ValidateID(p.ID) != nil || checkStop(p.ID, p.Stop) != nil {
		return PutResult{}, nil //nolint:nilerr // what has such an id or stop is not found
	}
	sl, err := t.findSlot(hashText(p.ID), p.ID)
	if err != nil {
		return PutResult{}, err
	}
	if sl == nil {
		return PutResult{}, nil
	}
	archived := false
	if best := sl.entry.Best(); best != nil && best.Archived {
		if archived = best.Shown().Stop == p.Stop; !archived {
			return PutResult{Found: true, Archived: cmp.Or(t.m.archiveOf(rowOfHolding(best)), "unknown")}, nil
		}
	}
	if !sl.entry.PutStop(p.Stop, t.m.peekClock(t.now)) {
		return PutResult{}, nil
	}
	if archived {
		sl.entry.Best().Archived = true // the stop is the one that it has
	}
	t.m.tickClock(t.now)
	t.countsOf(record.Pushed).countOutcome(record.Merged)
	return PutResult{Found: true}, nil
}

// rowOfHolding has the times of a holding.
func rowOfHolding(h *record.Holding) *columns.Row {
	return &columns.Row{Record: *h.Record, Stop: h.Stop}
}

func (c *DeleteCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for _, id := range c.IDs {
		if record.ValidateID(id) != nil {
			continue
		}
		sl, err := t.ensureSlot(id)
		if err != nil {
			return nil, err
		}
		if sl.entry.Deleted {
			continue
		}
		t.markDeleted(sl, c.By)
		result.Changed++
	}
	return result, nil
}

// markDeleted marks an id as deleted.
func (t *tx) markDeleted(sl *slot, by string) {
	sl.entry.Merge(record.Write{ID: sl.entry.ID, Op: record.OpDelete})
	sl.by, sl.at, sl.entry.DeletedAt = by, t.now, t.now
}

func (c *UndeleteCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for _, id := range c.IDs {
		sl, err := t.findSlot(hashText(id), id)
		if err != nil {
			return nil, err
		}
		if sl != nil && sl.entry.Deleted {
			sl.entry.Undelete()
			result.Changed++
		}
	}
	return result, nil
}

// stageHead is what is known of an upload.
type stageHead struct {
	Begun record.Time
	Parts uint32 // above the greatest part
}

func (h *stageHead) visitFields(f fields) {
	f.visitTime(&h.Begun)
	visitSmallUint(f, &h.Parts)
}

// maxParts bounds the parts of an upload.
const maxParts = 1 << 16

func (c *StageCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	if err := t.expireStages(); err != nil {
		return nil, err
	}
	if c.Part >= maxParts {
		return nil, nil
	}
	head, known := t.s.stages[c.Upload]
	if _, expired := t.stages[c.Upload]; !known || expired {
		head.Parts = 0
		head.Begun = c.Now
	}
	head.Parts = max(head.Parts, c.Part+1)
	t.stages[c.Upload] = &head
	if err := t.b.Set(stageHeadKey(c.Upload), encodeValue(smallFormat, &head), nil); err != nil {
		return nil, err
	}
	return nil, t.b.Set(stageKey(c.Upload, c.Part), c.Rows, nil)
}

func (t *tx) expireStages() error {
	for u, head := range t.s.stages { // every one by itself: the order does not matter
		if head.Begun+StageLife < t.now {
			if err := t.dropStage(u); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tx) dropStage(u Upload) error {
	t.stages[u] = nil
	if err := t.b.Delete(stageHeadKey(u), nil); err != nil {
		return err
	}
	prefix := append([]byte{tableStage}, u[:]...)
	return t.b.DeleteRange(prefix, prefixEnd(prefix), nil)
}

func (c *CommitStageCommand) applyTo(t *tx) (any, error) {
	t.now = c.Now
	parts, err := readStage(t.r, c.Upload)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 || uint32(len(parts)) != c.Parts {
		return PostResult{Unknown: true}, nil
	}
	result, err := t.postBatches(parts, c.IgnoreExisting)
	if err != nil {
		return nil, err
	}
	return result, t.dropStage(c.Upload)
}

func readStage(r pebble.Reader, u Upload) (parts [][]byte, err error) {
	err = scanPrefix(r, append([]byte{tableStage}, u[:]...), func(_, value []byte) error {
		parts = append(parts, append([]byte(nil), value...))
		return nil
	})
	return parts, err
}
