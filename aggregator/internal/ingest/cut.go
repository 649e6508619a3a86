package ingest

import (
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ErrForeign is wrapped when a chunk has a frame that no import has.
var ErrForeign = errors.New("not a frame of an import")

// Cut hands the commands to emit that bring an import from its cursor to the end
// of a chunk, in order. Frames that are behind the cursor already are left out,
// so that a chunk may come again. Nothing of a chunk is emitted that has a frame
// which an import may not have. The error wraps [frame.ErrChain] or
// [frame.ErrRange] when the chunk does not continue the cursor, [ErrForeign] for
// such a frame, and is that of emit as it is.
func Cut(cursor store.Cursor, raw []byte, emit func(*store.IngestCommand) error) error {
	c, err := frame.Parse(raw)
	if err != nil {
		return err
	}
	if err := c.Verify(); err != nil {
		return err
	}
	if err := checkImported(c); err != nil {
		return err
	}
	switch digest, within := c.DigestAt(cursor.Seq); {
	case c.First > cursor.Seq+1:
		return fmt.Errorf("frames from %d on do not follow frame %d: %w", c.First, cursor.Seq, frame.ErrRange)
	case c.Last() < cursor.Seq:
		return nil
	case within && store.Chain(digest) != cursor.Digest:
		return fmt.Errorf("frame %d is another one than was committed: %w", cursor.Seq, frame.ErrChain)
	case c.Last() == cursor.Seq:
		return nil
	}
	rest, err := c.Slice(cursor.Seq)
	if err != nil {
		return err
	}
	b := newBatcher(cursor.Agent, positionOf(cursor), nowMicros, emit)
	if err := b.takeChunk(rest); err != nil {
		return err
	}
	return b.flushCommand()
}

// checkImported returns which frame of a chunk an import may not have.
func checkImported(c *frame.Chunk) error {
	var d wire.Lender
	for seq, data := range c.Frames() {
		var f wire.Frame
		if err := d.Frame(data, &f); err != nil {
			return fmt.Errorf("frame %d: %w", seq, err)
		}
		if problem := whyForeign(&f); problem != "" {
			return fmt.Errorf("frame %d %s: %w", seq, problem, ErrForeign)
		}
		d.Reset()
	}
	return nil
}

// whyForeign says why a frame cannot be of an import; "" when it can.
func whyForeign(f *wire.Frame) string {
	switch {
	case f.SourceType == "" || f.SourceLabel == "":
		return "has no source"
	case f.Rank != record.RankImport:
		return "has the rank " + f.Rank.String()
	case f.Version.Observed <= 0:
		return "says not when it was seen"
	case f.Kind == wire.KindStop, f.Kind == wire.KindWatermark, f.Kind == wire.KindCheckpoint:
		return "is a " + f.Kind.String()
	}
	return ""
}
