package report

import (
	"context"
	"errors"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/view"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ErrNothing is wrapped by the errors of reports about what is not there.
var ErrNothing = errors.New("there is nothing to report")

// span is a window in an answer.
type span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// namedPeriod names a window, which was asked for by a word, for people.
func (s span) namedPeriod(word string, zone *time.Location) Period {
	return Period{Name: s.periodName(word, zone), From: v1.Time{Time: s.From}, To: v1.Time{Time: s.To}}
}

// windowWord is the window in a word of /v1/usage.
func (s span) windowWord(zone *time.Location) string {
	from, to := s.From.In(zone), s.To.In(zone)
	day := func(t time.Time) bool { return t.Equal(intervalStart(t, "day")) }
	if day(from) && day(to) {
		return from.Format(time.DateOnly) + ".." + to.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return from.UTC().Format(time.RFC3339Nano) + ".." + to.UTC().Format(time.RFC3339Nano)
}

// PeriodOf names the window [from, to), which was asked for by a word, for people.
func PeriodOf(word string, from, to time.Time, zone *time.Location) Period {
	return span{from, to}.namedPeriod(word, zone)
}

// periodName is the month or the year that a window is, or its days.
func (s span) periodName(word string, zone *time.Location) string {
	return v1.Window{From: v1.Time{Time: s.From}, To: v1.Time{Time: s.To}}.Name(word, zone)
}

func windowOf(a *v1.Usage) span { return span{a.Window.From.Time, a.Window.To.Time} }

// usageNotes are what people must know of the answer of a period, see [view.UsageNotes]; unit is
// that of time which was asked for.
func usageNotes(a *v1.Usage, period, unit string) []string {
	return view.Of(period, view.UsageNotes(a, unit))
}

// clockOf returns the time zone of a name, which is the site's when it was empty.
func clockOf(ctx context.Context, r v1.API, name *string) (*time.Location, error) {
	zone, err := r.Clock(ctx, *name)
	if err == nil {
		*name = zone.String()
	}
	return zone, err
}
