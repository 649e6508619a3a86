package api

import (
	"context"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// knownSpan returns the time of which records are known: up to now, from the first record on
// and from when the sources say that they have all runs. Where a source does not say it, it
// is the day of the first run that ended, or its start on the day before: a run may have begun
// long before, but others of that time are missing.
func knownSpan(reach *access.Reach, zone *time.Location, now record.Time) sums.Span {
	if reach.Start == record.None {
		return sums.Span{From: now, To: now}
	}
	begin := reach.CompleteFrom
	if reach.FirstStop != record.None { // what is there counts, whatever a new agent says
		day := calendar.StartOfDay(reach.FirstStop, zone)
		if begin == record.None {
			begin = max(reach.FirstStart, day-record.Day)
		}
		begin = min(begin, day)
	}
	return sums.Span{From: min(max(reach.Start, begin), now), To: now}
}

// sourceBegins returns from when on each source has all runs. Of a source that does not say it,
// that is when the records of all are known.
func (s *Server) sourceBegins(view *access.View, reach *access.Reach, known sums.Span) (list []usage.SourceBegin) {
	var common map[record.Origin]record.Meta
	if s.opt.Common != nil && len(reach.Sources) > 1 {
		common = s.opt.Common()
	}
	for _, b := range reach.Sources {
		from := b.At
		if from == record.None {
			from = known.From
		}
		list = append(list, usage.SourceBegin{Source: b.Source.String(), From: from, Common: view.Shown(common[b.Source])})
	}
	return list
}

// knownPart returns the part of a window of which the records are known that pass tests of
// their meta; nil where none is.
func (s *Server) knownPart(ctx context.Context, view *access.View, w calendar.Window, zone *time.Location, tests []store.MetaTest, now record.Time) (*v1.KnownSpan, error) {
	reach, err := view.Reach(ctx)
	if err != nil {
		return nil, err
	}
	q := usage.Request{Window: w, Known: knownSpan(&reach, zone, now), NameSources: view.Principal().Rows.All()}
	q.Sources, q.Where.Meta = s.sourceBegins(view, &reach, q.Known), tests
	part, later := q.KnownPart()
	if part.From == part.To {
		return nil, nil
	}
	out := &v1.KnownSpan{From: v1.Stamp(part.From), To: v1.Stamp(part.To), Later: []v1.KnownSpanLater{}}
	for _, b := range later {
		out.Later = append(out.Later, v1.KnownSpanLater{Source: b.Source, From: v1.Stamp(b.From)})
	}
	return out, nil
}
