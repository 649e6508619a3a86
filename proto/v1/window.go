package v1

import (
	"fmt"
	"time"
)

// ToDate ends the name of a period that goes on.
const ToDate = " to date"

// Name is the month or the year that a window is, or its days, for people. The window was
// asked for by a word, such as this-month, or by none.
func (w Window) Name(word string, zone *time.Location) string {
	from, to := w.From.In(zone), w.To.In(zone)
	midnight := func(t time.Time) bool { h, m, sec := t.Clock(); return h+m+sec+t.Nanosecond() == 0 }
	switch {
	case !midnight(from):
	case from.Day() == 1 && from.AddDate(0, 1, 0).Equal(to):
		return from.Format("January 2006")
	case from.YearDay() == 1 && from.AddDate(1, 0, 0).Equal(to):
		return from.Format("2006")
	case word == "this-year":
		return fmt.Sprint(from.Year()) + ToDate
	case word == "this-month":
		return from.Format("January 2006") + ToDate
	case midnight(to):
		return from.Format(time.DateOnly) + " to " + to.AddDate(0, 0, -1).Format(time.DateOnly)
	}
	return from.Format("2006-01-02 15:04") + " to " + to.Format("2006-01-02 15:04")
}
