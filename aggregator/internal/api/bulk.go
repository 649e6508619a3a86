package api

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// maxPart is the most bytes of a batch that fits into an entry of the log.
const maxPart = 380 << 10

// bulk cuts records into batches that fit into an entry.
type bulk struct {
	builder *columns.Builder
	row     columns.Row
	parts   [][]byte
	err     error
}

// builders keeps what batches are made with for the next bulk.
type builders struct{ pool sync.Pool }

// buildBatches calls fill with an empty bulk and returns its batches. The error is that
// of fill, or names a record that fits into no entry.
func (bs *builders) buildBatches(fill func(*bulk) error) (parts [][]byte, err error) {
	builder, ok := bs.pool.Get().(*columns.Builder)
	if !ok {
		builder = columns.NewBuilder()
	}
	b := &bulk{builder: builder}
	if err := fill(b); err != nil {
		builder.Reset()
		bs.pool.Put(builder)
		return nil, err
	}
	parts, err = b.finishParts()
	bs.pool.Put(builder)
	return parts, err
}

// buildOne returns the batch of records that fit into one entry.
func (bs *builders) buildOne(records iter.Seq[*record.Record]) ([]byte, error) {
	parts, err := bs.buildBatches(func(b *bulk) error {
		for r := range records {
			b.addRecord(r)
		}
		return nil
	})
	if err == nil && len(parts) != 1 {
		err = fmt.Errorf("records that were to fit into one entry make %d", len(parts))
	}
	if err != nil {
		return nil, err
	}
	return parts[0], nil
}

// errRecordSize is wrapped when a record fits into no entry.
var errRecordSize = errors.New("larger than allowed")

// addRecord takes a record in. Its strings must stay until the bulk is done.
func (b *bulk) addRecord(r *record.Record) {
	if n := b.builder.Len(); n == columns.MaxRows || n > 0 && b.builder.Size()+sizeOf(r) > columns.MaxBatch {
		b.flushBuilder()
	}
	b.row = columns.Row{Record: *r, Rank: record.RankPush, Version: record.Version{Ended: !r.Open()}, Stop: record.None}
	b.builder.Add(&b.row)
}

func (b *bulk) flushBuilder() {
	part := b.builder.Bytes()
	b.builder.Reset()
	b.addPart(part)
}

// finishParts returns the batches. The error names a record that fits into none.
func (b *bulk) finishParts() ([][]byte, error) {
	if b.builder.Len() > 0 {
		b.flushBuilder()
	}
	return b.parts, b.err
}

// addPart takes a batch, in halves when it is too large: an odd value can widen a
// column for all rows that are in it already.
func (b *bulk) addPart(part []byte) {
	if len(part) <= maxPart {
		b.parts = append(b.parts, part)
		return
	}
	batch, err := columns.ParseBatch(part)
	switch {
	case err != nil:
		b.err = err
	case batch.Len() == 1:
		b.err = fmt.Errorf("the record %s is %w (%d bytes, limit: %d bytes)", batch.ID(0), errRecordSize, len(part), maxPart)
	default:
		half := batch.Len() / 2
		b.addPart(sliceBatch(batch, 0, half))
		b.addPart(sliceBatch(batch, half, batch.Len()))
	}
}

// sliceBatch makes a batch of some rows of another.
func sliceBatch(batch *columns.Batch, from, to int) []byte {
	out := columns.NewBuilder()
	for i := from; i < to; i++ {
		row := batch.Row(i)
		out.Add(&row)
	}
	return out.Bytes()
}

// sizeOf is about what a record adds to a batch at most.
func sizeOf(r *record.Record) int {
	n := len(r.ID) + 128
	for i := range r.Meta {
		n += len(r.Meta[i].Key) + 16
		for _, v := range r.Meta[i].Values {
			n += len(v) + 16
		}
	}
	for i := range r.Components {
		n += len(r.Components[i].Name) + 32
		for _, s := range r.Components[i].Scores {
			n += len(s.Name) + 32
		}
	}
	return n
}
