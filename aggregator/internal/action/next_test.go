package action

import (
	"testing"
	"time"
)

func TestTheNextRunIsToldWhereTheScheduleAloneSaysIt(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	last := began.Add(90 * time.Minute)
	mark := &Mark{Why: "x"}
	for name, c := range map[string]struct {
		set   Setting
		state State
		want  time.Time
	}{
		"an interval":              {Setting{Schedule: "1h"}, State{Began: unixMicros(began), Last: unixMicros(last)}, last.Add(time.Hour)},
		"at once":                  {Setting{Schedule: "1h"}, State{Began: unixMicros(began)}, began},
		"by the clock of a zone":   {Setting{Schedule: "30 6 2 * *", Zone: "Europe/Berlin"}, State{Began: unixMicros(began)}, time.Date(2026, 3, 2, 5, 30, 0, 0, time.UTC)},
		"paused":                   {Setting{Schedule: "1h"}, State{Began: unixMicros(began), Paused: mark}, time.Time{}},
		"disabled":                 {Setting{Schedule: "1h"}, State{Began: unixMicros(began), Disabled: mark}, time.Time{}},
		"on change":                {Setting{Schedule: "@change 5m"}, State{Began: unixMicros(began)}, time.Time{}},
		"by hand":                  {Setting{Schedule: "@manual"}, State{Began: unixMicros(began)}, time.Time{}},
		"the plugin's":             {Setting{}, State{Began: unixMicros(began)}, time.Time{}},
		"not seen by a leader yet": {Setting{Schedule: "1h"}, State{}, time.Time{}},
	} {
		got := nextRun(&c.set, &c.state)
		if c.want.IsZero() && got != 0 || !c.want.IsZero() && !Instant(got).Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, Instant(got), c.want)
		}
	}
}
