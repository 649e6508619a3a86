package store

import (
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/cockroachdb/pebble/v2"
)

func (c *PostCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	return t.post([][]byte{c.Rows}, c.IgnoreExisting)
}

// post adds the records of all batches, or none.
func (t *tx) post(batches [][]byte, ignoreExisting bool) (any, error) {
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
	t.parts = append(t.parts, p)
	for i := range batch.Len() {
		r := batch.Row(i).Record
		if err := r.Validate(); err != nil {
			result.Refused = err.Error()
			return nil //nolint:nilerr // the result says it
		}
		if err := t.postRecord(p, &r, result); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) postRecord(p *part, r *record.Record, result *PostResult) error {
	h := hashText(r.ID)
	sl, err := t.meet(h, r.ID)
	if err != nil {
		return err
	}
	if sl == nil {
		p.rows = append(p.rows, t.pushedRow(r))
		t.takeFresh(p, len(p.rows)-1, h)
		return t.posted(record.Added, result)
	}
	if sl.entry.Post(r, t.m.peek(t.now)) {
		t.m.tick(t.now)
		return t.posted(record.Added, result)
	}
	if len(result.Existing) < MaxExisting {
		result.Existing = append(result.Existing, clean(r.ID))
	}
	t.count(record.Pushed).outcome(refusal(&sl.entry))
	return nil
}

func (t *tx) posted(o record.Outcome, result *PostResult) error {
	t.count(record.Pushed).outcome(o)
	result.Added++
	return nil
}

func refusal(e *record.Entry) record.Outcome {
	if e.Deleted {
		return record.Deleted
	}
	return record.Stale
}

func (t *tx) pushedRow(r *record.Record) columns.Row {
	return columns.Row{Record: *r, Origin: record.Pushed, Rank: record.RankPush,
		Version: record.Version{Ended: !r.Open(), Observed: t.m.tick(t.now)}, Stop: record.None}
}

func (c *PutStopCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	if record.ValidateID(c.ID) != nil || checkStop(c.ID, c.Stop) != nil {
		return PutResult{}, nil //nolint:nilerr // what has such an id or stop is not found
	}
	sl, err := t.meet(hashText(c.ID), c.ID)
	if err != nil {
		return nil, err
	}
	if sl == nil || !sl.entry.PutStop(c.Stop, t.m.peek(t.now)) {
		return PutResult{}, nil
	}
	t.m.tick(t.now)
	t.count(record.Pushed).outcome(record.Merged)
	return PutResult{Found: true}, nil
}

func (c *DeleteCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for _, id := range c.IDs {
		if record.ValidateID(id) != nil {
			continue
		}
		sl, err := t.slot(id)
		if err != nil {
			return nil, err
		}
		if sl.entry.Deleted {
			continue
		}
		sl.entry.Merge(record.Write{ID: id, Op: record.OpDelete})
		sl.by, sl.at = c.By, c.Now
		result.Changed++
	}
	return result, nil
}

func (c *UndeleteCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	var result DeleteResult
	for _, id := range c.IDs {
		sl, err := t.meet(hashText(id), id)
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

func (h *stageHead) fields(f fields) {
	f.time(&h.Begun)
	small(f, &h.Parts)
}

// maxParts bounds the parts of an upload.
const maxParts = 1 << 16

func (c *StageCommand) apply(t *tx) (any, error) {
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
	if err := t.b.Set(stageHeadKey(c.Upload), encode(smallFormat, &head), nil); err != nil {
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
	return t.b.DeleteRange(prefix, after(prefix), nil)
}

func (c *CommitStageCommand) apply(t *tx) (any, error) {
	t.now = c.Now
	parts, err := readStage(t.r, c.Upload)
	if err != nil {
		return nil, err
	}
	if len(parts) == 0 || uint32(len(parts)) != c.Parts {
		return PostResult{Unknown: true}, nil
	}
	result, err := t.post(parts, c.IgnoreExisting)
	if err != nil {
		return nil, err
	}
	return result, t.dropStage(c.Upload)
}

func readStage(r pebble.Reader, u Upload) (parts [][]byte, err error) {
	err = scan(r, append([]byte{tableStage}, u[:]...), func(_, value []byte) error {
		parts = append(parts, append([]byte(nil), value...))
		return nil
	})
	return parts, err
}
