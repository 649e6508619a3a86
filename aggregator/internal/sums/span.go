package sums

import "github.com/bursar-accounting/bursar/proto/record"

// Span is the time from From, included, to To, not included. The zero Span is all time.
type Span struct{ From, To record.Time }

// Overlap returns the part of a time that lies in the span; it is empty, with the same ends,
// where none does.
func (s Span) Overlap(from, to record.Time) (record.Time, record.Time) {
	if s == (Span{}) {
		return from, to
	}
	begin := min(max(from, s.From), to)
	return begin, max(min(to, s.To), begin)
}

// OverlapLength returns how much of a time lies in the span.
func (s Span) OverlapLength(from, to record.Time) record.Time {
	from, to = s.Overlap(from, to)
	return to - from
}

// Covers reports whether all of a time lies in the span.
func (s Span) Covers(from, to record.Time) bool { return s.OverlapLength(from, to) == to-from }
