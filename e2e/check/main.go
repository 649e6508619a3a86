// Command check runs the project's tests and says what they found: tests that failed at
// each of three tries, with the line that says why and the command that repeats them, and
// tests that passed only when they were tried again. `check all`, which is `.ci/run`,
// runs every step and ends with a table of what each cost. It is started at the top of
// the tree, by the Makefile.
//
// It is a program of the project, and not lines of a shell script, because gotestsum says
// neither which tests were unstable nor what the first of their failures printed, and
// because what changed decides which suites and packages are looked at.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

const help = `Run tests, and say what failed, what is unstable and what it cost.

  check all                         every step, as .ci/run does
  check test PACKAGE… -- ARG…       tests of packages, with arguments of go test
  check race all|changed            the race detector over all packages, or over those of
                                    the last three days' commits
  check e2e core|all|changed|SUITE,…
                                    end-to-end tests; set-up included

Before them:
  -gotestsum PATH    the program gotestsum
  -budget DURATION   of changed: what is less needed does not begin after it, and is named

Example: check -gotestsum bin/tools/gotestsum-v1.13.0 e2e nomad,gridengine
`

func main() {
	var o options
	flag.StringVar(&o.gotestsum, "gotestsum", "gotestsum", "the program gotestsum")
	flag.DurationVar(&o.budget, "budget", 0, "time after which changed begins nothing more; 0 for no end")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), help) }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.runMode(ctx, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "check: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

type options struct {
	gotestsum string
	budget    time.Duration
}

func (o options) runMode(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "all":
		return runAll(ctx)
	case len(args) > 1 && args[0] == "test":
		packages, rest := cutArgs(args[1:])
		return testRun{step: "test", parts: []testPart{{names: packages, packages: packages}}, args: rest}.runParts(ctx, o.gotestsum)
	case len(args) == 2 && args[0] == "race":
		return o.runRace(ctx, args[1])
	case len(args) == 2 && args[0] == "e2e":
		return o.runEndToEnd(ctx, args[1])
	}
	flag.Usage()
	return errors.New("invalid arguments")
}

// cutArgs divides packages from the arguments behind "--".
func cutArgs(args []string) (packages, rest []string) {
	for i, a := range args {
		if a == "--" {
			return args[:i], args[i+1:]
		}
	}
	return args, nil
}

// testArgs returns the arguments of go test that say how a step builds its tests.
func testArgs(step string) []string {
	switch step {
	case "race":
		return []string{"-race", "-timeout", "30m", "-p", strconv.Itoa(2 * runtime.NumCPU())} // packages that wait leave the processors to others
	case "e2e":
		return []string{"-tags", "e2e", "-timeout", "40m", "-count", "1", "-p", "3", "-parallel", "6"} // most of it is waiting
	}
	return []string{"-tags", "poison"}
}

func (o options) runRace(ctx context.Context, which string) error {
	run := testRun{step: "race", parts: []testPart{{packages: []string{"./..."}}}, args: testArgs("race"), budget: o.budget}
	if which == "changed" {
		changed, err := changedFiles(ctx)
		if err != nil {
			return err
		}
		if run.parts, err = raceParts(ctx, changed); err != nil {
			return err
		}
		run.args = append(run.args, "-short")
	} else if which != "all" {
		return fmt.Errorf("invalid packages %q: use all or changed", which)
	}
	return run.runParts(ctx, o.gotestsum)
}

func (o options) runEndToEnd(ctx context.Context, which string) error {
	selected, err := selectNow(ctx, which)
	if err != nil {
		return err
	}
	run := testRun{step: "e2e", args: testArgs("e2e"), budget: o.budget}
	for _, s := range selected {
		fmt.Printf("suites: %v\n", s.names)
		run.parts = append(run.parts, testPart{s.names, s.packages, []string{"-run", s.runPattern()}})
	}
	if setup := mergeSetup(selected); len(setup) > 0 { // without a part it would install everything
		if err := runCommand(ctx, "e2e/setup.sh", setup...); err != nil {
			return fmt.Errorf("set-up of %v failed: %w", setup, err)
		}
	}
	return run.runParts(ctx, o.gotestsum)
}

// selectNow returns the end-to-end tests of which, by what changed until now.
func selectNow(ctx context.Context, which string) ([]selection, error) {
	var changed []string
	if which == "changed" {
		var err error
		if changed, err = changedFiles(ctx); err != nil {
			return nil, err
		}
	}
	return selectSuites(which, changed, time.Now())
}

func runAll(ctx context.Context) error {
	selected, err := selectNow(ctx, "changed")
	if err != nil {
		return err
	}
	setup := step{name: "set-up", command: append([]string{"nice", "-n", "19", "e2e/setup.sh"}, mergeSetup(selected)...), limit: 60 * time.Minute}
	return runSteps(ctx, checkSteps(), setup)
}
