package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/buffer"
)

// probeCommand is the name of the command by which the agent starts itself.
const probeCommand = "check-buffer"

// checkBufferCommand is what the agent runs in a process of its own before it opens
// its buffer.
func (a *app) checkBufferCommand() *cobra.Command {
	return &cobra.Command{
		Use: probeCommand + " FILE", Short: "check the structure of a buffer's file", Args: cobra.ExactArgs(1), Hidden: true,
		Example: "  bursar-agent check-buffer /var/lib/bursar-agent/buffer.db",
		RunE:    func(_ *cobra.Command, args []string) error { return buffer.Probe(args[0]) },
	}
}

// probeTries is how often the buffer is checked when somebody kills the check.
const probeTries = 3

// probe implements run.Options.Probe. A check that was killed from outside, by
// the system that had no memory left for example, says nothing of the file and is
// made again.
func (a *app) probe(ctx context.Context, path string) error {
	var err error
	for range probeTries {
		var killed bool
		if killed, err = a.probeOnce(ctx, path); !killed {
			return err
		}
	}
	return err
}

func (a *app) probeOnce(ctx context.Context, path string) (killed bool, err error) {
	cmd := exec.CommandContext(ctx, a.Executable, probeCommand, path)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return false, ctx.Err()
	}
	ended := new(exec.ExitError)
	switch {
	case !errors.As(err, &ended):
		return false, fmt.Errorf("check the buffer: %w", err)
	case fromOutside(ended):
		return true, fmt.Errorf("check the buffer: the check of %s was ended from outside: %w", path, err)
	}
	why, _, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	why = strings.TrimPrefix(why, "bursar-agent: ")
	if damaged := buffer.ErrDamaged.Error(); !strings.HasPrefix(why, damaged) {
		why = damaged + ": " + why
	}
	return false, fmt.Errorf(`buffer %s: %s
Move the file away: %s
The agent then collects anew from where the aggregators have come to`, path, why, buffer.Remedy(path))
}

// fromOutside reports whether a process ended by a signal that it cannot have from
// what it read.
func fromOutside(ended *exec.ExitError) bool {
	status, ok := ended.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT)
}
