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
	"syscall"
	"time"
)

const help = `Run tests, and say what failed, what is unstable and what it cost.

  check [-gotestsum PATH] all                     every step, as .ci/run does
  check [-gotestsum PATH] test PACKAGE… -- ARG…   tests of packages, with arguments of go test
  check [-gotestsum PATH] race all|changed        the race detector over all packages, or
                                                  over those of the last three days' commits
  check [-gotestsum PATH] e2e core|all|changed|SUITE,…
                                                  end-to-end tests; set-up included

Example: check -gotestsum bin/tools/gotestsum-v1.13.0 e2e nomad,gridengine
`

func main() {
	gotestsum := flag.String("gotestsum", "gotestsum", "the program gotestsum")
	flag.Usage = func() { fmt.Fprint(flag.CommandLine.Output(), help) }
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := runMode(ctx, *gotestsum, flag.Args()); err != nil {
		fmt.Fprintf(os.Stderr, "check: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func runMode(ctx context.Context, gotestsum string, args []string) error {
	switch {
	case len(args) == 1 && args[0] == "all":
		return runAll(ctx)
	case len(args) > 1 && args[0] == "test":
		packages, rest := cutArgs(args[1:])
		return testRun{"test", packages, rest}.run(ctx, gotestsum)
	case len(args) == 2 && args[0] == "race":
		return runRace(ctx, gotestsum, args[1])
	case len(args) == 2 && args[0] == "e2e":
		return runEndToEnd(ctx, gotestsum, args[1])
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
		return []string{"-race", "-timeout", "30m"}
	case "e2e":
		return []string{"-tags", "e2e", "-timeout", "40m", "-count", "1", "-p", "3", "-parallel", "6"} // most of it is waiting
	}
	return []string{"-tags", "poison"}
}

func runRace(ctx context.Context, gotestsum, which string) error {
	packages, args := []string{"./..."}, testArgs("race")
	if which == "changed" {
		changed, err := changedFiles(ctx)
		if err != nil {
			return err
		}
		if packages, err = racePackages(ctx, changed); err != nil {
			return err
		}
		args = append(args, "-short")
		fmt.Printf("the race detector looks at %d packages\n", len(packages))
	} else if which != "all" {
		return fmt.Errorf("invalid packages %q: use all or changed", which)
	}
	return testRun{"race", packages, args}.run(ctx, gotestsum)
}

func runEndToEnd(ctx context.Context, gotestsum, which string) error {
	s, err := selectChanged(ctx, which)
	if err != nil {
		return err
	}
	fmt.Printf("suites: %v\n", s.names)
	if len(s.setup) > 0 { // without a part it would install everything
		if err := runCommand(ctx, "e2e/setup.sh", s.setup...); err != nil {
			return fmt.Errorf("set-up of %v failed: %w", s.setup, err)
		}
	}
	return testRun{"e2e", s.packages, append(testArgs("e2e"), "-run", s.run())}.run(ctx, gotestsum)
}

func selectChanged(ctx context.Context, which string) (selection, error) {
	var changed []string
	if which == "changed" {
		var err error
		if changed, err = changedFiles(ctx); err != nil {
			return selection{}, err
		}
	}
	return selectSuites(which, changed, time.Now())
}

func runAll(ctx context.Context) error {
	s, err := selectChanged(ctx, "changed")
	if err != nil {
		return err
	}
	setup := step{name: "set-up", command: append([]string{"nice", "-n", "19", "e2e/setup.sh"}, s.setup...), limit: 60 * time.Minute}
	return runSteps(ctx, checkSteps(), setup)
}
