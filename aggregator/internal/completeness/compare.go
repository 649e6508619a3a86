package completeness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

const (
	day   = 24 * time.Hour
	micro = record.Time(day / time.Microsecond) // a day
)

// View is what is needed of a view of the store.
type View interface {
	Facts(kind store.FactKind) ([]store.Fact, error)
	Agents() ([]store.Cursor, error)
	Scan(ctx context.Context, q store.Query, block func(*columns.Block, columns.Mask) error, loose func(*columns.Row) error) error
	Holdings(row *columns.Row) ([]record.Holding, error)
	Deletion(id string) (by string, at record.Time, ok bool, err error)
}

// Window are the days that are compared: those that begin in [From, To).
type Window struct{ From, To record.Time }

// Begin is the start of the day of t.
func Begin(t record.Time) record.Time {
	begin := t - t%micro
	if t < begin {
		begin -= micro
	}
	return begin
}

// hasDay reports whether the day that begins at t is in the window.
func (w Window) hasDay(t record.Time) bool { return t >= w.From && t < w.To }

// Look compares the days of a window of all sources that are known, by source and
// time. Its cost is a scan of the window's records.
func Look(ctx context.Context, v View, w Window) ([]Day, error) {
	counts, err := countsByDay(v, w)
	if err != nil {
		return nil, err
	}
	sources, err := listSources(v, counts)
	if err != nil {
		return nil, err
	}
	if len(sources) == 0 {
		return nil, nil // and no scan
	}
	stored, err := countStored(ctx, v, w)
	if err != nil {
		return nil, err
	}
	var out []Day
	for _, source := range sources {
		days, err := compareDays(ctx, v, w, source, stored[source], counts[source])
		if err != nil {
			return nil, fmt.Errorf("compare the days of %s: %w", source, err)
		}
		out = append(out, days...)
	}
	return sortDays(out), nil
}

// countsByDay are the counts of the window, by source and begin of the day.
func countsByDay(v View, w Window) (map[record.Origin]map[record.Time]wire.Count, error) {
	facts, err := v.Facts(store.FactCount)
	if err != nil {
		return nil, err
	}
	out := map[record.Origin]map[record.Time]wire.Count{}
	for i := range facts {
		var f wire.Frame
		if err := wire.DecodeFrame(facts[i].Data, &f); err != nil {
			return nil, fmt.Errorf("what %s counted: %w", facts[i].Source, err)
		}
		if out[facts[i].Source] == nil {
			out[facts[i].Source] = map[record.Time]wire.Count{}
		}
		if w.hasDay(f.Count.From) {
			out[facts[i].Source][f.Count.From] = f.Count
		}
	}
	return out, nil
}

// listSources returns the sources of agents, and those that have counted.
func listSources(v View, counts map[record.Origin]map[record.Time]wire.Count) ([]record.Origin, error) {
	agents, err := v.Agents()
	if err != nil {
		return nil, err
	}
	all := map[record.Origin]bool{}
	for source := range counts {
		all[source] = true
	}
	for i := range agents {
		for _, c := range agents[i].Checkpoints {
			all[c.Source] = true
		}
		for _, m := range agents[i].Watermarks {
			all[m.Source] = true
		}
	}
	return slices.SortedFunc(maps.Keys(all), record.Origin.Compare), nil
}

// compareDays compares the days of one source.
func compareDays(ctx context.Context, v View, w Window, source record.Origin, stored dayCounts, counts map[record.Time]wire.Count) ([]Day, error) {
	var out []Day
	for from := Begin(w.From); from < w.To; from += micro {
		if !w.hasDay(from) {
			continue
		}
		d := Day{Source: source, From: from, To: from + micro, Stored: stored[from], Count: wire.Count{At: record.None}}
		if c, ok := counts[from]; ok {
			d.Count = c
		}
		if err := d.countElsewhere(ctx, v); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// endedBetween asks for the records that ended in [from, to).
func endedBetween(from, to record.Time) (q store.Query) {
	q.Stop.GTE(int64(from))
	q.Stop.LTE(int64(to) - 1)
	return q
}

// dayCounts are numbers of records by the start of a day.
type dayCounts map[record.Time]int64

// countStored counts the shown records by the source that says them and the day of their stop.
func countStored(ctx context.Context, v View, w Window) (map[record.Origin]dayCounts, error) {
	n := map[record.Origin]dayCounts{}
	add := func(source record.Origin, day record.Time, count int64) {
		if n[source] == nil {
			n[source] = dayCounts{}
		}
		n[source][day] += count
	}
	err := v.Scan(ctx, endedBetween(w.From, Begin(w.To-1)+micro), func(b *columns.Block, m columns.Mask) error {
		return countBlock(b, m, add)
	}, func(row *columns.Row) error {
		add(row.Origin, Begin(row.Shown().Stop), 1)
		return nil
	})
	return n, err
}

// countBlock adds up rows of a block. Rows that follow each other often have the same source and day.
func countBlock(b *columns.Block, m columns.Mask, add func(source record.Origin, day record.Time, count int64)) error {
	stops, err := b.Stops()
	if err != nil {
		return err
	}
	origins, err := b.Origins()
	if err != nil {
		return err
	}
	sources := map[uint32]record.Origin{}
	var source record.Origin
	var number uint32 // of source; 0: the row has it
	var day record.Time
	count := int64(0)
	for i := range m.Rows() {
		if count > 0 && origins[i] == number && number != 0 && Begin(stops[i]) == day {
			count++
			continue
		}
		if count > 0 {
			add(source, day, count)
		}
		var known bool
		number, day, count = origins[i], Begin(stops[i]), 1
		if source, known = sources[number]; known && number != 0 {
			continue
		}
		if source, err = b.Origin(i); err != nil {
			return err
		}
		sources[number] = source
	}
	if count > 0 {
		add(source, day, count)
	}
	return nil
}

// countElsewhere counts, where something seems to be missing, what the rows of the
// source do not show: records that another source said first, or says better, and
// those that were deleted.
func (d *Day) countElsewhere(ctx context.Context, v View) error {
	if d.Missing() == 0 {
		return nil
	}
	err := scanRows(ctx, v, endedBetween(d.From, d.To), func(row *columns.Row) error {
		if row.Origin == d.Source {
			return nil
		}
		held, err := v.Holdings(row)
		for i := range held {
			if h := held[i].Shown(); h != nil && held[i].Origin == d.Source && h.Stop >= d.From && h.Stop < d.To {
				d.Stored++
			}
		}
		return err
	})
	if err != nil || d.Missing() == 0 {
		return err
	}
	q, ids := endedBetween(d.From, d.To), map[string]bool{}
	q.Origin, q.Superseded = &d.Source, true
	err = scanRows(ctx, v, q, func(row *columns.Row) error {
		_, _, deleted, err := v.Deletion(row.Record.ID)
		if deleted {
			ids[row.Record.ID] = true
		}
		return err
	})
	d.Deleted = min(int64(len(ids)), d.Missing())
	return err
}

// scanRows calls yield with the rows of q.
func scanRows(ctx context.Context, v View, q store.Query, yield func(*columns.Row) error) error {
	return v.Scan(ctx, q, func(b *columns.Block, m columns.Mask) error {
		for i := range m.Rows() {
			row, err := b.Row(i)
			if err != nil {
				return err
			}
			if err := yield(&row); err != nil {
				return err
			}
		}
		return nil
	}, yield)
}
