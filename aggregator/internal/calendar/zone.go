package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/civil"
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

// StartOfDay returns when the day began that an instant is in.
func StartOfDay(t record.Time, zone *time.Location) record.Time {
	return civil.DayOf(zone, t).Start(zone)
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
func Shown(zone *time.Location, shown time.Time) record.Time {
	return civil.FirstShowing(zone, shown.Unix())
}
