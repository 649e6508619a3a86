//go:build e2e

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

const headAction = `
action "exec" "mark" {
  schedule = "@manual"
  run_on   = agent.head1
  config {
    command    = [%q, "--group=atlas"]
    skip_empty = false
  }
}
`

// runOn is a site whose agent may be asked to run a program of an action.
type runOn struct {
	*site.Site

	t      *testing.T
	agent  *site.Agent
	agg    *site.Aggregator
	script string
	marks  string // a line for each time the program has run
	block  string // while the file is there the program does not end
}

func newRunOn(t *testing.T) *runOn {
	t.Helper()
	s := site.New(t)
	r := &runOn{Site: s, t: t, marks: filepath.Join(s.Dir, "marks"), block: filepath.Join(s.Dir, "block")}
	r.script = s.Program("mark.sh", fmt.Sprintf("#!/bin/sh\necho \"$(cat /proc/$PPID/comm) $1 $BURSAR_ATTEMPT\" >> %s\nwhile [ -e %s ]; do sleep 0.1; done\necho fine\n", r.marks, r.block))
	r.agent = s.Agent(site.AgentSpec{Name: "head1"})
	r.agg = s.Aggregator(r.agent)
	r.agg.Add(fmt.Sprintf(headAction, r.script))
	r.agent.Start()
	r.agg.Start()
	r.agg.AwaitReady()
	return r
}

func (r *runOn) allow() string {
	return fmt.Sprintf("allow_action \"exec\" \"mark\" {\n  commands = [[%q, \"--group=*\"]]\n  stdin = true\n}\n", r.script)
}

// actions runs bursar actions.
func (r *runOn) actions(verb string, args ...string) string {
	r.t.Helper()
	out, err := r.agg.Bursar(append([]string{"actions", verb}, args...)...)
	if err != nil {
		r.t.Fatalf("%s\n%v", out, err)
	}
	return out
}

// awaitHistory waits until the ledger of a run has a text.
func (r *runOn) awaitHistory(run int, text string) {
	r.t.Helper()
	r.Eventually(fmt.Sprintf("%q in the ledger", text), func() (bool, string) {
		out, err := r.agg.Bursar("actions", "history", "-format", "json", "exec/mark", fmt.Sprint(run))
		var dense bytes.Buffer
		if json.Compact(&dense, []byte(out)) != nil {
			return false, fmt.Sprint(out, err)
		}
		return strings.Contains(dense.String(), text), fmt.Sprint(out, err)
	})
}

func (r *runOn) ran() string {
	text, err := os.ReadFile(r.marks)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	return string(text)
}

func TestRunOn_AgentAllowsProgram_RunsThereOnly(t *testing.T) {
	t.Parallel()
	r := newRunOn(t)
	r.Eventually("the action", func() (bool, string) {
		out, err := r.agg.Bursar("actions", "list")
		return strings.Contains(out, "exec/mark") && strings.Contains(out, "head1"), fmt.Sprint(out, err)
	})
	r.actions("run", "exec/mark")
	r.awaitHistory(1, "the agent allows the action exec/mark to run nothing")
	if got := r.ran(); got != "" {
		t.Fatalf("it ran all the same: %s", got)
	}

	r.agent.Reload(r.allow())
	r.awaitHistory(1, `"outcome":"done","message":"fine"`)
	if got := r.ran(); !strings.HasPrefix(got, "bursar-agent --group=atlas ") || strings.Count(got, "\n") != 1 {
		t.Fatalf("it ran as %q", got)
	}

	r.agent.Kill()
	r.actions("run", "exec/mark")
	r.awaitHistory(2, `"outcome":"retry"`)
	r.agent.Start()
	r.awaitHistory(2, `"outcome":"done"`)
	if got := r.ran(); strings.Count(got, "\n") != 2 {
		t.Fatalf("it ran as %q", got)
	}
}

func TestRunOn_AgentDies_OutcomeIsUnknownAndNotRepeated(t *testing.T) {
	t.Parallel()
	r := newRunOn(t)
	r.agent.Reload(r.allow())
	r.Write("block", "")
	r.Eventually("the action", func() (bool, string) {
		out, err := r.agg.Bursar("actions", "run", "exec/mark")
		return err == nil, fmt.Sprint(out, err)
	})
	r.Eventually("the program", func() (bool, string) { return r.ran() != "", "" })
	r.agent.Kill()
	r.awaitHistory(1, `"state":"unknown"`)
	r.agent.Start()
	if err := os.Remove(r.block); err != nil {
		t.Fatal(err)
	}
	r.actions("retry", "exec/mark", "1", "0")
	r.awaitHistory(1, `"outcome":"done"`)
	if got := r.ran(); strings.Count(got, "\n") != 2 {
		t.Fatalf("it ran as %q", got)
	}
}
