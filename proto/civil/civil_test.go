package civil

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/record"
)

func zoneOf(t interface{ Fatal(...any) }, name string) *time.Location {
	zone, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestStart_ClocksThatSkipMidnight(t *testing.T) {
	for _, c := range [][3]string{
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z"},
		{"Atlantic/Azores", "2026-03-29", "2026-03-29T01:00:00Z"},  // at 01:00 by the clock
		{"America/Asuncion", "2017-10-01", "2017-10-01T04:00:00Z"}, // likewise, the first of a month
		{"Pacific/Apia", "2011-12-30", "2011-12-30T10:00:00Z"},     // left out: the start of the next day
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z"},
	} {
		date, err := time.Parse(time.DateOnly, c[1])
		if err != nil {
			t.Fatal(err)
		}
		if got := DayAt(date).Start(zoneOf(t, c[0])).Std().Format(time.RFC3339); got != c[2] {
			t.Errorf("%s: %s begins at %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// The day of an instant is the last date that the clock has shown by then.
func TestDayOf_IsTheLastDayShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := zoneOf(t, rapid.SampledFrom([]string{"Atlantic/Azores", "America/Santiago", "America/Havana", "America/St_Johns", "Pacific/Apia", "Pacific/Kiritimati"}).Draw(t, "zone"))
		at := rapid.Int64Range(-3e9, 4e9).Draw(t, "time")
		if _, change := time.Unix(at, 0).In(zone).ZoneBounds(); !change.IsZero() && rapid.Bool().Draw(t, "near") {
			at = change.Unix() + rapid.Int64Range(-100_000, 100_000).Draw(t, "after")
		}
		want := Day(-1 << 40)
		for back := range int64(3 * 24 * 60) {
			s := at - 60*back
			y, m, d := time.Unix(s, 0).In(zone).Date()
			want = max(want, DayAt(time.Date(y, m, d, 0, 0, 0, 0, time.UTC)))
		}
		got := DayOf(zone, record.Time(at)*record.Second)
		if got != want {
			t.Fatalf("%s: %s is day %d, want %d", zone, time.Unix(at, 0).In(zone), got, want)
		}
		if start, next := got.Start(zone), (got + 1).Start(zone); record.Time(at)*record.Second < start || record.Time(at)*record.Second >= next {
			t.Fatalf("%s: %d is not in [%d, %d)", zone, at, start, next)
		}
	})
}
