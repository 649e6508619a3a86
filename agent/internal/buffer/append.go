package buffer

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/frame"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Append is what [Buffer.Append] writes in one transaction.
type Append struct {
	Source Source
	// Generation of the [Start] that the source works from.
	Generation uint64
	// Frames in their order, each an encoded bursar.v1 Frame.
	Frames [][]byte
	// Checkpoint of the source, which covers these frames; nil leaves the old
	// one. It travels behind the frames as a frame of its own, which the caller
	// puts last into Frames.
	Checkpoint []byte
	// Rewound says that the source has stepped back as [Start.Rewind] asked and
	// has come to its end; next to a Checkpoint, that its stream has no end and it
	// goes on from there, and not from the checkpoint that it had itself.
	Rewound bool
	// Opened and Closed are the running jobs whose notes are kept or dropped.
	Opened []OpenRun
	Closed []string
	// Audited are the days that the frames count; Unaudited are to be counted
	// again.
	Audited   []Audit
	Unaudited []record.Time
	// Findings are what was found about the source's records; nil leaves the old ones.
	Findings []byte
}

// OpenRun is a note on a job that was sent as running.
type OpenRun struct {
	Run    string // the source's name of the run
	Record string // the record id that it was sent under
	Digest uint64 // of what was sent
}

// Append writes a durably and returns the sequence number of its last frame.
// The error is [ErrFull] when there is no room and [ErrSuperseded] when the source
// was sent back meanwhile; then, and on any other error, nothing was written.
func (b *Buffer) Append(a Append) (uint64, error) {
	if err := b.makeRoom(a); err != nil {
		return 0, err
	}
	last := uint64(0)
	err := b.updateHead(func(tx *bbolt.Tx, s *state) error {
		if (a.Checkpoint != nil || a.Rewound) && a.Generation != s.generation {
			return ErrSuperseded
		}
		if err := b.putFrames(tx, s, a.Frames); err != nil {
			return err
		}
		last = s.last
		return putSource(tx, s, a)
	})
	if err != nil {
		return 0, fmt.Errorf("append to the buffer: %w", err)
	}
	return last, nil
}

// Pieces returns appends that write what a writes, in this order. None but one of a single
// frame needs more than half of the buffer, so that however much a source sends at once, a
// buffer of any size takes it once it is acknowledged. The last one has the checkpoint and
// all else: where only some are written, the source sends them all again.
func (b *Buffer) Pieces(a Append) (list []Append) {
	first, need := 0, int64(0)
	for i, f := range a.Frames {
		if i > first && need+frameRoom(f) > b.opt.MaxSize/2 {
			list = append(list, Append{Source: a.Source, Generation: a.Generation, Frames: a.Frames[first:i]})
			first, need = i, 0
		}
		need += frameRoom(f)
	}
	a.Frames = a.Frames[first:]
	return append(list, a)
}

// frameRoom is how much a frame takes at most.
func frameRoom(frame []byte) int64 { return int64(len(frame)) + 16 }

// makeRoom makes room for a, if need be by dropping acknowledged chunks early. A single
// frame that is larger than half of the buffer is taken where the other half is free.
func (b *Buffer) makeRoom(a Append) error {
	need := int64(0)
	for _, f := range a.Frames {
		need += frameRoom(f)
	}
	if len(a.Frames) == 1 {
		need = min(need, b.opt.MaxSize/2)
	}
	s, _ := b.currentHead()
	if s.bytes+need <= b.opt.MaxSize {
		return nil
	}
	if err := b.shrinkBy(s.bytes + need - b.opt.MaxSize*9/10); err != nil {
		return err
	}
	if s, _ = b.currentHead(); s.bytes+need > b.opt.MaxSize {
		return ErrFull
	}
	return nil
}

// putFrames cuts frames into chunks behind the last one.
func (b *Buffer) putFrames(tx *bbolt.Tx, s *state, frames [][]byte) error {
	chunks := tx.Bucket(bucketChunks)
	chunks.FillPercent = 1 // keys only grow
	stamp := binary.BigEndian.AppendUint64(nil, uint64(b.opt.Now().UnixMicro()))
	builder := frame.NewBuilder(s.last+1, s.digest)
	for i, f := range frames {
		if err := builder.Append(f); err != nil {
			return err
		}
		if i+1 < len(frames) && builder.Fits(len(frames[i+1])) {
			continue
		}
		s.last, s.digest = builder.Last(), builder.After()
		key, chunk := sequenceKey(s.last-uint64(builder.Len())+1), builder.Finish()
		if err := chunks.Put(key, append(stamp[:8:8], chunk...)); err != nil {
			return err
		}
		s.bytes += int64(len(chunk))
	}
	return nil
}

// putSource writes the checkpoint and the notes of a.
func putSource(tx *bbolt.Tx, s *state, a Append) error {
	key := a.Source.storageKey()
	if a.Checkpoint != nil {
		if err := tx.Bucket(bucketSources).Put(key, a.Checkpoint); err != nil {
			return err
		}
	}
	if a.Rewound {
		if err := noteRewound(tx, s, a.Source, a.Checkpoint != nil); err != nil {
			return err
		}
	}
	open := tx.Bucket(bucketOpen)
	for _, run := range a.Closed {
		if err := open.Delete(openKey(a.Source, run)); err != nil {
			return err
		}
	}
	for _, o := range a.Opened {
		if err := open.Put(openKey(a.Source, o.Run), encodeNote(o)); err != nil {
			return err
		}
	}
	if a.Findings != nil {
		if err := tx.Bucket(bucketFindings).Put(key, a.Findings); err != nil {
			return err
		}
	}
	return putAudits(tx, a)
}

// Findings returns what was last appended as [Append.Findings] of the source; nil for
// nothing.
func (b *Buffer) Findings(s Source) (out []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		out = bytes.Clone(tx.Bucket(bucketFindings).Get(s.storageKey()))
		return nil
	})
	return out, err
}

// Wait returns when the buffer holds a frame behind after, when it is closed or
// when ctx ends.
func (b *Buffer) Wait(ctx context.Context, after uint64) {
	for {
		s, changed := b.currentHead()
		if s.last > after {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
			if s2, _ := b.currentHead(); s2.last == s.last {
				return
			}
		}
	}
}
