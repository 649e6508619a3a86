package action

import (
	"fmt"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Schedule says when an action runs. The zero value is never.
type Schedule struct {
	text  string
	zone  *time.Location
	every time.Duration // an interval
	unit  calendar.Unit // a word: when a unit of the calendar begins
	cron  *cron
	after time.Duration // on change, not more often than that
}

const (
	minInterval = time.Second
	maxInterval = 366 * 24 * time.Hour
)

// Schedules says in one line what [ParseSchedule] reads.
const Schedules = `an interval such as 15m, @hourly, @daily, @weekly, @monthly, @quarterly, @yearly, a cron line of five fields such as "30 6 * * mon-fri", @change with the least time between two runs such as "@change 5m", or @manual`

// ParseSchedule reads a schedule; "" and @manual are never.
func ParseSchedule(text string, zone *time.Location) (Schedule, error) {
	s := Schedule{text: text, zone: zone}
	words := map[string]calendar.Unit{"@hourly": calendar.Hour, "@daily": calendar.Day, "@weekly": calendar.Week, "@monthly": calendar.Month, "@quarterly": calendar.Quarter, "@yearly": calendar.Year}
	fields := strings.Fields(text)
	var err error
	switch {
	case len(fields) == 0 || text == "@manual":
		return s, nil
	case fields[0] == "@change" && len(fields) == 2:
		s.after, err = parseInterval(fields[1])
	case words[text] != calendar.None:
		s.unit = words[text]
	case len(fields) == 5:
		s.cron, err = parseCron(fields)
	case len(fields) == 1 && !strings.HasPrefix(text, "@"):
		s.every, err = parseInterval(text)
	default:
		return Schedule{}, fmt.Errorf("%q is no schedule; want %s", cutText(text, maxWord), Schedules)
	}
	if err != nil {
		return Schedule{}, fmt.Errorf("schedule %q: %w", cutText(text, maxWord), err)
	}
	return s, nil
}

func parseInterval(text string) (time.Duration, error) {
	d, err := hcl.ParseDuration(text)
	if err == nil && (d < minInterval || d > maxInterval) {
		err = fmt.Errorf("%s is not between %s and 366d", text, minInterval)
	}
	return d, err
}

// String is how the schedule was written.
func (s Schedule) String() string {
	if s.text == "" {
		return "@manual"
	}
	return s.text
}

// OnChange reports whether the action runs when records have changed.
func (s Schedule) OnChange() bool { return s.after > 0 }

// Next returns when a run is due after the last one, which was at last, or never
// was, and zero for never. The action is known since began. A schedule by the
// calendar begins with its first time after that, an interval at once. Of a
// schedule on change it is the earliest time.
func (s Schedule) Next(last, began time.Time) time.Time {
	byCalendar := last
	if began.After(last) {
		byCalendar = began
	}
	switch {
	case s.every > 0 || s.after > 0:
		if last.IsZero() {
			return began
		}
		return last.Add(max(s.every, s.after))
	case s.unit != calendar.None:
		return nextUnit(s.unit, s.zone, byCalendar)
	case s.cron != nil:
		return s.cron.nextTime(byCalendar, s.zone)
	}
	return time.Time{}
}

// nextUnit is when the first unit begins after t.
func nextUnit(u calendar.Unit, zone *time.Location, t time.Time) time.Time {
	at, span := record.FromStd(t), 800*record.Day
	if u == calendar.Hour {
		span = 3 * record.Hour
	}
	edges, err := calendar.Edges(calendar.Window{From: at, To: at + span}, u, zone, 1<<16)
	if err != nil || len(edges) < 3 {
		return time.Time{} // beyond the times of records
	}
	return time.UnixMicro(int64(edges[1])).UTC()
}
