package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// said waits until systemd is told the state.
func said(t *testing.T, conn *net.UnixConn, state string) {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	for text := make([]byte, 4096); ; {
		n, err := conn.Read(text)
		if err != nil {
			t.Fatalf("%s: %v", state, err)
		}
		if first, _, _ := strings.Cut(string(text[:n]), "\n"); first == state {
			return
		}
	}
}

func TestSystemdIsToldHowTheDaemonIsDoing(t *testing.T) {
	dir, err := os.MkdirTemp("", "") // a short name: that of a socket is bounded
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	env := map[string]string{"NOTIFY_SOCKET": socket, "WATCHDOG_USEC": "30000"}
	path := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n}\n", porttest.Free(t)))
	hangup := make(chan os.Signal)
	log := &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(key string) string { return env[key] }, Now: time.Now, Version: "1", Hangup: hangup}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	said(t, conn, "READY=1")
	said(t, conn, "WATCHDOG=1")
	hangup <- os.Interrupt
	said(t, conn, "RELOADING=1")
	said(t, conn, "READY=1")
	cancel()
	said(t, conn, "STOPPING=1")
	if code := <-ended; code != 0 {
		t.Error("exit code", code)
	}
}

func TestANodeWithoutItsLogEndsForGood(t *testing.T) {
	dir := t.TempDir()
	path := write(t, dir, "a.hcl", fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n}\n", porttest.Free(t)))
	log := &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1"}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	log.await(t, "this node leads")
	cancel()
	if code := <-ended; code != 0 {
		t.Fatal("exit code", code)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "data/raft/raft.db"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	if err := os.Remove(logs[0]); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), "aggregator", "-config", path); code != 77 || !strings.Contains(errs, "raft log of this node is gone") {
		t.Error(code, errs)
	}
}

func TestAReloadBeginsToMakeBackups(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n", porttest.Free(t))
	path := write(t, dir, "a.hcl", text+"}\n")
	hangup, log := make(chan os.Signal), &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1", Hangup: hangup}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-config", path}) }()
	log.await(t, "this node leads")
	if err := os.Mkdir(filepath.Join(dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "a.hcl", text+"  backup { path = \"backups\" }\n}\n")
	hangup <- os.Interrupt
	log.await(t, "backup made and verified")
	cancel()
	if code := <-ended; code != 0 {
		t.Error("exit code", code)
	}
	files, err := filepath.Glob(filepath.Join(dir, "backups", "bursar-a-*.snapshot"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if code, _, errs := (shell{}).bursar(t.Context(), "snapshot", "verify", files[0]); code != 0 {
		t.Error(code, errs)
	}
}

// TestReload_EndsWithTheDaemon: a reload that asks plugins which do not answer holds
// nothing up.
func TestReload_EndsWithTheDaemon(t *testing.T) {
	dir := t.TempDir()
	text := fmt.Sprintf("aggregator {\n  name = \"a\"\n  data_dir = \"data\"\n  min_free = \"1MiB\"\n  api { listen = [%q] }\n}\n", porttest.Free(t))
	path := write(t, dir, "a.hcl", text)
	hangup, log := make(chan os.Signal), &lines{got: make(chan string, 1000)}
	p := cli.Program{Stdout: &bytes.Buffer{}, Stderr: log, Getenv: func(string) string { return "" }, Now: time.Now, Version: "1", Hangup: hangup}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan int, 1)
	go func() { ended <- p.Run(ctx, []string{"aggregator", "-dev", "-config", path}) }()
	log.await(t, "this node leads")
	started := filepath.Join(dir, "started")
	plugin := filepath.Join(dir, "plugin")
	if err := programtest.WriteProgram(plugin, "#!/bin/sh\necho x >> "+started+"\nexec sleep 1000\n"); err != nil {
		t.Fatal(err)
	}
	text += fmt.Sprintf("plugin \"action\" \"deaf\" { path = %q }\n", plugin)
	for i := range 5 {
		text += fmt.Sprintf("action \"deaf\" \"a%d\" { schedule = \"@manual\" }\n", i)
	}
	write(t, dir, "a.hcl", text)
	hangup <- os.Interrupt
	for { // until all plugins are asked, side by side
		if lines, err := os.ReadFile(started); err == nil && len(lines) == 5*len("x\n") {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	if code := <-ended; code != 0 {
		t.Error("exit code", code)
	}
	if lines, err := os.ReadFile(started); err != nil || len(lines) != 5*len("x\n") {
		t.Errorf("plugins were asked after the end: %q, %v", lines, err)
	}
}
