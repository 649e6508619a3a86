package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/completeness"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

const (
	aDay = record.Time(24 * time.Hour / time.Microsecond)
	// daysBefore is how many days before today are told where no window is asked for.
	daysBefore = 30
	// maxDays is how many days are told at once.
	maxDays = 366
)

// v1Completeness is GET /v1/completeness: by source and day, what the scheduler has
// and what is stored of it.
func (s *Server) v1Completeness(w http.ResponseWriter, r *http.Request, view *access.View) error {
	now := s.currentTime()
	source, window, err := parseDaysQuery(r, now)
	if err != nil {
		return err
	}
	if window.To-window.From > maxDays*aDay {
		return newRefusal(http.StatusBadRequest, "the window has more than %d days", maxDays)
	}
	days, err := view.Days(r.Context(), window)
	if err != nil {
		return err
	}
	if source != "" {
		days = slices.DeleteFunc(days, func(d completeness.Day) bool { return !matchesSource(d.Source, source) })
	}
	list, missing := []v1.Day{}, int64(0)
	for i := range days {
		list = append(list, dayJSON(&days[i], now))
		missing += days[i].Missing()
	}
	answerJSON(w, http.StatusOK, v1.Completeness{
		Window: v1.Window{From: v1.Stamp(window.From), To: v1.Stamp(window.To)}, Days: list, Stretches: stretchesJSON(days), Missing: missing,
	})
	return nil
}

// matchesSource reports whether a word of a user's names the source: agent/type/label, or
// type/label.
func matchesSource(o record.Origin, word string) bool {
	return word == o.String() || word == o.Type+"/"+o.Label
}

func parseDaysQuery(r *http.Request, now record.Time) (source string, w completeness.Window, err error) {
	q, err := decodeQuery[v1.CompletenessQuery](r)
	if err != nil {
		return "", w, err
	}
	asked, err := parseWindow(q.Window, q.From, q.To, now, time.UTC)
	if err != nil {
		return "", w, err
	}
	today := completeness.Begin(now)
	if asked == nil {
		asked = &calendar.Window{From: today - daysBefore*aDay, To: today + aDay}
	}
	w = completeness.Window{From: completeness.Begin(asked.From), To: min(asked.To, today+aDay)}
	return q.Source, w, nil
}

func dayJSON(d *completeness.Day, now record.Time) v1.Day {
	out := v1.Day{
		Source: d.Source.String(), Day: d.From.Std().Format(time.DateOnly), State: string(d.State(now)), Stored: d.Stored, Deleted: d.Deleted,
		Missing: d.Missing(), Surplus: d.Surplus(), Unread: d.Unread(), CountedAt: v1.Stamp(d.Count.At),
	}
	if d.Count.At.Present() {
		c, runs := &d.Count, d.Runs()
		out.Runs, out.Filtered, out.Quarantined, out.Shared, out.Skipped = &runs, &c.Filtered, &c.Quarantined, &c.Shared, &c.Skipped
	}
	return out
}

func stretchesJSON(days []completeness.Day) []v1.Stretch {
	list := []v1.Stretch{}
	for _, t := range completeness.Stretches(days) {
		list = append(list, v1.Stretch{
			Agent: t.Source.Agent, Source: t.Source.String(), From: v1.Stamp(t.From), To: v1.Stamp(t.To), Days: t.Days,
			Missing: t.Missing, Lost: t.Lost, Unread: t.Unread, Shared: t.Shared, Do: t.Remedy(),
		})
	}
	return list
}
