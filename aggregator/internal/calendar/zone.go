package calendar

import (
	"fmt"
	"math"
	"strings"
	"time"
	_ "time/tzdata" // the zones of machines without them, and the same on all nodes

	"github.com/bursar-accounting/bursar/proto/record"
)

// Zone returns the time zone of a name such as Europe/Berlin; "" is UTC.
func Zone(name string) (*time.Location, error) {
	if name == "" {
		return time.UTC, nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || strings.EqualFold(name, "local") {
		return nil, fmt.Errorf("there is no time zone %q; write a name like Europe/Berlin, America/New_York or UTC", excerptOf(name))
	}
	return zone, nil
}

const daySeconds = 24 * 3600

// widest is further than any clock is from UTC, in seconds.
const widest = 26 * 3600

// firstSecondShowing returns the first second at which the clock of the zone shows a civil time
// or a later one. Both are counted from 1970-01-01T00:00:00, the one in UTC, the
// other as the clock shows it.
func firstSecondShowing(zone *time.Location, civil int64) int64 {
	at := civil - widest
	for {
		t, end := max(civil-zoneOffset(zone, at), at), nextClockChange(zone, at)
		if t < end {
			return t
		}
		at = end
	}
}

// zoneOffset is how far the clock of the zone is ahead of UTC at a second.
func zoneOffset(zone *time.Location, at int64) int64 {
	_, n := time.Unix(at, 0).In(zone).Zone()
	return int64(n)
}

// shownAt is what the clock of the zone shows at a second.
func shownAt(zone *time.Location, at int64) int64 { return at + zoneOffset(zone, at) }

// nextClockChange returns the first second after at at which the clock is changed; the
// greatest number when it never is.
func nextClockChange(zone *time.Location, at int64) int64 {
	before := zoneOffset(zone, at)
	for {
		_, bound := time.Unix(at, 0).In(zone).ZoneBounds()
		if bound.IsZero() {
			return math.MaxInt64
		}
		end := bound.Unix()
		if end <= at { // on December 31 of leap years ZoneBounds takes that day for the next year's
			end = at + daySeconds
		}
		if zoneOffset(zone, end) != before {
			return end
		}
		at = end
	}
}

// day counts days from 1970-01-01.
type day int64

// startOfDay is the first instant of the day.
func (d day) startOfDay(zone *time.Location) record.Time {
	return record.Time(firstSecondShowing(zone, int64(d)*daySeconds)) * record.Second
}

// StartOfDay returns when the day began that an instant is in.
func StartOfDay(t record.Time, zone *time.Location) record.Time {
	return dayOf(zone, t).startOfDay(zone)
}

// dayOf returns the day that an instant is in: the last one that began.
func dayOf(zone *time.Location, t record.Time) day {
	d := day(floorDivide(shownAt(zone, wholeSeconds(t)), daySeconds))
	for (d + 1).startOfDay(zone) <= t {
		d++
	}
	return d
}

// utcDate is the day as a time in UTC.
func (d day) utcDate() time.Time { return time.Unix(int64(d)*daySeconds, 0).UTC() }

func dayAt(t time.Time) day { return day(floorDivide(t.Unix(), daySeconds)) }

// wholeSeconds cuts an instant to seconds.
func wholeSeconds(t record.Time) int64 { return floorDivide(int64(t), int64(record.Second)) }

// floorDivide divides and rounds down.
func floorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// excerptOf is the start of a text that is too long for a message.
func excerptOf(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// Shown returns the first instant at which the clock of the zone shows a time or a
// later one. Of civil, its date and clock in UTC count.
func Shown(zone *time.Location, civil time.Time) record.Time {
	return record.Time(firstSecondShowing(zone, civil.Unix())) * record.Second
}
