package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json` (see `go doc test2json`).
type event struct {
	Action     string
	Package    string
	Test       string
	Output     string
	ImportPath string // of what did not build
}

// result is what a run of go test found, repeated tests included.
type result struct {
	Tests    int // tests and subtests, each counted once
	Skipped  int
	Failed   []finding // failed at each try
	Unstable []finding // failed, and passed when tried again
	LeftOut  []string  // what was to be looked at when the time was over
}

// finding is a test, or a whole package, that failed at least once.
type finding struct {
	Package string // relative to the module
	Test    string // "" for the package
	Tries   int
	Failed  int // of the tries
	Line    string
	Output  []string // of its first failure
}

// attempts are the runs of one test, or of one package, in their order.
type attempts struct {
	test     string
	outcomes []string
	output   []string // of the attempt that goes on
	failure  []string // the output of the first one that failed
}

func (a *attempts) endAttempt(outcome string) {
	if outcome == "fail" && a.failure == nil {
		a.failure = a.output
	}
	a.outcomes = append(a.outcomes, outcome)
	a.output = nil
}

func (a *attempts) countFailures() int {
	n := 0
	for _, o := range a.outcomes {
		if o == "fail" {
			n++
		}
	}
	return n
}

func (a *attempts) last() string {
	if len(a.outcomes) == 0 {
		return ""
	}
	return a.outcomes[len(a.outcomes)-1]
}

// packageRuns are the attempts of a package and of its tests.
type packageRuns struct {
	name  string
	whole attempts
	tests map[string]*attempts
	order []string
	text  []string // all that it printed, whoever printed it
}

func (p *packageRuns) attemptsOf(name string) *attempts {
	a := p.tests[name]
	if a == nil {
		a = &attempts{test: name}
		p.tests[name], p.order = a, append(p.order, name)
	}
	return a
}

func (p *packageRuns) addEvent(e event) {
	a := &p.whole
	if e.Test != "" {
		a = p.attemptsOf(e.Test)
	}
	switch e.Action {
	case "output", "build-output":
		a.output, p.text = append(a.output, e.Output), append(p.text, e.Output)
	case "pass", "fail", "skip":
		a.endAttempt(e.Action)
	case "build-fail":
		a.endAttempt("fail")
	}
}

// readEvents adds what the events of a run and its repeats say. What they say in words goes to
// log, package by package.
func (r *result) readEvents(events io.Reader, log io.Writer) error {
	packages, order, err := readPackages(events)
	if err != nil {
		return err
	}
	for _, name := range order {
		p := packages[name]
		fmt.Fprintf(log, "==== %s\n%s", name, strings.Join(p.text, ""))
		r.addPackage(p)
	}
	return nil
}

func readPackages(events io.Reader) (packages map[string]*packageRuns, order []string, err error) {
	packages = map[string]*packageRuns{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		var e event
		if len(line) > 0 && json.Unmarshal(line, &e) == nil { // what is not JSON was printed by a test behind go test's back
			name, _, _ := strings.Cut(e.Package+e.ImportPath, " ") // "a/b [a/b.test]" did not build
			if packages[name] == nil {
				packages[name] = &packageRuns{name: name, tests: map[string]*attempts{}}
				order = append(order, name)
			}
			packages[name].addEvent(e)
		}
		if err == io.EOF {
			return packages, order, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

func (r *result) addPackage(p *packageRuns) {
	failed := slices.DeleteFunc(slices.Clone(p.order), func(name string) bool { return p.tests[name].countFailures() == 0 })
	for _, name := range p.order {
		a := p.tests[name]
		r.Tests++
		if a.last() == "skip" {
			r.Skipped++
		}
		if a.countFailures() == 0 || hasSubtest(failed, name) {
			continue
		}
		f := finding{relativePackage(p.name), name, len(a.outcomes), a.countFailures(), usefulLine(a.failure), a.failure}
		if a.last() == "fail" {
			r.Failed = append(r.Failed, f)
		} else {
			r.Unstable = append(r.Unstable, f)
		}
	}
	if len(failed) == 0 && p.whole.countFailures() > 0 {
		r.Failed = append(r.Failed, finding{relativePackage(p.name), "", len(p.whole.outcomes), p.whole.countFailures(), usefulLine(p.text), p.text})
	}
}

// hasSubtest says whether one of names is a subtest of test.
func hasSubtest(names []string, test string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, test+"/") })
}

const module = "github.com/bursar-accounting/bursar"

func relativePackage(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(name, module), "/")
}

var (
	crashes  = regexp.MustCompile(`^(panic: |fatal error: |WARNING: DATA RACE|unexpected fault address|SIG[A-Z]+: )`)
	ofTests  = regexp.MustCompile(`^\s*[\w./-]+_test\.go:\d+(:\d+)?: `)
	messages = regexp.MustCompile(`^\s*[\w./-]+\.go:\d+(:\d+)?: `) // such as what a rig logs
	frames   = regexp.MustCompile(`^\s+(/\S*|` + module + `\S*)/([\w-]+\.go:\d+)`)
)

// usefulLine returns the line of a failure that says most: what crashed, with the first
// place below it, else the first message of a test or a compiler, else the first line.
func usefulLine(output []string) string {
	lines := strings.Split(strings.Join(output, ""), "\n")
	for i, line := range lines {
		if crashes.MatchString(line) {
			return strings.TrimSpace(line) + firstFrame(lines[i:])
		}
	}
	for _, message := range []*regexp.Regexp{ofTests, messages} {
		if i := slices.IndexFunc(lines, message.MatchString); i >= 0 {
			return strings.TrimSpace(lines[i])
		}
	}
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return "no output"
}

func firstFrame(lines []string) string {
	for _, line := range lines {
		if m := frames.FindStringSubmatch(line); m != nil && !strings.Contains(line, "/src/runtime/") && !strings.Contains(line, "/src/testing/") {
			return " at " + path.Base(m[1]) + "/" + m[2]
		}
	}
	return ""
}
