package report

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// ErrNothing is wrapped by the errors of reports about what is not there.
var ErrNothing = errors.New("there is nothing to report")

// span is a window in an answer.
type span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// period names a window, which was asked for by a word, for people.
func (s span) period(word string, zone *time.Location) Period {
	return Period{Name: s.name(word, zone), From: v1.Time{Time: s.From}, To: v1.Time{Time: s.To}}
}

// word is the window in a word of /v1/usage.
func (s span) word(zone *time.Location) string {
	from, to := s.From.In(zone), s.To.In(zone)
	day := func(t time.Time) bool { return t.Equal(floor(t, "day")) }
	if day(from) && day(to) {
		return from.Format(time.DateOnly) + ".." + to.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return from.UTC().Format(time.RFC3339Nano) + ".." + to.UTC().Format(time.RFC3339Nano)
}

// PeriodOf names the window [from, to), which was asked for by a word, for people.
func PeriodOf(word string, from, to time.Time, zone *time.Location) Period {
	return span{from, to}.period(word, zone)
}

// name is the month or the year that a window is, or its days.
func (s span) name(word string, zone *time.Location) string {
	return v1.Window{From: v1.Time{Time: s.From}, To: v1.Time{Time: s.To}}.Name(word, zone)
}

// usageAnswer is one of GET /v1/usage.
type usageAnswer struct{ v1.Usage }

func (a *usageAnswer) window() span { return span{a.Window.From.Time, a.Window.To.Time} }

// MinuteLayout is how times stand in notes.
const MinuteLayout = "2006-01-02 15:04"

// notes say how complete a period is, with times by the clock of a zone.
func notes(k *v1.Complete, period, zoneName string) (notes []string) {
	zone := zoneNamed(zoneName)
	add := func(format string, args ...any) { notes = append(notes, period+": "+fmt.Sprintf(format, args...)) }
	switch {
	case k.Open == 1:
		add("1 record is still open; it counts up to now, or as far as its source has reported.")
	case k.Open > 1:
		add("%d records are still open; they count up to now, or as far as their source has reported.", k.Open)
	}
	if k.Limited {
		add("only records that the reader may see are included; completeness is not shown.")
		return notes
	}
	if !k.CompleteTo.IsZero() {
		add("records are complete to %s %s.", moment(k.CompleteTo, zone), zone)
	}
	for _, s := range k.Sources {
		if s.Silent {
			add("%s is silent; its records are known to %s %s.", s.Source, moment(s.CompleteTo, zone), zone)
		}
	}
	for _, u := range k.Unknown {
		add("%s", unknownNote(u.Source, u.Reason, u.Days))
	}
	for _, g := range k.Gaps {
		add("data of %s from %s to %s %s are missing: %s.", g.Source, moment(g.From, zone), moment(g.To, zone), zone, g.Reason)
	}
	for _, m := range k.Missing {
		add("%s of %s from %s to %s %s missing; see bursar completeness.", counted(m.Runs, "run", "runs"), m.Source, moment(m.From, zone), moment(m.To, zone), zone)
	}
	for _, f := range k.Findings {
		add("%s of %s: %s, for example %s; see bursar status.", counted(f.Count, "record", "records"), f.Source, f.What, f.Example)
	}
	if k.Quarantined != nil && *k.Quarantined > 0 {
		add("%s quarantined and not counted; see bursar quarantine list.", counted(int64(*k.Quarantined), "job is", "jobs are"))
	}
	return notes
}

// counted is a number with its noun and verb.
func counted(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}

// moment is a time by the clock of a zone, which may not be known.
func moment(t v1.Time, zone *time.Location) string {
	if t.IsZero() {
		return "an unknown time"
	}
	return t.In(zone).Format(MinuteLayout)
}

// clockOf returns the time zone of a name, which is the site's when it was empty.
func clockOf(ctx context.Context, r v1.API, name *string) (*time.Location, error) {
	zone, err := r.Clock(ctx, *name)
	if err == nil {
		*name = zone.String()
	}
	return zone, err
}
