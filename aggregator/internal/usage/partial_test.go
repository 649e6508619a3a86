package usage

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// partialZones have offsets of parts of hours, days that were left out, clocks that are put
// back over midnight, and a clock that is put back by half an hour.
func partialZones() []string {
	return []string{"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Kolkata",
		"Asia/Beirut", "Asia/Gaza", "Asia/Tehran", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "Africa/Cairo", "Africa/Casablanca", "Antarctica/Troll", "Asia/Pyongyang", "America/Caracas"}
}

// dateSoFar is the latest date that a zone's clock has shown up to an instant: a clock that
// is put back over midnight begins no day again. None is put back by more than three hours.
func dateSoFar(t record.Time, zone *time.Location) time.Time {
	var latest time.Time
	look := func(at time.Time) {
		y, m, d := at.In(zone).Date()
		if date := time.Date(y, m, d, 0, 0, 0, 0, time.UTC); date.After(latest) {
			latest = date
		}
	}
	look(t.Std())
	for minute := t.Std().Truncate(time.Minute); t.Std().Sub(minute) < 3*time.Hour; minute = minute.Add(-time.Minute) {
		look(minute.Add(-time.Microsecond))
	}
	return latest
}

// unitAt names the unit that an instant is in; two instants one after the other are in one
// unit where the names are the same.
func unitAt(t record.Time, u calendar.Unit, zone *time.Location) string {
	if u == calendar.Hour {
		at := t.Std().In(zone)
		return at.Format("2006-01-02T15 -07:00:00")
	}
	switch d := dateSoFar(t, zone); u {
	case calendar.Day:
		return d.Format(time.DateOnly)
	case calendar.Week:
		y, w := d.ISOWeek()
		return fmt.Sprint(y, " week ", w)
	case calendar.Month:
		return d.Format("2006-01")
	case calendar.Quarter:
		return fmt.Sprint(d.Year(), " quarter ", (d.Month()+2)/3)
	case calendar.Year:
		return d.Format("2006")
	case calendar.None, calendar.Hour:
	}
	return ""
}

// cuts reports whether an end of a window lies within a unit.
func cuts(end record.Time, u calendar.Unit, zone *time.Location) bool {
	return u != calendar.None && unitAt(end-1, u, zone) == unitAt(end, u, zone)
}

// clockChanges are instants from 1990 to 2040 at which the clock of a zone is changed.
func clockChanges(zone *time.Location) (list []record.Time) {
	at, end := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC).In(zone), time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC)
	for {
		_, next := at.ZoneBounds()
		if next.IsZero() || next.After(end) {
			return list
		}
		list, at = append(list, record.FromStd(next)), next
	}
}

// drawInstant draws an instant: any, one beside a change of the clock, or a start of a unit.
func drawInstant(t *rapid.T, zone *time.Location, near record.Time, u calendar.Unit) record.Time {
	at := near + record.Time(rapid.Int64Range(-40*int64(record.Day), 40*int64(record.Day)).Draw(t, "instant"))
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return at
	case 1:
		return near
	case 2:
		return near + record.Time(rapid.Int64Range(-8, 8).Draw(t, "quarters"))*15*60*record.Second
	case 3:
		return near + record.Time(rapid.Int64Range(-2, 2).Draw(t, "micros"))
	}
	if u == calendar.None {
		return at
	}
	edges, err := calendar.Edges(calendar.Window{From: at, To: at + 500*record.Day}, u, zone, MaxCells)
	if err != nil {
		t.Fatal(err)
	}
	return edges[min(1, len(edges)-1)]
}

// TestPartial_AnyWindowInAnyZone_IsWhatIsCutOrNotOver compares with the obvious slow way: a
// bucket is partial where its unit begins before the window or ends after it, or where a part
// of it is after now or before the first record.
func TestPartial_AnyWindowInAnyZone_IsWhatIsCutOrNotOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(partialZones()).Draw(t, "zone")
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		near := rapid.SampledFrom(append(clockChanges(zone), record.FromStd(time.Date(2026, 3, 1, 0, 0, 0, 0, zone)))).Draw(t, "near")
		u := calendar.Unit(rapid.IntRange(int(calendar.None), int(calendar.Year)).Draw(t, "bucket"))
		instant := func() record.Time { return drawInstant(t, zone, near, u) }
		now := instant()
		if rapid.Bool().Draw(t, "over") {
			now += 100 * record.Day
		}
		r := Request{Bucket: u, Zone: zone, By: []string{"k"}, Measures: []string{"Cores"}, Now: now, Known: sums.Span{From: min(instant(), now), To: now}}
		if word := rapid.SampledFrom([]string{"", "", "", "today", "this-week", "last-week", "this-month", "last-month", "this-year", "14d", "36h", "90d"}).Draw(t, "word"); word != "" {
			r.Window, err = calendar.ParseWindow(word, now, zone)
			r.Window = r.Window.InIntervals(u, zone)
		} else {
			a, b := instant(), instant()
			r.Window = calendar.Window{From: min(a, b), To: max(a, b, min(a, b)+1)}
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := MakeTable(context.Background(), plain(func(_ context.Context, q sums.Query) (*sums.Answer, error) {
			return &sums.Answer{Edges: q.Edges, By: q.By}, nil
		}), r)
		if err != nil {
			t.Fatal(err)
		}
		var want []bool
		for i, from := range s.Edges[:len(s.Edges)-1] {
			to := s.Edges[i+1]
			want = append(want, cuts(from, u, zone) || cuts(to, u, zone) || to > now || from < r.Known.From)
		}
		if !slices.Equal(s.partial, want) {
			t.Fatalf("%s to %s by %q in %s, now %s, known from %s:\n%v, want\n%v\n%v", r.Window.From, r.Window.To, u, name, now, r.Known.From, s.partial, want, s.Edges)
		}
	})
}
