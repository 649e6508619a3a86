package store

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/heap"
)

// maxHeap is the greatest limit for which the best rows are kept in memory while
// everything is read: a page of 10 000 and the row that says whether there are more.
const maxHeap = 10_001

// eachRow calls f with every matching row and its key, in no order. make gives the
// row, until f returns.
func (r *run) eachRow(f func(k sortKey, make func() (columns.Row, error)) error) error {
	if err := r.eachLoose(f); err != nil {
		return err
	}
	for _, z := range r.plan.zones {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		if err := r.eachRowOfBlock(z, f); err != nil {
			return err
		}
	}
	return nil
}

// eachLoose calls f with the rows that are in no block.
func (r *run) eachLoose(f func(k sortKey, make func() (columns.Row, error)) error) error {
	for _, w := range r.view.memory.waiting {
		if k := r.plan.keyOf(&w.row); r.plan.matchesRow(&w.row, w.dead) && r.plan.isAfterResume(k) {
			if err := f(k, func() (columns.Row, error) { return w.row, nil }); err != nil {
				return err
			}
		}
	}
	return r.view.eachOpenRow(r.ctx, r.plan, func(row *columns.Row) error {
		k := r.plan.keyOf(row)
		if !r.plan.isAfterResume(k) {
			return nil
		}
		return f(k, func() (columns.Row, error) { return *row, nil })
	})
}

func (r *run) eachRowOfBlock(z *zone, f func(k sortKey, make func() (columns.Row, error)) error) error {
	b, m, err := r.view.readSelected(r.plan, z, r.view.blocks.reader)
	if err != nil {
		return err
	}
	keys, err := r.plan.blockKeys(b, m, r.keys[:0])
	if err != nil {
		return err
	}
	r.keys = keys
	next, at := 0, 0
	row := func() (columns.Row, error) { return b.Row(at) }
	for i := range m.Rows() {
		k := keys[next]
		next, at = next+1, i
		if !r.plan.isAfterResume(k) {
			continue
		}
		if err := f(k, row); err != nil {
			return err
		}
	}
	return nil
}

// walkShare is how many rows of all the keys of which are read in the time in which one
// row is looked up; half of it is for being wrong.
const walkShare = 1000

// errFar ends a walk that has passed too many rows that do not match.
var errFar = errors.New("far")

// mayWalkIndex reports whether a page in the order of ids may be found by a walk of the index.
func (r *run) mayWalkIndex() bool {
	q := r.plan.Query
	return q.Order == ByID && q.Limit > 0 && q.Limit <= r.plan.maxRows()/walkShare && !q.Tombstones && !q.Superseded
}

// walkIndex looks the rows up in the order of the index by id. Where the conditions leave out so
// many that it takes less to read all keys, it does that.
func (r *run) walkIndex() error {
	from, to := []byte{tableIndex}, []byte{tableIndex + 1}
	if p := r.plan.Resume; p != nil && r.plan.Desc {
		to = textKey(tableIndex, p.ID)
	} else if p != nil {
		from = append(textKey(tableIndex, p.ID), 0)
	}
	var rows []*columns.Row
	left := r.plan.maxRows() / walkShare
	err := scanOrdered(r.view.snap, from, to, r.plan.Desc, func(key, value []byte) error {
		if left--; left < 0 {
			return errFar
		}
		x, err := decodeIndex(value)
		if err != nil || x.Hidden {
			return err
		}
		row, err := r.view.rowOf(&x, keyText(key))
		if err != nil || !r.plan.matchesRow(row, false) {
			return err
		}
		if rows = append(rows, row); len(rows) == r.plan.Limit {
			return errEnough
		}
		return r.ctx.Err()
	})
	if errors.Is(err, errFar) {
		return r.emitBest()
	}
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for _, row := range rows {
		if err := r.emit(row); err != nil {
			return err
		}
	}
	return nil
}

// sorter sorts rows in memory up to a limit and beyond it in files.
type sorter struct {
	plan  *plan
	spill *spill
	limit int

	buf   []byte // encoded rows, one after the other
	items []sortItem
	runs  []*os.File
}

type sortItem struct {
	key      sortKey
	from, to int // in buf
}

// itemBytes is about what an item takes beside its encoded row.
const itemBytes = 72

// emitSorted emits all rows, sorted in memory as far as they fit.
func (r *run) emitSorted() error {
	s := &sorter{plan: r.plan, limit: r.view.store.options.SortBytes, spill: r.view.store.options.newSpill()}
	err := r.sortInto(s)
	if e := s.close(); e != nil && (err == nil || errors.Is(err, errEnough)) {
		return fmt.Errorf("sort: %w", e)
	}
	return err
}

func (r *run) sortInto(s *sorter) error {
	first := r.newFirstKeys(r.keyBound())
	err := r.eachRow(func(k sortKey, make func() (columns.Row, error)) error {
		if !first.offerKey(k) {
			return nil
		}
		row, err := make()
		if err != nil {
			return err
		}
		return s.addRow(k, &row)
	})
	if err != nil {
		return err
	}
	if err := r.releaseSortMemory(s); err != nil {
		return err
	}
	n := 0
	return s.mergeRuns(func(row *columns.Row) error {
		if n++; n&1023 == 0 && r.ctx.Err() != nil {
			return r.ctx.Err()
		}
		return r.emit(row)
	})
}

// maxBound is the greatest limit of which the keys are kept while rows are sorted.
const maxBound = 100_000

// keyBound is of how many rows the keys are kept while all are sorted; 0 is none.
func (r *run) keyBound() int {
	if r.plan.Limit > maxBound || r.plan.Limit >= r.plan.maxRows() {
		return 0
	}
	return r.plan.Limit
}

// firstKeys has the first keys of the order that have come, the last of them on top. Rows
// behind them need not be sorted.
type firstKeys struct {
	heap.Heap[sortKey]

	most int
}

func (r *run) newFirstKeys(most int) *firstKeys {
	last := func(a, b sortKey) bool { return r.plan.compareKeys(a, b) > 0 }
	return &firstKeys{heap.Heap[sortKey]{Less: last}, most}
}

// offerKey takes a key in when a row with it may be among the first, and reports whether it may.
func (h *firstKeys) offerKey(k sortKey) bool {
	switch {
	case h.most == 0:
	case len(h.Items) < h.most:
		h.Push(k)
	case h.Less(k, h.Items[0]):
		return false
	default:
		h.Items[0] = k
		h.Fix()
	}
	return true
}

// releaseSortMemory gives back the memory that sorting took, where some of the rows are in
// files: then all are, so that a client that reads slowly holds little.
func (r *run) releaseSortMemory(s *sorter) error {
	if len(s.runs) == 0 {
		return nil
	}
	if err := s.spillRun(); err != nil {
		return err
	}
	s.buf, s.items = nil, nil
	r.view.resetBlocks()
	r.shrinkLease(int64(len(s.runs)+1) * runBytes)
	return nil
}

func (s *sorter) addRow(k sortKey, row *columns.Row) error {
	from := len(s.buf)
	s.buf = binary.BigEndian.AppendUint64(s.buf, row.Seq)
	s.buf = columns.AppendRow(s.buf, row)
	s.items = append(s.items, sortItem{key: k, from: from, to: len(s.buf)})
	if len(s.buf)+itemBytes*len(s.items) < s.limit {
		return nil
	}
	return s.spillRun()
}

func (s *sorter) sortItems() {
	slices.SortFunc(s.items, func(a, b sortItem) int { return s.plan.compareKeys(a.key, b.key) })
}

// spillRun puts what is in memory into a file, sorted.
func (s *sorter) spillRun() error {
	if len(s.items) == 0 {
		return nil
	}
	f, err := s.spill.createFile()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, f)
	s.sortItems()
	w := bufio.NewWriterSize(f, 256<<10)
	for _, it := range s.items {
		_, _ = w.Write(binary.AppendUvarint(nil, uint64(it.to-it.from))) // Flush has the first error
		_, _ = w.Write(s.buf[it.from:it.to])
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrSpill, err)
	}
	s.buf, s.items = s.buf[:0], s.items[:0]
	return nil
}

// mergeRuns yields all rows in order.
func (s *sorter) mergeRuns(yield func(*columns.Row) error) error {
	s.sortItems()
	at := 0
	runs := []*mergeRun{{next: func() ([]byte, error) {
		if at >= len(s.items) {
			return nil, io.EOF
		}
		it := s.items[at]
		at++
		return bytes.Clone(s.buf[it.from:it.to]), nil
	}}}
	for _, f := range s.runs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("sort: %w", err)
		}
		runs = append(runs, &mergeRun{next: runReader(f)})
	}
	return s.plan.mergeSorted(runs, yield)
}

func runReader(f *os.File) func() ([]byte, error) {
	in := bufio.NewReaderSize(f, runBuffer)
	return func() ([]byte, error) {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return nil, err
		}
		b := make([]byte, n)
		if _, err := io.ReadFull(in, b); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return b, nil
	}
}

func (s *sorter) close() (err error) {
	for _, f := range s.runs {
		err = errors.Join(err, f.Close())
	}
	s.runs = nil
	return err
}

// mergeRun is a sorted run of rows.
type mergeRun struct {
	next func() ([]byte, error)
	key  sortKey
	row  columns.Row
}

// mergeSorted yields the rows of sorted runs in order.
func (p *plan) mergeSorted(runs []*mergeRun, yield func(*columns.Row) error) error {
	next := heap.Heap[*mergeRun]{Less: func(a, b *mergeRun) bool { return p.compareKeys(a.key, b.key) < 0 }}
	for _, r := range runs {
		if more, err := r.readNext(p); err != nil {
			return err
		} else if more {
			next.Push(r)
		}
	}
	for len(next.Items) > 0 {
		r := next.Items[0]
		if err := yield(&r.row); err != nil {
			return err
		}
		more, err := r.readNext(p)
		if err != nil {
			return err
		}
		if more {
			next.Fix()
		} else {
			next.Pop()
		}
	}
	return nil
}

func (r *mergeRun) readNext(p *plan) (bool, error) {
	b, err := r.next()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err == nil && len(b) < 8 {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		r.row, err = columns.DecodeRow(b[8:])
	}
	if err != nil {
		return false, fmt.Errorf("sort: %w", err)
	}
	r.row.Seq = binary.BigEndian.Uint64(b)
	r.key = p.keyOf(&r.row)
	return true, nil
}
