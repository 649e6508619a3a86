package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	growthQuestions = 50      // how often each question is asked at each number of records
	growthPosts     = 100_000 // records posted to each node
	growthLookups   = 1000
)

// figure is one measured number of a node with some number of records.
type figure struct {
	name, what, unit string
	value            float64
	note             string
}

// measureGrowth measures nodes that have different numbers of records of the same year: what a
// record costs when it is pulled, posted and read, what questions and a restart take, and
// how large memory, disk and snapshots are. Each line says how its figure grows.
func (b *bench) measureGrowth(ctx context.Context) error {
	before := map[string]float64{}
	for i, n := range b.sizes {
		figures, err := b.figuresOfSize(ctx, n)
		if err != nil {
			return fmt.Errorf("%d records: %w", n, err)
		}
		for _, f := range figures {
			line := overRuns(fmt.Sprintf("%s_at_%d", f.name, n), fmt.Sprintf("at %d: %s", n, f.what), f.unit, goal{}, []float64{f.value})
			line.Note = f.note
			if i > 0 {
				line.Note = fmt.Sprintf("%.2f × for %.1f × the records; ", f.value/before[f.name], float64(n)/float64(b.sizes[i-1])) + f.note
			}
			line.Note = strings.TrimSuffix(line.Note, "; ")
			b.addLine(line)
			before[f.name] = f.value
		}
	}
	return nil
}

// figuresOfSize returns the figures of a node of its own with n records.
func (b *bench) figuresOfSize(ctx context.Context, n int) (figures []figure, err error) {
	s, err := b.filledWith(ctx, b.measuredKinds()[0], n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.dropSet(s)) }()
	p, err := b.pullInto(ctx, s, fmt.Sprintf("growth-%d", n))
	if err != nil {
		return nil, err
	}
	each := 1e6 / float64(n)
	figures = []figure{
		{"growth_pull", "pulled, time a record", "µs", each * p.seconds, fmt.Sprintf("%.0f rec/s", float64(n)/p.seconds)},
		{"growth_pull_cpu", "pulled, CPU of the aggregator a record", "µs", each * p.aggCPU, fmt.Sprintf("the agent's %.2f", each*p.agentCPU)},
		{"growth_agent_memory", "agent, RssAnon, highest while it is pulled", "MiB", p.agentMost, ""},
	}
	for _, measure := range []func(context.Context, *set) ([]figure, error){b.sizedReads, b.sizedQuestions, b.sizedSnapshot, b.sizedPosts, b.sizedRestart} {
		more, err := measure(ctx, s)
		if err != nil {
			return nil, err
		}
		figures = append(figures, more...)
	}
	return figures, nil
}

// sizedReads reads all records, and some by their ids.
func (b *bench) sizedReads(ctx context.Context, s *set) ([]figure, error) {
	b.progress.beginPiece("GET /records, %d records", s.n)
	memory, begun := s.node.watchMemory(), time.Now()
	lines, err := sweepAnswer(ctx, s.node.baseURL()+"/records", func(lines int) { b.progress.showDone(float64(lines), float64(s.n)) })
	if err != nil || lines != s.n {
		return nil, fmt.Errorf("%d records came, want %d: %w", lines, s.n, err)
	}
	took := time.Since(begun).Seconds()
	most, _ := memory()
	times, err := b.lookUp(ctx, s, growthLookups)
	if err != nil {
		return nil, err
	}
	return []figure{
		{"growth_read", "GET /records, time a record", "µs", 1e6 * took / float64(s.n), ""},
		{"growth_node_memory", "node, RssAnon, highest while all is read", "MiB", most, ""},
		{"growth_lookup", "lookup by id, p99", "ms", percentileOf(times, 99), fmt.Sprintf("p50 %.2f", percentileOf(times, 50))},
	}, nil
}

// sizedQuestions asks about usage.
func (b *bench) sizedQuestions(ctx context.Context, s *set) (figures []figure, err error) {
	if err := s.node.awaitIndexed(ctx); err != nil {
		return nil, err
	}
	for _, q := range askedQuestions() {
		b.progress.beginPiece("%s, of %d records", q.what, s.n)
		times, err := s.node.timeQuestion(ctx, q, growthQuestions)
		if err != nil {
			return nil, err
		}
		figures = append(figures, figure{q.name, q.what + ": p50", "ms", medianOf(times), fmt.Sprintf("p99 %.1f", percentileOf(times, 99))})
	}
	return figures, nil
}

// sizedSnapshot saves the state to a file, and begins a new cluster with it.
func (b *bench) sizedSnapshot(ctx context.Context, s *set) (figures []figure, err error) {
	file := s.node.dir + ".snapshot"
	defer func() { err = errors.Join(err, os.RemoveAll(file)) }()
	b.progress.beginPiece("snapshot of %d records", s.n)
	begun := time.Now()
	save := exec.CommandContext(ctx, b.programPath("bursar"), "snapshot", "save", file, "-address", "unix:"+filepath.Join(s.node.dir, "api.sock"))
	if out, err := save.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("save a snapshot: %w: %s", err, out)
	}
	saved := time.Since(begun).Seconds()
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	node, err := b.newNode(fmt.Sprintf("restored-%d", s.n), nil)
	if err != nil {
		return nil, err
	}
	node.seed = file
	defer func() { err = errors.Join(err, node.stopNode(), os.RemoveAll(node.dir)) }()
	b.progress.beginPiece("begin with a snapshot of %d records", s.n)
	begun = time.Now()
	if err := node.startUntilHealthy(ctx); err != nil {
		return nil, err
	}
	restored := time.Since(begun).Seconds()
	if count, err := node.countRecords(ctx); err != nil || count != s.n {
		return nil, fmt.Errorf("the snapshot has %d records, want %d: %w", count, s.n, err)
	}
	each := 1e6 / float64(s.n)
	return []figure{
		{"growth_snapshot", "snapshot saved, time a record", "µs", each * saved, fmt.Sprintf("%.1f s, %.1f B a record", saved, float64(info.Size())/float64(s.n))},
		{"growth_restore", "a new cluster begun with it, time a record", "µs", each * restored, fmt.Sprintf("%.1f s until it is healthy", restored)},
	}, nil
}

// sizedPosts posts records that the node does not have.
func (b *bench) sizedPosts(ctx context.Context, s *set) ([]figure, error) {
	bodies := postBodies(growthPosts, "uuid")
	b.progress.beginPiece("POST /records beside %d records", s.n)
	before, begun := s.node.cpuSeconds(), time.Now()
	if err := b.postFrom(ctx, s.node.baseURL()+"/records", bodies); err != nil {
		return nil, err
	}
	took, cpu := time.Since(begun).Seconds(), s.node.cpuSeconds()-before
	if count, err := s.node.countRecords(ctx); err != nil || count != s.n+growthPosts {
		return nil, fmt.Errorf("the node has %d records, want %d: %w", count, s.n+growthPosts, err)
	}
	return []figure{{"growth_post", "posted, time a record", "µs", 1e6 * took / growthPosts, fmt.Sprintf("%.0f rec/s; CPU %.2f", growthPosts/took, 1e6*cpu/growthPosts)}}, nil
}

// sizedRestart starts the node anew, and looks what it has on disk.
func (b *bench) sizedRestart(ctx context.Context, s *set) ([]figure, error) {
	if err := s.node.stopNode(); err != nil {
		return nil, err
	}
	b.progress.beginPiece("restart with %d records", s.n)
	begun := time.Now()
	if err := s.node.startUntilHealthy(ctx); err != nil {
		return nil, err
	}
	healthy := time.Since(begun).Seconds()
	if err := s.node.awaitIndexed(ctx); err != nil {
		return nil, err
	}
	ready := time.Since(begun).Seconds()
	if err := s.node.stopNode(); err != nil {
		return nil, err
	}
	b.progress.beginPiece("compacting %d records", s.n)
	before, after, err := compactStore(filepath.Join(s.node.dir, "store"))
	if err != nil {
		return nil, err
	}
	each := 1 / float64(s.n+growthPosts)
	return []figure{
		{"growth_restart", "restart, until it is healthy", "s", healthy, ""},
		{"growth_ready", "restart, until the sums by day answer", "s", ready, ""},
		{"growth_disk", "disk a record, compacted", "B", each * float64(after), fmt.Sprintf("%.1f B before", each*float64(before))},
	}, nil
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
		errs = append(errs, s.node.stopNode(), os.RemoveAll(s.node.dir))
	}
	return errors.Join(append(errs, s.agent.stopAgent(), os.RemoveAll(s.agent.dir))...)
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
	s, err := b.filledSet(ctx, b.measuredKinds()[0])
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
	without, with := medianOf(rates[0]), medianOf(rates[1])
	b.addLine(overRuns("index_cost", "what the sums by day cost an ingest: CPU", "µs/rec", goal{}, []float64{medianOf(cpu[1]) - medianOf(cpu[0])}).
		addNote("%.2f µs a record with them, %.2f without; %.0f and %.0f rec/s; medians of %d runs each", medianOf(cpu[1]), medianOf(cpu[0]), with, without, b.runs))
	return nil
}
