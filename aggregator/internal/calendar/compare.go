package calendar

import (
	"fmt"
	"time"

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
		return w.previous(zone).limited()
	case "last-year":
		return w.yearBefore(zone).limited()
	}
	out, err := ParseWindow(word, now, zone)
	if err != nil {
		if hint := correction(word, zone, "previous"); hint != "" {
			return out, fmt.Errorf("invalid comparison %q: %s", excerpt(word), hint)
		}
		return out, fmt.Errorf("invalid comparison %q: use previous, last-year, or one of %s", excerpt(word), Words)
	}
	return out, nil
}

// previous is the window before: as many units, or as much time. Before the start
// of a unit it is the start of the one before, up to the same time of it.
func (w Window) previous(zone *time.Location) Window {
	if w.unit == None {
		return Window{From: w.From - (w.To - w.From), To: w.From}
	}
	out := units(w.unit, w.unit.add(dayOf(zone, w.From), -w.n), w.n, zone)
	out.To = w.From // a day between may have been left out
	if w.runs {
		out.To, out.runs = min(out.To, shift(zone, w.To, w.unit, -w.n)), true
	}
	return out.filled()
}

// yearBefore is the same window in the year before: the same date, or of weeks the
// same number.
func (w Window) yearBefore(zone *time.Location) Window {
	const months = -12
	switch w.unit {
	case None:
		out := Window{From: shift(zone, w.From, Month, months), To: shift(zone, w.To, Month, months)}
		if out.To <= out.From {
			out.To = out.From + (w.To - w.From)
		}
		return out
	case Week:
		y, n := dayOf(zone, w.From).date().ISOWeek()
		begin := isoWeek(y-1, n)
		if at, _ := begin.date().ISOWeek(); at != y-1 { // it had 52
			begin -= 7
		}
		return w.begun(units(Week, begin, w.n, zone), shift(zone, w.To, Day, int(begin-dayOf(zone, w.From))))
	case Hour, Day, Month, Quarter, Year:
	}
	begin := Month.add(dayOf(zone, w.From), months)
	return w.begun(units(w.unit, begin, w.n, zone), shift(zone, w.To, Month, months))
}

// begun cuts a whole window at to when w is the start of one.
func (w Window) begun(whole Window, to record.Time) Window {
	if w.runs {
		whole.To, whole.runs = min(whole.To, to), true
	}
	return whole.filled()
}

// filled gives a window that has no time the shortest: one that began this instant
// is compared with the first instant of the other.
func (w Window) filled() Window {
	w.To = max(w.To, w.From+1)
	return w
}

// shift moves an instant by n units at the same time of the clock.
func shift(zone *time.Location, t record.Time, u Unit, n int) record.Time {
	at := shown(zone, seconds(t))
	d := day(floor(at, daySeconds))
	moved := u.add(d, n)
	return record.Time(first(zone, at+int64(moved-d)*daySeconds))*record.Second + t - record.Time(seconds(t))*record.Second
}
