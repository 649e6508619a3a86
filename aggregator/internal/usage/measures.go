package usage

import (
	"slices"

	"github.com/bursar-accounting/bursar/aggregator/internal/sums"
	"github.com/bursar-accounting/bursar/proto/record"
)

// measure is a measure other than a component: how a request asks for it, and its column.
type measure struct {
	word   string
	ask    func(*sums.Query, *Request)
	column func(*Request) Column
}

// The measures that are named elsewhere.
const (
	records = "records" // in every table where none is named
	jobs    = "jobs"
	people  = "people" // of which there is no sum
)

// wordMeasures are the measures that are no component, in the order of their columns.
func wordMeasures() []measure {
	counts := func(q *sums.Query, _ *Request) { q.Counts = true }
	levels := func(q *sums.Query, _ *Request) { q.Levels = true }
	count := func(word string, numbers func(*sums.Answer) []uint64) measure {
		return measure{word, counts, func(*Request) Column {
			return newColumn(word, Count, func(a *sums.Answer) figures { return figures{n: numbers(a)} })
		}}
	}
	level := func(word string, times func(*sums.Answer) []sums.Sum) measure {
		return measure{word, levels, func(r *Request) Column {
			return newColumn(word, Level, func(a *sums.Answer) figures { return figures{sum: times(a), spans: r.knownSpans(a)} })
		}}
	}
	return []measure{
		count(records, func(a *sums.Answer) []uint64 { return a.Records }),
		count(jobs, func(a *sums.Answer) []uint64 { return a.Jobs }),
		count("started", func(a *sums.Answer) []uint64 { return a.Started }),
		count("stopped", func(a *sums.Answer) []uint64 { return a.Stopped }),
		{people, func(q *sums.Query, r *Request) { q.People = r.People }, func(r *Request) Column {
			c := newColumn(people, Count, func(a *sums.Answer) figures { return figures{n: a.People} })
			c.apart = !slices.Contains(r.By, r.People)
			return c
		}},
		{"wait", counts, func(*Request) Column {
			return newColumn("wait", Mean, func(a *sums.Answer) figures { return figures{sum: a.Waited, n: a.Waiters} }).withTimeUnit(false)
		}},
		{"efficiency", func(q *sums.Query, r *Request) { q.CPU, q.Cores = r.CPU, r.Cores }, func(*Request) Column {
			return newColumn("efficiency", Ratio, func(a *sums.Answer) figures { return figures{sum: a.CPU, over: a.Cores} })
		}},
		{"unused", func(q *sums.Query, r *Request) { q.CPU, q.Cores = r.CPU, r.Cores }, func(r *Request) Column {
			c := newColumn("unused", Rate, func(a *sums.Answer) figures { return figures{sum: differenceOf(a.Cores, a.CPU), over: a.Cores} }).withTimeUnit(r.Hours)
			c.Component = r.Cores
			return c
		}},
		level("running", func(a *sums.Answer) []sums.Sum { return a.Running }),
		level("queued", func(a *sums.Answer) []sums.Sum { return a.Queued }),
	}
}

// differenceOf subtracts a list from another, which both may be nil.
func differenceOf(from, list []sums.Sum) []sums.Sum {
	out := slices.Clone(from)
	for i := range out {
		out[i] = out[i].Sub(list[i])
	}
	return out
}

// MeasureWords are the measures that are no component.
func MeasureWords() (words []string) {
	for _, m := range wordMeasures() {
		words = append(words, m.word)
	}
	return words
}

// knownSpans are how long the known parts of an answer's buckets are.
func (r *Request) knownSpans(a *sums.Answer) []record.Time {
	list := make([]record.Time, len(a.Edges)-1)
	for i := range list {
		list[i] = r.Known.OverlapLength(a.Edges[i], a.Edges[i+1])
	}
	return list
}
