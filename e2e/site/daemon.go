//go:build e2e

package site

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Daemon is a program that can be started, killed and started again.
type Daemon struct {
	site *Site
	name string
	args []string
	Env  []string // added to the test's own
	Via  []string // a command that becomes the program, put before it
	cmd  *exec.Cmd
	done chan error
	log  string
}

// Daemon makes a program of the site: it is stopped when the test ends, and the
// end of its log is shown when the test failed.
func (s *Site) Daemon(name, program string, args ...string) *Daemon {
	d := &Daemon{site: s, name: name, args: append([]string{filepath.Join(s.Bin, program)}, args...), log: s.path("logs", name+".log")}
	if err := os.MkdirAll(s.path("logs"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		d.Kill()
		if s.t.Failed() {
			s.t.Logf("the end of the log of %s:\n%s", name, d.Log(40))
		}
	})
	return d
}

// Start starts the program; it need not be ready when Start returns.
func (d *Daemon) Start() {
	d.site.t.Helper()
	out, err := os.OpenFile(d.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		d.site.t.Fatal(err)
	}
	defer out.Close()
	line := append(slices.Clone(d.Via), d.args...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stdout, cmd.Stderr, cmd.Env = out, out, append(os.Environ(), d.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		d.site.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	d.cmd, d.done = cmd, done
}

// Become changes which program is started from now on, and returns the one before.
func (d *Daemon) Become(program string) (before string) {
	before, d.args[0] = d.args[0], program
	return before
}

// PID returns the process id; 0 when the program does not run.
func (d *Daemon) PID() int {
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// Kill ends the program as a power cut would, and waits until it is gone.
func (d *Daemon) Kill() {
	if d.cmd == nil {
		return
	}
	_ = d.cmd.Process.Kill() // it may have ended
	<-d.done
	d.cmd = nil
}

// Restart kills the program and starts it again.
func (d *Daemon) Restart() {
	d.site.t.Helper()
	d.Kill()
	d.Start()
}

// KillChildren kills what the program has started: the plugins of an agent.
func (d *Daemon) KillChildren() {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", d.PID())) // a pattern that is right
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
			}
		}
	}
}

// Stop ends the program in good order and fails the test when it does not exit
// with 0.
func (d *Daemon) Stop() {
	d.site.t.Helper()
	if err := d.Terminate(30 * time.Second); err != nil {
		d.site.t.Fatal(err)
	}
}

// Terminate asks the program to end and waits until it has. The error says that
// it did not exit with 0, or not in time; it is nil when the program did not run.
func (d *Daemon) Terminate(within time.Duration) error {
	if d.cmd == nil {
		return nil
	}
	if err := d.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-d.done:
		d.cmd = nil
		if err != nil {
			return fmt.Errorf("%s ended with %w\n%s", d.name, err, d.Log(20))
		}
		return nil
	case <-time.After(within):
		return fmt.Errorf("%s does not stop\n%s", d.name, d.Log(20))
	}
}

// Signal sends a signal.
func (d *Daemon) Signal(sig syscall.Signal) error {
	if d.cmd == nil {
		return errors.New("not running")
	}
	return d.cmd.Process.Signal(sig)
}

// Ended reports whether the program has ended by itself.
func (d *Daemon) Ended() bool {
	if d.cmd == nil {
		return true
	}
	select {
	case err := <-d.done:
		d.done <- err
		return true
	default:
		return false
	}
}

// Exit waits until the program ends by itself and returns its exit code, -1 after
// a signal.
func (d *Daemon) Exit() (code int) {
	d.site.t.Helper()
	d.site.Eventually(d.name+" ends", func() (bool, string) { return d.Ended(), d.Log(3) })
	return d.cmd.ProcessState.ExitCode()
}

// Log returns the last lines of what the program printed.
func (d *Daemon) Log(lines int) string {
	text, err := os.ReadFile(d.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// Run runs one of the programs to its end and returns what it printed; the error
// holds what it said on stderr.
func (s *Site) Run(program string, args ...string) (string, error) {
	return s.runProgram(nil, program, args...)
}

func (s *Site) runProgram(env []string, program string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(s.Bin, program), args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &out, &errs, append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %v: %w\n%s", program, args, err, errs.String())
	}
	return out.String(), nil
}
