package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/poison"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Order is what a query sorts by.
type Order uint8

// The orders. In each, rows that are equal come in the order of their sequence
// numbers. ByStop and ByRuntime have no value for open records: these come last,
// and first when the order is turned round.
const (
	ByStop Order = iota
	ByStart
	ByRuntime
	ByID
	BySeq // the change feed; the cheapest
	// ByMeta is the first value of the meta key that By names, and ByAmount the amount of
	// the first component of that name. ByUsed is that amount × how long the run took. Records
	// without one come last in either direction, by ByUsed also those that go on.
	ByMeta
	ByAmount
	ByUsed
)

// Query selects rows. The zero Query selects all records in the order of stop.
// All conditions must hold.
type Query struct {
	ID      string // "" for any
	Start   Range  // microseconds
	Stop    Range  // microseconds; open records drop out
	Runtime Range  // whole seconds; open records drop out
	Wait    Range  // whole seconds from submit to start; records that do not say both in this order drop out
	// Running, when set, keeps the records that run at any instant of it: they
	// start before its end and stop after its beginning, or go on.
	Running *Window
	Meta    []MetaTest // of keys of meta, or of [record.EndKeys]
	// Allowed, when not nil, keeps the records for which all tests of at least one
	// of the lists hold; one that is empty and not nil keeps none. It is what a
	// reader may see at all, beside what is asked for. Its keys are of meta alone.
	Allowed [][]MetaTest
	Amounts []AmountTest
	Open    OpenTest
	// Origin, when set, keeps the rows that this origin says.
	Origin *record.Origin

	// Reads, when set, leaves out the blocks of which it says no, by the first and the
	// last number in them: for who knows that they have no row that matches.
	Reads func(first, last uint64) bool

	// After keeps the rows with a greater sequence number.
	After uint64
	// Tombstones includes the rows of ids that show nothing any more, whatever
	// the other conditions: for who follows the feed.
	Tombstones bool
	// Superseded includes rows that others have taken the place of, as far as
	// they are still there: for who adds up what the feed says, see DESIGN.md.
	Superseded bool

	// Details leaves out the records whose details are archived.
	Details bool

	// ReuseRows says that yield keeps nothing of a row: then all of it may be
	// overwritten by the next, which makes a long answer a third cheaper.
	ReuseRows bool

	Order Order
	By    string // of ByMeta, ByAmount and ByUsed
	Desc  bool
	// Resume, when set, leaves out all rows up to and including that position.
	Resume *Position
	// Limit is the greatest number of rows; 0 is none.
	Limit int
}

// TestsRows reports whether the query has conditions on what single records have beside their meta:
// no sums by meta answer it.
func (q *Query) TestsRows() bool {
	return q.ID != "" || q.Start != (Range{}) || q.Stop != (Range{}) || q.Runtime != (Range{}) || q.Wait != (Range{}) ||
		q.Amounts != nil || q.Open != OpenOrClosed || q.Origin != nil
}

// Range bounds a number, both ends included; nil is no bound. Conditions narrow
// it: they are all kept.
type Range struct{ Min, Max *int64 }

// GTE keeps numbers of v and above.
func (r *Range) GTE(v int64) {
	if r.Min == nil || *r.Min < v {
		r.Min = &v
	}
}

// LTE keeps numbers of v and below.
func (r *Range) LTE(v int64) {
	if r.Max == nil || *r.Max > v {
		r.Max = &v
	}
}

// GT keeps numbers above v.
func (r *Range) GT(v int64) {
	if v == math.MaxInt64 {
		r.matchNothing()
		return
	}
	r.GTE(v + 1)
}

// LT keeps numbers below v.
func (r *Range) LT(v int64) {
	if v == math.MinInt64 {
		r.matchNothing()
		return
	}
	r.LTE(v - 1)
}

// Equals keeps v alone.
func (r *Range) Equals(v int64) {
	r.GTE(v)
	r.LTE(v)
}

func (r *Range) matchNothing() {
	r.GTE(1)
	r.LTE(0)
}

func (r Range) isUnbounded() bool { return r.Min == nil && r.Max == nil }

// bounds returns the range with all numbers in the place of no bound.
func (r Range) bounds() (least, most int64) {
	least, most = math.MinInt64, math.MaxInt64
	if r.Min != nil {
		least = *r.Min
	}
	if r.Max != nil {
		most = *r.Max
	}
	return least, most
}

func (r Range) contains(v int64) bool {
	least, most := r.bounds()
	return least <= v && v <= most
}

// Window is the time from From, included, to To, not included.
type Window struct{ From, To record.Time }

func (w *Window) overlaps(start, stop record.Time) bool {
	return w == nil || start < w.To && (stop == record.None || stop > w.From)
}

// MetaTest asks for the values of one key. A record without the key fails every
// test, Lacks too.
type MetaTest struct {
	Key      string
	Contains []string // all of them are among the values
	Lacks    []string // none of them is
	Any      []string // at least one of them is; none for no such test
	// OfMeta keeps to meta: the key is none of [record.EndKeys], whatever its name.
	OfMeta bool
}

// ofEnd reports whether the values may be those of an end.
func (m *MetaTest) ofEnd() bool { return !m.OfMeta && record.IsEndKey(m.Key) }

func (m *MetaTest) matchesValues(values []string, present bool) bool {
	if !present {
		return false
	}
	for _, v := range m.Contains {
		if !slices.Contains(values, v) {
			return false
		}
	}
	for _, v := range m.Lacks {
		if slices.Contains(values, v) {
			return false
		}
	}
	return len(m.Any) == 0 || slices.ContainsFunc(m.Any, func(v string) bool { return slices.Contains(values, v) })
}

// AmountTest asks for the amount of the first component of a name, wherever it
// stands. A record without one fails.
type AmountTest struct {
	Name   string
	Amount Range
}

// OpenTest asks whether a run goes on.
type OpenTest uint8

// The tests of whether a run goes on.
const (
	OpenOrClosed OpenTest = iota
	OnlyOpen
	OnlyClosed
)

// Position is a place in the order of a query, for the next page of the same
// query.
type Position struct {
	Order Order
	By    string `json:",omitempty"`
	Desc  bool
	Null  bool // the row has no value to sort by
	Key   int64
	ID    string
	Seq   uint64
}

// PositionOf returns where the row stands in the order of q.
func (q *Query) PositionOf(row *columns.Row) Position {
	k := q.keyOf(row)
	return Position{Order: q.Order, By: q.By, Desc: q.Desc, Null: k.null, Key: k.n, ID: k.id, Seq: row.Seq}
}

// Query calls yield with the rows of q in its order. The row belongs to the
// query and is overwritten by the next one, the slices in it are not, unless
// q.ReuseRows. Rows with the same meta mostly share its slice. The error
// is that of yield, of ctx, or of the disk; then the rows so far are not the
// answer. [ErrQuery] says that q makes no sense.
func (v *View) Query(ctx context.Context, q Query, yield func(*columns.Row) error) error {
	if err := q.validate(); err != nil {
		return err
	}
	p, err := v.planQuery(&q)
	if err != nil {
		return err
	}
	if poison.Enabled {
		yield = poisonRows(q.ReuseRows, yield)
	}
	run := &run{ctx: ctx, view: v, plan: p, yield: yield, left: q.Limit}
	if q.Limit <= 0 {
		run.left = math.MaxInt
	}
	err = run.answerQuery()
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// poisonRows gives yield copies of rows and overwrites what of them is lent when it
// returns.
func poisonRows(all bool, yield func(*columns.Row) error) func(*columns.Row) error {
	dead := columns.Row{Record: record.Record{ID: poison.Text, State: poison.Text}, Origin: record.Origin{Agent: poison.Text, Type: poison.Text, Label: poison.Text}}
	return func(row *columns.Row) error {
		mine := *row
		if all {
			mine.Record.Components = slices.Clone(mine.Record.Components)
			mine.Record.Meta = slices.Clone(mine.Record.Meta)
			for i, e := range mine.Record.Meta {
				mine.Record.Meta[i].Values = slices.Clone(e.Values)
			}
		}
		lends := mine
		err := yield(&mine)
		mine = dead
		if all {
			for i := range lends.Record.Meta {
				poison.Slice(lends.Record.Meta[i].Values, poison.Text)
			}
			poison.Slice(lends.Record.Meta, record.MetaEntry{Key: poison.Text})
			poison.Slice(lends.Record.Components, record.Component{Name: poison.Text})
		}
		return err
	}
}

func (q *Query) validate() error {
	if q.Order > ByUsed || (q.By != "") != (q.Order >= ByMeta) {
		return fmt.Errorf("%w: order %d of %q", ErrQuery, q.Order, q.By)
	}
	if q.Resume != nil && (q.Resume.Order != q.Order || q.Resume.By != q.By || q.Resume.Desc != q.Desc) {
		return fmt.Errorf("%w: the position is of another order", ErrQuery)
	}
	if q.Limit < 0 {
		return fmt.Errorf("%w: limit %d", ErrQuery, q.Limit)
	}
	return nil
}
