package health

import (
	"cmp"
	"slices"
	"time"
)

// Severity is how much a finding matters.
type Severity string

// The severities, the worst first.
const (
	Critical Severity = "critical" // something does not work, or is about to
	Warning  Severity = "warning"  // something is to be done
	Notice   Severity = "notice"   // good to know; all is well nevertheless
)

func (s Severity) rank() int {
	return slices.Index([]Severity{Critical, Warning, Notice}, s)
}

// Finding is something that an operator should know.
type Finding struct {
	Severity Severity
	// ID is the kind of finding, a name that stays.
	ID string
	// About names what it is about, such as a node; "" for the cluster.
	About string
	// What is a sentence without a full stop.
	What string
	// Public is What without the text of a failure, which may name people; "" where What has
	// none.
	Public string
	// Do is what to do first: a command, or a sentence where there is none.
	Do string
	// Count is how many jobs, runs, records or gaps it is of; 0 where it counts none.
	Count int64
	// Since is when it began; zero when no one knows.
	Since time.Time
}

// WhatFor is What for readers who see all records, or Public for all others.
func (f *Finding) WhatFor(seesAll bool) string {
	if seesAll {
		return f.What
	}
	return cmp.Or(f.Public, f.What)
}

func (f *Finding) findingKey() string { return f.ID + "\x00" + f.About }

// State is the verdict in a word.
type State string

// The states.
const (
	Healthy  State = "healthy"
	Degraded State = "degraded" // there are warnings
	Failing  State = "failing"  // there are critical findings
)

// Report is a verdict with what it rests on.
type Report struct {
	State    State
	Findings []Finding // the worst first
	Facts    Facts
}

// ToDo counts the findings that ask for something to be done.
func (r *Report) ToDo() (n int) {
	for i := range r.Findings {
		if r.Findings[i].Severity != Notice {
			n++
		}
	}
	return n
}

// Heard reports whether the node that judges hears n, which may be itself.
func (r *Report) Heard(n *Node) bool { return (&judge{Facts: &r.Facts}).isHeard(n) }

// sortBySeverity puts the worst first; equals stay in the order of the rules.
func sortBySeverity(list []Finding) []Finding {
	slices.SortStableFunc(list, func(a, b Finding) int { return cmp.Compare(a.Severity.rank(), b.Severity.rank()) })
	return list
}

func stateOf(list []Finding) State {
	state := Healthy
	for i := range list {
		switch list[i].Severity {
		case Critical:
			return Failing
		case Warning:
			state = Degraded
		case Notice:
		}
	}
	return state
}
