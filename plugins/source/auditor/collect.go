package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// checkpoint says how far each input was read.
type checkpoint struct {
	V      int     `json:"v"`
	Inputs string  `json:"inputs"` // their digest: of others, everything is read
	Places []place `json:"places"`
}

// place is how far an input was read. Times are microseconds since 1970.
type place struct {
	// Stop is the latest stop that was read from a server, and Open are the records that
	// had none.
	Stop int64    `json:"stop,omitempty"`
	Open []string `json:"open,omitempty"`
	// ID is the greatest id that was read from a database, until All of it was read. Since
	// is the latest change that is known then.
	ID    string `json:"id,omitempty"`
	All   bool   `json:"all,omitempty"`
	Since int64  `json:"since,omitempty"`
	// File is the archive that is read, and Row how many of its rows were.
	File string `json:"file,omitempty"`
	Row  int64  `json:"row,omitempty"`
	// Done counts records, for people.
	Done int64 `json:"done,omitempty"`
}

// Check says what no plugin has written.
func (c *checkpoint) Check() error {
	for i := range c.Places {
		if p := &c.Places[i]; p.Row < 0 || p.Done < 0 {
			return fmt.Errorf("place %d is not in an input", i)
		}
	}
	return nil
}

// perBatch is how many records are handed on at once.
const perBatch = 1000

// collection is one Collect.
type collection struct {
	*source

	out    *sdk.Stream
	from   sdk.Start
	at     checkpoint
	batch  sdk.Batch
	total  int64           // of what is read, 0: unknown
	unread map[string]bool // archives of a bursar that were refused
	unsent error           // of handing on: nothing more is read
}

// Collect implements sdk.Source.
func (s *source) Collect(ctx context.Context, from sdk.Start, out *sdk.Stream) error {
	c := &collection{source: s, out: out, from: from, unread: map[string]bool{}}
	if err := sdk.DecodeCheckpoint(from.Checkpoint, 1, &c.at); err != nil {
		return err
	}
	digest := fnv.New64a()
	fmt.Fprint(digest, s.URL, "\x00", s.Database, "\x00", s.Import)
	if name := fmt.Sprintf("%016x", digest.Sum64()); c.at.Inputs != name || len(c.at.Places) != len(s.inputs) || from.Window != nil {
		c.at = checkpoint{V: 1, Inputs: name, Places: make([]place, len(s.inputs))}
	}
	var failed error // of inputs, each named: the others are read
	for i, in := range s.inputs {
		err := in.collectRecords(ctx, c, &c.at.Places[i])
		if c.unsent != nil || ctx.Err() != nil {
			return cmp.Or(c.unsent, err, ctx.Err())
		}
		failed = errors.Join(failed, s.nameInput(in, err))
	}
	return errors.Join(failed, c.flush(ctx))
}

// decodeRecord reads a record as AUDITOR or /v1 has it. Kinds are those of components that do not
// say theirs. Ok is false where it is none, which is refused.
func (c *collection) decodeRecord(raw []byte, kinds record.Kinds) (r record.Record, ok bool) {
	r, err := wire.DecodeRecordJSON(raw)
	if err != nil {
		c.refuseRecord(raw, err)
		return r, false
	}
	if changed, any := kinds.Apply(&r); any {
		r = changed
	}
	return r, true
}

// decodeAndAdd decodes a record and hands it on.
func (c *collection) decodeAndAdd(ctx context.Context, raw []byte, kinds record.Kinds) (r record.Record, ok bool, err error) {
	if r, ok = c.decodeRecord(raw, kinds); ok {
		c.addRecord(&r)
	}
	return r, ok, c.flushIfFull(ctx)
}

// addRecord hands on a record with the next batch.
func (c *collection) addRecord(r *record.Record) {
	if w := c.from.Window; w == nil || r.Open() && w.Holds(r.Start.Std()) || !r.Open() && w.Holds(r.Stop.Std()) {
		c.batch.Jobs = append(c.batch.Jobs, c.jobOf(r))
	}
}

// refuseRecord hands on what is not a valid record. Its run is its id, as far as it has one.
func (c *collection) refuseRecord(raw []byte, why error) {
	var named struct {
		ID any `json:"record_id"`
	}
	_ = json.Unmarshal(raw, &named) // what it is not is said by why
	id, _ := named.ID.(string)
	c.batch.Refused = append(c.batch.Refused, sdk.Refused{Run: id, Message: fmt.Sprintf("record %q of AUDITOR: %v", id, why), Raw: raw})
}

// flushIfFull hands on a batch that is large enough.
func (c *collection) flushIfFull(ctx context.Context) error {
	if len(c.batch.Jobs)+len(c.batch.Refused) < perBatch {
		return nil
	}
	return c.flush(ctx)
}

// flush hands on what there is, with how far it is.
func (c *collection) flush(ctx context.Context) error {
	if c.from.Window == nil {
		c.batch.Checkpoint = sdk.EncodeCheckpoint(&c.at)
	}
	c.unsent = c.out.Send(ctx, c.batch)
	c.batch = sdk.Batch{}
	return c.unsent
}

// setProgress says how far it is, with the next batch.
func (c *collection) setProgress(done, total int64, unit, at string) {
	c.batch.Progress = &sdk.Progress{Done: min(done, max(total, done)), Total: total, Unit: unit, At: at}
}

// unixMicros is a time as a place has it; 0 for none.
func unixMicros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}
