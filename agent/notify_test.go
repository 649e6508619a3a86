package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
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

func TestSystemdIsToldHowTheAgentIsDoing(t *testing.T) {
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
	t.Setenv("NOTIFY_SOCKET", socket)
	t.Setenv("WATCHDOG_USEC", "30000")
	d := start(t)
	said(t, conn, "READY=1")
	said(t, conn, "WATCHDOG=1")
	if err := d.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	said(t, conn, "RELOADING=1")
	said(t, conn, "READY=1")
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said(t, conn, "STOPPING=1")
	d.until(t, "the agent has stopped")
	if err := d.Wait(); err != nil {
		t.Error(err)
	}
	d.checkRefused(t)
}

// checkRefused checks that a daemon with a wrong configuration ends with the
// exit code after which it is not started again.
func (d *daemon) checkRefused(t *testing.T) {
	t.Helper()
	d.configure(t, "loud")
	cmd := exec.Command(d.Path, "-config", filepath.Join(d.dir, "agent.hcl"))
	if out, err := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 78 || !strings.Contains(string(out), "agent.hcl line 4") {
		t.Errorf("%v\n%s", err, out)
	}
}
