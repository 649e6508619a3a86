package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/bursar-accounting/bursar/agent/internal/config"
	"github.com/bursar-accounting/bursar/agent/internal/control"
	"github.com/bursar-accounting/bursar/agent/internal/run"
	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// Env is what the command line gets of the world.
type Env struct {
	Out, Err   io.Writer
	Getenv     func(string) string
	Executable string // the program's own file
	Version    string
}

// System is the world of a real process.
func System(version string) Env {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return Env{Out: os.Stdout, Err: os.Stderr, Getenv: os.Getenv, Executable: executable, Version: version}
}

// Main runs the command line and returns the exit code.
func Main(ctx context.Context, env Env, args []string) int {
	a := &app{Env: env}
	root := a.rootCommand()
	root.SetArgs(commandline.TwoDashes(root, args))
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return codeOK
	}
	code := a.reportFailure(err)
	if r, ok := a.refusalOf(err); ok {
		fmt.Fprintln(env.Err, r.Lines(cmd.CommandPath()))
	}
	return code
}

// refusalOf says of an agent or an aggregator that was not reached whence its place is, and
// what to type; false for other errors.
func (a *app) refusalOf(err error) (commandline.Refusal, bool) {
	if r, ok := errors.AsType[commandline.Refusal](err); ok {
		return r, true
	}
	u, ok := errors.AsType[control.Unreachable](err)
	if !ok {
		return commandline.Refusal{}, false
	}
	r := commandline.Refusal{Err: err, Tried: u.Path + ", in data_dir of " + strings.Join(a.paths, ", ")}
	for _, path := range a.paths {
		if _, err := os.Stat(path); err != nil {
			r.Tried = fmt.Sprintf("%s, in the default data_dir: %v", u.Path, hcl.FileError(err))
		}
	}
	r.Do = "systemctl start " + unit + "   # or {} -config FILE, of the agent that you mean"
	if errors.Is(err, os.ErrPermission) {
		r.Do = "sudo {}"
	}
	return r, true
}

// app is one run of the program.
type app struct {
	Env
	paths  []string
	dev    bool
	format string
}

// The exit codes; those of bursar are the same.
const (
	codeOK      = 0
	codeError   = 1
	codeFinding = 2
)

// exit is an exit code without a message of its own.
type exit int

// Error implements error.
func (e exit) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// refused are diagnostics with the files that they are about.
type refused struct {
	diags   hcl.Diagnostics
	sources hcl.Sources
}

// Error lists the diagnostics, one a line.
func (r refused) Error() string { return r.diags.Error() }

// reportFailure prints the error and returns the exit code.
func (a *app) reportFailure(err error) int {
	if code, ok := errors.AsType[exit](err); ok {
		return int(code)
	}
	a.printError(err)
	if _, ok := errors.AsType[unmendable](err); ok {
		return systemd.ExitConfig
	}
	return codeError
}

// printError prints each of the errors that were joined.
func (a *app) printError(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			a.printError(e)
		}
		return
	}
	if r, ok := errors.AsType[refused](err); ok {
		_ = r.diags.Write(a.Err, r.sources, a.usesColor(a.Err)) // an error: nowhere left to report it
		return
	}
	fmt.Fprintf(a.Err, "bursar-agent: %v\n", hcl.FileError(err))
}

// isTerminal reports whether w is one.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

func (a *app) usesColor(w io.Writer) bool {
	return isTerminal(w) && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"
}

const about = `The agent runs beside a scheduler. It reads finished and running jobs through
source plugins, turns them into records and keeps them in a durable buffer until
the aggregators have pulled them.

Exit codes: 0 success, 1 error, 2 success with findings.`

// defaultConfig is read when no configuration is named.
const defaultConfig = "/etc/bursar/agent.hcl"

// Commands is the tree of all commands, for those who describe it.
func Commands() *cobra.Command { return (&app{}).rootCommand() }

func (a *app) rootCommand() *cobra.Command {
	var check bool
	root := &cobra.Command{
		Use: "bursar-agent", Short: "Collect what every job used, and hand it to the aggregators", Long: about,
		Example: "  bursar-agent -config /etc/bursar/agent.hcl\n  bursar-agent -config /etc/bursar/agent.hcl -check",
		Args:    noCommand, SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error {
			if check {
				return a.checkConfig(c.Context())
			}
			return a.runAgent(c.Context())
		},
	}
	root.PersistentFlags().StringArrayVar(&a.paths, "config", []string{defaultConfig}, "configuration file, or folder with *.hcl files, at `PATH`; may be repeated")
	root.PersistentFlags().BoolVar(&a.dev, "dev", false, "accept plugins below folders that others may write to, such as /tmp")
	root.Flags().BoolVar(&check, "check", false, "check the configuration, with its plugins, and exit")
	root.AddCommand(a.joinCommand(), a.runCommand(), a.previewCommand(), a.collectCommand(), a.recollectCommand(), a.statusCommand(), a.reloadCommand(), a.forgetCommand(), a.doctorCommand(), a.versionCommand())
	commandline.AddHelp(root, a.versionText())
	root.SetFlagErrorFunc(commandline.UsageError)
	return root
}

// noCommand refuses arguments, which can only be mistyped commands.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	c.SuggestionsMinimumDistance = 2
	if like := c.SuggestionsFor(args[0]); len(like) > 0 {
		return fmt.Errorf("there is no command %q; did you mean %q?", args[0], like[0])
	}
	return fmt.Errorf("there is no command %q; see `bursar-agent -h`", args[0])
}

func (a *app) runCommand() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Run the agent (the default)", Args: cobra.NoArgs,
		Long:    "Run until SIGTERM or SIGINT; a second SIGINT stops at once. SIGHUP reloads the configuration.",
		Example: "  bursar-agent run -config /etc/bursar/agent.hcl",
		RunE:    func(c *cobra.Command, _ []string) error { return a.runAgent(c.Context()) },
	}
}

// addFormatFlag adds the flag -format.
func (a *app) addFormatFlag(c *cobra.Command) *cobra.Command {
	c.Flags().StringVar(&a.format, "format", "table", "`FORMAT` of the output: table or json")
	c.PreRunE = func(*cobra.Command, []string) error {
		if a.format != "table" && a.format != "json" {
			return fmt.Errorf("unknown format %q; it is table or json", a.format)
		}
		return nil
	}
	return c
}

// loadConfig reads the configuration. All problems together are the error.
func (a *app) loadConfig(ctx context.Context) (cfg *config.Config, warnings hcl.Diagnostics, err error) {
	cfg, diags := config.Load(a.paths...)
	if diags.HasErrors() {
		_, found := run.Check(ctx, cfg, a.pluginOptions())
		diags.Extend(found)
		return cfg, nil, refused{diags, cfg.File.Sources}
	}
	return cfg, diags, nil
}

func (a *app) pluginOptions() run.Plugins {
	return run.Plugins{Executable: a.Executable, Version: a.Version, Dev: a.dev}
}

// pickSources returns the named sources; all running ones when no name is given.
func pickSources(cfg *config.Config, name string) ([]*config.Source, error) {
	if name == "" {
		if len(cfg.Running()) == 0 {
			return nil, errors.New("the configuration has no source that is enabled")
		}
		return cfg.Running(), nil
	}
	s := cfg.Source(name)
	if s == nil {
		return nil, fmt.Errorf("unknown source %q; %s", name, hcl.DidYouMean(name, cfg.Names()))
	}
	return []*config.Source{s}, nil
}
