package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// How often what a job's end waits for is measured.
const epilogRuns = 500

// silentSacct knows its columns and no job.
const silentSacct = "#!/bin/sh\ncase \"$*\" in *--helpformat*) echo JobIDRaw JobID State Submit Start End Partition ;; esac\n"

// measureEpilog measures bursar-epilog, a process each time, from its start to its end: then
// the job is in the journal of an agent's plugin.
func (b *bench) measureEpilog(ctx context.Context) error {
	dir := filepath.Join(b.dir, "epilog")
	sacct, socket := filepath.Join(dir, "sacct"), filepath.Join(dir, "s")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(sacct, []byte(silentSacct), 0o700); err != nil { //nolint:gosec // it is a program
		return err
	}
	a, err := b.newAgent("agent-epilog", fmt.Sprintf("source \"slurm-epilog\" \"lab\" {\n  config {\n    sacct  = %q\n    socket = %q\n  }\n}\n", sacct, socket))
	if err != nil {
		return err
	}
	if err := a.ensureRunning(ctx); err != nil {
		return err
	}
	defer func() { _ = a.stopAgent() }() // its folder is removed
	b.progress.beginPiece("bursar-epilog, %d times", epilogRuns)
	times, err := b.runEpilogs(ctx, dir, socket)
	if err != nil {
		return err
	}
	b.addLine(Line{
		Name: "epilog", What: "bursar-epilog, process and fsync included: p99", Unit: "ms", Runs: len(times),
		Measured: percentileOf(times, 99), Low: percentileOf(times, 50), High: percentileOf(times, 100), Spread: "p50–max",
	}.compareTo(goalUnder(10)))
	return nil
}

func (b *bench) runEpilogs(ctx context.Context, dir, socket string) (times []float64, err error) {
	args := []string{"-config", filepath.Join(dir, "none"), "-socket", socket, "-spool", filepath.Join(dir, "spool")}
	if err := os.WriteFile(args[1], nil, 0o600); err != nil {
		return nil, err
	}
	for end := time.Now().Add(stopTime); len(times) < epilogRuns; {
		cmd := exec.CommandContext(ctx, filepath.Join(b.bin, "bursar-epilog"), args...)
		cmd.Env = []string{"SLURM_JOB_ID=7", "SLURM_JOB_USER=alice", "SLURM_CLUSTER_NAME=lab", "SLURM_SCRIPT_CONTEXT=epilog_slurmctld"}
		begun := time.Now()
		out, err := cmd.CombinedOutput()
		switch {
		case err != nil:
			return nil, fmt.Errorf("bursar-epilog: %w: %s", err, out)
		case len(out) == 0:
			times = append(times, millisecondsSince(begun))
		case len(times) > 0 || time.Now().After(end): // until then the plugin starts
			return nil, errors.New(string(out))
		}
	}
	return times, nil
}
