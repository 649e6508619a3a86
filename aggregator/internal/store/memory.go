package store

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// memory is what a store keeps in memory of one state of its database. What was
// published is never changed: readers hold it while the applier makes the next.
// The dictionary only grows and is shared by all.
type memory struct {
	state
	sums
	drops     uint64        // commands that dropped something, see Store.Drops
	zones     []*zone       // by sequence number
	waiting   []*waitingRow // by sequence number
	dict      *columns.Dict
	anomalies anomalyCounts

	archives []*Archive // by name
}

// waitingRow is a closed row or a tombstone that no block has yet.
type waitingRow struct {
	row  columns.Row
	dead bool // superseded
	sum  Hash // of a row that is not
}

// waitingAt returns the position of seq among the waiting rows.
func waitingAt(rows []*waitingRow, seq uint64) (int, bool) {
	return slices.BinarySearchFunc(rows, seq, func(w *waitingRow, seq uint64) int { return cmp.Compare(w.row.Seq, seq) })
}

// encodeWaiting is what is kept under tableWaiting.
func (w *waitingRow) encodeWaiting() []byte {
	flag := byte(0)
	if w.dead {
		flag = 1
	}
	return columns.AppendRow([]byte{flag}, &w.row)
}

func decodeWaiting(value []byte) (*waitingRow, error) {
	if len(value) == 0 {
		return nil, ErrCorrupt
	}
	row, err := columns.DecodeRow(value[1:])
	return &waitingRow{row: row, dead: value[0] == 1}, err
}
