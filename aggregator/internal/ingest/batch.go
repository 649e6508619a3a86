package ingest

import (
	"fmt"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// position is a place in an agent's buffer: behind the frame seq.
type position struct {
	epoch  store.Epoch
	seq    uint64
	digest frame.Digest
}

func positionOf(c store.Cursor) position {
	return position{epoch: c.Epoch, seq: c.Seq, digest: frame.Digest(c.Digest)}
}

// batcher cuts an agent's frames into commands that fit into an entry.
type batcher struct {
	agent string
	now   func() record.Time
	emit  func(*store.IngestCommand) error

	pos     position // behind what was taken; its digest is that of the last command
	digest  frame.Digest
	rows    *columns.Builder
	decoder wire.Lender
	cmd     *store.IngestCommand
	extra   int      // bytes of the command beside its rows
	start   position // where the command begins
	frames  [][]byte // what is in the command
	most    int      // bytes of rows and extra that are not halved
	begins  bool     // the cluster takes facts of the kind [store.FactBegin]
}

func newBatcher(agent string, from position, now func() record.Time, emit func(*store.IngestCommand) error) *batcher {
	b := &batcher{agent: agent, now: now, emit: emit, pos: from, digest: from.digest, rows: columns.NewBuilder(), most: entryMost, begins: true}
	b.beginCommand()
	return b
}

func (b *batcher) beginCommand() {
	b.rows.Reset()
	b.decoder.Reset() // rows and commands hold copies, or views of the chunk
	b.extra, b.frames = 0, b.frames[:0]
	b.start = b.endPosition()
	b.cmd = &store.IngestCommand{Agent: b.agent, Epoch: b.pos.epoch, From: b.pos.seq + 1, Before: store.Chain(b.digest)}
}

// endPosition is the place behind all that was taken, emitted or not.
func (b *batcher) endPosition() position {
	return position{epoch: b.pos.epoch, seq: b.pos.seq, digest: b.digest}
}

// takeChunk takes a chunk that continues right behind what was taken, and emits
// commands as they fill. The error says what is wrong with the chunk; what was
// emitted before is good.
func (b *batcher) takeChunk(raw []byte) error {
	c, err := frame.Parse(raw)
	if err != nil {
		return err
	}
	if c.First != b.pos.seq+1 || c.Before != b.digest {
		return fmt.Errorf("chunk begins with frame %d, want %d, or its digest differs: %w", c.First, b.pos.seq+1, frame.ErrChain)
	}
	for seq, f := range c.Frames() {
		if err := b.takeFrame(f); err != nil {
			return fmt.Errorf("frame %d: %w", seq, err)
		}
	}
	if b.digest != c.After {
		return fmt.Errorf("frames %d to %d: %w", c.First, c.Last(), frame.ErrChain)
	}
	return nil
}

// entryRoom is what a command may hold beside the envelope.
const entryRoom = columns.MaxBatch

// entryMost is what an entry can hold beside the envelope: a single row, with
// times or amounts unlike all others, can make the columns of all rows wider.
const entryMost = entryRoom + 24<<10

// takeFrame takes one frame.
func (b *batcher) takeFrame(raw []byte) error {
	var f wire.Frame
	if err := b.decoder.Frame(raw, &f); err != nil {
		return err
	}
	if b.pos.seq >= b.cmd.From && !b.fitsCommand(&f, raw) {
		if err := b.flushCommand(); err != nil {
			return err
		}
		if err := b.decoder.Frame(raw, &f); err != nil { // flush took back the decoder's memory
			return err
		}
	}
	b.addFrame(&f, raw)
	b.frames = append(b.frames, raw)
	b.pos.seq, b.digest = b.pos.seq+1, b.digest.Next(raw)
	return nil
}

// fitsCommand reports whether the command stays small enough for an entry with one more
// frame.
func (b *batcher) fitsCommand(f *wire.Frame, raw []byte) bool {
	more := b.bytesBesideRows(f, raw)
	if f.Kind == wire.KindRecord {
		more += len(raw)
	}
	return !b.rows.Full() && b.rows.Size()+b.extra+more <= entryRoom
}

// bytesBesideRows bounds the bytes that the frame takes in a command beside its rows. Each
// element names its origin in full, the agent included, which the frame does not.
func (b *batcher) bytesBesideRows(f *wire.Frame, raw []byte) (n int) {
	element := len(b.agent) + len(f.SourceType) + len(f.SourceLabel) + numbers
	if f.Settles != "" {
		n += element + len(f.Settles)
	}
	if f.IDReused && !slices.Contains(b.cmd.Reusing, b.originOf(f)) {
		n += element
	}
	if f.Kind != wire.KindRecord {
		n += element + len(raw)
	}
	return n
}

// numbers bounds the bytes of the numbers, times and lengths of one element of a
// command.
const numbers = 64

func (b *batcher) addFrame(f *wire.Frame, raw []byte) {
	b.extra += b.bytesBesideRows(f, raw)
	b.cmd.Observed = max(b.cmd.Observed, f.Version.Observed)
	if f.IDReused && !slices.Contains(b.cmd.Reusing, b.originOf(f)) {
		b.cmd.Reusing = append(b.cmd.Reusing, b.originOf(f))
	}
	if f.Settles != "" {
		b.cmd.Resolved = append(b.cmd.Resolved, store.QuarantineKey{Source: b.originOf(f), ID: f.Settles})
	}
	if f.Kind == wire.KindRecord {
		b.addRecord(f)
		return
	}
	b.addOther(f, raw)
}

// originOf is the origin of the frame; it names the agent also for what was pushed
// to it.
func (b *batcher) originOf(f *wire.Frame) record.Origin {
	return record.Origin{Agent: b.agent, Type: f.SourceType, Label: f.SourceLabel}
}

func (b *batcher) addRecord(f *wire.Frame) {
	row := columns.Row{Record: f.Record, Rank: f.Rank, Version: f.Version, Stop: record.None}
	if f.SourceType != "" || f.SourceLabel != "" {
		row.Origin = b.originOf(f)
	}
	row.Record.ID = f.ID
	b.rows.Add(&row)
}

func (b *batcher) addOther(f *wire.Frame, raw []byte) {
	c, source := b.cmd, b.originOf(f)
	switch f.Kind {
	case wire.KindStop, wire.KindWithdraw:
		w, _ := f.Write(b.agent)
		c.Writes = append(c.Writes, w)
	case wire.KindQuarantine:
		q := f.Quarantine
		b.unsettleJob(store.QuarantineKey{Source: source, ID: q.ID})
		c.Quarantine = append(c.Quarantine, store.Quarantined{Source: source, ID: q.ID, Reason: q.Reason, Message: q.Message, RecordID: q.RecordID, Raw: q.Raw, Truncated: q.Truncated})
	case wire.KindGap:
		c.Gaps = append(c.Gaps, store.Gap{Source: source, From: f.Gap.From, To: f.Gap.To, Reason: f.Gap.Reason})
	case wire.KindWatermark:
		c.Watermarks = append(c.Watermarks, store.Watermark{Source: source, CompleteTo: f.Watermark})
		if f.Begin != 0 && b.begins {
			c.Facts = append(c.Facts, store.Fact{Kind: store.FactBegin, Source: source, At: f.Begin})
		}
	case wire.KindCheckpoint:
		c.Checkpoints = append(c.Checkpoints, store.Checkpoint{Source: source, State: f.Checkpoint})
	case wire.KindCensus:
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCensus, Source: source, At: f.Census.At, Data: raw})
	case wire.KindCapacity:
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCapacity, Source: source, At: f.Capacity.From, Data: raw})
	case wire.KindDirectory:
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactDirectory, Source: source, At: record.Time(f.Version.Observed), Data: raw})
	case wire.KindCount:
		c.Facts = append(c.Facts, store.Fact{Kind: store.FactCount, Source: source, At: f.Count.From, Data: raw})
	}
}

// unsettleJob drops what settled a job that has failed once more: the store takes the
// failures of a command before the settles.
func (b *batcher) unsettleJob(job store.QuarantineKey) {
	b.cmd.Resolved = slices.DeleteFunc(b.cmd.Resolved, func(s store.QuarantineKey) bool { return s == job })
}

// flushCommand emits the command when there is a frame in it.
func (b *batcher) flushCommand() error {
	if b.pos.seq < b.cmd.From {
		return nil
	}
	if b.rows.Len() > 0 {
		b.cmd.Rows = b.rows.Bytes()
	}
	if len(b.frames) > 1 && len(b.cmd.Rows)+b.extra > b.most {
		return b.emitHalves()
	}
	b.cmd.To, b.cmd.After, b.cmd.Now = b.pos.seq, store.Chain(b.digest), b.now()
	cmd := b.cmd
	b.pos.digest = b.digest
	b.beginCommand()
	return b.emit(cmd)
}

// emitHalves emits the frames of the command as two commands, or more.
func (b *batcher) emitHalves() error {
	frames := b.frames
	b.frames, b.pos, b.digest = nil, b.start, b.start.digest
	b.beginCommand()
	middle := len(frames) / 2
	for _, half := range [][][]byte{frames[:middle], frames[middle:]} {
		for _, raw := range half {
			if err := b.takeFrame(raw); err != nil {
				return err
			}
		}
		if err := b.flushCommand(); err != nil {
			return err
		}
	}
	return nil
}
