package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"
)

// step is a command of the whole check.
type step struct {
	name    string
	command []string
	limit   time.Duration // a step that takes longer is killed and has failed
	needed  bool          // without it the others make no sense
	beside  bool          // begins when the set-up has ended, and runs while the later steps do
	until   time.Duration // since the check began: what is less needed does not begin after it; 0 for no end
}

// checkSteps are the steps of the whole check, the quickest first. The end-to-end tests
// mostly wait, so what needs the processors runs beside them. Where much changed in three
// days, or other work takes the processors, until keeps the check within the time that it
// may take.
func checkSteps() []step {
	return []step{
		{name: "build", command: []string{"make", "build"}, limit: 20 * time.Minute, needed: true},
		{name: "lint", command: []string{"make", "lint"}, limit: 20 * time.Minute},
		{name: "e2e", command: []string{"make", "e2e", "SUITE=changed"}, limit: 60 * time.Minute, beside: true, until: 18 * time.Minute},
		{name: "test", command: []string{"make", "test"}, limit: 30 * time.Minute},
		{name: "race", command: []string{"make", "race", "RACE=changed"}, limit: 40 * time.Minute, until: 24 * time.Minute},
		{name: "fuzz", command: []string{"make", "fuzz", "FUZZTIME=1s", "FUZZ=turn"}, limit: 25 * time.Minute, until: 27 * time.Minute},
		{name: "powercuts", command: []string{"make", "powercuts", "CUTS=2000"}, limit: 20 * time.Minute},
	}
}

// withBudget returns the step with what is left of its time, for a check that began then.
func (s step) withBudget(began time.Time) step {
	if s.until > 0 {
		left := max(s.until-time.Since(began), time.Second)
		s.command = append(slices.Clone(s.command), fmt.Sprintf("BUDGET=%.0fs", left.Seconds()))
	}
	return s
}

// outcome is how a step ended.
type outcome struct {
	step
	took  time.Duration
	err   error
	tail  *tail // of what it printed
	found result
	ran   bool // found says something
}

// runSteps runs all steps, whatever the earlier ones found, and prints at the end what
// failed and a table of what each cost. The set-up runs beside them; the end-to-end tests
// begin when it has ended. It returns an error where one step failed.
func runSteps(ctx context.Context, steps []step, setup step) error {
	if err := clearLogs(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(logs, "check.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, cancel := context.WithCancel(ctx)
	setUp, err := setup.start(ctx)
	if err != nil {
		cancel()
		return err
	}
	defer func() { cancel(); setUp.wait() }()
	out := &sharedWriter{w: io.MultiWriter(os.Stdout, log)}
	outcomes := runInOrder(ctx, steps, setUp, out)
	printSummary(os.Stdout, outcomes)
	for _, o := range outcomes {
		if o.err != nil {
			return errors.New("the check failed")
		}
	}
	return nil
}

// runInOrder runs the steps until a needed one fails, and returns what became of each
// that ran and of the set-up.
func runInOrder(ctx context.Context, steps []step, setUp *background, out io.Writer) []outcome {
	began := time.Now()
	var outcomes []outcome
	var besides []*background
	for _, s := range steps {
		if s.beside {
			besides = append(besides, s.startAfter(ctx, setUp, began, out))
			continue
		}
		fmt.Fprintf(out, "\n== %s (%s)\n", s.name, clock())
		o := s.withBudget(began).run(ctx, out)
		outcomes = append(outcomes, o)
		if o.err != nil && s.needed {
			return outcomes
		}
	}
	outcomes = append(outcomes, setUp.wait())
	for _, b := range besides {
		outcomes = append(outcomes, b.wait())
	}
	return outcomes
}

// startAfter starts a step when the set-up has ended, and writes what it printed when it
// has ended itself.
func (s step) startAfter(ctx context.Context, setUp *background, began time.Time, out io.Writer) *background {
	b := &background{ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		setUp.wait()
		var printed bytes.Buffer
		fmt.Fprintf(&printed, "\n== %s, beside the others (%s)\n", s.name, clock())
		b.outcome = s.withBudget(began).run(ctx, &printed)
		fmt.Fprintf(&printed, "== %s ended (%s)\n\n", s.name, clock())
		_, _ = out.Write(printed.Bytes()) // the summary says it again
	}()
	return b
}

func clock() string { return time.Now().UTC().Format(time.TimeOnly) }

// sharedWriter writes for several goroutines, one at a time.
type sharedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *sharedWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(p)
}

// clearLogs removes what an earlier check left.
func clearLogs() error {
	if err := os.RemoveAll(logs); err != nil {
		return err
	}
	return os.MkdirAll(logs, 0o755)
}

// background is a step that runs beside others, with a log of its own.
type background struct {
	ended   chan struct{}
	outcome outcome
}

func (s step) start(ctx context.Context) (*background, error) {
	log, err := os.Create(filepath.Join(logs, s.name+".log"))
	if err != nil {
		return nil, err
	}
	b := &background{ended: make(chan struct{})}
	go func() {
		defer close(b.ended)
		defer log.Close()
		b.outcome = s.run(ctx, log)
	}()
	return b, nil
}

func (b *background) wait() outcome {
	<-b.ended
	return b.outcome
}

func (s step) run(ctx context.Context, out io.Writer) outcome {
	ctx, cancel := context.WithTimeout(ctx, s.limit)
	defer cancel()
	o := outcome{step: s, tail: &tail{}}
	cmd := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	both := io.MultiWriter(out, o.tail)
	cmd.Stdout, cmd.Stderr = both, both
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	began := time.Now()
	o.err = cmd.Run()
	o.took = time.Since(began)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		o.err = fmt.Errorf("did not end within %s", s.limit)
	}
	var err error
	o.found, o.ran, err = readStepResult(s.name)
	o.err = errors.Join(o.err, err)
	return o
}

// tail keeps the last of what is written to it.
type tail struct{ b []byte }

const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - tailSize; over > 0 {
		t.b = bytes.Clone(t.b[over:])
	}
	return len(p), nil
}

// lines returns the last lines that are whole, n at most.
func (t *tail) lines(n int) []string { return lastLines([]string{string(t.b)}, n) }

// printSummary prints what failed, what is unstable, and the table of the steps.
func printSummary(w io.Writer, outcomes []outcome) {
	var total result
	for _, o := range outcomes {
		if o.err != nil {
			fmt.Fprintf(w, "\n%s failed: %v\n", o.name, o.err)
		}
		if o.err != nil && len(o.found.Failed) == 0 {
			for _, line := range o.tail.lines(linesShown) {
				fmt.Fprintf(w, "      | %s\n", line)
			}
		}
		printFindings(w, o.found, testArgs(o.name))
		total.Tests += o.found.Tests
		total.Skipped += o.found.Skipped
		total.Failed = append(total.Failed, o.found.Failed...)
		total.Unstable = append(total.Unstable, o.found.Unstable...)
	}
	fmt.Fprintf(w, "\nwhole log: %s\n\n%-10s %7s %7s %8s %7s  %s\n", filepath.Join(logs, "check.log"), "step", "seconds", "tests", "unstable", "skipped", "result")
	for _, o := range outcomes {
		printOutcome(w, o)
	}
	fmt.Fprintf(w, "\n%d passed, %d failed, %d skipped\n", total.Tests-len(total.Failed)-total.Skipped, len(total.Failed), total.Skipped)
}

func printOutcome(w io.Writer, o outcome) {
	state := "ok"
	if o.err != nil {
		state = "FAILED"
	}
	tests, unstable, skipped := "-", "-", "-"
	if o.ran {
		tests, unstable, skipped = fmt.Sprint(o.found.Tests), fmt.Sprint(len(o.found.Unstable)), fmt.Sprint(o.found.Skipped)
	}
	if n := len(o.found.LeftOut); n > 0 {
		state += fmt.Sprintf(", %d left out", n)
	}
	fmt.Fprintf(w, "%-10s %7.0f %7s %8s %7s  %s\n", o.name, o.took.Seconds(), tests, unstable, skipped, state)
}
