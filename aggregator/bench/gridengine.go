package main

import (
	"bufio"
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

// gridLines is how many lines a back-fill has at most.
const gridLines = 1_000_000

// measureGridEngine measures how quick lines of Grid Engine's accounting file are read:
// alone on one core, and as a back-fill through plugin, mapping and buffer.
func (b *bench) measureGridEngine(ctx context.Context) error {
	b.progress.beginPiece("lines of Grid Engine")
	rates, err := b.sourceRates(ctx, "^BenchmarkLine$/default", "lines/s", "gridengine/internal/accounting")
	if err != nil {
		return err
	}
	b.addLine(overRuns("gridengine_line", "a line of Grid Engine to a job of the default mapping, one core", "lines/s", atLeast(100_000), rates))
	n := min(b.n, gridLines)
	path := filepath.Join(b.dir, "accounting")
	if err := writeGridLines(path, n); err != nil {
		return err
	}
	rates = nil
	for i := range b.runs {
		b.progress.beginPiece("back-fill of %d lines of Grid Engine", n)
		rate, err := b.collectOnce(ctx, fmt.Sprintf("agent-grid-%d", i), path, n)
		if err != nil {
			return err
		}
		rates = append(rates, rate)
	}
	b.addLine(overRuns("gridengine_backfill", fmt.Sprintf("back-fill of %d lines of Grid Engine into the agent's buffer", n), "lines/s", goal{}, rates))
	return os.Remove(path)
}

// measureHTCondor measures how quick ads of HTCondor's history are read.
func (b *bench) measureHTCondor(ctx context.Context) error {
	b.progress.beginPiece("ads of HTCondor")
	rates, err := b.sourceRates(ctx, "^BenchmarkAds$", "ads/s", "htcondor/internal/source")
	if err != nil {
		return err
	}
	b.addLine(overRuns("htcondor_ad", "an ad of HTCondor's history file to a job of the default mapping, one core", "ads/s", atLeast(50_000), rates))
	return nil
}

// measureKubernetes measures how quick pods are read from an API server.
func (b *bench) measureKubernetes(ctx context.Context) error {
	b.progress.beginPiece("pods of Kubernetes")
	for _, m := range []struct{ name, what, benchmark, source string }{
		{"kubernetes_event", "a change of a pod, decoded, one core", "^BenchmarkDecodeEvent$", "kubernetes/internal/kube"},
		{"kubernetes_backfill", "listed pods to jobs of the default mapping, with the journal on disk, one core", "^BenchmarkBackfill$", "kubernetes/internal/source"},
	} {
		rates, err := b.sourceRates(ctx, m.benchmark, "pods/s", m.source)
		if err != nil {
			return err
		}
		b.addLine(overRuns(m.name, m.what, "pods/s", goal{}, rates))
	}
	return nil
}

// sourceRates runs a benchmark of a source, whose packages are closed to others.
func (b *bench) sourceRates(ctx context.Context, name, unit, source string) ([]float64, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", name, "-cpu", "1", "-count", strconv.Itoa(max(b.runs, 3)),
		"github.com/bursar-accounting/bursar/plugins/source/"+source)
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go test: %w: %s", err, out)
	}
	var rates []float64
	for line := range strings.Lines(string(out)) {
		f := strings.Fields(line)
		for i := 1; i < len(f); i++ {
			if f[i] != unit {
				continue
			}
			rate, err := strconv.ParseFloat(f[i-1], 64)
			if err != nil {
				return nil, fmt.Errorf("go test: %w in %q", err, line)
			}
			rates = append(rates, rate)
		}
	}
	if len(rates) == 0 {
		return nil, errors.New("go test printed no rate: " + string(out))
	}
	return rates, nil
}

// collectOnce lets a new agent collect the lines once.
func (b *bench) collectOnce(ctx context.Context, name, path string, n int) (float64, error) {
	a, err := b.newAgent(name, fmt.Sprintf("source \"gridengine\" \"grid\" {\n  config {\n    path      = %q\n    capacity  = false\n    census    = false\n    directory = false\n  }\n}\n", path))
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	out, err := exec.CommandContext(ctx, b.programPath("bursar-agent"), "collect", "-once", "-dev", "-config", a.configText()).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("bursar-agent collect: %w: %s", err, out)
	}
	rate := float64(n) / time.Since(begun).Seconds()
	return rate, os.RemoveAll(a.dir)
}

// writeGridLines writes lines as Grid Engine 8.1.9 does, one in four of a parallel
// job with requests.
func writeGridLines(path string, n int) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriterSize(f, 1<<20)
	fmt.Fprint(w, "# Version: 8.1.9\n# \n# DO NOT MODIFY THIS FILE MANUALLY!\n# \n")
	for i := range n {
		start := 1_700_000_000 + i*3
		pe, slots, category := "NONE", 1, "NONE"
		if i%4 == 0 {
			pe, slots, category = "smp", 8, "-l h_rt=36000,h_vmem=2G -pe smp 8"
		}
		fmt.Fprintf(w, "all.q:node%03d:group%d:user%d:run.sh:%d:sge:0:%d:%d:%d:0:0:%d:12.006675:0.500000:4604.000000:0:0:0:0:479:0:0:0.000000:8:0:0:0:9:6:astro:defaultdepartment:%s:%d:0:%d.506675:0.117244:0.000297:%s:0.000000:NONE:116248576.000000:0:0\n",
			i%200, i%60, i%1500, i%9_999_999+1, start-600, start, start+i%90_000, i%90_000, pe, slots, i%90_000, category)
	}
	return w.Flush()
}
