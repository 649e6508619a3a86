package action

import (
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
)

func TestSchedulesAreDueByTheClockOfTheirZone(t *testing.T) {
	for _, x := range []struct {
		schedule, zone, last string
		want                 []string // the next times, one after the other
	}{
		{"15m", "", "2026-01-01T00:07:00Z", []string{"2026-01-01T00:22:00Z"}},
		{"@hourly", "", "2026-01-01T00:07:00Z", []string{"2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"}},
		{"@hourly", "Asia/Kathmandu", "2026-01-01T00:07:00Z", []string{"2026-01-01T00:15:00Z"}},
		{"@daily", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}},
		{"@weekly", "", "2026-11-22T12:00:00Z", []string{"2026-11-23T00:00:00Z"}},
		{"@monthly", "America/New_York", "2026-02-15T00:00:00Z", []string{"2026-03-01T05:00:00Z", "2026-04-01T04:00:00Z"}},
		{"@quarterly", "", "2026-02-15T00:00:00Z", []string{"2026-04-01T00:00:00Z", "2026-07-01T00:00:00Z"}},
		{"@yearly", "", "2026-02-15T00:00:00Z", []string{"2027-01-01T00:00:00Z"}},
		{"30 6 * * mon-fri", "Europe/Berlin", "2026-10-23T12:00:00Z", []string{"2026-10-26T05:30:00Z"}},
		{"0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		{"0 12 13 * fri", "", "2026-02-01T00:00:00Z", []string{"2026-02-06T12:00:00Z", "2026-02-13T12:00:00Z", "2026-02-20T12:00:00Z"}},
		{"0 0 1-31/10 * *", "", "2026-02-01T00:00:00Z", []string{"2026-02-11T00:00:00Z", "2026-02-21T00:00:00Z", "2026-03-01T00:00:00Z"}},
		{"0 0 * * 7", "", "2026-11-22T12:00:00Z", []string{"2026-11-29T00:00:00Z"}},
		// The clock goes from 2 to 3: what is due between is due then, once.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		// The clock goes from 3 to 2: what is due between is due the first time.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		// Every half hour there is one, whatever the clock does.
		{"*/30 * * * *", "Europe/Berlin", "2026-10-25T00:10:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-25T01:00:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:00:00Z"}},
	} {
		zone, err := calendar.Zone(x.zone)
		if err != nil {
			t.Fatal(err)
		}
		s, err := ParseSchedule(x.schedule, zone)
		if err != nil {
			t.Errorf("%s: %v", x.schedule, err)
			continue
		}
		last, err := time.Parse(time.RFC3339, x.last)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range x.want {
			if last = s.Next(last, time.Time{}); last.Format(time.RFC3339) != want {
				t.Errorf("%s in %s: %s, want %s", x.schedule, zone, last.Format(time.RFC3339), want)
			}
		}
	}
}

func TestANewActionBeginsWithTheCalendarAndAtOnceWithAnInterval(t *testing.T) {
	began := time.Date(2026, 5, 5, 5, 5, 0, 0, time.UTC)
	for schedule, want := range map[string]time.Time{
		"1h": began, "@change 5m": began, "@monthly": time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC), "0 6 * * *": time.Date(2026, 5, 5, 6, 0, 0, 0, time.UTC), "@manual": {}, "": {},
	} {
		s, err := ParseSchedule(schedule, time.UTC)
		if got := s.Next(time.Time{}, began); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v; want %s", schedule, got, err, want)
		}
	}
}

func TestBadSchedulesSayWhy(t *testing.T) {
	for schedule, want := range map[string]string{
		"@often": "is no schedule", "1 2 3": "is no schedule", "0s": "not between", "soon": "soon", "@change": "is no schedule", "@change x": "x",
		"60 * * * *": `minute: "60" is not between 0 and 59`, "* * * * fun": `weekday: "fun"`, "*/0 * * * *": "the step", "5-1 * * * *": "goes backwards",
		"0 0 30 2 *": "there is no such day", "a-b * * * *": "minute",
	} {
		if _, err := ParseSchedule(schedule, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", schedule, err, want)
		}
	}
}

func FuzzParseSchedule(f *testing.F) {
	for _, s := range []string{"15m", "@hourly", "30 6 * * mon-fri", "@change 5m", "*/5 1-3,7 29 2 sun"} {
		f.Add(s)
	}
	at := time.Date(2026, 10, 25, 0, 10, 0, 0, time.UTC)
	berlin, err := calendar.Zone("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSchedule(text, berlin)
		if err != nil {
			return
		}
		if next := s.Next(at, time.Time{}); !next.IsZero() && !next.After(at) {
			t.Errorf("%q is due at %s, after %s", text, next, at)
		}
	})
}
