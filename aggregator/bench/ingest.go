package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// pulling is what one pull of a whole buffer took.
type pulling struct {
	seconds          float64 // from the first pull to the last acknowledgement
	agentCPU, aggCPU float64 // seconds
	agentMost        float64 // MiB of its own
}

// pullInto starts a new node, which becomes the set's, and waits until it has
// pulled the whole buffer and has acknowledged all of it. More are further lines
// of its block aggregator.
func (b *bench) pullInto(ctx context.Context, s *set, name string, more ...string) (p pulling, err error) {
	if err := s.agent.ensureRunning(ctx); err != nil {
		return p, err
	}
	if s.node != nil {
		if err := errors.Join(s.node.stopNode(), os.RemoveAll(s.node.dir)); err != nil {
			return p, err
		}
	}
	if s.node, err = b.newNode(name, s.agent, more...); err != nil {
		return p, err
	}
	b.progress.beginPiece("agent → one node, %d records, %s ids", s.n, s.ids)
	profiled, err := b.startProfile("ingest-" + s.ids)
	if err != nil {
		return p, err
	}
	before, memory := s.agent.process.cpuSeconds(), s.agent.process.watchMemory()
	if err := s.node.ensureRunning(ctx); err != nil {
		return p, err
	}
	if err := b.awaitAcknowledged(ctx, s); err != nil {
		return p, err
	}
	p.seconds = time.Since(s.node.leads).Seconds()
	p.agentCPU, p.aggCPU = s.agent.process.cpuSeconds()-before, s.node.cpuSeconds()
	p.agentMost, _ = memory()
	return p, profiled()
}

// awaitAcknowledged waits until the node has acknowledged every frame.
func (b *bench) awaitAcknowledged(ctx context.Context, s *set) error {
	for {
		left, known, err := s.agent.unacknowledgedFrames(ctx, s.node.cluster)
		switch {
		case err != nil:
			return err
		case known && left == 0:
			return nil
		case s.node.process != nil:
			if err := s.node.process.checkAlive(); err != nil {
				return err
			}
		}
		if known {
			b.progress.showDone(float64(s.n)-left, float64(s.n))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// measureIngest measures agent → one node: every run with a new node.
func (b *bench) measureIngest(ctx context.Context) error {
	for i, ids := range b.measuredKinds() {
		s, err := b.filledSet(ctx, ids)
		if err != nil {
			return err
		}
		if err := b.ingestSet(ctx, s, i == 0); err != nil {
			return fmt.Errorf("%s ids: %w", ids, err)
		}
	}
	return nil
}

func (b *bench) ingestSet(ctx context.Context, s *set, first bool) error {
	var rates, agg, agent []float64
	memory := 0.0
	for i := range b.runs {
		p, err := b.pullInto(ctx, s, "node-"+s.ids+"-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if count, err := s.node.countRecords(ctx); err != nil || count != b.n {
			return fmt.Errorf("the node has %d records, want %d: %w", count, b.n, err)
		}
		rates = append(rates, float64(b.n)/p.seconds)
		agg, agent = append(agg, 1e6*p.aggCPU/float64(b.n)), append(agent, 1e6*p.agentCPU/float64(b.n))
		memory = max(memory, p.agentMost)
	}
	line := overRuns("ingest_"+s.ids, "agent buffer → one node, "+s.ids+" ids", "rec/s", atLeast(250_000), rates)
	if !first {
		line = overRuns(line.Name, line.What, "rec/s", goal{}, rates)
	}
	b.addLine(line.addNote("CPU: aggregator %.2f, agent %.2f µs a record", medianOf(agg), medianOf(agent)))
	if first {
		b.ingested = line.Measured
		b.addLine(overRuns("agent_rss_backlog", fmt.Sprintf("agent, RssAnon, highest while %d are pulled", b.n), "MiB", goalUnder(80), []float64{memory}))
	}
	return nil
}
