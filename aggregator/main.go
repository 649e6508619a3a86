// Command bursar is the aggregator daemon, the operator's command line and
// `bursar dev`.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/aggregator/internal/cli"
)

// version is set when a release is built.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program at once
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	os.Exit(program(hangup).Run(ctx, os.Args[1:]))
}

func program(hangup <-chan os.Signal) *cli.Program {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	width, terminal := columns(os.Stdout)
	_, errTerminal := columns(os.Stderr)
	return &cli.Program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Now: time.Now,
		Version: built(), Executable: executable, Width: width, Hangup: hangup,
		Color: terminal && errTerminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
	}
}

// columns returns the width of the terminal that f is; false when it is none.
func columns(f *os.File) (int, bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}

// built is the version: the one that was set, or what the Go toolchain noted.
func built() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "dev-" + s.Value[:min(len(s.Value), 12)]
		}
	}
	return "dev"
}
