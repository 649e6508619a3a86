package buffer

import (
	"encoding/binary"
	"errors"
	"time"

	"go.etcd.io/bbolt"
)

// Overlap is how far sources step back behind a checkpoint that a cluster
// remembers when the buffer itself was lost or is an old copy.
const Overlap = 48 * time.Hour

// Resume is what a cluster remembers of an agent.
type Resume struct {
	Cluster string
	// Epoch that the cluster was told; an answer to another one is [ErrEpoch].
	Epoch Epoch
	// Known is the position that the cluster has committed; its Epoch is zero
	// when it has none.
	Known Position
	// Checkpoints of the sources as committed with Known.
	Checkpoints map[Source][]byte
	// Observed is the highest reading of the agent's clock in what the cluster
	// has committed.
	Observed int64
}

// Resume agrees with a cluster on where to go on, and returns the position
// behind which it pulls.
//
// Where the cluster's position is a place in this buffer, that is it. Otherwise
// all that is kept is sent again; when the cluster has committed frames that
// this buffer does not have (it was lost, or is an old copy), the buffer's clock
// is moved beyond what the cluster has seen, its sources go back to the
// cluster's checkpoints, less [Overlap], and a buffer that the cluster took for
// the same gets a new epoch. Calling it again with the same arguments is
// harmless.
func (b *Buffer) Resume(r Resume) (Position, error) {
	var from Position
	err := b.update(func(tx *bbolt.Tx, s *state) error {
		if r.Epoch != s.epoch {
			return ErrEpoch
		}
		if check(tx, s, r.Known) == nil {
			from = r.Known
			return nil
		}
		if err := b.stepBack(tx, s, r); err != nil {
			return err
		}
		var err error
		from, err = start(tx, s)
		return err
	})
	return from, err
}

// stepBack makes good for what the cluster has and the buffer has not.
func (b *Buffer) stepBack(tx *bbolt.Tx, s *state, r Resume) error {
	b.clock.Advance(r.Observed)
	if r.Known.Epoch == s.epoch && r.Known.Seq+1 >= s.first {
		if err := b.renew(tx.Bucket(bucketMeta), s); err != nil {
			return err
		}
	}
	s.generation++
	for source, checkpoint := range r.Checkpoints {
		if err := sendBack(tx, source, r.Cluster, checkpoint); err != nil {
			return err
		}
	}
	return nil
}

// sendBack makes a source go back to a cluster's checkpoint: at once, or after it
// has gone back for another cluster, whose checkpoint may be an older one; nobody
// but the source can tell.
func sendBack(tx *bbolt.Tx, source Source, cluster string, checkpoint []byte) error {
	rewind := tx.Bucket(bucketRewind)
	if v := rewind.Get(source.key()); len(v) >= 8 && string(v[8:]) != cluster {
		return tx.Bucket(bucketQueue).Put(queueKey(source, cluster), checkpoint)
	}
	return errors.Join(
		tx.Bucket(bucketSources).Put(source.key(), checkpoint),
		rewind.Put(source.key(), append(sequence(uint64(Overlap.Microseconds())), cluster...)))
}

func queueKey(s Source, cluster string) []byte { return append(append(s.key(), 0), cluster...) }

// rewound notes that the source has stepped back, and sends it back for the next
// cluster that waits for that.
func rewound(tx *bbolt.Tx, s *state, source Source) error {
	if err := tx.Bucket(bucketRewind).Delete(source.key()); err != nil {
		return err
	}
	prefix := queueKey(source, "")
	k, v := tx.Bucket(bucketQueue).Cursor().Seek(prefix)
	if !hasPrefix(k, prefix) {
		return nil
	}
	s.generation++
	cluster, checkpoint := string(k[len(prefix):]), clone(v)
	if err := tx.Bucket(bucketQueue).Delete(queueKey(source, cluster)); err != nil {
		return err
	}
	return sendBack(tx, source, cluster, checkpoint)
}

// start returns the position before the oldest frame that is kept.
func start(tx *bbolt.Tx, s *state) (Position, error) {
	p := Position{Epoch: s.epoch, Seq: s.first - 1, Digest: s.digest}
	if s.first > s.last {
		return p, nil
	}
	_, value := tx.Bucket(bucketChunks).Cursor().First()
	header, err := peek(value)
	p.Digest = header.Before
	return p, err
}

// Start is where a source goes on.
type Start struct {
	Checkpoint []byte        // nil: from the beginning
	Rewind     time.Duration // how far to step back behind Checkpoint; zero: not at all
	Generation uint64        // for [Append.Generation]
}

// Begin returns where the source goes on. While it has to step back, the notes
// on what was sent do not count: a cluster may hold runs that they do not name.
// [Append.Rewound] ends that.
func (b *Buffer) Begin(s Source) (Start, error) {
	head, _ := b.head()
	start := Start{Generation: head.generation}
	err := b.db.View(func(tx *bbolt.Tx) error {
		start.Checkpoint = clone(tx.Bucket(bucketSources).Get(s.key()))
		if v := tx.Bucket(bucketRewind).Get(s.key()); len(v) >= 8 {
			start.Rewind = time.Duration(binary.BigEndian.Uint64(v)) * time.Microsecond
		}
		return nil
	})
	return start, err
}
