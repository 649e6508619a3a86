package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// bench measures one thing after the other.
type bench struct {
	*options

	dir      string // removed at the end
	fill     string // the program that only the agent's packages can be
	tls      identity.Files
	caDir    string
	progress *progress
	report   *Report
	sets     map[string]*set
	// Records a second into one node and into three, for the ratios to PostgreSQL.
	ingested, replicated float64
	told                 map[string]told // of the questions about usage
}

// set is the benchmark records with one kind of ids: an agent's buffer full of
// them, and a node that has pulled them.
type set struct {
	ids   string
	n     int
	agent *agentSite
	node  *nodeSite
}

// measurement is a piece of work that adds lines to the report.
type measurement struct {
	name string
	run  func(b *bench, ctx context.Context) error
}

func allMeasurements() []measurement {
	return []measurement{
		{"agent", (*bench).agentIdle},
		{"ingest", (*bench).measureIngest},
		{"get", (*bench).measureStream},
		{"lookup", (*bench).measureLookup},
		{"scan", (*bench).measureScan},
		{"usage", (*bench).measureUsage},
		{"growth", (*bench).measureGrowth},
		{"pages", (*bench).measurePages},
		{"restart", (*bench).measureRestart},
		{"disk", (*bench).diskSpace},
		{"compaction", (*bench).measureCompaction},
		{"single", (*bench).measureSingle},
		{"post", (*bench).measurePost},
		{"trio", (*bench).measureTrio},
		{"trio-single", (*bench).trioSingle},
		{"postgres", (*bench).measurePostgres},
		{"warehouse", (*bench).measureWarehouse},
		{"index", (*bench).indexCost},
		{"failover", (*bench).measureFailover},
		{"mapping", (*bench).measureMapping},
		{"gridengine", (*bench).measureGridEngine},
		{"htcondor", (*bench).measureHTCondor},
		{"kubernetes", (*bench).measureKubernetes},
		{"epilog", (*bench).measureEpilog},
		{"dev", (*bench).measureDev},
	}
}

func measurementNames() []string {
	var all []string
	for _, m := range allMeasurements() {
		all = append(all, m.name)
	}
	return all
}

// newBench makes certificates and builds what only the agent's packages can do.
func newBench(ctx context.Context, o *options, dir string) (*bench, error) {
	b := &bench{options: o, dir: dir, progress: &progress{w: terminalOf(os.Stderr)}, report: &Report{}, sets: map[string]*set{}, told: map[string]told{}}
	var err error
	if b.report.Conditions, err = readConditions(ctx, o, dir); err != nil {
		return nil, err
	}
	b.progress.beginPiece("building")
	b.fill = filepath.Join(dir, "fill")
	build := exec.CommandContext(ctx, "go", "build", "-o", b.fill, "github.com/bursar-accounting/bursar/agent/internal/fill")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build fill: %w: %s", err, out)
	}
	return b, b.makeAuthority()
}

// runAll runs what is asked for. What fails is told at the end; the others go on.
func (b *bench) runAll(ctx context.Context) error {
	defer b.stopAll()
	var failed []error
	for _, m := range allMeasurements() {
		if !b.wantsMeasurement(m.name) || ctx.Err() != nil {
			continue
		}
		if err := m.run(b, ctx); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m.name, err))
		}
	}
	return errors.Join(append(failed, ctx.Err())...)
}

func (b *bench) stopAll() {
	for _, s := range b.sets {
		if s.node != nil {
			_ = s.node.stopNode() // its folder is removed
		}
		if s.agent != nil {
			_ = s.agent.stopAgent() // as above
		}
	}
}

func (b *bench) addLine(l Line) { b.report.Lines = append(b.report.Lines, l) }

// firstSet returns the set that all is measured with, with a node that serves it.
func (b *bench) firstSet(ctx context.Context) (*set, error) {
	return b.pulledSet(ctx, b.measuredKinds()[0])
}

// pulledSet returns the set of that kind after a node has pulled all of it; the
// node runs.
func (b *bench) pulledSet(ctx context.Context, ids string) (*set, error) {
	s, err := b.filledSet(ctx, ids)
	if err != nil {
		return nil, err
	}
	if s.node == nil {
		if _, err := b.pullInto(ctx, s, "node-"+ids); err != nil {
			return nil, err
		}
	}
	return s, s.node.ensureRunning(ctx)
}

// filledSet returns the set of that kind with a full buffer; no one serves it.
func (b *bench) filledSet(ctx context.Context, ids string) (*set, error) {
	if s := b.sets[ids]; s != nil {
		return s, nil
	}
	s, err := b.filledWith(ctx, ids, b.n)
	if err != nil {
		return nil, err
	}
	b.sets[ids] = s
	return s, nil
}
