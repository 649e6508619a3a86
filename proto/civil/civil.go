// Package civil relates instants to what the clock of a time zone shows. A day begins at the first
// instant at which the clock shows that day or a later one. So days have 23, 24 or 25 hours, or
// whatever the zone did; a day that the zone left out has none; and a clock that goes back over
// midnight makes no second day.
package civil

import (
	"math"
	"time"
	_ "time/tzdata" // the zones of machines without them

	"github.com/bursar-accounting/bursar/proto/record"
)

// DaySeconds is how many seconds a day has by the clock.
const DaySeconds = 24 * 3600

// widest is further than any clock is from UTC, in seconds.
const widest = 26 * 3600

// FirstShowing returns the first instant at which the clock of the zone shows a civil time or a later
// one. The civil time is in seconds from 1970-01-01T00:00:00, as the clock shows it.
func FirstShowing(zone *time.Location, shown int64) record.Time {
	at := shown - widest
	for {
		t, end := max(shown-Offset(zone, at), at), NextChange(zone, at)
		if t < end {
			return record.Time(t) * record.Second
		}
		at = end
	}
}

// Offset is how far the clock of the zone is ahead of UTC at a Unix time, in seconds.
func Offset(zone *time.Location, at int64) int64 {
	_, n := time.Unix(at, 0).In(zone).Zone()
	return int64(n)
}

// NextChange returns the first Unix time after at at which the clock is changed; the greatest
// number when it never is.
func NextChange(zone *time.Location, at int64) int64 {
	before := Offset(zone, at)
	for {
		_, bound := time.Unix(at, 0).In(zone).ZoneBounds()
		if bound.IsZero() {
			return math.MaxInt64
		}
		end := bound.Unix()
		if end <= at { // on December 31 of leap years ZoneBounds takes that day for the next year's
			end = at + DaySeconds
		}
		if Offset(zone, end) != before {
			return end
		}
		at = end
	}
}

// Day counts days from 1970-01-01.
type Day int64

// Start is the first instant of the day. Of a day that the zone left out it is that of the next one.
func (d Day) Start(zone *time.Location) record.Time {
	return FirstShowing(zone, int64(d)*DaySeconds)
}

// DayOf returns the day that an instant is in: the last day that began.
func DayOf(zone *time.Location, t record.Time) Day {
	at := WholeSeconds(t)
	d := Day(FloorDivide(at+Offset(zone, at), DaySeconds))
	for (d + 1).Start(zone) <= t {
		d++
	}
	return d
}

// Date is the day as a time in UTC.
func (d Day) Date() time.Time { return time.Unix(int64(d)*DaySeconds, 0).UTC() }

// DayAt returns the day of a time in UTC.
func DayAt(t time.Time) Day { return Day(FloorDivide(t.Unix(), DaySeconds)) }

// WholeSeconds cuts an instant to seconds.
func WholeSeconds(t record.Time) int64 { return FloorDivide(int64(t), int64(record.Second)) }

// FloorDivide divides and rounds down.
func FloorDivide(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
