package store

import (
	"slices"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Cursor is how far an agent's buffer is in the store. The zero Cursor, with an
// Agent, is that of an agent that was never pulled.
type Cursor struct {
	Agent  string
	Epoch  Epoch
	Seq    uint64 // the last frame that is in the store
	Digest Chain  // of the buffer at Seq
	// Observed is the greatest observed time that was committed, over all epochs.
	Observed int64
	// Pulled is the leader's time of the last accepted command.
	Pulled record.Time
	// Checkpoints and Watermarks have one element a source, sorted by source.
	Checkpoints []Checkpoint
	Watermarks  []Watermark
}

// isContinuedBy reports whether c is the next command after the cursor.
func (c *Cursor) isContinuedBy(cmd *IngestCommand) bool {
	seq, digest := c.Seq, c.Digest
	if b := cmd.Begin; b != nil {
		if !c.isAtPosition(b.Replaces, b.ReplacesSeq, b.ReplacesDigest) {
			return false
		}
		seq, digest = b.After, b.Digest
	} else if c.Epoch != cmd.Epoch {
		return false
	}
	return cmd.Epoch != Epoch{} && cmd.From == seq+1 && cmd.To+1 >= cmd.From && cmd.Before == digest
}

func (c *Cursor) isAtPosition(epoch Epoch, seq uint64, digest Chain) bool {
	return c.Epoch == epoch && c.Seq == seq && c.Digest == digest
}

func (c *Cursor) advance(cmd *IngestCommand) {
	c.Epoch, c.Seq, c.Digest, c.Pulled = cmd.Epoch, cmd.To, cmd.After, cmd.Now
	c.Observed = max(c.Observed, cmd.Observed)
	for _, p := range cmd.Checkpoints {
		c.setCheckpoint(p)
	}
	for _, w := range cmd.Watermarks {
		c.setWatermark(w)
	}
}

func (c *Cursor) setCheckpoint(p Checkpoint) {
	i, ok := slices.BinarySearchFunc(c.Checkpoints, p.Source, func(p Checkpoint, o record.Origin) int { return p.Source.Compare(o) })
	if ok {
		c.Checkpoints[i] = p
		return
	}
	c.Checkpoints = slices.Insert(c.Checkpoints, i, p)
}

// setWatermark sets the newest word of the source, also when it is earlier: a
// recollection may find that something is missing.
func (c *Cursor) setWatermark(w Watermark) {
	i, ok := slices.BinarySearchFunc(c.Watermarks, w.Source, func(w Watermark, o record.Origin) int { return w.Source.Compare(o) })
	if ok {
		c.Watermarks[i] = w
		return
	}
	c.Watermarks = slices.Insert(c.Watermarks, i, w)
}

const cursorFormat = 1

func (c *Cursor) visitFields(f fields) {
	f.visitBytes16(&c.Epoch)
	f.visitUint(&c.Seq)
	f.visitBytes16(&c.Digest)
	f.visitInt(&c.Observed)
	f.visitTime(&c.Pulled)
	visitList(f, &c.Checkpoints, fields.visitCheckpoint)
	visitList(f, &c.Watermarks, fields.visitWatermark)
}

func decodeCursor(agent string, b []byte) (Cursor, error) {
	c := Cursor{Agent: agent}
	return c, decodeValue(b, cursorFormat, "cursor of "+agent, &c)
}
