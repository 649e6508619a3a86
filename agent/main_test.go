package main_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/proto/programtest"
)

// binary is the program, built once.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "bursar-agent-")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "bursar-agent")
	os.Setenv("GOFLAGS", os.Getenv("GOFLAGS")+" -ldflags=-X=main.version=9.9.9")
	if err := programtest.Build(dir, map[string]string{"bursar-agent": "agent"}); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// daemon is the built program on a configuration of its own.
type daemon struct {
	*exec.Cmd
	lines *bufio.Scanner
	dir   string
}

func start(t *testing.T) *daemon {
	t.Helper()
	d := &daemon{dir: t.TempDir()}
	d.configure(t, "info")
	d.Cmd = exec.Command(binary, "-config", filepath.Join(d.dir, "agent.hcl"))
	out, err := d.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.lines = bufio.NewScanner(out)
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Process.Kill() }) // an error: it has ended
	d.until(t, "the agent runs")
	return d
}

func (d *daemon) configure(t *testing.T, level string) {
	t.Helper()
	text := fmt.Sprintf("agent {\n name = \"a1\"\n data_dir = \"data\"\n log { level = %q }\n}\n", level)
	if err := os.WriteFile(filepath.Join(d.dir, "agent.hcl"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (d *daemon) until(t *testing.T, text string) {
	t.Helper()
	for d.lines.Scan() {
		if strings.Contains(d.lines.Text(), text) {
			return
		}
	}
	t.Fatalf("the agent never said %q", text)
}

func TestSignalsReloadAndStopTheAgent(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		d := start(t)
		out, err := exec.Command(d.Path, "-config", filepath.Join(d.dir, "agent.hcl"), "status", "-format", "json").Output()
		if err != nil || !strings.Contains(string(out), `"version": "9.9.9"`) {
			t.Errorf("%v\n%s", err, out)
		}
		if err := d.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		d.until(t, "configuration reloaded")
		d.configure(t, "loud")
		if err := d.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		d.until(t, "refused")
		if err := d.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		d.until(t, "the agent has stopped")
		if err := d.Wait(); err != nil {
			t.Errorf("after %s: %v", s, err)
		}
		if _, err := os.Stat(filepath.Join(d.dir, "data/agent.sock")); err == nil {
			t.Error("the control socket is still there")
		}
	}
}
