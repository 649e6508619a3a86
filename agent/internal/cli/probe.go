package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

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

// probe implements run.Options.Probe.
func (a *app) probe(ctx context.Context, path string) error {
	cmd := exec.CommandContext(ctx, a.Executable, probeCommand, path)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	if ended := new(exec.ExitError); !errors.As(err, &ended) {
		return fmt.Errorf("check the buffer: %w", err)
	}
	why, _, _ := strings.Cut(string(bytes.TrimSpace(out)), "\n")
	why = strings.TrimPrefix(why, "bursar-agent: ")
	if damaged := buffer.ErrDamaged.Error(); !strings.HasPrefix(why, damaged) {
		why = damaged + ": " + why
	}
	return fmt.Errorf(`buffer %s: %s
Move the file away: %s
The agent then collects anew from where the aggregators have come to`, path, why, buffer.Remedy(path))
}
