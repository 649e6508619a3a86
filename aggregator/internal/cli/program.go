package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// Program is what a command line runs in.
type Program struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	Getenv func(string) string
	// Sockets are where an aggregator of this machine is looked for; nil is where the
	// packages and bursar dev have theirs.
	Sockets []string
	// Address is asked where nothing names another and no socket answers; "" is where the
	// packages listen.
	Address string
	Now     func() time.Time
	// Version is the version that was built.
	Version string
	// Executable is the path of the running program.
	Executable string
	// Width is the number of columns of the terminal that stdout is; 0 when it
	// is none, and nothing is cut then.
	Width int
	// Color says that stderr and stdout are terminals that show colours.
	Color bool
	// Hangup delivers SIGHUP to the daemon.
	Hangup <-chan os.Signal
}

// The exit codes.
const (
	codeOK      = 0
	codeError   = 1
	codeFinding = 2
)

// finding is an error of a command that worked and found something.
type finding struct{ error }

func newFinding(format string, args ...any) error { return finding{fmt.Errorf(format, args...)} }

// troubled is an error about configuration, to be shown with the source.
type troubled struct {
	hcl.Diagnostics

	sources hcl.Sources
}

func (t troubled) Error() string { return t.Diagnostics.Error() }

// Run executes the command line without the program's name and returns the exit
// code. Ending ctx asks a daemon to stop in order.
func (p *Program) Run(ctx context.Context, args []string) int {
	root := p.rootCommand()
	root.SetArgs(commandline.TwoDashes(root, args))
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return codeOK
	}
	if t, ok := errors.AsType[troubled](err); ok {
		_ = t.Write(p.Stderr, t.sources, p.Color) // a terminal that is gone
	} else if err.Error() != "" { // otherwise it has been said
		p.say("%s: %v", cmd.CommandPath(), hcl.FileError(err))
		if r, ok := errors.AsType[commandline.Refusal](err); ok {
			p.say("%s", r.Lines(cmd.CommandPath()))
		}
	}
	if _, ok := errors.AsType[finding](err); ok || errors.Is(err, client.ErrNoMatch) {
		return codeFinding
	}
	if u, ok := errors.AsType[unmendable](err); ok {
		return u.code
	}
	return codeError
}
