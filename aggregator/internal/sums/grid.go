package sums

import (
	"fmt"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// The years of which sums by day are kept. Runs before and behind are kept one by
// one.
const (
	gridFrom = 1970
	gridTo   = 2101
)

// day is a day of a grid, by its place.
type day int32

// grid is the days of a time zone. Day d is from starts[d], included, to
// starts[d+1], not included; days that a zone has left out are not there.
type grid struct{ starts []record.Time }

// newGrid returns the days of a zone, nil for UTC.
func newGrid(zone *time.Location) (*grid, error) {
	if zone == nil {
		zone = time.UTC
	}
	begin := func(year int) record.Time {
		return record.Time(time.Date(year, 1, 1, 0, 0, 0, 0, zone).UnixMicro())
	}
	starts, err := calendar.Edges(calendar.Window{From: begin(gridFrom), To: begin(gridTo)}, calendar.Day, zone, 500*(gridTo-gridFrom))
	if err != nil {
		return nil, fmt.Errorf("the days of %s: %w", zone, err)
	}
	return &grid{starts: starts}, nil
}

// covers reports whether the grid has the days of all instants from from to to.
func (g *grid) covers(from, to record.Time) bool {
	return from >= g.starts[0] && to < g.starts[len(g.starts)-1]
}

// chunks is how many chunks of days there are.
func (g *grid) chunks() int32 { return int32(len(g.starts)/chunkDays + 1) }

// dayOf returns the day of an instant; the first day is that of instants before the table, and the
// last that of those behind it.
func (g *grid) dayOf(t record.Time) day {
	t = min(max(t, g.starts[0]), g.starts[len(g.starts)-1]-1)
	d := min(int((t-g.starts[0])/record.Day), len(g.starts)-2)
	for g.starts[d] > t {
		d--
	}
	for g.starts[d+1] <= t {
		d++
	}
	return day(d)
}

func (g *grid) dayStart(d day) record.Time { return g.starts[d] }

// isStart reports whether a day begins at the instant.
func (g *grid) isStart(t record.Time) bool {
	_, is := slices.BinarySearch(g.starts, t)
	return is
}

// daysOf are the first and the last day in which a run from start to stop uses
// something.
func (g *grid) daysOf(start, stop record.Time) (first, last day) {
	first, last = g.dayOf(start), g.dayOf(stop)
	if stop > start && g.dayStart(last) == stop {
		last--
	}
	return first, last
}

// holdsRun reports whether a run is in the days of its series, with its time in the
// queue.
func (g *grid) holdsRun(r *run) bool {
	from := r.start
	if _, known := r.waitTime(); known {
		from = r.submit
	}
	if !g.covers(from, r.stop) {
		return false
	}
	first, last := g.daysOf(from, r.stop)
	return last-first < longest
}
