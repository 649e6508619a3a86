package process

import (
	"context"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// linger is how long output is read that children of a program hold open.
const linger = 2 * time.Second

// Command returns a command that is killed with its process group when ctx ends, or
// when this process dies. [Run] runs it.
func Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = Attributes()
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = linger
	return cmd
}

// Run calls start, which starts cmd, and returns when it has failed or the program has
// ended. What the program leaves in its process group is killed before the program is
// reaped; exited is called in between, while no other process can have its number. The
// system kills the program when the thread that started it ends, so one thread stays
// with it.
func Run(cmd *exec.Cmd, start func() error, exited func()) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := start(); err != nil {
			done <- err
			return
		}
		awaitExit(cmd.Process.Pid)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error: it left nothing
		exited()
		done <- cmd.Wait()
	}()
	return <-done
}

// Head keeps the first bytes that are written to it.
type Head struct {
	Max  int
	Kept []byte
}

// Write takes all and keeps what fits.
func (h *Head) Write(p []byte) (int, error) {
	h.Kept = append(h.Kept, p[:min(h.Max-len(h.Kept), len(p))]...)
	return len(p), nil
}
