package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// processes are the daemons of a run.
type processes struct {
	opt  DevOptions
	logs string
	// ended gets the error of the first daemon that ended by itself.
	ended chan error

	mu       sync.Mutex
	children []*child
	stopping bool

	starts chan startRequest
}

// child is one daemon.
type child struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
	err  error
}

// startRequest asks for a process to be started.
type startRequest struct {
	cmd    *exec.Cmd
	result chan error
}

// newProcesses returns none yet. The caller closes it.
func newProcesses(logs string, opt DevOptions) *processes {
	f := &processes{opt: opt, logs: logs, ended: make(chan error, 1), starts: make(chan startRequest)}
	go f.startAll()
	return f
}

// startAll starts the processes. The kernel ends a child when the thread ends that
// started it, so this thread stays until they are closed.
func (f *processes) startAll() {
	runtime.LockOSThread()
	for b := range f.starts {
		b.result <- b.cmd.Start()
	}
}

// close ends what the daemons need beside their processes. Call it after stopAll.
func (f *processes) close() { close(f.starts) }

// startDaemon starts a daemon, and a goroutine that watches it.
func (f *processes) startDaemon(name, program string, args ...string) error {
	if err := os.MkdirAll(f.logs, 0o750); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(f.logs, name+".log"))
	if err != nil {
		return err
	}
	c := &child{name: name, log: log, done: make(chan struct{}), cmd: exec.Command(program, args...)}
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, in, err := os.Pipe()
	if err != nil {
		return errors.Join(err, log.Close())
	}
	c.cmd.Stdout, c.cmd.Stderr = in, in
	b := startRequest{c.cmd, make(chan error)}
	f.starts <- b
	if err := errors.Join(<-b.result, in.Close()); err != nil {
		return errors.Join(fmt.Errorf("start %s: %w", program, err), out.Close(), log.Close())
	}
	f.mu.Lock()
	f.children = append(f.children, c)
	f.mu.Unlock()
	go f.watchDaemon(c, out)
	return nil
}

// watchDaemon logs what the daemon writes and waits for its end.
func (f *processes) watchDaemon(c *child, out *os.File) {
	read := make(chan struct{})
	go func() {
		defer close(read)
		f.logOutput(c, out)
	}()
	err := c.cmd.Wait()
	select {
	case <-read:
	case <-time.After(time.Second): // someone else has its output open
	}
	_ = out.Close()
	<-read
	_ = c.log.Close() // a log file only
	c.err = err
	close(c.done)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopping {
		return
	}
	select {
	case f.ended <- f.describeEnd(c):
	default:
	}
}

// logOutput writes the daemon's lines into its log file and shows those that are worth it.
func (f *processes) logOutput(c *child, out io.Reader) {
	lines := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			_, _ = c.log.WriteString(line) // a log file only
			if f.isWorthShowing(line) {
				_, _ = fmt.Fprintf(f.opt.Err, "[%s] %s\n", c.name, strings.TrimRight(line, "\n"))
			}
		}
		if err != nil {
			return
		}
	}
}

// isWorthShowing reports whether the user wants to see the line. While all is stopped,
// the daemons complain of each other, and what is wrong in the demo on purpose is no news.
func (f *processes) isWorthShowing(line string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opt.Verbose || !f.stopping && !strings.Contains(line, `="demo: `) && (strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR"))
}

// lastLines is how much of a log is shown when a daemon has failed.
const lastLines = 20

// describeEnd says how a daemon ended that should not have, with its last lines.
func (f *processes) describeEnd(c *child) error {
	how := "it ended"
	if c.err != nil {
		how = c.err.Error()
	}
	text, err := os.ReadFile(c.log.Name())
	if err != nil {
		return fmt.Errorf("the %s ended by itself: %s", c.name, how)
	}
	lines := bytes.Split(bytes.TrimRight(text, "\n"), []byte("\n"))
	lines = lines[max(0, len(lines)-lastLines):]
	return fmt.Errorf("the %s ended by itself: %s; its last lines:\n%s", c.name, how, bytes.Join(lines, []byte("\n")))
}

// patience is how long a daemon may take to stop.
const patience = 15 * time.Second

// stopAll ends all daemons, those that were started last first, and whatever they
// have started.
func (f *processes) stopAll() error {
	f.mu.Lock()
	f.stopping = true
	children := f.children
	f.children = nil
	f.mu.Unlock()
	var errs []error
	for _, c := range slices.Backward(children) {
		errs = append(errs, c.stop())
	}
	return errors.Join(errs...)
}

func (c *child) stop() error {
	pid := c.cmd.Process.Pid
	select {
	case <-c.done:
	default:
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may just have ended
	}
	var err error
	select {
	case <-c.done:
	case <-time.After(patience):
		err = fmt.Errorf("the %s did not stop and was killed", c.name)
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL) // what is left of its group, if anything
	<-c.done
	return err
}
