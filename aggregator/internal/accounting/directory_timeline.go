package accounting

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/bursar-accounting/bursar/proto/record"
)

// The bounds of what is not dated.
const (
	ever  = record.MinTime
	never = record.MaxTime + 1
)

// dirSpan is a value from a time, included, to another, not included.
type dirSpan struct {
	from, to record.Time
	value    string
	place    string
}

// newSpan takes None for no bound.
func newSpan(from, to record.Time, value, place string) dirSpan {
	s := dirSpan{from: from, to: to, value: value, place: place}
	if from == record.None {
		s.from = ever
	}
	if to == record.None {
		s.to = never
	}
	return s
}

func (s *dirSpan) holdsAt(at record.Time) bool { return s.from <= at && at < s.to }

// overlapsWindow reports whether the span and a window have time in common.
func (s *dirSpan) overlapsWindow(from, to record.Time) bool { return s.from < to && from < s.to }

// timeline is spans that ascend and do not overlap.
type timeline []dirSpan

// valueAt is the value of an instant.
func (t timeline) valueAt(at record.Time) (string, bool) {
	i := sort.Search(len(t), func(i int) bool { return t[i].to > at })
	if i == len(t) || t[i].from > at {
		return "", false
	}
	return t[i].value, true
}

// timelines are what is said of keys.
type timelines map[string]timeline

func (t timelines) valueAt(key string, at record.Time) (string, bool) {
	if key == "" {
		return "", false
	}
	return t[key].valueAt(at)
}

// appendCuts adds the instants at which something changes.
func (t timelines) appendCuts(list []record.Time) []record.Time {
	for _, line := range t {
		list = line.appendCuts(list)
	}
	return list
}

func (t timeline) appendCuts(list []record.Time) []record.Time {
	for i := range t {
		if t[i].from > ever {
			list = append(list, t[i].from)
		}
		if t[i].to < never {
			list = append(list, t[i].to)
		}
	}
	return list
}

// claims are what is said of keys, in any order.
type claims map[string][]dirSpan

func (c claims) addClaim(key string, s dirSpan) { c[key] = append(c[key], s) }

// toTimelines makes timelines. Two that say different things of one key at one time are
// a problem, which say words: of what it is said, as in "group %q", and how it is
// claimed, as in "belongs to project %q".
func (c claims) toTimelines(what, how string, problems *DirectoryProblems) timelines {
	out := make(timelines, len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		out[key] = mergeSpans(c[key], func(a, b *dirSpan) {
			at := ""
			if a.place != "" {
				at = " at " + a.place
			}
			problems.addProblem(b.place, "%s %s here, and%s it %s, both %s", fmt.Sprintf(what, clipText(key)),
				fmt.Sprintf(how, clipText(b.value)), at, fmt.Sprintf(how, clipText(a.value)), describeOverlap(a, b))
		})
	}
	return out
}

// describeOverlap says at which time two spans overlap.
func describeOverlap(a, b *dirSpan) string {
	from, to := max(a.from, b.from), min(a.to, b.to)
	switch {
	case from == ever && to == never:
		return "for all time"
	case from == ever:
		return "until " + to.String()
	case to == never:
		return "from " + from.String() + " on"
	}
	return "from " + from.String() + " to " + to.String()
}

// mergeSpans orders spans and puts together those that say the same. It tells of the
// first two that do not agree.
func mergeSpans(list []dirSpan, disagree func(a, b *dirSpan)) timeline {
	slices.SortStableFunc(list, func(a, b dirSpan) int { return cmp.Compare(a.from, b.from) })
	var out timeline
	told := false
	for _, s := range list {
		if s.from >= s.to {
			continue
		}
		last := len(out) - 1
		switch {
		case last < 0 || out[last].to < s.from || out[last].to == s.from && out[last].value != s.value:
			out = append(out, s)
		case out[last].value == s.value:
			out[last].to = max(out[last].to, s.to)
		case !told:
			told = true
			disagree(&out[last], &s)
		}
	}
	return out
}
