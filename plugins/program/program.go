package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

const (
	maxOutput = 1 << 20
	linger    = 2 * time.Second // for output that the program's children hold open
)

// Run runs a program to its end. When ctx ends the program is killed with all that it
// has started, and what it has left behind in its process group is when it ends by
// itself. The system kills the program when this process dies. Of an error [sdk.NotRun]
// says whether the program was started.
func Run(ctx context.Context, p sdk.Program) (sdk.Output, error) {
	path := ""
	if len(p.Arguments) > 0 {
		path = p.Arguments[0]
	}
	return RunFile(ctx, path, p)
}

// RunFile is Run for a program whose file is at path, whatever its first argument says.
func RunFile(ctx context.Context, path string, p sdk.Program) (sdk.Output, error) {
	if len(p.Arguments) == 0 || !filepath.IsAbs(path) {
		return sdk.Output{}, sdk.NotStarted(errors.New("the program is not named by an absolute path"))
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	var out, errs limited
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = p.Arguments
	cmd.Dir, cmd.Env = "/", environment(p.Environment)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.Input), &out, &errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = linger
	err := onThread(cmd)
	result := sdk.Output{Stdout: out.kept, Error: errs.kept}
	exit, ended := errors.AsType[*exec.ExitError](err)
	switch {
	case cmd.Process == nil:
		return result, sdk.NotStarted(err)
	case ctx.Err() != nil:
		return result, fmt.Errorf("it did not end in time and was killed: %w", ctx.Err())
	case ended:
		result.Status = exitStatus(exit.ProcessState)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return result, err
	}
	return result, nil
}

// onThread runs a command from a thread that lives as long as it: the system kills
// the program when the thread ends.
func onThread(cmd *exec.Cmd) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		done <- wait(cmd)
	}()
	return <-done
}

// wait runs a command, and kills what it leaves in its process group. As long as the
// command is not reaped, the number of the group is nobody else's.
func wait(cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	for errors.Is(unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // an error: it left nothing
	return cmd.Wait()
}

// exitStatus is the exit status, or 128 and the signal.
func exitStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

func environment(more map[string]string) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, name := range []string{"PATH", "HOME", "LANG", "LC_ALL", "TZ"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more)) {
		env = append(env, name+"="+more[name])
	}
	return env
}

// limited keeps the beginning of what is written.
type limited struct{ kept []byte }

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	l.kept = append(l.kept, p[:min(maxOutput-len(l.kept), len(p))]...)
	return len(p), nil
}
