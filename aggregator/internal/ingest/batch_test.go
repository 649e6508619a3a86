package ingest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/cluster"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// cut returns the commands that the frames become.
func cut(t *testing.T, agent string, frames []*wire.Frame) []*store.IngestCommand {
	t.Helper()
	return cutAt(t, agent, frames, entryMost)
}

func cutAt(t *testing.T, agent string, frames []*wire.Frame, most int) (list []*store.IngestCommand) {
	t.Helper()
	b := newBatcher(agent, position{epoch: store.Epoch{1}}, func() record.Time { return 1 }, func(c *store.IngestCommand) error {
		list = append(list, c)
		return nil
	})
	b.most = most
	for len(frames) > 0 {
		chunk := frame.NewBuilder(b.pos.seq+1, b.digest)
		n := min(len(frames), 500)
		for _, f := range frames[:n] {
			if err := chunk.Append(wire.AppendFrame(nil, f)); err != nil {
				t.Fatal(err)
			}
		}
		frames = frames[n:]
		if err := b.takeChunk(chunk.Finish()); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.flushCommand(); err != nil {
		t.Fatal(err)
	}
	return list
}

func ofKind(k wire.Kind, i int) *wire.Frame {
	id := fmt.Sprint("job-", i)
	f := &wire.Frame{SourceType: "slurm", SourceLabel: "nemo", Rank: record.RankScheduler, Kind: k, ID: id,
		Version: record.Version{Ended: true, Observed: int64(i + 1)}, Watermark: 1, Checkpoint: []byte("c")}
	f.Record = record.Record{ID: id, Meta: record.Meta{}, Start: 1, Stop: record.Second, Submit: record.None}
	f.Quarantine = wire.Quarantine{ID: id, Reason: "mapping"}
	f.Gap = wire.Gap{From: 1, To: record.Time(i + 2), Reason: "lost"}
	return f
}

func TestWatermark_WithBegin_IsAFactOnceTheClusterTakesIt(t *testing.T) {
	f := ofKind(wire.KindWatermark, 0)
	f.Begin = 7
	list := cut(t, "head1", []*wire.Frame{f})
	if len(list) != 1 || len(list[0].Facts) != 1 || list[0].Facts[0].Kind != store.FactBegin || list[0].Facts[0].At != 7 || store.VersionOf(list[0]) != store.BeginVersion {
		t.Error(list)
	}
	b := newBatcher("head1", position{epoch: store.Epoch{1}}, func() record.Time { return 1 }, nil)
	b.begins = false
	b.addOther(f, nil)
	if len(b.cmd.Facts) != 0 || len(b.cmd.Watermarks) != 1 {
		t.Error(b.cmd)
	}
}

func TestEveryCommandFitsIntoAnEntryWhateverTheAgentIsCalled(t *testing.T) {
	kinds := []wire.Kind{wire.KindRecord, wire.KindStop, wire.KindWithdraw, wire.KindQuarantine, wire.KindGap,
		wire.KindWatermark, wire.KindCensus, wire.KindCapacity, wire.KindDirectory, wire.KindCheckpoint, wire.KindCount}
	many := racetest.Few(9000)
	for _, name := range []string{"a", strings.Repeat("n", 128)} {
		for _, kind := range kinds {
			for _, settles := range []bool{false, true} {
				frames := make([]*wire.Frame, many)
				for i := range frames {
					if frames[i] = ofKind(kind, i); settles {
						frames[i].Settles = fmt.Sprint("settled-", i)
					}
				}
				next := uint64(1)
				for _, c := range cut(t, name, frames) {
					if n := len(store.Encode(c)); n > cluster.MaxEntry {
						t.Errorf("agent of %d bytes, %s, settles %v: a command has %d bytes", len(name), kind, settles, n)
					}
					if c.From != next {
						t.Fatalf("%s: a command begins with frame %d, want %d", kind, c.From, next)
					}
					next = c.To + 1
				}
				if next != uint64(many)+1 {
					t.Errorf("%s: frames up to %d of %d", kind, next-1, many)
				}
			}
		}
	}
}

func TestNoFrameIsChangedByTheCutBeforeIt(t *testing.T) {
	frames := make([]*wire.Frame, 8000)
	for i := range frames {
		frames[i] = ofKind(wire.KindRecord, i)
		id := fmt.Sprintf("%x", sha256.Sum256([]byte{byte(i), byte(i >> 8)}))
		frames[i].ID, frames[i].Record.ID = id+id, id+id
	}
	list, at := cut(t, "head1", frames), 0
	for _, c := range list {
		batch, err := columns.ParseBatch(c.Rows)
		if err != nil {
			t.Fatal(err)
		}
		for i := range batch.Len() {
			if got, want := batch.Row(i).Record.ID, frames[at].ID; got != want {
				t.Fatalf("frame %d: %q, want %q", at, got, want)
			}
			at++
		}
	}
	if len(list) < 2 || at != len(frames) {
		t.Errorf("%d commands with %d records", len(list), at)
	}
}

func TestTheLastWordOnAQuarantinedJobHolds(t *testing.T) {
	fails, settles := ofKind(wire.KindQuarantine, 1), ofKind(wire.KindRecord, 1)
	settles.Settles = fails.Quarantine.ID
	other := ofKind(wire.KindRecord, 2)
	other.Settles, other.SourceLabel = fails.Quarantine.ID, "another source"
	source := record.Origin{Agent: "head1", Type: "slurm", Label: "nemo"}
	for name, c := range map[string]struct {
		frames []*wire.Frame
		stays  bool
	}{
		"fails, is settled":               {[]*wire.Frame{fails, settles}, false},
		"is settled, fails":               {[]*wire.Frame{settles, other, fails}, true},
		"fails, is settled, fails":        {[]*wire.Frame{fails, settles, fails}, true},
		"settled, fails, is settled":      {[]*wire.Frame{settles, fails, settles}, false},
		"fails, another source's settles": {[]*wire.Frame{fails, other}, true},
	} {
		s, err := store.Open(store.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		list := cut(t, "head1", c.frames)
		if len(list) != 1 {
			t.Fatalf("%s: %d commands", name, len(list))
		}
		list[0].Begin = &store.Begin{}
		if r, err := s.Apply(1, 1, store.Encode(list[0])); err != nil || !r.(store.IngestResult).Accepted {
			t.Fatalf("%s: %+v, %v", name, r, err)
		}
		v, err := s.View()
		if err != nil {
			t.Fatal(err)
		}
		if _, stays, err := v.Quarantined(source, fails.Quarantine.ID); err != nil || stays != c.stays {
			t.Errorf("%s: in quarantine %v, want %v; %v", name, stays, c.stays, err)
		}
		if err := errors.Join(v.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestACommandThatTurnsOutTooLargeIsHalvedWithoutLoss(t *testing.T) {
	var frames []*wire.Frame
	for i := range 900 {
		frames = append(frames, ofKind(wire.KindRecord, i), ofKind(wire.KindQuarantine, i), ofKind(wire.KindWatermark, i))
	}
	const most = 8 << 10
	list := cutAt(t, "head1", frames, most)
	next, before, rows, failed := uint64(1), store.Chain{}, 0, 0
	for _, c := range list {
		if c.From != next || c.Before != before || len(c.Rows) > most {
			t.Fatalf("a command has the frames %d to %d, want from %d, and %d bytes of rows", c.From, c.To, next, len(c.Rows))
		}
		if batch, err := columns.ParseBatch(c.Rows); err == nil {
			rows += batch.Len()
		}
		next, before, failed = c.To+1, c.After, failed+len(c.Quarantine)
	}
	if len(list) < 4 || next != uint64(len(frames))+1 || rows != 900 || failed != 900 {
		t.Errorf("%d commands up to frame %d with %d rows and %d failures", len(list), next-1, rows, failed)
	}
}
