package report

import (
	"fmt"
	"strconv"
)

// Limits of what reports are told.
const (
	mostJobs    = 100  // jobs that are named: their cost is asked one by one
	leastMemory = 1e-9 // of the component Memory in a GB
	mostFactor  = 1e12
)

// bounds say from what to what a number may be.
type bounds struct {
	name               string
	value, least, most float64
}

// checkBounds returns an error that wraps [ErrQuery] for the first number out of its limits.
func checkBounds(list ...bounds) error {
	for _, l := range list {
		if !(l.value >= l.least && l.value <= l.most) { // also what is not a number
			return fmt.Errorf("%w: %s is %g; want a number from %g to %g", ErrQuery, l.name, l.value, l.least, l.most)
		}
	}
	return nil
}

// These are the parameters that several reports have.

// periodParam is the one or two periods of a report.
func periodParam() Param {
	return Param{
		Name: "period", Title: "Period", Kind: ParamWindow, Default: DefaultPeriods(nil), Most: 2,
		About: "The time that is reported, such as last-month, 2026-03 or 14d; given twice, two of them side by side, of which the second may be previous, or none.",
		Words: []string{"today", "yesterday", "this-week", "last-week", "this-month", "last-month", "this-quarter", "last-quarter", "this-year", "last-year", "7d", "30d", "2026-10", "2026-Q3"},
	}
}

// The words that only the second of two periods may be: the one before the first, and none.
const (
	Previous = "previous"
	Alone    = "none"
)

// zoneParam says by whose clock days begin.
func zoneParam() Param {
	return Param{
		Name: "zone", Title: "Time zone", Kind: ParamZone, Default: []string{}, Most: 1,
		About: "The time zone by whose clock days begin; the site's where none is given.", Words: []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"},
	}
}

// whereParam says of whom a report is.
func whereParam() Param {
	return Param{
		Name: "where", Title: "Filter", Kind: ParamPairs, Most: 10, Default: []string{}, Words: []string{"group_id=atlas", "project=bell"},
		About: "Only what has KEY=VALUE, or one of several values with commas; a comma of a value is written \\,. Several filters must all hold.",
	}
}

// choiceParam is one of a few words, of which the first is the default.
func choiceParam(name, title, about string, words ...string) Param {
	return Param{Name: name, Title: title, About: about, Kind: ParamChoice, Words: words, Default: words[:1], Most: 1}
}

// textParam is a text with a default and examples.
func textParam(name, title, about, otherwise string, examples ...string) Param {
	p := Param{Name: name, Title: title, About: about, Kind: ParamText, Words: examples, Default: []string{}, Most: 1}
	if otherwise != "" {
		p.Default = []string{otherwise}
	}
	return p
}

// listParam is several texts, in one or in many.
func listParam(name, title, about string, examples ...string) Param {
	return Param{Name: name, Title: title, About: about, Kind: ParamList, Words: examples, Default: []string{}, Most: 20}
}

// numberParam is a whole number with a default.
func numberParam(name, title, about string, otherwise int) Param {
	return Param{Name: name, Title: title, About: about, Kind: ParamNumber, Default: []string{strconv.Itoa(otherwise)}, Most: 1, Words: []string{}}
}

// topParam bounds the lines.
func topParam(otherwise int) Param {
	return numberParam("top", "Max rows", "How many lines there are at most; the others are one line. 0 is all.", otherwise)
}

// memoryParam says what the component Memory is counted in.
func memoryParam() Param {
	return textParam("memory_per_gb", "Memory of a GiB", "How much of the component Memory is a GiB; 1024 where it is in MiB.", "1024", "1024", "1")
}

// factor is a parameter that is a number with a fraction.
type factor struct {
	name string
	to   *float64
}

// readFactors reads parameters that are numbers, none of which may be less than 0.
func (q *Query) readFactors(list ...factor) error {
	for _, f := range list {
		n, err := strconv.ParseFloat(q.One(f.name), 64)
		if err != nil || !(n >= 0 && n <= 1e12) {
			return fmt.Errorf("%w: %s is %.60q; want a number, 0 or more, such as 0.475", ErrQuery, f.name, q.One(f.name))
		}
		*f.to = n
	}
	return nil
}
