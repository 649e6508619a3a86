package calendar

import (
	"fmt"
	"time"

	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Comparison reads a word for the window to compare w with: previous, last-year, or
// what [ParseWindow] reads. A window of whole units that goes on is compared as far as it
// has come.
func (w Window) Comparison(word string, now record.Time, zone *time.Location) (Window, error) {
	if w.unit != None && w.From < now && now < w.To {
		w.To, w.runs = now, true
	}
	switch word {
	case "previous":
		return w.previousWindow(zone).limitWindow()
	case "last-year":
		return w.yearBefore(zone).limitWindow()
	}
	out, err := ParseWindow(word, now, zone)
	if err != nil {
		if hint := correctionFor(word, zone, "previous"); hint != "" {
			return out, fmt.Errorf("invalid comparison %q: %s", excerptOf(word), hint)
		}
		return out, fmt.Errorf("invalid comparison %q: use previous, last-year, or one of %s", excerptOf(word), Words)
	}
	return out, nil
}

// previousWindow is the window before: as many units, or as much time. Before the start
// of a unit it is the start of the one before, up to the same time of it.
func (w Window) previousWindow(zone *time.Location) Window {
	if w.unit == None {
		return Window{From: w.From - (w.To - w.From), To: w.From}
	}
	out := wholeUnits(w.unit, w.unit.addUnits(civil.DayOf(zone, w.From), -w.n), w.n, zone)
	out.To = w.From // a day between may have been left out
	if w.runs {
		out.To, out.runs = min(out.To, shiftByUnits(zone, w.To, w.unit, -w.n)), true
	}
	return out.fillEmpty()
}

// yearBefore is the same window in the year before: the same date, or of weeks the
// same number.
func (w Window) yearBefore(zone *time.Location) Window {
	const months = -12
	switch w.unit {
	case None:
		out := Window{From: shiftByUnits(zone, w.From, Month, months), To: shiftByUnits(zone, w.To, Month, months)}
		if out.To <= out.From {
			out.To = out.From + (w.To - w.From)
		}
		return out
	case Week:
		y, n := civil.DayOf(zone, w.From).Date().ISOWeek()
		begin := isoWeek(y-1, n)
		if at, _ := begin.Date().ISOWeek(); at != y-1 { // it had 52
			begin -= 7
		}
		return w.cutAt(wholeUnits(Week, begin, w.n, zone), shiftByUnits(zone, w.To, Day, int(begin-civil.DayOf(zone, w.From))))
	case Hour, Day, Month, Quarter, Year:
	}
	begin := Month.addUnits(civil.DayOf(zone, w.From), months)
	return w.cutAt(wholeUnits(w.unit, begin, w.n, zone), shiftByUnits(zone, w.To, Month, months))
}

// cutAt cuts a whole window at to when w is the start of one.
func (w Window) cutAt(whole Window, to record.Time) Window {
	if w.runs {
		whole.To, whole.runs = min(whole.To, to), true
	}
	return whole.fillEmpty()
}

// fillEmpty gives a window that has no time the shortest: one that began this instant
// is compared with the first instant of the other.
func (w Window) fillEmpty() Window {
	w.To = max(w.To, w.From+1)
	return w
}

// shiftByUnits moves an instant by n units at the same time of the clock.
func shiftByUnits(zone *time.Location, t record.Time, u Unit, n int) record.Time {
	whole := civil.WholeSeconds(t)
	at := whole + civil.Offset(zone, whole)
	d := civil.Day(civil.FloorDivide(at, civil.DaySeconds))
	moved := u.addUnits(d, n)
	return civil.FirstShowing(zone, at+int64(moved-d)*civil.DaySeconds) + t - record.Time(whole)*record.Second
}
