package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// ErrHung is the error of a command that gave no output for too long.
var ErrHung = errors.New("it gave no output")

const maxStderr = 16 << 10

// Tool is one run of a scheduler's command. A command that fails in any way – a status
// other than 0, an error on standard error, no output for too long – is an error,
// whatever it printed.
type Tool struct {
	Name    string // in errors
	Path    string
	Args    []string
	Env     []string
	Timeout time.Duration    // without any output, > 0
	Ignore  []string         // lines of standard error that are no errors contain one of these
	Known   map[string]error // errors by a text of standard error that tells of them
}

// Run starts the command, hands its output to use, and waits for its end. Every
// sign of failure is an error: of use, a status other than 0, an error on standard
// error, and no output for the timeout, after which the command and all that it
// started are killed. The time that use takes does not count.
func (t *Tool) Run(ctx context.Context, use func(io.Reader) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout, to, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("%s: %w", t.Name, err)
	}
	defer stdout.Close()
	stderr := Head{Max: maxStderr}
	cmd := Command(ctx, t.Path, t.Args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = t.Env, to, &stderr
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- Run(cmd, func() error {
			err := cmd.Start()
			started <- err
			return err
		}, func() {})
	}()
	err = <-started
	to.Close()
	if err != nil {
		return fmt.Errorf("start %s: %w", t.Name, err)
	}
	// What escaped from the process group may hold the pipe open.
	defer context.AfterFunc(ctx, func() { stdout.Close() })()
	dog := newWatchdog(ctx, stdout, t.Timeout, func() { cancel(fmt.Errorf("%w for %s", ErrHung, t.Timeout)) })
	useErr := use(dog)
	if useErr == nil {
		_, useErr = io.Copy(io.Discard, dog)
	}
	if useErr != nil {
		cancel(useErr)
	}
	dog.resumeTimer() // it may also hang in its end
	waitErr := <-ended
	dog.stop()
	return t.exitError(ctx, useErr, waitErr, string(stderr.Kept))
}

// exitError is the error of a run: it tells the cause from its consequences.
func (t *Tool) exitError(ctx context.Context, useErr, waitErr error, stderr string) error {
	said := t.errorLines(stderr)
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrHung), cause != nil && !errors.Is(useErr, cause):
		return withText(fmt.Errorf("%s: %w", t.Name, cause), said)
	case t.knownError(stderr) != nil:
		return withText(fmt.Errorf("%s: %w", t.Name, t.knownError(stderr)), said)
	case waitErr != nil && useErr == nil, said != "" && useErr == nil:
		return withText(fmt.Errorf("%s: %w", t.Name, orFailed(waitErr)), stderr)
	case useErr != nil:
		return withText(useErr, said)
	}
	return nil
}

func (t *Tool) knownError(stderr string) error {
	for text, err := range t.Known {
		if strings.Contains(stderr, text) {
			return err
		}
	}
	return nil
}

func orFailed(err error) error {
	if err == nil {
		return errors.New("it printed an error")
	}
	return err
}

func withText(err error, stderr string) error {
	if stderr = strings.TrimSpace(stderr); stderr == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(strings.Fields(stderr), " "))
}

// errorLines returns the lines of standard error that tell of an error.
func (t *Tool) errorLines(stderr string) string {
	var out []string
	for line := range strings.SplitSeq(stderr, "\n") {
		harmless := slices.ContainsFunc(t.Ignore, func(s string) bool { return strings.Contains(line, s) })
		if !harmless && isError(line) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n")
}

func isError(line string) bool {
	line = strings.ToLower(line)
	return strings.Contains(line, "error:") || strings.Contains(line, "fatal:")
}

// Environment is that of this process with what shapes the output of Slurm's
// commands replaced: times are UTC and in seconds, the language is C, and
// slurmConf, unless it is "", is slurm.conf.
func Environment(slurmConf string) []string {
	env := []string{"TZ=UTC", "SLURM_TIME_FORMAT=%s", "LC_ALL=C"}
	if slurmConf != "" {
		env = append(env, "SLURM_CONF="+slurmConf)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "TZ", name == "SLURM_TIME_FORMAT", name == "LC_ALL", strings.HasPrefix(name, "SACCT_"),
			strings.HasPrefix(name, "SQUEUE_"), strings.HasPrefix(name, "SCONTROL_"),
			strings.HasPrefix(name, "BURSAR_PLUGIN"), name == "SLURM_CLUSTERS", name == "SLURM_CONF" && slurmConf != "":
			continue
		}
		env = append(env, kv)
	}
	return env
}

// watchdog is a reader that barks when a read takes too long. A read has that deadline,
// so it counts as progress of the call that ctx is of.
type watchdog struct {
	ctx     context.Context //nolint:containedctx // of the command
	busy    func()
	r       io.Reader
	timeout time.Duration
	timer   *time.Timer
	barked  atomic.Bool
}

func newWatchdog(ctx context.Context, r io.Reader, timeout time.Duration, bark func()) *watchdog {
	w := &watchdog{ctx: ctx, busy: func() {}, r: r, timeout: timeout}
	w.timer = time.AfterFunc(timeout, func() { w.barked.Store(true); bark() })
	w.timer.Stop()
	return w
}

// Read reads with the watchdog awake.
func (w *watchdog) Read(p []byte) (int, error) {
	w.resumeTimer()
	defer w.stop()
	return w.r.Read(p)
}

func (w *watchdog) resumeTimer() {
	if !w.barked.Load() {
		w.timer.Reset(w.timeout)
	}
	w.busy = sdk.Idle(w.ctx)
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.busy()
}
