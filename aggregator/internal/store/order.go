package store

import (
	"cmp"
	"math"
	"math/bits"
	"strings"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/record"
)

// sortKey is what a row is sorted by. A missing value is greater than all.
type sortKey struct {
	null bool
	n    int64
	id   string
	seq  uint64
}

func numberKey(n int64, seq uint64) sortKey { return sortKey{n: n, seq: seq} }
func nullKey(seq uint64) sortKey            { return sortKey{null: true, n: math.MaxInt64, seq: seq} }

// metaKey is the key of the first of some values.
func metaKey(values []string, seq uint64) sortKey {
	if len(values) == 0 {
		return nullKey(seq)
	}
	return sortKey{id: values[0], seq: seq}
}

// runtimeKey is the key of how long a run took, in whole seconds.
func runtimeKey(start, stop record.Time, seq uint64) sortKey {
	if stop == record.None {
		return nullKey(seq)
	}
	return numberKey(int64(stop-start)/int64(record.Second), seq)
}

// usedKey is the key of an amount × the time of a run, in microseconds; what is more than a number
// of 64 bits is the greatest of them.
func usedKey(amount int64, start, stop record.Time, seq uint64) sortKey {
	if stop == record.None {
		return nullKey(seq)
	}
	hi, lo := bits.Mul64(uint64(max(amount, 0)), uint64(max(stop-start, 0)))
	if hi > 0 || lo > math.MaxInt64 {
		lo = math.MaxInt64
	}
	return numberKey(int64(lo), seq)
}

func (q *Query) keyOf(row *columns.Row) sortKey {
	stop := row.ShownStop()
	switch {
	case q.Order == ByID:
		return sortKey{id: row.Record.ID, seq: row.Seq}
	case q.Order == BySeq:
		return sortKey{seq: row.Seq}
	case q.Order == ByMeta:
		values, _ := row.Record.Values(q.By)
		return metaKey(values, row.Seq)
	case q.Order == ByAmount:
		if c := row.Record.Component(q.By); c != nil {
			return numberKey(c.Amount, row.Seq)
		}
		return nullKey(row.Seq)
	case q.Order == ByUsed:
		if c := row.Record.Component(q.By); c != nil {
			return usedKey(c.Amount, row.Record.Start, stop, row.Seq)
		}
		return nullKey(row.Seq)
	case q.Order == ByStart:
		return numberKey(int64(row.Record.Start), row.Seq)
	case stop == record.None:
		return nullKey(row.Seq)
	case q.Order == ByRuntime:
		return runtimeKey(row.Record.Start, stop, row.Seq)
	}
	return numberKey(int64(stop), row.Seq)
}

// compareKeys orders keys as q asks. Equal values come by their sequence number,
// also when the order is turned round – but for BySeq itself.
func (q *Query) compareKeys(a, b sortKey) int {
	if q.Order == BySeq {
		return q.applyDirection(cmp.Compare(a.seq, b.seq))
	}
	if q.By != "" && a.null != b.null {
		return nullsLast(b)
	}
	c := cmp.Or(cmp.Compare(a.n, b.n), strings.Compare(a.id, b.id))
	if c == 0 && a.null != b.null {
		c = nullsLast(b)
	}
	return cmp.Or(q.applyDirection(c), cmp.Compare(a.seq, b.seq))
}

// nullsLast orders two keys of which one is null.
func nullsLast(b sortKey) int {
	if b.null {
		return -1
	}
	return 1
}

func (q *Query) applyDirection(c int) int {
	if q.Desc {
		return -c
	}
	return c
}

// isAfterResume reports whether the key comes after the position that q resumes from.
func (q *Query) isAfterResume(k sortKey) bool {
	if q.Resume == nil {
		return true
	}
	r := q.Resume
	return q.compareKeys(k, sortKey{null: r.Null, n: r.Key, id: r.ID, seq: r.Seq}) > 0
}
