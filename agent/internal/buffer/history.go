package buffer

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
)

// What a cluster has had of this file is remembered for longer than it is known:
// one that was taken back to before that, or that was forgotten, cannot say itself
// what it lacks.

// noteOf returns the last acknowledgement of a cluster, also of one that was
// forgotten since; false for one that has never been here.
func noteOf(tx *bbolt.Tx, cluster string) (Ack, bool, error) {
	for _, name := range [][]byte{bucketClusters, bucketForgotten} {
		v := tx.Bucket(name).Get([]byte(cluster))
		if v == nil {
			continue
		}
		ack, ok := parseAck(v)
		if !ok {
			return ack, false, fmt.Errorf("acknowledgement of cluster %q: %w", cluster, ErrFormat)
		}
		return ack, true, nil
	}
	return Ack{}, false, nil
}

// begunBehind returns the frame behind which a cluster has begun: 0, but for one that
// came when the first frames were gone already. Those it never lacks.
func begunBehind(tx *bbolt.Tx, cluster string) (uint64, error) {
	v := tx.Bucket(bucketBegun).Get([]byte(cluster))
	switch len(v) {
	case 0:
		return 0, nil
	case 8:
		return binary.BigEndian.Uint64(v), nil
	}
	return 0, fmt.Errorf("where cluster %q began: %w", cluster, ErrFormat)
}

// lacksBehind returns the frame behind which the cluster lacks what is no longer kept;
// s.first-1 when it lacks nothing. A cluster that comes for the first time is
// remembered.
func lacksBehind(tx *bbolt.Tx, s *state, r Resume) (uint64, error) {
	gone := s.first - 1
	note, known, err := noteOf(tx, r.Cluster)
	if err != nil {
		return gone, err
	}
	begin, err := begunBehind(tx, r.Cluster)
	if err != nil {
		return gone, err
	}
	none := Epoch{}
	switch {
	case r.Known.Epoch == s.epoch && r.Known.Seq < gone:
		return r.Known.Seq, nil
	case known && r.Known.Epoch != none && (r.Known.Epoch == note.Epoch || r.Known.Epoch == s.epoch):
		// Its numbers are those of this file, at least up to what it acknowledged.
		return min(gone, max(begin, min(r.Known.Seq, note.Through))), nil
	case !known && r.Known.Epoch == none: // it is new
		if gone == 0 {
			return 0, nil
		}
		return gone, tx.Bucket(bucketBegun).Put([]byte(r.Cluster), sequenceKey(gone))
	}
	// It speaks of another buffer, or of none, and has been here, or had the frames
	// of a buffer that was lost: none of those that are gone are sure to be there.
	return min(gone, begin), nil
}
