package store

import (
	"math/bits"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
)

// part is a list of rows of a command whose ids are new: those of a batch, or
// loose ones. Rows that turn out not to be new are dropped from it.
type part struct {
	batch *columns.Batch // nil when the rows are loose
	facts *facts         // of batch
	rows  []columns.Row  // loose
	// observed is when the rows of a posted batch were observed, by position; nil: the
	// batch says it.
	observed []uint64
	taken    []int32 // positions of rows that are new, ascending

	closed []int32 // of taken, those whose run has ended
	sums   []Hash  // of closed
	first  uint64  // the sequence number of the first of closed; the others follow
}

func (p *part) rowAt(i int) columns.Row {
	if p.batch == nil {
		return p.rows[i]
	}
	row := p.batch.Row(i)
	p.setObserved(&row, i)
	return row
}

// setObserved sets when row i of the batch was observed.
func (p *part) setObserved(row *columns.Row, i int) {
	if p.observed != nil {
		row.Version.Observed = int64(p.observed[i])
	}
}

func (p *part) isOpenAt(i int) bool {
	if p.batch != nil {
		return p.batch.Open(i) && !p.batch.Tombstone(i)
	}
	return isOpen(&p.rows[i])
}

func (p *part) hasID(i int, id string) bool {
	if p.batch != nil {
		return p.batch.ID(i) == id
	}
	return p.rows[i].Record.ID == id
}

// dropRow removes position i again.
func (p *part) dropRow(i int) {
	if at, ok := slices.BinarySearch(p.taken, int32(i)); ok {
		p.taken = slices.Delete(p.taken, at, at+1)
	}
}

// freshIDs finds the ids that a command has added itself. It is a table of their
// hashes with open addressing.
type freshIDs struct {
	cells []freshCell
	n     int
}

type freshCell struct {
	hash uint64
	part int32 // counted from 1; 0: free
	row  int32
}

func (f *freshIDs) addID(hash uint64, part, row int) {
	if 2*(f.n+1) > len(f.cells) {
		f.grow(0)
	}
	f.n++
	f.insertCell(freshCell{hash: hash, part: int32(part) + 1, row: int32(row)})
}

// reserve makes room for n more ids.
func (f *freshIDs) reserve(n int) {
	for 2*(f.n+n) > len(f.cells) {
		f.grow(2 * (f.n + n))
	}
}

func (f *freshIDs) grow(least int) {
	old := f.cells
	f.cells = make([]freshCell, 1<<bits.Len(uint(max(1023, 2*len(old)-1, least-1))))
	for _, c := range old {
		if c.part != 0 {
			f.insertCell(c)
		}
	}
}

func (f *freshIDs) insertCell(c freshCell) {
	mask := uint64(len(f.cells) - 1)
	at := c.hash & mask
	for f.cells[at].part != 0 {
		at = (at + 1) & mask
	}
	f.cells[at] = c
}

// findRow returns where the id is among the parts' rows.
func (f *freshIDs) findRow(hash uint64, id string, parts []*part) (*part, int, bool) {
	if f.n == 0 {
		return nil, 0, false
	}
	mask := uint64(len(f.cells) - 1)
	for at := hash & mask; f.cells[at].part != 0; at = (at + 1) & mask {
		c := f.cells[at]
		if p := parts[max(c.part-1, 0)]; c.hash == hash && p.hasID(int(c.row), id) {
			return p, int(c.row), true
		}
	}
	return nil, 0, false
}
