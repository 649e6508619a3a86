package programs

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// bench is a runner that allows one script.
type bench struct {
	*Runner

	t      *testing.T
	script string
	marks  string
}

func newBench(t *testing.T, script string) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{t: t, script: filepath.Join(dir, "mark"), marks: filepath.Join(dir, "marks")}
	if err := programtest.WriteProgram(b.script, "#!/bin/sh\necho $1 >> "+b.marks+"\n"+script+"\n"); err != nil {
		t.Fatal(err)
	}
	c, err := host.Compile([]string{b.script, "*"})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{"exec/a": {Commands: []*host.Command{c}, Stdin: true, Place: "agent.hcl:1"}}
	b.Runner = NewRunner(Options{
		Rules: func() (Rules, string) { return rules, "agent.hcl" }, Fences: NewFences(filepath.Join(dir, "fences")), Dev: true, Log: slog.New(slog.DiscardHandler),
	})
	return b
}

func (b *bench) errand(fence uint64, argument string) *bursarv1.Errand {
	return &bursarv1.Errand{Cluster: "c", Action: "exec/a", Effect: "run", Attempt: 1, Fence: fence, Arguments: []string{b.script, argument}, Environment: map[string]string{"BURSAR_KEY": "k"}}
}

func (b *bench) admit(fence uint64, argument string) *Permit {
	b.t.Helper()
	p, err := b.Admit(b.errand(fence, argument), "agg1")
	if err != nil {
		b.t.Fatal(err)
	}
	return p
}

func (b *bench) ran() string {
	text, err := os.ReadFile(b.marks)
	if err != nil && !os.IsNotExist(err) {
		b.t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// await waits until something is so.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not within a minute: ", what)
		}
	}
}

func TestAnAllowedProgramRunsAndIsCounted(t *testing.T) {
	b := newBench(t, "cat; echo $BURSAR_KEY; echo trouble >&2; exit 3")
	e := b.errand(5, "one")
	e.Input = []byte("input ")
	p, err := b.Admit(e, "agg1")
	if err != nil {
		t.Fatal(err)
	}
	if b.ran() != "" {
		t.Fatal("it ran before it was told to")
	}
	out, err := p.Run(t.Context())
	if err != nil || out.Status != 3 || string(out.Stdout) != "input k\n" || string(out.Error) != "trouble\n" {
		t.Errorf("%d %q %q %v", out.Status, out.Stdout, out.Error, err)
	}
	if _, err := b.admit(5, "two").Run(t.Context()); err != nil || b.ran() != "one two" {
		t.Errorf("another program of the attempt: %v; %q ran", err, b.ran())
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(b.Collector())
	counted, err := registry.Gather()
	if err != nil || len(counted) != 1 || len(counted[0].GetMetric()) != 1 || counted[0].GetMetric()[0].GetCounter().GetValue() != 2 {
		t.Errorf("counted as %v, %v", counted, err)
	}
}

func TestWhatIsNotAllowedOrOutdatedIsNotRun(t *testing.T) {
	b := newBench(t, "")
	b.admit(5, "one")
	other := b.errand(9, "x")
	other.Action = "exec/b"
	for what, e := range map[string]*bursarv1.Errand{"a lesser fence": b.errand(4, "two"), "an option": b.errand(9, "-two"), "another action": other, "nothing": {Cluster: "c", Action: "exec/a", Fence: 9}} {
		if _, err := b.Admit(e, "agg1"); !sdk.NotRun(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if b.ran() != "" {
		t.Errorf("%q ran", b.ran())
	}
	// What was refused by the rules has left no fence.
	if _, err := b.admit(6, "six").Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAPermitIsOfNoUseOnceALaterAttemptHasCome(t *testing.T) {
	b := newBench(t, "")
	old := b.admit(5, "old")
	b.admit(6, "new")
	if _, err := old.Run(t.Context()); !sdk.NotRun(err) || b.ran() != "" {
		t.Errorf("%v; %q ran", err, b.ran())
	}
}

func TestALaterAttemptKillsWhatRunsForTheOneBeforeAndWaitsForItsEnd(t *testing.T) {
	b := newBench(t, `if [ "$1" = old ]; then sleep 600 & wait; echo survived >> `+"$0.marks; fi")
	ended := make(chan error, 1)
	old := b.admit(5, "old")
	go func() {
		_, err := old.Run(context.Background())
		ended <- err
	}()
	await(t, "the program runs", func() bool { return b.ran() == "old" })
	next := b.admit(6, "new")
	if _, err := next.Run(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-ended:
		if err == nil || sdk.NotRun(err) || !strings.Contains(err.Error(), "a later attempt has come") {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it was not killed")
	}
	if b.ran() != "old new" {
		t.Errorf("%q ran", b.ran())
	}
	b.Wait()
}

func TestAProgramWhoseCallerGoesIsKilled(t *testing.T) {
	b := newBench(t, "sleep 600 & wait")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	p := b.admit(5, "one")
	go func() {
		_, err := p.Run(ctx)
		ended <- err
	}()
	await(t, "the program runs", func() bool { return b.ran() == "one" })
	cancel()
	if err := <-ended; err == nil || sdk.NotRun(err) {
		t.Error(err)
	}
	b.Wait()
}

func TestAdmit_ProgramThatOthersCanChangeIsNotRun(t *testing.T) {
	for name, make := range map[string]func(t *testing.T, dir, path string){
		"the file":                func(t *testing.T, _, path string) { chmod(t, path, 0o777) },
		"the file, for its group": func(t *testing.T, _, path string) { chmod(t, path, 0o775) },
		"its folder":              func(t *testing.T, dir, _ string) { chmod(t, dir, 0o777) },
		"the folder behind a link": func(t *testing.T, dir, path string) {
			open := filepath.Join(dir, "open")
			if err := errors.Join(os.Mkdir(open, 0o755), os.Rename(path, filepath.Join(open, "mark")), os.Symlink(filepath.Join(open, "mark"), path)); err != nil {
				t.Fatal(err)
			}
			chmod(t, open, 0o777)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "")
			make(t, filepath.Dir(b.script), b.script)
			if _, err := b.Admit(b.errand(1, "a"), "agg1"); err == nil || !strings.Contains(err.Error(), host.ErrUnsafe.Error()) || !sdk.NotRun(err) {
				t.Errorf("%v", err)
			}
			if b.ran() != "" {
				t.Error("it ran")
			}
		})
	}
}

func TestAdmit_ScriptThatOthersCanChangeIsNotRun(t *testing.T) {
	b := newBench(t, "")
	c, err := host.Compile([]string{"/bin/sh", b.script, "*"})
	if err != nil {
		t.Fatal(err)
	}
	rules := Rules{"exec/a": {Commands: []*host.Command{c}}}
	b.opt.Rules = func() (Rules, string) { return rules, "agent.hcl" }
	e := b.errand(1, "a")
	e.Arguments = []string{"/bin/sh", b.script, "a"}
	chmod(t, b.script, 0o644)
	if _, err := b.Admit(e, "agg1"); err != nil {
		t.Error(err)
	}
	chmod(t, b.script, 0o666)
	if _, err := b.Admit(e, "agg1"); err == nil || !strings.Contains(err.Error(), host.ErrUnsafe.Error()) {
		t.Errorf("%v", err)
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
