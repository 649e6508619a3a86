package buffer

import (
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/bursar-accounting/bursar/proto/record"
)

// Audit is a day of a source whose runs were counted.
type Audit struct {
	Day record.Time // its begin
	At  record.Time // when they were counted
}

// Audits returns the days of the source that were counted and are to be counted no
// more, each with the time of its last count.
func (b *Buffer) Audits(s Source) (map[record.Time]record.Time, error) {
	days := map[record.Time]record.Time{}
	prefix := auditKey(s, nil)
	err := b.db.View(func(tx *bbolt.Tx) error {
		c := tx.Bucket(bucketAudits).Cursor()
		for k, v := c.Seek(prefix); len(k) >= len(prefix) && string(k[:len(prefix)]) == string(prefix); k, v = c.Next() {
			if len(k) != len(prefix)+8 || len(v) != 8 {
				return fmt.Errorf("%w: an audit of %d bytes", ErrFormat, len(v))
			}
			days[record.Time(binary.BigEndian.Uint64(k[len(prefix):]))] = record.Time(binary.BigEndian.Uint64(v))
		}
		return nil
	})
	return days, err
}

// auditKey is the key of a day of a source; of its first bytes without one.
func auditKey(s Source, day *record.Time) []byte {
	key := append(s.storageKey(), 0)
	if day == nil {
		return key
	}
	return binary.BigEndian.AppendUint64(key, uint64(*day))
}

// putAudits writes which days are counted.
func putAudits(tx *bbolt.Tx, a Append) error {
	audits := tx.Bucket(bucketAudits)
	for _, day := range a.Unaudited {
		if err := audits.Delete(auditKey(a.Source, &day)); err != nil {
			return err
		}
	}
	for i := range a.Audited {
		if err := audits.Put(auditKey(a.Source, &a.Audited[i].Day), sequenceKey(uint64(a.Audited[i].At))); err != nil {
			return err
		}
	}
	return nil
}

// SetVersion notes the protocol version that a cluster takes, which decides what
// may be put into the buffer; see [Buffer.Takes]. It survives restarts.
func (b *Buffer) SetVersion(cluster string, version uint32) error {
	if b.clusterVersion(cluster) == version {
		return nil
	}
	return b.db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket(bucketVersions).Put([]byte(cluster), binary.BigEndian.AppendUint32(nil, version))
	})
}

func (b *Buffer) clusterVersion(cluster string) (version uint32) {
	_ = b.db.View(func(tx *bbolt.Tx) error { // never fails
		version = versionIn(tx, cluster)
		return nil
	})
	return version
}

func versionIn(tx *bbolt.Tx, cluster string) uint32 {
	v := tx.Bucket(bucketVersions).Get([]byte(cluster))
	if len(v) != 4 {
		return 0
	}
	return binary.BigEndian.Uint32(v)
}

// Takes reports whether all clusters that are known take commands of that version,
// and at least one is known. A cluster that has not said so does not.
func (b *Buffer) Takes(version uint32) (bool, error) {
	takes := false
	err := b.db.View(func(tx *bbolt.Tx) error {
		acks, err := readAcks(tx)
		takes = len(acks) > 0
		for cluster := range acks {
			takes = takes && versionIn(tx, cluster) >= version
		}
		return err
	})
	return takes, err
}
