package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// logs is the folder, relative to the top of the tree, that keeps what a step printed.
const logs = "bin/check"

// testRun is one call of go test, through gotestsum.
type testRun struct {
	step     string // names its files in logs
	packages []string
	args     []string // of go test
}

// run runs the tests. A test that fails is run again, alone, at most twice, and where at
// most ten failed; after a data race or a panic nothing is. It returns an error where the
// run is red.
func (t testRun) run(ctx context.Context, gotestsum string) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	events := filepath.Join(logs, t.step+".json")
	args := []string{
		"--format", "pkgname", "--format-hide-empty-pkg", "--hide-summary", "skipped,output,failed", "--jsonfile", events,
		"--rerun-fails=2", "--rerun-fails-max-failures=10", "--rerun-fails-abort-on-data-race", "--rerun-fails-run-root-test",
		"--packages", strings.Join(t.packages, " "), "--",
	}
	err := runCommand(ctx, gotestsum, append(args, t.args...)...)
	found, readErr := t.readEvents(events)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if err := writeResult(t.step, found); err != nil {
		return err
	}
	printFindings(os.Stdout, found, t.args)
	fmt.Printf("whole log: %s\n", t.log())
	if err != nil {
		return fmt.Errorf("%s failed", t.step)
	}
	return nil
}

func (t testRun) log() string { return filepath.Join(logs, t.step+".log") }

func (t testRun) readEvents(path string) (result, error) {
	events, err := os.Open(path)
	if err != nil {
		return result{}, err
	}
	defer events.Close()
	log, err := os.Create(t.log())
	if err != nil {
		return result{}, err
	}
	found, err := readResult(events, log)
	return found, errors.Join(err, log.Close())
}

func runCommand(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

func resultPath(step string) string { return filepath.Join(logs, step+".result.json") }

func writeResult(step string, r result) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(resultPath(step), b, 0o644)
}

// readStepResult returns what the tests of a step found; ok is false for a step that ran none.
func readStepResult(step string) (r result, ok bool, err error) {
	b, err := os.ReadFile(resultPath(step))
	if errors.Is(err, os.ErrNotExist) {
		return result{}, false, nil
	}
	if err != nil {
		return result{}, false, err
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return result{}, false, fmt.Errorf("%s: %w", resultPath(step), err)
	}
	return r, true, nil
}

const (
	findingsShown = 12
	linesShown    = 12
)

// printFindings prints what failed, each with its line and the command that repeats it,
// and what passed only when it was tried again, with what its first failure printed.
func printFindings(w io.Writer, r result, args []string) {
	for i, f := range r.Unstable {
		if i == 0 {
			fmt.Fprintf(w, "\nunstable (failed, then passed):\n")
		}
		fmt.Fprintf(w, "  %s %s: %d of %d tries failed\n      %s\n", f.Package, f.Test, f.Failed, f.Tries, repeatCommand(f, args))
		for _, line := range lastLines(f.Output, linesShown) {
			fmt.Fprintf(w, "      | %s\n", line)
		}
	}
	for i, f := range r.Failed {
		if i == 0 {
			fmt.Fprintf(w, "\nfailed:\n")
		}
		if i == findingsShown {
			fmt.Fprintf(w, "  and %d more\n", len(r.Failed)-i)
			break
		}
		fmt.Fprintf(w, "  %s %s\n      %s\n      %s\n", f.Package, f.Test, f.Line, repeatCommand(f, args))
	}
}

func lastLines(output []string, n int) []string {
	lines := strings.Split(strings.TrimRight(strings.Join(output, ""), "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}

// repeatCommand returns the command that runs a test again as it was run.
func repeatCommand(f finding, args []string) string {
	words := []string{"go test"}
	if slices.Contains(args, "-race") {
		words = []string{"CGO_ENABLED=1 go test -race"}
	}
	for i, a := range args[:max(0, len(args)-1)] {
		if a == "-tags" {
			words = append(words, a, args[i+1])
		}
	}
	words = append(words, "-count 1")
	if f.Test != "" {
		parts := strings.Split(f.Test, "/")
		for i := range parts {
			parts[i] = "^" + regexp.QuoteMeta(parts[i]) + "$"
		}
		words = append(words, "-run '"+strings.Join(parts, "/")+"'")
	}
	return strings.Join(append(words, "./"+f.Package), " ")
}
