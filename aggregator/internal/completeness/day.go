package completeness

import (
	"cmp"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// State says in a word how a day is.
type State string

// The states of a day.
const (
	OK        State = "ok"
	Missing   State = "missing"   // records that should be there are not
	Surplus   State = "surplus"   // there are more records than runs
	Unchecked State = "unchecked" // its runs were not counted
	Open      State = "open"      // it is not over, or may not be counted yet
)

// Day is a day of a source.
type Day struct {
	Source   record.Origin
	From, To record.Time
	// Count is what the runs came to when they were counted last; Count.At is None
	// where they were not.
	Count wire.Count
	// Stored are the records that the source says and that ended in the day. Deleted
	// are those that an operator took out, as far as the store remembers them.
	Stored, Deleted int64
}

// patience is how long after its end a day may be uncounted: agents wait until the
// scheduler has told of late runs.
const patience = record.Time(6 * time.Hour / time.Microsecond)

// Due is the end of the last day that should have been counted at an instant.
func Due(now record.Time) record.Time { return Begin(now - patience) }

// Runs is how many runs there were: what the second route counted or, where
// collecting gave more, what that gave.
func (d *Day) Runs() int64 { return max(d.Count.Counted, d.collectedRuns()) }

// collectedRuns is how many runs collecting gives.
func (d *Day) collectedRuns() int64 {
	return d.Count.Records + d.Count.Shared + d.Count.Filtered + d.Count.Quarantined
}

// excessRuns is how many runs are more than what became of them.
func (d *Day) excessRuns() int64 {
	return d.Runs() - d.Stored - d.Deleted - d.Count.Filtered - d.Count.Quarantined
}

// Missing is how many runs have no record.
func (d *Day) Missing() int64 {
	if !d.Count.At.Present() {
		return 0
	}
	return max(0, d.excessRuns())
}

// Surplus is how many records have no run.
func (d *Day) Surplus() int64 {
	if !d.Count.At.Present() {
		return 0
	}
	return max(0, -d.excessRuns())
}

// Unread are those of the missing that the source counts and does not collect:
// collecting them again gives no more.
func (d *Day) Unread() int64 {
	return min(d.Missing(), max(0, d.Count.Counted-d.collectedRuns()))
}

// Shared are those of the missing whose mapping gives them the record id of another
// run.
func (d *Day) Shared() int64 { return min(d.Missing()-d.Unread(), d.Count.Shared) }

// Lost are those of the missing that collecting the day again brings.
func (d *Day) Lost() int64 { return d.Missing() - d.Unread() - d.Shared() }

// State is how the day is at an instant.
func (d *Day) State(now record.Time) State {
	switch {
	case !d.Count.At.Present() && d.To+patience > now:
		return Open
	case !d.Count.At.Present():
		return Unchecked
	case d.Missing() > 0:
		return Missing
	case d.Surplus() > 0:
		return Surplus
	}
	return OK
}

// Stretch is days of a source in a row that lack runs.
type Stretch struct {
	Source                        record.Origin
	From, To                      record.Time
	Days                          int
	Missing, Lost, Unread, Shared int64
}

// Stretches are the days that lack runs, those in a row together; by source, the
// newest last.
func Stretches(days []Day) (list []Stretch) {
	for i := range days {
		d := &days[i]
		if d.Missing() == 0 {
			continue
		}
		last := len(list) - 1
		if last < 0 || list[last].Source != d.Source || list[last].To != d.From {
			list = append(list, Stretch{Source: d.Source, From: d.From})
			last++
		}
		s := &list[last]
		s.To, s.Days = d.To, s.Days+1
		s.Missing, s.Lost, s.Unread, s.Shared = s.Missing+d.Missing(), s.Lost+d.Lost(), s.Unread+d.Unread(), s.Shared+d.Shared()
	}
	return list
}

// Remedy is the command, on the agent, that collects the days again.
func (s *Stretch) Remedy() string {
	return "bursar-agent recollect -source " + s.Source.Type + "/" + s.Source.Label + " -from " + formatDay(s.From) + " -to " + formatDay(s.To)
}

// formatDay writes the start of a day as commands take it.
func formatDay(t record.Time) string {
	if std := t.Std(); !std.Equal(std.Truncate(day)) {
		return std.Format(time.RFC3339)
	}
	return t.Std().Format(time.DateOnly)
}

// sortDays puts days in the order of sources and time.
func sortDays(days []Day) []Day {
	slices.SortFunc(days, func(a, b Day) int {
		return cmp.Or(a.Source.Compare(b.Source), cmp.Compare(a.From, b.From))
	})
	return days
}
