//go:build e2e

package rig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Fact is one run of the menu: the case that it stands for and how the accounting
// database has it. Menu has checked it against what the case was made for.
type Fact struct {
	Case string
	Run
}

// want is what a run of a case must have become. Cores, nodes and GPUs are checked
// for runs that started.
type want struct {
	suffix string // what the printed job id has behind the submitted one
	state  string
	exit   int
	signal int
	cores  int64 // 0 stands for 1
	nodes  int64 // 0 stands for 1
	gpus   int64
	steps  []string // nil: batch and extern
	never  bool     // it never started
}

// menuCase is one thing to submit, what to do with it then, and what must come out.
type menuCase struct {
	name  string
	user  string
	args  []string
	start func(c *Cluster, m menuCase) string // instead of sbatch; returns the job id
	drive func(c *Cluster, id string)
	wants []want

	stored string // the job name that must be stored, "" for name
	text   string // the comment, "" for any
	admin  string // the administrator's comment, "" for any
}

// The texts of the menu's hard cases.
const (
	MenuComment      = "first|line\n{\"project\":\"P7\",\"voms\":\"/atlas/Role=pilot\"}\tümlaut"
	MenuAdminComment = `{"stdout":"/x","n":1}`
	MenuName         = `odd name|with,"pipe` // Slurm stores a backtick for the quote
)

// Menu runs jobs of every kind that accounting must get right, in about a minute,
// and returns all runs that they led to. Some are still open when it returns: the
// case "running" runs, "array-pending" and "held" wait. The cases:
//
// completed, instant, failed, killed, cancelled-running, cancelled-pending,
// cancelled-held, dependency-never, array, array-pending, het, requeued, suspended,
// gpu, multi-node, comment, not-utf8, odd-name, salloc, interactive, srun, steps,
// held, running.
func (c *Cluster) Menu() []Fact { c.t.Helper(); return c.runMenu(menuCases()) }

// MenuWithTimeout is Menu with one case more, timeout, which takes up to two minutes.
func (c *Cluster) MenuWithTimeout() []Fact {
	c.t.Helper()
	return c.runMenu(append([]menuCase{timeoutCase()}, menuCases()...))
}

func (c *Cluster) runMenu(cases []menuCase) []Fact {
	c.t.Helper()
	ids := make([]string, len(cases))
	for i, m := range cases {
		ids[i] = c.startCase(m)
		if m.drive != nil {
			m.drive(c, ids[i])
		}
	}
	var facts []Fact
	waitFor(c.t, "the menu's end in the accounting database", menuLimit, func() error {
		var err error
		facts, err = matchCases(cases, ids, c.Runs())
		return err
	})
	return facts
}

func (c *Cluster) startCase(m menuCase) string {
	c.t.Helper()
	if m.start != nil {
		return m.start(c, m)
	}
	return c.Submit(m.user, append([]string{"-J", m.name}, m.args...)...)
}

// matchCases pairs every wanted run with the row that it became; an error says what
// is not (yet) as it must be.
func matchCases(cases []menuCase, ids []string, runs []Run) ([]Fact, error) {
	var facts []Fact
	var wrong []string
	for i, m := range cases {
		rows := caseRows(ids[i], runs)
		for _, w := range m.wants {
			at := slices.IndexFunc(rows, func(r Run) bool { return r.JobID == ids[i]+w.suffix })
			if at < 0 {
				wrong = append(wrong, fmt.Sprintf("%s: no row %s%s (%s)", m.name, ids[i], w.suffix, w.state))
				continue
			}
			if diff := w.diffRun(m, rows[at]); diff != "" {
				wrong = append(wrong, m.name+": "+rows[at].JobID+" "+diff)
			}
			facts = append(facts, Fact{m.name, rows[at]})
			rows = slices.Delete(rows, at, at+1)
		}
		for _, r := range rows {
			wrong = append(wrong, fmt.Sprintf("%s: unexpected row %s (%s)", m.name, r.JobID, r.State))
		}
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(wrong, "; "))
	}
	return facts, nil
}

// caseRows are the rows of the job, its array tasks or its components, in order of
// submission.
func caseRows(id string, runs []Run) []Run {
	var rows []Run
	for _, r := range runs {
		if rest, ok := strings.CutPrefix(r.JobID, id); ok && (rest == "" || rest[0] == '_' || rest[0] == '+') {
			rows = append(rows, r)
		}
	}
	return rows
}

// diffRun is what r has other than wanted, "" if nothing.
func (w want) diffRun(m menuCase, r Run) string {
	steps := w.steps
	if steps == nil && !w.never {
		steps = []string{"batch", "extern"}
	}
	slices.Sort(r.Steps)
	var d []string
	check := func(what string, got, want any) {
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			d = append(d, fmt.Sprintf("%s %q, want %q", what, g, w))
		}
	}
	check("state", r.State, w.state)
	check("ran", r.Ran(), !w.never)
	check("exit", r.ExitCode, w.exit)
	check("signal", r.Signal, w.signal)
	check("user", r.User, m.user)
	check("steps", r.Steps, steps)
	if !w.never {
		check("cores", r.Cores, max(1, w.cores))
		check("nodes", r.Nodes, max(1, w.nodes))
		check("gpus", r.GPUs, w.gpus)
	}
	check("name", r.Name, cmp.Or(m.stored, m.name))
	if m.text != "" {
		check("comment", r.Comment, m.text)
	}
	if m.admin != "" {
		check("admin comment", r.AdminComment, m.admin)
	}
	return strings.Join(d, ", ")
}

// menuLimit is how long after the last submission all must have ended; the time
// limit of the timeout case is looked at once a minute.
const menuLimit = 10 * time.Minute

// pause is long enough to tell the ends of two states apart in whole seconds.
func pause() { time.Sleep(2 * time.Second) }
