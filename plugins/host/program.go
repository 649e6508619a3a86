package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// maxOutput is how many bytes of a program's output are kept.
const maxOutput = 1 << 20

// RunProgram runs the program at path to its end, with the arguments of p, of which the
// first is its name: without a shell, as the user of this process, with a minimal
// environment, in a process group of its own. When ctx ends the program is killed with
// all that it has started, and what it has left behind in its process group is when it
// ends by itself. The system kills the program when this process dies. Of an error
// [sdk.NotRun] says whether the program was started.
func RunProgram(ctx context.Context, path string, p sdk.Program) (sdk.Output, error) {
	if len(p.Arguments) == 0 || !filepath.IsAbs(path) {
		return sdk.Output{}, sdk.NotStarted(errors.New("the program is not named by an absolute path"))
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	out, errs := process.Head{Max: maxOutput}, process.Head{Max: maxOutput}
	cmd := process.Command(ctx, path)
	cmd.Args = p.Arguments
	cmd.Dir, cmd.Env = "/", programEnvironment(p.Environment)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(p.Input), &out, &errs
	err := process.Run(cmd, cmd.Start, func() {})
	result := sdk.Output{Stdout: out.Kept, Error: errs.Kept}
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

// exitStatus is the exit status, or 128 and the signal.
func exitStatus(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

func programEnvironment(more map[string]string) []string {
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
