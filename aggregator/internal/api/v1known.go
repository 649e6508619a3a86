package api

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
)

// laterSources returns the sources that have all runs from later in a window on than span
// begins. Who does not see all records is not told.
func laterSources(ctx context.Context, view *access.View, span usage.Span, w calendar.Window) ([]usage.SourceBegin, error) {
	if !view.Principal().Rows.All() {
		return nil, nil
	}
	reach, err := view.Reach(ctx)
	var later []usage.SourceBegin
	for _, b := range reach.Begins {
		if b.At > max(span.From, w.From) && b.At < min(span.To, w.To) {
			later = append(later, usage.SourceBegin{Source: b.Source.String(), From: b.At})
		}
	}
	return later, err
}

// knownSpan returns the time of which records are known: up to now, from the first record on
// and from when the sources say that they have all runs. Where a source does not say it, it
// is the day of the first run that ended, or its start: runs that were long under way then
// began before, but others of that time are missing.
func knownSpan(ctx context.Context, view *access.View, zone *time.Location, now record.Time) (usage.Span, error) {
	reach, err := view.Reach(ctx)
	if err != nil {
		return usage.Span{}, err
	}
	if reach.Start == record.None {
		return usage.Span{From: now, To: now}, nil
	}
	begin := reach.CompleteFrom
	if reach.FirstStop != record.None { // what is there counts, whatever a new agent says
		day := calendar.StartOfDay(reach.FirstStop, zone)
		if begin == record.None {
			begin = reach.FirstStart
		}
		begin = min(begin, day)
	}
	return usage.Span{From: min(max(reach.Start, begin), now), To: now}, nil
}
