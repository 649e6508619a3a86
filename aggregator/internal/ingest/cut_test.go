package ingest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// ofImport is a frame as an import has it.
func ofImport(k wire.Kind, i int) *wire.Frame {
	f := ofKind(k, i)
	f.Rank = record.RankImport
	return f
}

// packed makes a chunk of frames, which begins behind seq and digest.
func packed(t testing.TB, seq uint64, digest frame.Digest, frames ...*wire.Frame) []byte {
	t.Helper()
	b := frame.NewBuilder(seq+1, digest)
	for _, f := range frames {
		if err := b.Append(wire.AppendFrame(nil, f)); err != nil {
			t.Fatal(err)
		}
	}
	return b.Finish()
}

func TestAChunkOfAnImportGoesOnFromWhateverIsCommitted(t *testing.T) {
	const many = 40
	var frames []*wire.Frame
	for i := range many {
		frames = append(frames, ofImport(wire.KindRecord, i))
	}
	raw := packed(t, 100, frame.Digest{7}, frames...)
	chunk, err := frame.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(100); seq <= 100+many; seq++ {
		digest, _ := chunk.DigestAt(seq)
		cursor := store.Cursor{Agent: "import", Epoch: store.Epoch{1}, Seq: seq, Digest: store.Chain(digest)}
		at := seq
		err := Cut(cursor, raw, func(c *store.IngestCommand) error {
			batch, err := columns.ParseBatch(c.Rows)
			if err != nil {
				return err
			}
			if c.From != at+1 || c.Agent != "import" || c.Epoch != cursor.Epoch || c.To-at != uint64(batch.Len()) {
				return fmt.Errorf("command %d to %d with %d rows behind %d", c.From, c.To, batch.Len(), at)
			}
			if id := batch.Row(0).Record.ID; id != frames[at-100].ID {
				return fmt.Errorf("it begins with %s", id)
			}
			at = c.To
			return nil
		})
		if err != nil || at != 100+many {
			t.Errorf("from %d: up to %d, %v", seq, at, err)
		}
	}
}

func TestAChunkThatDoesNotContinueAnImportIsRefused(t *testing.T) {
	raw := packed(t, 10, frame.Digest{7}, ofImport(wire.KindRecord, 1), ofImport(wire.KindRecord, 2))
	for name, c := range map[string]struct {
		cursor store.Cursor
		want   error
	}{
		"frames are missing before it":   {store.Cursor{Seq: 9, Digest: store.Chain{7}}, frame.ErrRange},
		"what is before it is another":   {store.Cursor{Seq: 10, Digest: store.Chain{8}}, frame.ErrChain},
		"what is within it is another":   {store.Cursor{Seq: 11, Digest: store.Chain{8}}, frame.ErrChain},
		"all of it is committed already": {store.Cursor{Seq: 13, Digest: store.Chain{8}}, nil},
	} {
		err := Cut(c.cursor, raw, func(*store.IngestCommand) error { return errors.New("a command") })
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for i := range raw {
		bad := append([]byte(nil), raw...)
		bad[i] ^= 1
		if err := Cut(store.Cursor{Seq: 10, Digest: store.Chain{7}}, bad, func(*store.IngestCommand) error { return nil }); err == nil {
			t.Fatalf("a damaged byte %d was taken", i)
		}
	}
}

func TestAnImportSaysNothingThatOnlyAnAgentMaySay(t *testing.T) {
	change := func(k wire.Kind, how func(*wire.Frame)) *wire.Frame {
		f := ofImport(k, 1)
		how(f)
		return f
	}
	for name, f := range map[string]*wire.Frame{
		"pushed":             change(wire.KindRecord, func(f *wire.Frame) { f.SourceType, f.SourceLabel = "", "" }),
		"of the scheduler":   change(wire.KindRecord, func(f *wire.Frame) { f.Rank = record.RankScheduler }),
		"never observed":     change(wire.KindRecord, func(f *wire.Frame) { f.Version.Observed = 0 }),
		"a stop":             ofImport(wire.KindStop, 1),
		"a watermark":        ofImport(wire.KindWatermark, 1),
		"a checkpoint":       ofImport(wire.KindCheckpoint, 1),
		"behind a good one ": change(wire.KindWithdraw, func(f *wire.Frame) { f.Rank = record.RankEpilog }),
	} {
		raw := packed(t, 0, frame.Digest{}, ofImport(wire.KindRecord, 2), f)
		if err := Cut(store.Cursor{Agent: "x"}, raw, func(*store.IngestCommand) error { t.Error(name, "was taken"); return nil }); !errors.Is(err, ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var taken []*wire.Frame
	for _, k := range []wire.Kind{wire.KindRecord, wire.KindWithdraw, wire.KindQuarantine, wire.KindGap, wire.KindCensus, wire.KindCapacity, wire.KindDirectory} {
		taken = append(taken, ofImport(k, 1))
	}
	n := 0
	if err := Cut(store.Cursor{Agent: "x", Epoch: store.Epoch{1}}, packed(t, 0, frame.Digest{}, taken...), func(c *store.IngestCommand) error {
		n += int(c.To - c.From + 1)
		return nil
	}); err != nil || n != len(taken) {
		t.Errorf("%d of %d, %v", n, len(taken), err)
	}
}

func FuzzCut(f *testing.F) {
	f.Add(packed(f, 0, frame.Digest{}, ofImport(wire.KindRecord, 1), ofImport(wire.KindQuarantine, 2)), uint64(1))
	f.Add([]byte{1}, uint64(0))
	f.Fuzz(func(t *testing.T, raw []byte, seq uint64) {
		at := seq
		_ = Cut(store.Cursor{Agent: "x", Epoch: store.Epoch{1}, Seq: seq}, raw, func(c *store.IngestCommand) error {
			if c.From != at+1 || c.To < c.From {
				t.Errorf("command %d to %d behind %d", c.From, c.To, at)
			}
			at = c.To
			return nil
		})
	})
}
