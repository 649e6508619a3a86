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
	"time"
)

// logs is the folder, relative to the top of the tree, that keeps what a step printed.
const logs = "bin/check"

// testRun is the tests of one step.
type testRun struct {
	step   string        // names its files in logs
	parts  []testPart    // run one after the other, the most needed first
	args   []string      // of go test, for each part
	budget time.Duration // no part but the first begins after it; 0 for no end
}

// testPart is one call of go test, through gotestsum.
type testPart struct {
	names    []string // of what it looks at, for people
	packages []string
	args     []string // of go test, after those of the step
}

// runParts runs the parts, and names those for which no time was left. A test that fails is run
// again, alone, at most twice, and where at most ten of its part failed; after a data race
// or a panic nothing of it is. It returns an error where the run is red.
func (t testRun) runParts(ctx context.Context, gotestsum string) error {
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return err
	}
	log, err := os.Create(t.logPath())
	if err != nil {
		return err
	}
	defer log.Close()
	var found result
	green := true
	for began, i := time.Now(), 0; i < len(t.parts); i++ {
		if i > 0 && t.budget > 0 && time.Since(began) > t.budget {
			found.LeftOut = append(found.LeftOut, t.parts[i].names...)
			continue
		}
		partGreen, err := t.runPart(ctx, gotestsum, i, log, &found)
		if err != nil {
			return err
		}
		green = green && partGreen
	}
	if err := errors.Join(writeResult(t.step, found), log.Close()); err != nil {
		return err
	}
	printFindings(os.Stdout, found, t.args)
	fmt.Printf("whole log: %s\n", t.logPath())
	if !green {
		return fmt.Errorf("%s failed", t.step)
	}
	return nil
}

func (t testRun) logPath() string { return filepath.Join(logs, t.step+".log") }

// runPart runs part i and adds what it found; its output goes to log, package by package.
// It returns an error where it cannot tell what the tests found.
func (t testRun) runPart(ctx context.Context, gotestsum string, i int, log io.Writer, found *result) (green bool, err error) {
	p := t.parts[i]
	eventsPath := filepath.Join(logs, t.step+".json")
	if i > 0 {
		eventsPath = filepath.Join(logs, fmt.Sprintf("%s-%d.json", t.step, i+1))
	}
	args := slices.Concat([]string{
		"--format", "pkgname", "--format-hide-empty-pkg", "--hide-summary", "skipped,output,failed", "--jsonfile", eventsPath,
		"--rerun-fails=2", "--rerun-fails-max-failures=10", "--rerun-fails-abort-on-data-race", "--rerun-fails-run-root-test",
		"--packages", strings.Join(p.packages, " "), "--",
	}, t.args, p.args)
	runErr := runCommand(ctx, gotestsum, args...)
	events, err := os.Open(eventsPath)
	if err != nil {
		return false, errors.Join(runErr, err)
	}
	defer events.Close()
	return runErr == nil, found.readEvents(events, log)
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
	if len(r.LeftOut) > 0 {
		fmt.Fprintf(w, "\nleft out, since its time was over (make race RACE=changed and make e2e SUITE=changed look at all): %s\n", strings.Join(r.LeftOut, " "))
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
