package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// growthQuestions is how often each question is asked at each number of records.
const growthQuestions = 50

// growth puts the questions about usage to nodes that have different numbers of
// records of the same year, and says how the times grow.
func (b *bench) growth(ctx context.Context) error {
	before := map[string]float64{}
	for i, n := range b.sizes {
		times, err := b.sized(ctx, n)
		if err != nil {
			return fmt.Errorf("%d records: %w", n, err)
		}
		for _, q := range asked() {
			ms := median(times[q.name])
			line := overRuns(fmt.Sprintf("%s_at_%d", q.name, n), fmt.Sprintf("%s, of %d records: p50", q.what, n), "ms", goal{}, times[q.name])
			line.Spread = "least–most"
			if i > 0 {
				line = line.noted("%.2f × the time for %.1f × the records", ms/before[q.name], float64(n)/float64(b.sizes[i-1]))
			}
			b.add(line)
			before[q.name] = ms
		}
	}
	return nil
}

// sized are the times of the questions at a number of records.
func (b *bench) sized(ctx context.Context, n int) (times map[string][]float64, err error) {
	s := b.sets[b.kinds()[0]]
	if n != b.n || s == nil {
		if s, err = b.filledWith(ctx, b.kinds()[0], n); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, b.dropSet(s)) }()
	}
	if s.node == nil {
		if _, err := b.pullInto(ctx, s, fmt.Sprintf("growth-%d", n)); err != nil {
			return nil, err
		}
	}
	if err := s.node.ensure(ctx); err != nil {
		return nil, err
	}
	if err := s.node.indexed(ctx); err != nil {
		return nil, err
	}
	times = map[string][]float64{}
	for _, q := range asked() {
		b.progress.begin("%s, of %d records", q.what, n)
		if times[q.name], err = s.node.times(ctx, q, growthQuestions); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// filledWith returns a new set of n records with a full buffer.
func (b *bench) filledWith(ctx context.Context, ids string, n int) (*set, error) {
	s := &set{ids: ids, n: n}
	var err error
	if s.agent, err = b.newAgent(fmt.Sprintf("agent-%s-%d", ids, n)); err != nil {
		return nil, err
	}
	return s, b.fillBuffer(ctx, s)
}

// dropSet ends a set and removes what it has on disk.
func (b *bench) dropSet(s *set) error {
	var errs []error
	if s.node != nil {
		errs = append(errs, s.node.stop(), os.RemoveAll(s.node.dir))
	}
	return errors.Join(append(errs, s.agent.stop(), os.RemoveAll(s.agent.dir))...)
}

// parseSizes reads the numbers of records of the growth; "" is a tenth of n, and n.
func parseSizes(text string, n int) ([]int, error) {
	if text == "" {
		return []int{max(n/10, 1000), n}, nil
	}
	var list []int
	for word := range strings.SplitSeq(text, ",") {
		size, err := strconv.Atoi(word)
		if err != nil || size < 1000 {
			return nil, fmt.Errorf("-records: %q is no number of at least 1000 records", word)
		}
		list = append(list, size)
	}
	return list, nil
}

// noSums is the configuration of a node without sums by day.
const noSums = "usage { dimensions = [] }"

// indexCost measures what the sums by day cost an ingest: agent → one node with and
// without them, by turns.
func (b *bench) indexCost(ctx context.Context) error {
	s, err := b.filled(ctx, b.kinds()[0])
	if err != nil {
		return err
	}
	var rates, cpu [2][]float64 // without, with
	for i := range 2 * b.runs {
		more := ""
		if i%2 == 0 {
			more = noSums
		}
		p, err := b.pullInto(ctx, s, fmt.Sprintf("index-%d", i), more)
		if err != nil {
			return err
		}
		rates[i%2] = append(rates[i%2], float64(b.n)/p.seconds)
		cpu[i%2] = append(cpu[i%2], 1e6*p.aggCPU/float64(b.n))
	}
	without, with := median(rates[0]), median(rates[1])
	b.add(overRuns("index_cost", "what the sums by day cost an ingest: CPU", "µs/rec", goal{}, []float64{median(cpu[1]) - median(cpu[0])}).
		noted("%.2f µs a record with them, %.2f without; %.0f and %.0f rec/s; medians of %d runs each", median(cpu[1]), median(cpu[0]), with, without, b.runs))
	return nil
}
