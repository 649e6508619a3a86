package run_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// hangs are the calls of a plugin's start that can hang.
func hangs() []string { return []string{"hang-at-start", "hang-in-describe", "hang-in-configure"} }

// hostile installs plugins that misbehave, each as its type says. Those that hang do so
// while the site has the file hold.
func (s *site) hostile(types ...string) (block string) {
	s.t.Helper()
	for _, typ := range types {
		s.installAs("hostile", typ)
		block += fmt.Sprintf("plugin \"source\" %q {\n env = { HOSTILE = %q, HOSTILE_TYPE = %q, HOSTILE_WHILE = %q }\n}\n", typ, typ, typ, s.path("hold"))
	}
	return block
}

func (s *site) hold()    { s.write("hold", "") }
func (s *site) release() { _ = os.Remove(s.path("hold")) }

// misbehaving is a source block of a type that misbehaves.
func misbehaving(typ, label, extra string) string {
	return fmt.Sprintf(`
source %q %q {
  interval = "100ms"
  %s
  record {
    id    = job.text
    start = time("2026-01-01T00:00:00Z")
    stop  = time("2026-01-01T00:00:00Z")
  }
}
`, typ, label, extra)
}

func inState(state string) func(control.Source) bool {
	return func(x control.Source) bool { return x.State == state }
}

// order is the list in another order.
func order(list ...string) []string {
	rand.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func TestStart_HangingSources_HoldNothingUp(t *testing.T) {
	s := newSite(t)
	s.patience = time.Nanosecond
	s.write("a", "1 alice 100 200\n")
	s.write("b", "1 alice 100 200\n2 bob 100 200\n")
	list := []string{source("a", ""), source("b", "")}
	for _, how := range hangs() {
		list = append(list, misbehaving(how, "1", ""), misbehaving(how, "2", "")) // more than start at once
	}
	s.hold()
	tls, keys := s.tls()
	s.configure(tls, s.hostile(hangs()...)+s.sources(order(list...)...))
	s.start()
	client := control.NewClient(s.path("data/agent.sock"))
	defer client.Close()
	if st, err := client.Status(t.Context()); err != nil || len(st.Sources) != len(list) {
		t.Fatalf("%+v, %v", st, err)
	}
	s.until("example/a", sent(1))
	s.until("example/b", sent(2))
	if got := pull(t, s.dial(keys)); !slices.Contains(got, "a-1") || !slices.Contains(got, "b-2") {
		t.Errorf("pulled %q", got)
	}
	for _, x := range s.agent.Status().Sources {
		if x.Type != "example" && x.State != "configuring" && x.State != "failed" {
			t.Errorf("%+v", x)
		}
	}
}

func TestStart_HangingSource_IsKilledAndTriedAgain(t *testing.T) {
	for _, how := range hangs() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.patience, s.deadline = time.Nanosecond, 10*time.Second // in which a plugin gets there, also on a busy machine
			s.hold()
			s.configure("", s.hostile(how)+misbehaving(how, "h", ""))
			s.start()
			x := s.until(how+"/h", inState("failed"))
			call, named := map[string]string{"hang-in-describe": "Describe", "hang-in-configure": "Configure"}[how]
			if x.Error == "" || named && (x.Hangs == 0 || !strings.Contains(x.Error, "the plugin hangs: "+call)) {
				t.Errorf("%+v", x)
			}
			s.release()
			s.until(how+"/h", inState("waiting"))
		})
	}
}

func TestReload_HangingSource_IsNamedAndOthersChange(t *testing.T) {
	for _, how := range hangs() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			for _, label := range []string{"stays", "goes", "changes", "comes"} {
				s.write(label, "1 alice 100 200\n")
			}
			s.patience = 5 * time.Second
			plugin := s.hostile(how)
			s.configure("", plugin+s.sources(order(source("stays", ""), source("goes", ""), source("changes", ""), misbehaving(how, "h", ""))...))
			s.start()
			s.until(how+"/h", inState("waiting"))
			s.until("example/changes", sent(1))
			s.hold()
			s.hostile(how) // a new binary, which makes its source another one
			s.configure("", plugin+s.sources(order(source("stays", ""), source("changes", `state = "DONE"`), source("comes", ""), misbehaving(how, "h", ""), misbehaving(how, "new", ""))...))
			got, err := s.agent.Reload(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			slices.Sort(got.Changed)
			// On a busy machine others may be late, too.
			got.Configuring = slices.DeleteFunc(got.Configuring, func(name string) bool { return !strings.HasPrefix(name, how) })
			if want := fmt.Sprintf("[example/goes] [example/changes %[1]s/h] [%[1]s/h %[1]s/new]", how); fmt.Sprint(got.Removed, got.Changed, got.Configuring) != want {
				t.Fatalf("%+v, want %s", got, want)
			}
			s.until("example/comes", sent(1))
			s.configure("", s.sources(source("stays", "")))
			if got, err = s.agent.Reload(t.Context()); err != nil || len(got.Removed) != 4 || len(got.Configuring) != 0 {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

func TestConfiguration_RefusedBesideHangingSource(t *testing.T) {
	for _, how := range hangs() {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.write("ex", "1 alice 100 200\n")
			s.hold()
			plugin := s.hostile(how)
			bad := misbehaving(how, "h", "") + "source \"example\" \"bad\" {\n config { pth = 1 }\n}\n"
			s.configure("", plugin+s.sources(source("ex", ""), bad))
			err := run.New(s.load(), run.Options{Plugins: s.plugins(), Log: slog.New(slog.DiscardHandler)}).Run(t.Context())
			if _, ok := errors.AsType[hcl.Diagnostics](err); !ok || !strings.Contains(err.Error(), `unknown attribute "pth"; did you mean "path"?`) || !strings.Contains(err.Error(), "agent.hcl:") {
				t.Errorf("start: %v", err)
			}
			s.configure("", s.sources(source("ex", "")))
			s.start()
			s.configure("", plugin+s.sources(source("ex", `state = "X"`), bad))
			if _, err := s.agent.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "pth") {
				t.Errorf("reload: %v", err)
			}
			if st := s.agent.Status().Sources; len(st) != 1 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestSourcesThatSendNothing_AreNamed(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]struct{ state, why string }{
		"empty":       {"failed", "the plugin hangs: Collect made no progress"},
		"empty-alive": {"silent", "the plugin sends empty batches"},
		"alive":       {"silent", "the plugin says that it works"},
	} {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.configure("", s.hostile(typ)+misbehaving(typ, "x", `stall_timeout = "1s"`))
			s.start()
			if x := s.until(typ+"/x", inState(want.state)); !strings.Contains(x.Error, want.why) {
				t.Errorf("%+v", x)
			}
		})
	}
}

// The deadline is longer than the test, so that it ends only where no source waits for
// another.
func TestOnce_HangingSources_HoldNothingUp(t *testing.T) {
	s := newSite(t)
	s.deadline = time.Hour
	s.write("a", "1 alice 100 200\n")
	var list []string
	for _, how := range hangs() {
		list = append(list, misbehaving(how, "1", ""), misbehaving(how, "2", ""))
	}
	s.hold()
	s.configure("", s.hostile(hangs()...)+s.sources(append(list, source("a", ""))...))
	cfg := s.load()
	waiting := map[string]bool{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := run.Once(ctx, cfg, cfg.Running(), s.plugins(), slog.New(slog.DiscardHandler), func(name string, x control.Source) {
		switch {
		case x.State == run.Configuring:
			waiting[name] = true
		case name == "example/a" && x.Counts.Records == 1:
			cancel()
		}
	})
	for _, how := range hangs() {
		if !waiting[how+"/1"] || !waiting[how+"/2"] {
			t.Errorf("%s is not named as configuring: %v", how, waiting)
		}
	}
	if !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "example/a") {
		t.Error(err)
	}
}

func TestLook_HangingSources_HoldNothingUp(t *testing.T) {
	s := newSite(t)
	s.deadline = time.Hour
	s.hold()
	if err := programtest.WriteProgram(s.path("plugins/bursar-source-last"), "#!/bin/sh\n: > "+s.path("here")+"\necho no plugin >&2\nexit 3\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(s.path("here")); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	var list []string
	for _, how := range hangs() {
		list = append(list, misbehaving(how, "1", ""), misbehaving(how, "2", ""))
	}
	s.configure("", s.hostile(hangs()...)+s.sources(append(list, misbehaving("last", "x", ""))...))
	cfg := s.load()
	looked := s.plugins().Look(ctx, cfg, cfg.Running())
	for i, l := range looked {
		if l.Source != cfg.Running()[i] || l.Err == nil || l.Version != "" {
			t.Errorf("%s: %+v", l.Source.Name(), l)
		}
	}
	if len(looked) != len(list)+1 {
		t.Errorf("%d answers", len(looked))
	}
}
