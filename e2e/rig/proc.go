//go:build e2e

package rig

import (
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// server is a started child process.
type server struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is gone and reaped
}

// startTied starts cmd so that the kernel kills it when this process ends. The
// kernel watches the starting thread, not the process, so a thread is kept for the
// child until it is gone.
func startTied(cmd *exec.Cmd) (*server, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	s := &server{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
		}
		close(s.done)
	}()
	return s, <-started
}

// stop sends sig and waits until the process is gone; after limit it kills it.
func (s *server) stop(sig syscall.Signal, limit time.Duration) {
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(limit):
		_ = s.cmd.Process.Kill()
		<-s.done
	}
}

// waitFor calls ready until it returns nil, and fails the test after limit.
func waitFor(t testing.TB, what string, limit time.Duration, ready func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("rig: %s not there after %s: %v", what, limit, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
