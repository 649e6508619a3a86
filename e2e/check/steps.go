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
	beside  bool          // runs while the last step does, after the other such steps
}

// checkSteps are the steps of the whole check, the quickest first. The end-to-end tests
// mostly wait, so what needs the processors runs beside them. Where much changed in three
// days, budgets keep the check within the time that it may take.
func checkSteps() []step {
	return []step{
		{name: "build", command: []string{"make", "build"}, limit: 20 * time.Minute, needed: true},
		{name: "lint", command: []string{"make", "lint"}, limit: 20 * time.Minute},
		{name: "test", command: []string{"make", "test"}, limit: 20 * time.Minute},
		{name: "race", command: []string{"make", "race", "RACE=changed", "BUDGET=12m"}, limit: 40 * time.Minute, beside: true},
		{name: "fuzz", command: []string{".ci/fuzz", "1s", "turn"}, limit: 25 * time.Minute, beside: true},
		{name: "powercuts", command: []string{"make", "powercuts", "CUTS=2000"}, limit: 20 * time.Minute, beside: true},
		{name: "e2e", command: []string{"make", "e2e", "SUITE=changed", "BUDGET=15m"}, limit: 60 * time.Minute},
	}
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
// failed and a table of what each cost. The set-up runs beside them until the last step, the
// end-to-end tests, needs it. It returns an error where one step failed.
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
// that ran.
func runInOrder(ctx context.Context, steps []step, setUp *background, out io.Writer) []outcome {
	last := steps[len(steps)-1]
	var besides []step
	var outcomes []outcome
	for _, s := range steps[:len(steps)-1] {
		if s.beside {
			besides = append(besides, s)
			continue
		}
		fmt.Fprintf(out, "\n== %s (%s)\n", s.name, clock())
		o := s.run(ctx, out)
		outcomes = append(outcomes, o)
		if o.err != nil && s.needed || ctx.Err() != nil {
			return outcomes
		}
	}
	ended := make(chan []outcome, 1)
	go func() { ended <- runBeside(ctx, besides, out) }()
	outcomes = append(outcomes, setUp.wait())
	fmt.Fprintf(out, "\n== %s (%s)\n", last.name, clock())
	outcomes = append(outcomes, last.run(ctx, out))
	return append(outcomes, <-ended...)
}

func clock() string { return time.Now().UTC().Format(time.TimeOnly) }

// runBeside runs steps one after the other while another runs, and writes what each printed
// when it has ended.
func runBeside(ctx context.Context, steps []step, out io.Writer) (outcomes []outcome) {
	for _, s := range steps {
		var printed bytes.Buffer
		fmt.Fprintf(&printed, "\n== %s, beside the others (%s)\n", s.name, clock())
		outcomes = append(outcomes, s.run(ctx, &printed))
		fmt.Fprintf(&printed, "== %s ended (%s)\n\n", s.name, clock())
		_, _ = out.Write(printed.Bytes()) // the summary says it again
	}
	return outcomes
}

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
