package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/frame"
)

// Position is a place in the sequence: behind the frame Seq.
type Position struct {
	Epoch  Epoch
	Seq    uint64
	Digest frame.Digest
}

// Read returns the chunks that continue right behind p: as many whole ones as
// fit into maxBytes, at least one when there is any, and the position behind
// the last of them. The chunks are copies that the caller may keep.
//
// The error is [ErrEpoch], [ErrDigest] or [ErrAhead] when p is no place in this
// buffer's history, or when the frames behind it are gone: then the caller has
// to [Buffer.Resume]. It is a [DamageError] when frames behind p are there and
// cannot be read.
func (b *Buffer) Read(p Position, maxBytes int) (chunks [][]byte, end Position, err error) {
	s, _ := b.currentHead()
	err = b.db.View(func(tx *bbolt.Tx) error {
		if err := checkPosition(tx, &s, p); err != nil {
			return b.noteDamage(p.Seq, err)
		}
		chunks, end, err = readChunks(tx, p, s.last, maxBytes)
		return b.noteDamage(end.Seq, err)
	})
	return chunks, end, err
}

// isAstray reports whether err says that a position is no place in this buffer's
// history.
func isAstray(err error) bool {
	return errors.Is(err, ErrEpoch) || errors.Is(err, ErrDigest) || errors.Is(err, ErrAhead)
}

// checkPosition verifies that p is a place in the buffer's history behind which nothing
// is missing.
func checkPosition(tx *bbolt.Tx, s *state, p Position) error {
	switch {
	case p.Epoch != s.epoch:
		return ErrEpoch
	case p.Seq > s.last:
		return fmt.Errorf("%w: %d, and the last frame is %d", ErrAhead, p.Seq, s.last)
	case p.Seq < s.first-1:
		return fmt.Errorf("%w: frames %d to %d are no longer kept", ErrEpoch, p.Seq+1, s.first-1)
	}
	digest, err := digestAt(tx, s, p.Seq)
	if err != nil {
		return err
	}
	if digest != p.Digest {
		return fmt.Errorf("%w at %d", ErrDigest, p.Seq)
	}
	return nil
}

// digestAt returns the chain's digest behind the frame seq, which is not older
// than the one before the first that is kept.
func digestAt(tx *bbolt.Tx, s *state, seq uint64) (frame.Digest, error) {
	if seq == s.last {
		return s.digest, nil
	}
	_, raw := seekFrame(tx, seq+1)
	chunk, err := parseChunk(raw)
	if err != nil {
		return frame.Digest{}, fmt.Errorf("chunk of frame %d: %w", seq+1, err)
	}
	digest, ok := chunk.DigestAt(seq)
	if !ok {
		return digest, fmt.Errorf("chunk of frame %d: %w", seq+1, frame.ErrRange)
	}
	return digest, nil
}

// seekFrame returns the chunk that holds the frame seq and a cursor on it.
func seekFrame(tx *bbolt.Tx, seq uint64) (*bbolt.Cursor, []byte) {
	c := tx.Bucket(bucketChunks).Cursor()
	k, v := c.Seek(sequenceKey(seq))
	if k == nil || binary.BigEndian.Uint64(k) > seq {
		_, v = c.Prev()
	}
	return c, v
}

// parseChunk reads a stored value: the time of the append and the chunk.
func parseChunk(value []byte) (*frame.Chunk, error) {
	if len(value) < 8 {
		return nil, frame.ErrCorrupt
	}
	return frame.Parse(value[8:])
}

// peekHeader reads the header of a stored chunk.
func peekHeader(value []byte) (frame.Header, error) {
	if len(value) < 8 {
		return frame.Header{}, frame.ErrCorrupt
	}
	return frame.Peek(value[8:])
}

// readChunks copies chunks behind p.
func readChunks(tx *bbolt.Tx, p Position, last uint64, maxBytes int) ([][]byte, Position, error) {
	var chunks [][]byte
	size := 0
	c, value := (*bbolt.Cursor)(nil), []byte(nil)
	for p.Seq < last {
		if c == nil {
			c, value = seekFrame(tx, p.Seq+1)
		} else {
			_, value = c.Next()
		}
		raw, header, err := chunkBehind(value, p)
		if err != nil && len(chunks) > 0 {
			break // what comes before the damage is good; the next read says it
		}
		if err != nil {
			return nil, p, err
		}
		if len(chunks) > 0 && size+len(raw) > maxBytes {
			break
		}
		chunks = append(chunks, raw)
		size += len(raw)
		p.Seq, p.Digest = header.Last(), header.After
	}
	return chunks, p, nil
}

// chunkBehind returns a copy of the stored chunk, cut to what is behind p.
func chunkBehind(value []byte, p Position) ([]byte, frame.Header, error) {
	header, err := peekHeader(value)
	if err != nil {
		return nil, header, err
	}
	if header.First == p.Seq+1 {
		return append([]byte(nil), value[8:]...), header, frame.Check(value[8:])
	}
	chunk, err := frame.Parse(value[8:])
	if err != nil {
		return nil, header, err
	}
	raw, err := chunk.Slice(p.Seq)
	return raw, header, err
}

// OpenRuns returns the notes on the source's running jobs by run.
func (b *Buffer) OpenRuns(s Source) (map[string]OpenRun, error) {
	runs := map[string]OpenRun{}
	prefix := openKey(s, "")
	err := b.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketOpen).Cursor()
		for k, v := c.Seek(prefix); hasPrefix(k, prefix); k, v = c.Next() {
			run := string(k[len(prefix):])
			note, ok := parseNote(run, v)
			if !ok {
				return fmt.Errorf("note on the run %q of %s: %w", run, s, ErrFormat)
			}
			runs[run] = note
		}
		return nil
	})
	return runs, err
}

func cloneBytes(v []byte) []byte {
	if v == nil {
		return nil
	}
	return append([]byte{}, v...)
}

func hasPrefix(k, prefix []byte) bool {
	return k != nil && len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix)
}
