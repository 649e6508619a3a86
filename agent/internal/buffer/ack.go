package buffer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
)

// Ack is how far a cluster has committed, and when it said so last: in an
// acknowledgement, or when it resumed.
type Ack struct {
	Epoch   Epoch
	Through uint64
	At      time.Time
}

// Ack notes that the cluster has committed all frames through p. Acknowledging
// twice, or less than before, changes nothing but the time. The errors are those
// of [Buffer.Read], and [ErrCluster] when the cluster has no name; an
// acknowledgement of frames that are no longer kept is fine.
func (b *Buffer) Ack(cluster string, p Position) error {
	if cluster == "" {
		return fmt.Errorf("acknowledgement: %w", ErrCluster)
	}
	return b.updateHead(func(tx *bbolt.Tx, s *state) error {
		if p.Epoch == s.epoch && p.Seq < s.first-1 {
			p.Seq = s.first - 1
		} else if err := checkPosition(tx, s, p); err != nil {
			return fmt.Errorf("acknowledgement of cluster %s: %w", cluster, err)
		}
		if old, ok := parseAck(tx.Bucket(bucketClusters).Get([]byte(cluster))); ok && old.Epoch == p.Epoch {
			p.Seq = max(p.Seq, old.Through)
		}
		return b.putAck(tx, cluster, p)
	})
}

// putAck makes p the cluster's position, whatever it was before.
func (b *Buffer) putAck(tx *bbolt.Tx, cluster string, p Position) error {
	ack := Ack{Epoch: p.Epoch, Through: p.Seq, At: b.opt.Now()}
	return errors.Join(tx.Bucket(bucketClusters).Put([]byte(cluster), encodeAck(ack)), tx.Bucket(bucketForgotten).Delete([]byte(cluster)))
}

func readAcks(tx *bbolt.Tx) (map[string]Ack, error) {
	acks := map[string]Ack{}
	err := tx.Bucket(bucketClusters).ForEach(func(k, v []byte) error {
		a, ok := parseAck(v)
		if !ok {
			return fmt.Errorf("acknowledgement of cluster %q: %w", k, ErrFormat)
		}
		acks[string(k)] = a
		return nil
	})
	return acks, err
}

// acknowledgedFrame returns the frame through which every known cluster has
// committed, however long it has been silent. Where no cluster is known, or one
// has not been back since the epoch changed, nothing is acknowledged.
func (b *Buffer) acknowledgedFrame(tx *bbolt.Tx, s *state) (uint64, error) {
	acks, err := readAcks(tx)
	if err != nil || len(acks) == 0 {
		return 0, err
	}
	through := s.last
	for _, a := range acks {
		if a.Epoch != s.epoch {
			return 0, nil
		}
		through = min(through, a.Through)
	}
	return through, nil
}

// Trim drops chunks that every known cluster has acknowledged and that are older
// than the retention, and returns the number of frames dropped.
func (b *Buffer) Trim() (int, error) {
	before := b.opt.Now().Add(-b.opt.Retain).UnixMicro()
	return b.dropAcknowledged(func(written int64, _ int64) bool { return written < before })
}

// shrinkBy drops the oldest acknowledged chunks, whatever their age, until need
// bytes are free or nothing may go.
func (b *Buffer) shrinkBy(need int64) error {
	_, err := b.dropAcknowledged(func(_ int64, freed int64) bool { return freed < need })
	return err
}

// chunksPerDrop bounds one transaction of drop.
const chunksPerDrop = 1000

// dropAcknowledged removes acknowledged chunks from the old end for as long as may says so
// of a chunk's time and of the bytes freed so far.
func (b *Buffer) dropAcknowledged(may func(written, freed int64) bool) (frames int, err error) {
	freed := int64(0)
	if nothing, err := b.nothingAcknowledged(); nothing || err != nil {
		return 0, err
	}
	for {
		n, count := 0, 0
		err := b.updateHead(func(tx *bbolt.Tx, s *state) error {
			var size int64
			n, count, size, err = b.dropSome(tx, s, func(written, more int64) bool { return may(written, freed+more) })
			freed += size
			return err
		})
		frames += count
		if err != nil || n < chunksPerDrop {
			return frames, err
		}
	}
}

// nothingAcknowledged reports that no frame that is kept is acknowledged by all, so that a
// transaction would be in vain.
func (b *Buffer) nothingAcknowledged() (bool, error) {
	s, _ := b.currentHead()
	through := uint64(0)
	err := b.db.View(func(tx *bbolt.Tx) (err error) {
		through, err = b.acknowledgedFrame(tx, &s)
		return err
	})
	return through < s.first, err
}

func (b *Buffer) dropSome(tx *bbolt.Tx, s *state, may func(written, freed int64) bool) (chunks, frames int, size int64, err error) {
	through, err := b.acknowledgedFrame(tx, s)
	if err != nil {
		return 0, 0, 0, err
	}
	c := tx.Bucket(bucketChunks).Cursor()
	for k, v := c.First(); k != nil && chunks < chunksPerDrop; k, v = c.First() {
		header, err := peekHeader(v)
		if err != nil {
			return chunks, frames, size, err
		}
		if header.Last() > through || !may(int64(binary.BigEndian.Uint64(v)), size) {
			break
		}
		chunks, frames, size = chunks+1, frames+header.Count, size+int64(len(v)-8)
		s.first = header.Last() + 1
		if err := c.Delete(); err != nil {
			return chunks, frames, size, err
		}
	}
	s.bytes -= size
	return chunks, frames, size, nil
}

// Forget makes the cluster unknown, so that it no longer holds frames back. When
// it comes back it is known again, and is told what is gone. The error is
// [ErrCluster] when it is not known.
func (b *Buffer) Forget(cluster string) error {
	return b.updateHead(func(tx *bbolt.Tx, _ *state) error {
		clusters := tx.Bucket(bucketClusters)
		ack := cloneBytes(clusters.Get([]byte(cluster)))
		if ack == nil {
			return fmt.Errorf("forget cluster %q: %w", cluster, ErrCluster)
		}
		return errors.Join(tx.Bucket(bucketForgotten).Put([]byte(cluster), ack), clusters.Delete([]byte(cluster)))
	})
}
