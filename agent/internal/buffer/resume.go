package buffer

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"strings"
	"time"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
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
// behind which it pulls. From then on the cluster is known, at that position.
//
// Where the cluster's position is a place in this buffer, that is it. Otherwise
// all that is kept is sent again; when the cluster has committed frames that
// this buffer does not have (it was lost, or is an old copy), the buffer's clock
// is moved beyond what the cluster has seen, its sources go back to the
// cluster's checkpoints, less [Overlap], and a buffer that the cluster took for
// the same gets a new epoch. When frames are gone that the cluster lacks, a gap
// frame says so, and the sources of which it has no checkpoint start over. Calling it again with the same arguments is harmless. The error
// is [ErrCluster] when the cluster has no name.
func (b *Buffer) Resume(r Resume) (Position, error) {
	if r.Cluster == own {
		return Position{}, fmt.Errorf("resume: %w", ErrCluster)
	}
	var from Position
	err := b.updateHead(func(tx *bbolt.Tx, s *state) (err error) {
		if r.Epoch != s.epoch {
			return ErrEpoch
		}
		if from, err = b.agreeOnPosition(tx, s, r); err != nil {
			return err
		}
		return b.putAck(tx, r.Cluster, from)
	})
	if err != nil {
		return Position{}, err
	}
	return from, nil
}

// agreeOnPosition returns where the cluster goes on, and makes good for what is missing.
func (b *Buffer) agreeOnPosition(tx *bbolt.Tx, s *state, r Resume) (Position, error) {
	err := checkPosition(tx, s, r.Known)
	if err == nil || !isAstray(err) {
		return r.Known, b.damagedAt(r.Known.Seq, err)
	}
	after, err := lacksBehind(tx, s, r)
	if err != nil {
		return Position{}, err
	}
	if after < s.first-1 {
		if err := b.tellGap(tx, s, r, after); err != nil {
			return Position{}, err
		}
		r.Checkpoints = everySource(tx, r.Checkpoints)
	}
	if err := b.stepBack(tx, s, r); err != nil {
		return Position{}, err
	}
	return startPosition(tx, s)
}

// tellGap appends a frame of no source that says which frames the cluster lacks
// and will not get. It names no begin: no one knows any more when the first of
// them was written. A cluster that asks again finds the same frame.
func (b *Buffer) tellGap(tx *bbolt.Tx, s *state, r Resume, after uint64) error {
	reason := fmt.Sprintf("the agent's buffer no longer has the frames %d to %d, which cluster %s lacks", after+1, s.first-1, r.Cluster)
	told := tx.Bucket(bucketTold).Get([]byte(r.Cluster))
	if len(told) > 8 && binary.BigEndian.Uint64(told) >= s.first && string(told[8:]) == reason {
		return nil
	}
	_, oldest := tx.Bucket(bucketChunks).Cursor().First()
	to := writtenAt(oldest)
	if !to.Present() { // nothing is kept
		to = record.FromStd(b.opt.Now())
	}
	f := wire.Frame{
		Kind: wire.KindGap, Version: record.Version{Observed: b.clock.Observe()},
		Gap: wire.Gap{From: record.None, To: to, Reason: reason},
	}
	if err := b.putFrames(tx, s, [][]byte{wire.AppendFrame(nil, &f)}); err != nil {
		return err
	}
	return tx.Bucket(bucketTold).Put([]byte(r.Cluster), append(sequenceKey(s.last), reason...))
}

// everySource adds to checkpoints the sources of which the cluster has none, so
// that they start over: frames of them may be gone, and the scheduler still has
// the jobs.
func everySource(tx *bbolt.Tx, checkpoints map[Source][]byte) map[Source][]byte {
	all := maps.Clone(checkpoints)
	if all == nil {
		all = map[Source][]byte{}
	}
	c := tx.Bucket(bucketSources).Cursor()
	for k, _ := c.First(); k != nil; k, _ = c.Next() {
		kind, label, _ := strings.Cut(string(k), "\x00")
		if s := (Source{Type: kind, Label: label}); all[s] == nil {
			all[s] = nil
		}
	}
	return all
}

// stepBack makes good for what the cluster has and the buffer has not.
func (b *Buffer) stepBack(tx *bbolt.Tx, s *state, r Resume) error {
	b.clock.Advance(r.Observed)
	if r.Known.Epoch == s.epoch && r.Known.Seq >= s.first-1 {
		if err := b.renewEpoch(tx.Bucket(bucketMeta), s); err != nil {
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

// own is the name in the queue of the checkpoint that the source itself had; no
// cluster is called that.
const own = ""

// sendBack makes a source go back to a cluster's checkpoint: at once, or after it
// has gone back for another one, whose checkpoint may be older; no one but the
// source can tell. For the same reason the source goes back to its own checkpoint
// afterwards: what lies between may be with that cluster alone.
func sendBack(tx *bbolt.Tx, source Source, cluster string, checkpoint []byte) error {
	if _, other, ok := parseRewind(tx.Bucket(bucketRewind).Get(source.storageKey())); ok && other != cluster {
		return tx.Bucket(bucketQueue).Put(queueKey(source, cluster), checkpoint)
	}
	if err := setAside(tx, source, cluster, checkpoint); err != nil {
		return err
	}
	return goBack(tx, source, cluster, checkpoint)
}

// setAside queues the source's own checkpoint, unless one is queued already or
// it is the one that the source goes back to. A source that has none would begin
// again; that is worth its while when some other cluster is known.
func setAside(tx *bbolt.Tx, source Source, cluster string, instead []byte) error {
	queue, key := tx.Bucket(bucketQueue), queueKey(source, own)
	checkpoint := cloneBytes(tx.Bucket(bucketSources).Get(source.storageKey()))
	if queue.Get(key) != nil || checkpoint != nil && bytes.Equal(checkpoint, instead) {
		return nil
	}
	if checkpoint == nil {
		acks, err := readAcks(tx)
		delete(acks, cluster)
		if err != nil || len(acks) == 0 {
			return err
		}
	}
	return queue.Put(key, checkpoint)
}

// goBack makes the source begin at the checkpoint, less [Overlap]; an empty one
// is none.
func goBack(tx *bbolt.Tx, source Source, cluster string, checkpoint []byte) error {
	sources, key := tx.Bucket(bucketSources), source.storageKey()
	if err := tx.Bucket(bucketRewind).Put(key, encodeRewind(Overlap, cluster)); err != nil {
		return err
	}
	if len(checkpoint) == 0 {
		return sources.Delete(key)
	}
	return sources.Put(key, checkpoint)
}

// noteRewound notes that the source has stepped back, and sends it back to the next
// checkpoint that waits for that. A source that is not at its end would skip what
// lies before its own checkpoint, if that is the newer one, so it stays.
func noteRewound(tx *bbolt.Tx, s *state, source Source, endless bool) error {
	if err := tx.Bucket(bucketRewind).Delete(source.storageKey()); err != nil {
		return err
	}
	if endless {
		if err := tx.Bucket(bucketQueue).Delete(queueKey(source, own)); err != nil {
			return err
		}
	}
	prefix := queueKey(source, "")
	k, v := tx.Bucket(bucketQueue).Cursor().Seek(prefix)
	if !hasPrefix(k, prefix) {
		return nil
	}
	s.generation++
	cluster, checkpoint := string(k[len(prefix):]), cloneBytes(v)
	if err := tx.Bucket(bucketQueue).Delete(queueKey(source, cluster)); err != nil {
		return err
	}
	return goBack(tx, source, cluster, checkpoint)
}

// startPosition returns the position before the oldest frame that is kept.
func startPosition(tx *bbolt.Tx, s *state) (Position, error) {
	p := Position{Epoch: s.epoch, Seq: s.first - 1, Digest: s.digest}
	if s.first > s.last {
		return p, nil
	}
	_, value := tx.Bucket(bucketChunks).Cursor().First()
	header, err := peekHeader(value)
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
	head, _ := b.currentHead()
	start := Start{Generation: head.generation}
	err := b.db.View(func(tx *bbolt.Tx) error {
		start.Checkpoint = cloneBytes(tx.Bucket(bucketSources).Get(s.storageKey()))
		if v := tx.Bucket(bucketRewind).Get(s.storageKey()); v != nil {
			back, _, ok := parseRewind(v)
			if !ok {
				return fmt.Errorf("step back of %s: %w", s, ErrFormat)
			}
			start.Rewind = back
		}
		return nil
	})
	return start, err
}
