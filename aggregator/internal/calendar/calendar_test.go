package calendar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/record"
)

const most = 1_000_000

func at(t testing.TB, s string) record.Time {
	t.Helper()
	v, err := record.ParseTime(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	zone, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// text is a window in one line.
func text(w Window) string { return w.From.String() + " " + w.To.String() }

func TestWordsAreWindowsOfTheZonesClock(t *testing.T) {
	for _, c := range []struct{ zone, word, want string }{
		{"", "2026", "2026-01-01T00:00:00Z 2027-01-01T00:00:00Z"},
		{"", "2026-03", "2026-03-01T00:00:00Z 2026-04-01T00:00:00Z"},
		{"", "2026-Q3", "2026-07-01T00:00:00Z 2026-10-01T00:00:00Z"},
		{"", "2026-q4", "2026-10-01T00:00:00Z 2027-01-01T00:00:00Z"},
		{"", "2026-W01", "2025-12-29T00:00:00Z 2026-01-05T00:00:00Z"},
		{"", "2026-W53", "2026-12-28T00:00:00Z 2027-01-04T00:00:00Z"},
		{"", "2024-02-29", "2024-02-29T00:00:00Z 2024-03-01T00:00:00Z"},
		{"", "today", "2026-11-22T00:00:00Z 2026-11-22T10:30:00Z"},
		{"", "yesterday", "2026-11-21T00:00:00Z 2026-11-22T00:00:00Z"},
		{"", "this-week", "2026-11-16T00:00:00Z 2026-11-22T10:30:00Z"},
		{"", "this-month", "2026-11-01T00:00:00Z 2026-11-22T10:30:00Z"},
		{"", "this-quarter", "2026-10-01T00:00:00Z 2026-11-22T10:30:00Z"},
		{"", "this-year", "2026-01-01T00:00:00Z 2026-11-22T10:30:00Z"},
		{"", "last-week", "2026-11-09T00:00:00Z 2026-11-16T00:00:00Z"},
		{"", "last-month", "2026-10-01T00:00:00Z 2026-11-01T00:00:00Z"},
		{"", "last-quarter", "2026-07-01T00:00:00Z 2026-10-01T00:00:00Z"},
		{"", "last-year", "2025-01-01T00:00:00Z 2026-01-01T00:00:00Z"},
		{"", "14d", "2026-11-08T10:30:00Z 2026-11-22T10:30:00Z"},
		{"", "36h", "2026-11-20T22:30:00Z 2026-11-22T10:30:00Z"},
		{"", "2026-03-01..2026-03-15", "2026-03-01T00:00:00Z 2026-03-16T00:00:00Z"},
		{"", "2025-11..last-month", "2025-11-01T00:00:00Z 2026-11-01T00:00:00Z"},
		{"Europe/Berlin", "yesterday..today", "2026-11-20T23:00:00Z 2026-11-22T10:30:00Z"},
		{"Europe/Berlin", "2026-03", "2026-02-28T23:00:00Z 2026-03-31T22:00:00Z"},
		{"Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z"},
		{"Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00Z 2026-10-25T23:00:00Z"},
		{"Asia/Kathmandu", "2026-03-29", "2026-03-28T18:15:00Z 2026-03-29T18:15:00Z"},
		{"America/Sao_Paulo", "2018-11-04", "2018-11-04T03:00:00Z 2018-11-05T02:00:00Z"}, // begins at 1 o'clock
		{"America/Havana", "2026-11-01", "2026-11-01T04:00:00Z 2026-11-02T05:00:00Z"},    // midnight comes twice
		{"America/St_Johns", "2010-11-07", "2010-11-07T02:30:00Z 2010-11-08T03:30:00Z"},  // one minute, and back to the day before
		{"Pacific/Apia", "2011-12-31", "2011-12-30T10:00:00Z 2011-12-31T10:00:00Z"},
		{"Pacific/Apia", "2011-12-29", "2011-12-29T10:00:00Z 2011-12-30T10:00:00Z"},
		{"Pacific/Apia", "2011-W52", "2011-12-26T10:00:00Z 2012-01-01T10:00:00Z"},
		{"Europe/Amsterdam", "1937-07", "1937-06-30T22:40:28Z 1937-07-31T22:40:00Z"}, // a clock of seconds is put right
		{"Africa/Monrovia", "1971", "1971-01-01T00:44:30Z 1972-01-01T00:44:30Z"},     // seconds
	} {
		w, err := ParseWindow(c.word, at(t, "2026-11-22T10:30:00Z"), zoneOf(t, c.zone))
		if err != nil || text(w) != c.want {
			t.Errorf("%s in %q: got %s, %v, want %s", c.word, c.zone, text(w), err, c.want)
		}
	}
}

func TestPointsAreInstantsAndTheBeginsOfPeriods(t *testing.T) {
	berlin := zoneOf(t, "Europe/Berlin")
	for _, c := range []struct{ from, to, want string }{
		{"2026-03-01", "2026-03-03", "2026-02-28T23:00:00Z 2026-03-02T23:00:00Z"},
		{"2026-03", "2026-05", "2026-02-28T23:00:00Z 2026-04-30T22:00:00Z"},
		{"2026-03-01T12:00", "2026-03-01 12:30:05", "2026-03-01T11:00:00Z 2026-03-01T11:30:05Z"},
		{"2026-03-01T12:00:00.000001Z", "now", "2026-03-01T12:00:00.000001Z 2026-11-22T10:30:00Z"},
		{"yesterday", "today", "2026-11-20T23:00:00Z 2026-11-21T23:00:00Z"},
		{"48h", "", "2026-11-20T10:30:00Z 2026-11-22T10:30:00Z"},
		{"2026-03-29T02:30", "2026-03-29T03:30", "2026-03-29T01:00:00Z 2026-03-29T01:30:00Z"}, // the first does not exist
	} {
		w, err := Between(c.from, c.to, at(t, "2026-11-22T10:30:00Z"), berlin)
		if err != nil || text(w) != c.want {
			t.Errorf("%s to %s: got %s, %v, want %s", c.from, c.to, text(w), err, c.want)
		}
	}
}

func TestWhatIsNoWindowIsRefusedWithWhatIs(t *testing.T) {
	now := at(t, "2026-11-22T10:30:00Z")
	for _, word := range []string{"", "26", "2026-Q", "2026-W5", "next-month", "last-", "this", "0d", "-1d", "1x", "now", "2026..", "..2026", "2025..2026..2027", strings.Repeat("9", 1<<16)} {
		if w, err := ParseWindow(word, now, time.UTC); err == nil || !strings.Contains(err.Error(), "last-month") || len(err.Error()) > 500 {
			t.Errorf("%.30q: %s, %v", word, text(w), err)
		}
	}
	if _, err := ParseWindow("2011-12-30", now, zoneOf(t, "Pacific/Apia")); err == nil || !strings.Contains(err.Error(), "the clocks of Pacific/Apia left that day out") {
		t.Error("a day that was left out is a window:", err)
	}
	for word, want := range map[string]string{
		"2026-13": "there is no month 13", "2026-00": "there is no month 0", "2026-13-01": "there is no month 13", "2026-02-30": "there is no 30 February", "2026-02-29": "there is no 29 February in 2026",
		"2026-04-00": "there is no 0 April", "2026-Q5": "there is no quarter 5", "2026-q0": "there is no quarter 0", "2026-q10": "there is no quarter 10", "2026-W00": "there is no week 0 in 2026",
		"2025-W53": "there is no week 53 in 2025", "2026-3": "as in 2026-03", "2026-03-1": "as in 2026-03-01", "lastmonth": `did you mean "last-month"?`, "last_month": `did you mean "last-month"?`,
		"yesteday": `did you mean "yesterday"?`, "this-hour": `did you mean`, "ThisWeek": `did you mean "this-week"?`,
	} {
		for _, window := range []string{word, word + "..2027", "2020.." + word} {
			if _, err := ParseWindow(window, now, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", window, err)
			}
		}
		if _, err := Point(word, now, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("at %s: %v", word, err)
		}
		if _, err := (Window{From: now, To: now + 1}).Comparison(word, now, time.UTC); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("beside %s: %v", word, err)
		}
	}
	if _, err := Point("2026-02-28T25:00", now, time.UTC); err == nil || !strings.Contains(err.Error(), "there is no time 25:00") {
		t.Error(err)
	}
	if w, err := ParseWindow("2026-03-02..2026-03-01", now, time.UTC); !errors.Is(err, ErrEmpty) {
		t.Errorf("%s, %v", text(w), err)
	}
	for _, c := range [][2]string{{"2026-03-02", "2026-03-01"}, {"2026-03-01", "2026-03-01"}, {"now", ""}} {
		if w, err := Between(c[0], c[1], now, time.UTC); !errors.Is(err, ErrEmpty) {
			t.Errorf("%v: %s, %v", c, text(w), err)
		}
	}
	for _, name := range []string{"Europe/Nowhere", "Local", "local", "../etc/passwd", "/etc/localtime"} {
		if _, err := Zone(name); err == nil || !strings.Contains(err.Error(), "Europe/Berlin") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := ParseUnit("fortnight"); err == nil || !strings.Contains(err.Error(), "quarter") {
		t.Error(err)
	}
}

func TestWindowsAreComparedWithWhatIsLikeThem(t *testing.T) {
	for _, c := range []struct{ zone, word, with, want string }{
		{"", "2026-03", "previous", "2026-02-01T00:00:00Z 2026-02-28T10:30:00Z"}, // as far as it has come
		{"", "2026-03", "last-year", "2025-03-01T00:00:00Z 2025-03-31T10:30:00Z"},
		{"", "2024-02", "last-year", "2023-02-01T00:00:00Z 2023-03-01T00:00:00Z"},
		{"", "2024-02-29", "last-year", "2023-02-28T00:00:00Z 2023-03-01T00:00:00Z"},
		{"", "2024-02-28", "last-year", "2023-02-28T00:00:00Z 2023-03-01T00:00:00Z"},
		{"", "2026-Q1", "previous", "2025-10-01T00:00:00Z 2025-12-31T10:30:00Z"},
		{"", "2026-02", "previous", "2026-01-01T00:00:00Z 2026-02-01T00:00:00Z"},
		{"", "2026-W01", "previous", "2025-12-22T00:00:00Z 2025-12-29T00:00:00Z"},
		{"", "2026-W53", "last-year", "2025-12-22T00:00:00Z 2025-12-29T00:00:00Z"},
		{"", "2026-W10", "last-year", "2025-03-03T00:00:00Z 2025-03-10T00:00:00Z"},
		{"", "today", "previous", "2026-03-30T00:00:00Z 2026-03-30T10:30:00Z"},
		{"", "this-month", "previous", "2026-02-01T00:00:00Z 2026-02-28T10:30:00Z"},
		{"", "this-month", "last-year", "2025-03-01T00:00:00Z 2025-03-31T10:30:00Z"},
		{"", "this-year", "previous", "2025-01-01T00:00:00Z 2025-03-31T10:30:00Z"},
		{"", "this-week", "last-year", "2025-03-31T00:00:00Z 2025-04-01T10:30:00Z"},
		{"", "14d", "previous", "2026-03-03T10:30:00Z 2026-03-17T10:30:00Z"},
		{"", "14d", "last-year", "2025-03-17T10:30:00Z 2025-03-31T10:30:00Z"},
		{"", "2026-03", "2025-12", "2025-12-01T00:00:00Z 2026-01-01T00:00:00Z"},
		{"Europe/Berlin", "2026-03-30", "previous", "2026-03-28T23:00:00Z 2026-03-29T22:00:00Z"}, // 23 hours
		{"Europe/Berlin", "today", "previous", "2026-03-29T22:00:00Z 2026-03-30T10:30:00Z"},
		{"Europe/Berlin", "this-week", "previous", "2026-03-22T23:00:00Z 2026-03-24T11:30:00Z"},
		{"Pacific/Apia", "2011-12-31", "previous", "2011-12-30T10:00:00Z 2011-12-30T10:00:00.000001Z"},
	} {
		now, zone := at(t, "2026-03-31T10:30:00Z"), zoneOf(t, c.zone)
		w, err := ParseWindow(c.word, now, zone)
		if err != nil {
			t.Error(c, err)
			continue
		}
		other, err := w.Comparison(c.with, now, zone)
		if err != nil || text(other) != c.want {
			t.Errorf("%s in %q with %s: got %s, %v, want %s", c.word, c.zone, c.with, text(other), err, c.want)
		}
	}
	w, err := Between("2026-01-01", "2026-03-01", 0, time.UTC)
	if before, e := w.Comparison("previous", 0, time.UTC); err != nil || e != nil || text(before) != "2025-11-01T00:00:00Z 2026-01-01T00:00:00Z" {
		t.Error(err, e, text(before))
	}
	if _, err := w.Comparison("before", 0, time.UTC); err == nil || !strings.Contains(err.Error(), "previous, last-year") {
		t.Error(err)
	}
}

func TestLength_ByIntervals_BeginsWithAWholeOne(t *testing.T) {
	now := at(t, "2026-03-31T10:40:30Z") // two days after the clock was put forward
	for _, c := range []struct {
		zone, word string
		unit       Unit
		from       string
	}{
		{"", "7d", Day, "2026-03-24T00:00:00Z"}, {"", "7d", Hour, "2026-03-24T10:00:00Z"}, {"", "7d", None, "2026-03-24T10:40:30Z"}, {"", "30d", Month, "2026-03-01T00:00:00Z"},
		{"Europe/Berlin", "7d", Day, "2026-03-23T23:00:00Z"}, {"Asia/Kathmandu", "36h", Hour, "2026-03-29T22:15:00Z"}, {"", "2026-03-24T10:30:00Z..today", Day, "2026-03-24T10:30:00Z"},
	} {
		zone := zoneOf(t, c.zone)
		w, err := ParseWindow(c.word, now, zone)
		if got := w.InIntervals(c.unit, zone); err != nil || got.From != at(t, c.from) || got.To != now {
			t.Errorf("%v: %s, %v", c, text(got), err)
		}
	}
}

func TestBucketsAreThoseOfTheZonesClock(t *testing.T) {
	for _, c := range []struct {
		zone, from, to string
		unit           Unit
		edges, labels  []string
	}{
		{"", "2026-01-31T12:00", "2026-02-02", Day, []string{"2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z", "2026-02-02T00:00:00Z"}, []string{"2026-01-31", "2026-02-01"}},
		{"", "2025-11-15", "2026-02-01", Month, []string{"2025-11-15T00:00:00Z", "2025-12-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"}, []string{"2025-11", "2025-12", "2026-01"}},
		{"", "2026-01", "2026-08", Quarter, []string{"2026-01-01T00:00:00Z", "2026-04-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z"}, []string{"2026-Q1", "2026-Q2", "2026-Q3"}},
		{"", "2026-01-01", "2026-01-12", Week, []string{"2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z", "2026-01-12T00:00:00Z"}, []string{"2026-W01", "2026-W02"}},
		{"", "2025-06", "2027", Year, []string{"2025-06-01T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"}, []string{"2025", "2026"}},
		{"", "2026", "2027", None, []string{"2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"}, []string{""}},
		{"Pacific/Apia", "2011-12-29", "2012-01-01", Day, []string{"2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"}, []string{"2011-12-29", "2011-12-31"}},
		{"Europe/Berlin", "2026-10-25T01:00", "2026-10-25T04:00", Hour,
			[]string{"2026-10-24T23:00:00Z", "2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"},
			[]string{"2026-10-25T01:00+02:00", "2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00", "2026-10-25T03:00+01:00"}},
		{"Europe/Berlin", "2026-03-29T01:00", "2026-03-29T04:00", Hour,
			[]string{"2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}, []string{"2026-03-29T01:00+01:00", "2026-03-29T03:00+02:00"}},
		{"Australia/Lord_Howe", "2026-10-04T01:00", "2026-10-04T04:00", Hour, // half an hour is left out at 2
			[]string{"2026-10-03T14:30:00Z", "2026-10-03T15:30:00Z", "2026-10-03T16:00:00Z", "2026-10-03T17:00:00Z"},
			[]string{"2026-10-04T01:00+10:30", "2026-10-04T02:00+11:00", "2026-10-04T03:00+11:00"}},
		{"Australia/Lord_Howe", "2026-04-05T01:00", "2026-04-05T03:00", Hour, // from 2 back to half past 1
			[]string{"2026-04-04T14:00:00Z", "2026-04-04T15:00:00Z", "2026-04-04T15:30:00Z", "2026-04-04T16:30:00Z"},
			[]string{"2026-04-05T01:00+11:00", "2026-04-05T01:00+10:30", "2026-04-05T02:00+10:30"}},
		{"Asia/Kathmandu", "2026-01-01T23:30", "2026-01-02T00:30", Hour,
			[]string{"2026-01-01T17:45:00Z", "2026-01-01T18:15:00Z", "2026-01-01T18:45:00Z"}, []string{"2026-01-01T23:00+05:45", "2026-01-02T00:00+05:45"}},
	} {
		zone := zoneOf(t, c.zone)
		w, err := Between(c.from, c.to, 0, zone)
		if err != nil {
			t.Fatal(err)
		}
		edges, err := Edges(w, c.unit, zone, most)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range edges {
			got = append(got, e.String())
		}
		if d := cmp.Diff(c.edges, got) + cmp.Diff(c.labels, Labels(edges, c.unit, zone)); d != "" {
			t.Errorf("%s from %s to %s by %s: %s", c.zone, c.from, c.to, c.unit, d)
		}
	}
}

func TestDaysOfAYearHaveTheHoursOfTheirClock(t *testing.T) {
	zone := zoneOf(t, "Europe/Berlin")
	w, _ := ParseWindow("2026", 0, zone)
	edges, err := Edges(w, Day, zone, most)
	if err != nil || len(edges) != 366 {
		t.Fatal(len(edges), err)
	}
	odd := map[string]record.Time{}
	for i, label := range Labels(edges, Day, zone) {
		if n := edges[i+1] - edges[i]; n != record.Day {
			odd[label] = n / record.Hour
		}
	}
	if d := cmp.Diff(map[string]record.Time{"2026-03-29": 23, "2026-10-25": 25}, odd); d != "" {
		t.Error(d)
	}
}

func TestTooManyBucketsAreRefusedBeforeTheyAreMade(t *testing.T) {
	w := Window{From: record.MinTime, To: record.MaxTime}
	if _, err := Edges(w, Hour, time.UTC, most); err == nil || !strings.Contains(err.Error(), "at most 1000000") {
		t.Error(err)
	}
	if edges, err := Edges(w, Year, time.UTC, most); err != nil || len(edges) != 10001 {
		t.Error(len(edges), err)
	}
	if _, err := Edges(Window{From: 1, To: 1}, Day, time.UTC, most); !errors.Is(err, ErrEmpty) {
		t.Error(err)
	}
}

func zoneNames() []string {
	return []string{"UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "America/Havana", "America/Juneau", "Australia/Lord_Howe",
		"Asia/Kathmandu", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham", "Africa/Monrovia", "Africa/Casablanca", "Africa/Cairo", "Asia/Manila", "Asia/Gaza", "Antarctica/Troll", "Etc/GMT-14", "Etc/GMT+12"}
}

// covers fails when buckets are not in order, empty, or not the window.
func covers(t interface{ Fatalf(string, ...any) }, w Window, edges []record.Time) {
	if edges[0] != w.From || edges[len(edges)-1] != w.To {
		t.Fatalf("%s: the edges are from %s to %s", text(w), edges[0], edges[len(edges)-1])
	}
	for i, e := range edges[1:] {
		if e <= edges[i] {
			t.Fatalf("%s: %s follows %s", text(w), e, edges[i])
		}
	}
}

func TestBucketsCoverTheWindowWhateverTheZone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, _ := Zone(rapid.SampledFrom(zoneNames()).Draw(t, "zone"))
		from := record.Time(rapid.Int64Range(-4_000_000_000, 8_000_000_000).Draw(t, "second"))*record.Second + record.Time(rapid.Int64Range(0, 999_999).Draw(t, "micro"))
		u := Unit(rapid.IntRange(int(Hour), int(Year)).Draw(t, "unit"))
		length := rapid.Int64Range(1, int64(u.shortestOf())*60).Draw(t, "length")
		w := Window{From: from, To: from + record.Time(length)}
		edges, err := Edges(w, u, zone, most)
		if err != nil {
			t.Fatalf("%v", err)
		}
		covers(t, w, edges)
		labels := Labels(edges, u, zone)
		if u > Hour && !slices.Equal(labels, slices.Compact(slices.Clone(labels))) {
			t.Fatalf("%s by %s: two buckets have one name: %v", text(w), u, labels)
		}
		for i, e := range edges[1:] {
			if u == Hour && e-edges[i] > record.Hour {
				t.Fatalf("an hour from %s to %s", edges[i], e)
			}
			inner := e - 1 // an edge does not depend on where the window begins
			again, _ := Edges(Window{From: inner, To: w.To}, u, zone, most)
			if i+2 < len(edges) && again[1] != e {
				t.Fatalf("%s by %s: from %s the next edge is %s, want %s", text(w), u, inner, again[1], e)
			}
		}
	})
}

// withoutNewYear is a zone that left out 1 January 1995, as early releases of the time zone
// database had it of Kiritimati.
func withoutNewYear(t *testing.T) *time.Location {
	t.Helper()
	data := append([]byte("TZif"), make([]byte, 16)...)
	for _, count := range []uint32{0, 0, 0, 1, 2, 8} { // of transitions one, of offsets two
		data = binary.BigEndian.AppendUint32(data, count)
	}
	data = binary.BigEndian.AppendUint32(data, uint32(time.Date(1995, 1, 1, 10, 0, 0, 0, time.UTC).Unix()))
	data = append(data, 1)
	for i, hours := range []int32{-10, 14} {
		data = append(binary.BigEndian.AppendUint32(data, uint32(hours*3600)), 0, byte(4*i))
	}
	zone, err := time.LoadLocationFromTZData("Without/New_Year", append(data, "OLD\x00NEW\x00"...))
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

func TestStarts_FirstDayLeftOut_IsAtTheNext(t *testing.T) {
	zone := withoutNewYear(t)
	begin := at(t, "1995-01-01T10:00:00Z")
	for _, u := range []Unit{Day, Week, Month, Quarter, Year} {
		edges, err := Edges(Window{From: begin - 400*record.Day, To: begin + 400*record.Day}, u, zone, most)
		if err != nil || !slices.Contains(edges, begin) {
			t.Errorf("no %s has the edge %s: %v", u, begin, err)
		}
		if !u.Starts(begin, zone) || u.Starts(begin-1, zone) || u.Starts(begin+1, zone) || u.Starts(begin+record.Day, zone) != (u == Day) {
			t.Errorf("no %s starts at %s alone", u, begin)
		}
	}
}

func TestTheDaysOfAUnitAreTheUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, _ := Zone(rapid.SampledFrom(zoneNames()).Draw(t, "zone"))
		from := record.Time(rapid.Int64Range(-4_000_000_000, 8_000_000_000).Draw(t, "second")) * record.Second
		u := Unit(rapid.IntRange(int(Week), int(Year)).Draw(t, "unit"))
		w := Window{From: from, To: from + 3*u.shortestOf()}
		days, err := Edges(w, Day, zone, most)
		large, e := Edges(w, u, zone, most)
		if err != nil || e != nil {
			t.Fatalf("%v %v", err, e)
		}
		for _, edge := range large {
			if !slices.Contains(days, edge) {
				t.Fatalf("%s begins a %s and no day", edge, u)
			}
		}
	})
}

func TestALabelIsAWordForItsBucket(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone, _ := Zone(rapid.SampledFrom(zoneNames()).Draw(t, "zone"))
		at := record.Time(rapid.Int64Range(-4_000_000_000, 8_000_000_000).Draw(t, "second")) * record.Second
		u := Unit(rapid.IntRange(int(Day), int(Year)).Draw(t, "unit"))
		w, err := ParseWindow(u.labelAt(zone, at), 0, zone)
		if err != nil || at < w.From || at >= w.To {
			t.Fatalf("%s is in the %s %s, which is %s, %v", at, u, u.labelAt(zone, at), text(w), err)
		}
	})
}

func FuzzWords(f *testing.F) {
	for _, s := range []string{"2026", "2026-Q3", "2026-W05", "2026-03-01", "today", "last-month", "14d", "9999", "0000", "now", "2026-03-01T12:00", "0000-W01", "9999-W52"} {
		f.Add(s, "previous", uint8(3))
	}
	zones := []*time.Location{time.UTC}
	for _, name := range zoneNames() {
		zones = append(zones, zoneOf(f, name))
	}
	now := at(f, "2026-11-22T10:30:00Z")
	f.Fuzz(func(t *testing.T, word, with string, n uint8) {
		zone := zones[int(n)%len(zones)]
		w, err := ParseWindow(word, now, zone)
		if err != nil {
			w, err = Between(word, with, now, zone)
		}
		if err != nil {
			return
		}
		for u := None; u <= Year; u++ {
			if edges, err := Edges(w, u, zone, 10_000); err == nil {
				covers(t, w, edges)
			}
		}
		for _, other := range []string{"previous", "last-year", with} {
			if c, err := w.Comparison(other, now, zone); err == nil && (c.To <= c.From || c.From < record.MinTime || c.To > record.MaxTime) {
				t.Fatalf("%q is compared with %s", word, text(c))
			}
		}
	})
}

// A date that is possible has no correction, and of any other there is one.
func TestImpossible_DatesThatThereAre_AreNot(t *testing.T) {
	for year := 1900; year <= 2100; year += 100 {
		for month := range 15 {
			for day := range 40 {
				word := fmt.Sprintf("%04d-%02d-%02d", year, month, day)
				_, err := time.Parse(time.DateOnly, word)
				if got := Impossible(word); (got == "") != (err == nil) {
					t.Errorf("%s: %q, %v", word, got, err)
				}
			}
		}
	}
	for _, word := range []string{"", "today", "2026", "2026-03", "2026-W53", "2026-q4", "14d", "2026-03-01T12:00:00Z", "2026-03-01 23:59"} {
		if got := Impossible(word); got != "" {
			t.Errorf("%s: %s", word, got)
		}
	}
}
