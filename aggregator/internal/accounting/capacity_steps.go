package accounting

import (
	"cmp"
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// CapacityStep is an amount from an instant on, to that of the next one.
type CapacityStep struct {
	From record.Time
	// Amount is that of the component; of [SU] it is in billionths.
	Amount sums.Sum
	// Known is false where no one says how much there is.
	Known bool
}

// steps are in the order of time. Before the first one nothing is known.
type steps []CapacityStep

// stepAt returns the step that holds at an instant.
func (s steps) stepAt(t record.Time) CapacityStep {
	if i := s.indexAt(t); i >= 0 {
		return s[i]
	}
	return CapacityStep{From: record.MinTime}
}

// indexAt is the index of the step that holds at an instant; -1 before all.
func (s steps) indexAt(t record.Time) int {
	i, found := slices.BinarySearchFunc(s, t, func(e CapacityStep, t record.Time) int { return cmp.Compare(e.From, t) })
	if found {
		return i
	}
	return i - 1
}

// integral is amount × time from an instant to another; false when it is not known
// all the time, or more than can be added up.
func (s steps) integral(from, to record.Time) (sum sums.Sum, known bool) {
	i := s.indexAt(from)
	if i < 0 {
		return sum, false
	}
	for known = true; i < len(s) && s[i].From < to && known; i++ {
		end := to
		if i+1 < len(s) {
			end = min(end, s[i+1].From)
		}
		part, fits := s[i].Amount.Times(int64(end - max(from, s[i].From)))
		sum, known = sum.Add(part), s[i].Known && fits && !sum.Add(part).Less(sum)
	}
	return sum, known
}

// hasAmount reports whether there is anything, and it is known.
func (s *CapacityStep) hasAmount() bool { return s.Known && !s.Amount.IsZero() }

// history is all that is said about a component of a cluster.
type history struct {
	// parts are changes by the configuration: of how much there is, and of how many
	// parts say something.
	parts []change
	// told are the words of each of the sources, in the order of time.
	told [][]CapacityStep
}

type change struct {
	at    record.Time
	more  sums.Sum
	parts int
}

// mergeSteps puts together what the configuration and the sources say. While a part of
// the configuration holds, it counts and the sources do not.
func (h *history) mergeSteps() (out steps) {
	instants := []record.Time{record.MinTime}
	for _, c := range h.parts {
		instants = append(instants, c.at)
	}
	for _, list := range h.told {
		for _, s := range list {
			instants = append(instants, s.From)
		}
	}
	slices.Sort(instants)
	slices.SortStableFunc(h.parts, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	var amount sums.Sum
	next, parts := 0, 0
	for _, at := range slices.Compact(instants) {
		for ; next < len(h.parts) && h.parts[next].at <= at; next++ {
			amount, parts = amount.Add(h.parts[next].more), parts+h.parts[next].parts
		}
		s := CapacityStep{From: at, Amount: amount, Known: true}
		if parts == 0 {
			s = h.sourceStepAt(at)
		}
		if n := len(out); n == 0 || out[n-1].Known != s.Known || out[n-1].Amount != s.Amount {
			out = append(out, s)
		}
	}
	return out
}

// sourceStepAt is what the sources say about an instant: known when all have begun to.
func (h *history) sourceStepAt(at record.Time) CapacityStep {
	s := CapacityStep{From: at, Known: true}
	for _, list := range h.told {
		now := steps(list).stepAt(at)
		s.Known = s.Known && now.Known
		s.Amount = s.Amount.Add(now.Amount)
	}
	if !s.Known {
		s.Amount = sums.Sum{}
	}
	return s
}
