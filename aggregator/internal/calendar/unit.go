package calendar

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/civil"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Unit is a unit of the calendar.
type Unit uint8

// The units. Weeks are those of ISO 8601.
const (
	None Unit = iota // the whole window
	Hour
	Day
	Week
	Month
	Quarter
	Year
)

// Units are the words for units, the shortest first.
func Units() []string { return []string{"hour", "day", "week", "month", "quarter", "year"} }

// ParseUnit reads the word for a unit; "" is [None].
func ParseUnit(word string) (Unit, error) {
	if word == "" {
		return None, nil
	}
	i := slices.Index(Units(), word)
	if i < 0 {
		return None, fmt.Errorf("invalid interval %q: %s", excerptOf(word), wantedUnit(word))
	}
	return Unit(i + 1), nil
}

// wantedUnit says which unit is meant, or which there are.
func wantedUnit(word string) string {
	if near := hcl.Suggest(word, Units()); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "use one of " + strings.Join(Units(), ", ")
}

// String returns the word for the unit, "" for [None].
func (u Unit) String() string {
	if u == None {
		return ""
	}
	return Units()[u-1]
}

// floorDay returns the first day of the unit that a day is in.
func (u Unit) floorDay(d civil.Day) civil.Day {
	t := d.Date()
	y, m, _ := t.Date()
	switch u {
	case Week:
		return d - civil.Day(t.Weekday()+6)%7
	case Month:
		return civilDay(y, m, 1)
	case Quarter:
		return civilDay(y, m-(m-1)%3, 1)
	case Year:
		return civilDay(y, 1, 1)
	case None, Hour, Day:
	}
	return d
}

// Starts reports whether a unit starts at an instant; that of [None] does at any.
func (u Unit) Starts(t record.Time, zone *time.Location) bool {
	switch u {
	case None:
		return true
	case Hour: // see hours
		at := civil.WholeSeconds(t)
		return t == record.Time(at)*record.Second && ((at+civil.Offset(zone, at))%3600 == 0 || civil.NextChange(zone, at-1) == at)
	case Day, Week, Month, Quarter, Year:
	}
	return u.floorDay(civil.DayOf(zone, t)).Start(zone) == t // which is another day where the zone left the first one out
}

// monthsOf is how many months the unit has; 0 when it is counted in days.
func (u Unit) monthsOf() int { return [...]int{Month: 1, Quarter: 3, Year: 12}[u] }

// daysOf is how many days the unit has; 0 when it is counted in months.
func (u Unit) daysOf() int { return [...]int{Day: 1, Week: 7, Year: 0}[u] }

// addUnits returns the day n units later. One that its month does not have is the last
// of the month.
func (u Unit) addUnits(d civil.Day, n int) civil.Day {
	if u.monthsOf() == 0 {
		return d + civil.Day(n*u.daysOf())
	}
	y, m, at := d.Date().Date()
	m += time.Month(n * u.monthsOf())
	return min(civilDay(y, m, at), civilDay(y, m+1, 1)-1)
}

func civilDay(y int, m time.Month, d int) civil.Day {
	return civil.DayAt(time.Date(y, m, d, 0, 0, 0, 0, time.UTC))
}

// labelAt names the unit that an instant is in, in the words of [ParseWindow]; an
// hour by its beginning.
func (u Unit) labelAt(zone *time.Location, t record.Time) string {
	d := civil.DayOf(zone, t).Date()
	switch u {
	case Hour:
		return hourLabel(zone, t)
	case Day:
		return d.Format(time.DateOnly)
	case Week:
		y, w := d.ISOWeek()
		return fmt.Sprintf("%04d-W%02d", y, w)
	case Month:
		return d.Format("2006-01")
	case Quarter:
		return fmt.Sprintf("%04d-Q%d", d.Year(), (d.Month()+2)/3)
	case Year:
		return d.Format("2006")
	case None:
	}
	return ""
}

func hourLabel(zone *time.Location, t record.Time) string {
	at := time.Unix(civil.WholeSeconds(t), 0).In(zone)
	layout := "2006-01-02T15:00Z07:00"
	if _, offset := at.Zone(); offset%60 != 0 {
		layout = "2006-01-02T15:00Z07:00:00"
	}
	return at.Format(layout)
}
