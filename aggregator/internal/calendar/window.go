package calendar

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Window is the time from From, included, to To, not included.
type Window struct {
	From, To record.Time

	unit Unit // the window is whole units, or the start of one; None: neither
	n    int  // how many
	runs bool // it is the start of one, up to now

	length bool // up to now
}

// Words says in one line what [ParseWindow] reads.
const Words = "2026, 2026-Q3, 2026-03, 2026-W05, 2026-03-01, today, this-week, last-month, 2026-03-01..2026-03-15, 14d"

// ErrEmpty is wrapped when a window ends before it starts, or there.
var ErrEmpty = errors.New("the window has no time in it")

func (w Window) checkWindow() error {
	if w.To > w.From {
		return nil
	}
	return fmt.Errorf("%w: it is from %s to %s; the end must be after the begin, and a date as an end is the start of that day", ErrEmpty, w.From, w.To)
}

// ParseWindow reads a word for a window, see [Words]. Today and this-… end now;
// 14d is the 14 times 24 hours before now, see [Window.InIntervals], and A..B is from the
// start of A to the end of B, either of which may be an instant of RFC 3339.
func ParseWindow(word string, now record.Time, zone *time.Location) (Window, error) {
	word = strings.ToLower(strings.TrimSpace(word))
	if first, last, ok := strings.Cut(word, ".."); ok && !strings.Contains(last, "..") {
		a, err := parseSide(first, now, zone)
		if err != nil {
			return Window{}, err
		}
		b, err := parseSide(last, now, zone)
		if err != nil {
			return Window{}, err
		}
		return Window{From: a.From, To: b.To}.alignWindow(zone).limitWindow()
	}
	if w, ok := parsePeriod(word, zone); ok {
		return w, nil
	}
	if w, ok := parseRelative(word, now, zone); ok {
		return w, nil
	}
	if span, err := hcl.ParseDuration(word); err == nil && span >= time.Microsecond {
		return Window{From: max(now-record.Time(span.Microseconds()), record.MinTime), To: now, length: true}.limitWindow()
	}
	if hint := correctionFor(word, zone); hint != "" {
		return Window{}, fmt.Errorf("invalid window %q: %s", excerptOf(word), hint)
	}
	return Window{}, fmt.Errorf("invalid window %q: use one of %s", excerptOf(word), Words)
}

// InIntervals returns the window for a table or a chart by intervals: a length, such as 14d,
// begins at the start of its first day, or by hours at a full hour, so that no interval but
// the present one is a part.
func (w Window) InIntervals(u Unit, zone *time.Location) Window {
	switch {
	case !w.length || u == None:
	case u == Hour:
		at := civil.WholeSeconds(w.From)
		ahead := civil.Offset(zone, at)
		w.From = max(record.Time(civil.FloorDivide(at+ahead, 3600)*3600-ahead)*record.Second, record.MinTime)
	default:
		w.From = max(civil.DayOf(zone, w.From).Start(zone), record.MinTime)
	}
	return w
}

// parseSide reads one side of A..B.
func parseSide(word string, now record.Time, zone *time.Location) (Window, error) {
	if t, err := record.ParseTime(strings.ToUpper(word)); err == nil {
		return Window{From: t, To: t}, nil
	}
	return ParseWindow(word, now, zone)
}

// Between returns the window from one [Point] to another; to may be empty for now.
func Between(from, to string, now record.Time, zone *time.Location) (Window, error) {
	a, err := Point(from, now, zone)
	if err != nil {
		return Window{}, err
	}
	b := now
	if to != "" {
		if b, err = Point(to, now, zone); err != nil {
			return Window{}, err
		}
	}
	return Window{From: a, To: b}.alignWindow(zone).limitWindow()
}

// Point reads a word for an instant: RFC 3339, a date with a time of the zone's
// clock, now, how long ago, such as 36h, or a window, which is its start.
func Point(word string, now record.Time, zone *time.Location) (record.Time, error) {
	word = strings.TrimSpace(word)
	if word == "now" {
		return now, nil
	}
	if t, err := record.ParseTime(word); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02T15:04:05", time.DateTime} {
		if t, err := time.Parse(layout, word); err == nil {
			return civil.FirstShowing(zone, t.Unix()) + record.Time(t.Nanosecond()/1000), nil
		}
	}
	w, err := ParseWindow(word, now, zone)
	if err != nil {
		if hint := correctionFor(word, zone, "now"); hint != "" {
			return 0, fmt.Errorf("invalid time %q: %s", excerptOf(word), hint)
		}
		return 0, fmt.Errorf("invalid time %q: use RFC 3339, like 2026-03-01T12:00:00Z, a date with a time, like 2026-03-01T12:00, now, or the start of one of %s", excerptOf(word), Words)
	}
	return w.From, nil
}

// limitWindow keeps a window within the times that records have.
func (w Window) limitWindow() (Window, error) {
	w.From, w.To = max(w.From, record.MinTime), min(w.To, record.MaxTime)
	return w, w.checkWindow()
}

// wholeUnits returns the window of n whole units from a day on.
func wholeUnits(u Unit, from civil.Day, n int, zone *time.Location) Window {
	w := Window{From: from.Start(zone), To: u.addUnits(from, n).Start(zone), unit: u, n: n}
	w.From, w.To = max(w.From, record.MinTime), min(w.To, record.MaxTime)
	return w
}

// parsePeriod reads 2026, 2026-q3, 2026-03, 2026-w05 and 2026-03-01.
func parsePeriod(word string, zone *time.Location) (Window, bool) {
	for _, p := range []struct {
		layout string
		unit   Unit
	}{{"2006", Year}, {"2006-01", Month}, {time.DateOnly, Day}} {
		if t, err := time.Parse(p.layout, word); err == nil {
			w := wholeUnits(p.unit, civil.DayAt(t), 1, zone)
			return w, w.checkWindow() == nil // a day that the zone left out has no time
		}
	}
	head, tail, ok := strings.Cut(word, "-")
	t, err := time.Parse("2006", head)
	if !ok || err != nil || len(tail) < 2 {
		return Window{}, false
	}
	n, err := strconv.ParseUint(tail[1:], 10, 8)
	switch {
	case err != nil:
	case tail[0] == 'q' && len(tail) == 2 && 1 <= n && n <= 4:
		return wholeUnits(Quarter, Quarter.addUnits(civil.DayAt(t), int(n)-1), 1, zone), true
	case tail[0] == 'w' && len(tail) == 3 && 1 <= n:
		monday := isoWeek(t.Year(), int(n))
		y, _ := monday.Date().ISOWeek()
		return wholeUnits(Week, monday, 1, zone), y == t.Year()
	}
	return Window{}, false
}

// isoWeek returns the first day of a week of an ISO year: the first has January 4.
func isoWeek(year, week int) civil.Day {
	return Week.floorDay(civilDay(year, 1, 4)) + civil.Day(7*(week-1))
}

// parseRelative reads today, yesterday, this-… and last-….
func parseRelative(word string, now record.Time, zone *time.Location) (Window, bool) {
	switch word {
	case "today":
		word = "this-day"
	case "yesterday":
		word = "last-day"
	}
	which, name, _ := strings.Cut(word, "-")
	u, err := ParseUnit(name)
	if err != nil || u < Day || which != "this" && which != "last" {
		return Window{}, false
	}
	begin := u.floorDay(civil.DayOf(zone, now))
	if which == "last" {
		w := wholeUnits(u, u.addUnits(begin, -1), 1, zone)
		if w.checkWindow() != nil { // yesterday was left out
			w = wholeUnits(u, begin-2, 1, zone)
		}
		return w, true
	}
	w := wholeUnits(u, begin, 1, zone)
	w.To, w.runs = max(now, w.From+1), true
	return w, true
}

// alignWindow finds out whether a window is whole units: the longest that fit.
func (w Window) alignWindow(zone *time.Location) Window {
	if w.checkWindow() != nil || w.From < record.MinTime || w.To > record.MaxTime {
		return w
	}
	a, b := civil.DayOf(zone, w.From), civil.DayOf(zone, w.To)
	if a.Start(zone) != w.From || b.Start(zone) != w.To {
		return w
	}
	for u := Year; u >= Day; u-- {
		if u.floorDay(a) == a && u.floorDay(b) == b {
			w.unit, w.n = u, u.unitsBetween(a, b)
			return w
		}
	}
	return w
}

// unitsBetween is how many units there are from one first day of a unit to another.
func (u Unit) unitsBetween(a, b civil.Day) int {
	if u.monthsOf() == 0 {
		return int(b-a) / u.daysOf()
	}
	from, to := a.Date(), b.Date()
	return (12*(to.Year()-from.Year()) + int(to.Month()-from.Month())) / u.monthsOf()
}
