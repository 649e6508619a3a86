package action

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/proto/record"
)

// cron is a cron line: each field is a set of numbers.
type cron struct {
	minute, hour, day, month, weekday uint64

	anyDay, anyWeekday, anyHour bool // the field is *
}

// cronFields are the bounds and the names of the fields.
func cronFields() []cronField {
	return []cronField{
		{"minute", 0, 59, nil}, {"hour", 0, 23, nil}, {"day of month", 1, 31, nil},
		{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
		{"weekday", 0, 7, strings.Fields("sun mon tue wed thu fri sat")},
	}
}

type cronField struct {
	name     string
	from, to int
	words    []string // for from and what follows
}

// errNever says that a line has no time.
var errNever = errors.New("there is no such day")

func parseCron(fields []string) (*cron, error) {
	c := &cron{anyDay: fields[2] == "*", anyWeekday: fields[4] == "*", anyHour: fields[1] == "*"}
	sets := []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday}
	for i, f := range cronFields() {
		set, err := f.parseField(strings.ToLower(fields[i]))
		if err != nil {
			return nil, err
		}
		*sets[i] = set
	}
	if c.weekday&(1<<7) != 0 { // Sunday has two numbers
		c.weekday |= 1
	}
	if c.nextTime(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC).IsZero() {
		return nil, errNever
	}
	return c, nil
}

// parseField reads lists of numbers, ranges and steps.
func (f *cronField) parseField(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		from, to, err := f.parseSpan(span, stepped)
		if err != nil {
			return 0, err
		}
		by := 1
		if stepped {
			if by, err = strconv.Atoi(step); err != nil || by < 1 {
				return 0, fmt.Errorf("%s: the step %q is no number from 1 on", f.name, cutText(step, maxWord))
			}
		}
		for n := from; n <= to; n += by {
			set |= 1 << n
		}
	}
	return set, nil
}

// parseSpan reads *, a number or a range; a number with a step goes on to the end.
func (f *cronField) parseSpan(text string, stepped bool) (from, to int, err error) {
	if text == "*" {
		return f.from, f.to, nil
	}
	first, last, ranged := strings.Cut(text, "-")
	if from, err = f.parseNumber(first); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		to, err = f.parseNumber(last)
	case stepped:
		to = f.to
	default:
		to = from
	}
	if err == nil && to < from {
		err = fmt.Errorf("%s: the range %q goes backwards", f.name, cutText(text, maxWord))
	}
	return from, to, err
}

func (f *cronField) parseNumber(text string) (int, error) {
	if i := slices.Index(f.words, text); i >= 0 {
		return f.from + i, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.from || n > f.to {
		return 0, fmt.Errorf("%s: %q is not between %d and %d", f.name, cutText(text, maxWord), f.from, f.to)
	}
	return n, nil
}

// farthest is how many days are looked through for the next time: February 29 comes
// again after eight years at most.
const farthest = 8*366 + 2

// nextTime returns the first time of the line after t; zero when there is none.
func (c *cron) nextTime(t time.Time, zone *time.Location) time.Time {
	y, m, d := t.In(zone).Date()
	for i := range farthest {
		day := time.Date(y, m, d+i, 0, 0, 0, 0, time.UTC)
		if !c.onDay(day) {
			continue
		}
		for _, at := range c.timesOfDay(day, zone) {
			if at.After(t) {
				return at
			}
		}
	}
	return time.Time{}
}

// onDay reports whether the line has times on a day. As in every cron, a day of the
// month and a weekday that are both restricted are two ways to be meant.
func (c *cron) onDay(day time.Time) bool {
	if c.month&(1<<int(day.Month())) == 0 {
		return false
	}
	ofMonth, ofWeek := c.day&(1<<day.Day()) != 0, c.weekday&(1<<int(day.Weekday())) != 0
	if c.anyDay || c.anyWeekday {
		return ofMonth && ofWeek
	}
	return ofMonth || ofWeek
}

// timesOfDay are the times of a day, in order. A time that the clock leaves out is when
// it goes on, and of one that it shows twice it is the first; but a line for every
// hour counts the hours that there are.
func (c *cron) timesOfDay(day time.Time, zone *time.Location) []time.Time {
	var out []time.Time
	if c.anyHour {
		y, m, d := day.Date()
		end := calendar.Shown(zone, day.AddDate(0, 0, 1))
		for at := calendar.Shown(zone, time.Date(y, m, d, 0, 0, 0, 0, time.UTC)); at < end; at += record.Minute {
			if std := time.UnixMicro(int64(at)).In(zone); c.minute&(1<<std.Minute()) != 0 {
				out = append(out, std.UTC())
			}
		}
		return out
	}
	for h := range 24 {
		for m := range 60 {
			if c.hour&(1<<h) != 0 && c.minute&(1<<m) != 0 {
				at := calendar.Shown(zone, day.Add(time.Duration(h)*time.Hour+time.Duration(m)*time.Minute))
				out = append(out, time.UnixMicro(int64(at)).UTC())
			}
		}
	}
	return slices.Compact(out)
}
