package calendar

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

// shortestOf is less than the shortest unit of its kind, apart from what is cut off
// by the ends of a window or by a change of the clock.
func (u Unit) shortestOf() record.Time {
	return [...]record.Time{Hour: record.Hour, Day: 20 * record.Hour, Week: 6 * record.Day, Month: 27 * record.Day, Quarter: 89 * record.Day, Year: 364 * record.Day}[u]
}

// Edges returns where the units of a window begin, and its end: it is cut into
// buckets from each edge, included, to the next, not included. The first and the
// last edge are those of the window. None is empty. An error says that there would
// be more than most.
func Edges(w Window, u Unit, zone *time.Location, most int) ([]record.Time, error) {
	if err := w.checkWindow(); err != nil {
		return nil, err
	}
	if u == None {
		return []record.Time{w.From, w.To}, nil
	}
	if n := int64((w.To - w.From) / u.shortestOf()); n > int64(most) {
		return nil, fmt.Errorf("the window from %s to %s has about %d times %q, and at most %d are answered; ask for a shorter window or a longer bucket", w.From, w.To, n, u, most)
	}
	if u == Hour {
		return hourEdges(w, zone), nil
	}
	edges := []record.Time{w.From}
	for d := u.addUnits(u.floorDay(civil.DayOf(zone, w.From)), 1); ; d = u.addUnits(d, 1) {
		t := d.Start(zone)
		if t >= w.To {
			return append(edges, w.To), nil
		}
		if t > edges[len(edges)-1] { // a day that was left out is nothing
			edges = append(edges, t)
		}
	}
}

// hourEdges cuts at full hours and wherever the clock is changed.
func hourEdges(w Window, zone *time.Location) []record.Time {
	edges := []record.Time{w.From}
	at := civil.WholeSeconds(w.From)
	change, ahead := civil.NextChange(zone, at), civil.Offset(zone, at)
	for {
		at = (civil.FloorDivide(at+ahead, 3600)+1)*3600 - ahead
		if at >= change {
			at = change
			change, ahead = civil.NextChange(zone, at), civil.Offset(zone, at)
		}
		t := record.Time(at) * record.Second
		if t >= w.To {
			return append(edges, w.To)
		}
		edges = append(edges, t)
	}
}

// Labels names the buckets between edges: 2026-03, 2026-W05, 2026-03-01 and so on.
// A bucket that the window cuts has the name of the whole one. Those of [None] are
// empty.
func Labels(edges []record.Time, u Unit, zone *time.Location) []string {
	out := make([]string, len(edges)-1)
	for i := range out {
		out[i] = u.labelAt(zone, edges[i])
	}
	return out
}
