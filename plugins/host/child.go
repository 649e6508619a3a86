package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
	"github.com/bursar-accounting/bursar/proto/local"
)

const (
	maxFiles     = 4096             // open files of a plugin
	maxHandshake = 8 << 10          // bytes of the first line on standard output
	leftover     = time.Second      // how long a plugin's output may be silent after its end
	leftovers    = 10 * time.Second // how long it is read after its end at most
	readBuffer   = 32 << 10         // bytes that are read from a plugin's output at once
)

// handshakeLine is what a plugin prints first: core protocol, our protocol,
// network, address, kind of protocol, and its certificate, which may be absent.
var handshakeLine = regexp.MustCompile(`^\d+\|\d+\|[a-z]+\|[^|]*\|[a-z]*(\|[A-Za-z0-9+/]*)?(\|(true|false))?$`)

// child is the process of a plugin, as a runner of go-plugin. Its output never
// reaches go-plugin, except for the handshake: go-plugin's own reader of log
// lines panics on lines like {"@message":1}.
type child struct {
	cmd       *exec.Cmd
	socketDir string
	log       *lines

	stdout, stderr   *output // our ends of the pipes
	handshake, blank *io.PipeReader
	tell, hold       *io.PipeWriter
	readers          sync.WaitGroup
	done             chan struct{}

	mu     sync.Mutex
	pid    int  // 0 before the start
	killed bool // Kill was called: it must not start any more
	reaped bool
	plain  bool  // the plugin has no certificate
	bad    error // why the handshake was refused
	hung   error // why it was taken for hung
	exit   error // set before done is closed
}

func newChild(log *lines) *child {
	c := &child{log: log, done: make(chan struct{})}
	c.handshake, c.tell = io.Pipe()
	c.blank, c.hold = io.Pipe()
	return c
}

// Start starts the process. The system kills it when the thread that started it
// ends, so one thread stays with it until its end.
func (c *child) Start(context.Context) error {
	closers, err := c.connectPipes()
	if err != nil {
		return err
	}
	started := make(chan error, 1)
	c.readers.Add(2) // before the process may end, whose end waits for them
	go c.runProcess(started)
	err = <-started
	for _, w := range closers {
		w.Close()
	}
	if err != nil {
		c.readers.Add(-2)
		c.stdout.Close()
		c.stderr.Close()
		return err
	}
	for _, read := range []func(){c.readStdout, c.readStderr} {
		go func() {
			defer c.readers.Done()
			read()
		}()
	}
	return nil
}

// output is our end of a pipe that a process writes.
type output struct {
	*os.File

	until atomic.Pointer[time.Time] // nil while the process runs
}

// finishReading has what the process has written read to its end. A pipe that a process
// outside of its group holds open has none: it ends when it is silent for a second, or
// after ten.
func (o *output) finishReading() {
	until := time.Now().Add(leftovers)
	o.until.Store(&until)
	o.boundReading(until)
}

func (o *output) boundReading(until time.Time) {
	silent := time.Now().Add(leftover)
	if silent.After(until) {
		silent = until
	}
	_ = o.SetReadDeadline(silent) // pipes have deadlines
}

// Read implements io.Reader. However long the caller was busy with what it has read: after
// the end of the process the pipe has its time to be silent from now on.
func (o *output) Read(p []byte) (int, error) {
	if until := o.until.Load(); until != nil {
		o.boundReading(*until)
	}
	return o.File.Read(p)
}

// connectPipes connects the output and returns the process's ends.
func (c *child) connectPipes() ([]*os.File, error) {
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		outR.Close()
		outW.Close()
		return nil, err
	}
	c.stdout, c.stderr, c.cmd.Stdout, c.cmd.Stderr, c.cmd.Stdin = &output{File: outR}, &output{File: errR}, outW, errW, nil
	return []*os.File{outW, errW}, nil
}

func (c *child) runProcess(started chan<- error) {
	failed := false
	err := process.Run(c.cmd, func() error {
		err := c.launchProcess()
		failed = err != nil
		started <- err
		return err
	}, func() {
		c.mu.Lock()
		c.reaped = true
		c.mu.Unlock()
	})
	if !failed {
		c.releaseOutput(err)
	}
}

func (c *child) launchProcess() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.killed {
		return errors.New("stopped before its start")
	}
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid = c.cmd.Process.Pid
	restrainProcess(c.pid)
	return nil
}

// releaseOutput reads the output of the process, which has ended, to its end and closes it.
func (c *child) releaseOutput(err error) {
	c.exit = describeExit(err)
	c.stdout.finishReading()
	c.stderr.finishReading()
	c.readers.Wait()
	c.stdout.Close()
	c.stderr.Close()
	c.tell.Close()
	c.hold.Close()
	c.log.flushReport()
	close(c.done)
}

func describeExit(err error) error {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("the process ended: %s", exit.ProcessState)
	}
	if err != nil {
		return fmt.Errorf("the process ended: %w", err)
	}
	return errors.New("the process ended: exit status 0")
}

// readStdout hands the first line to go-plugin and the others to the log.
func (c *child) readStdout() {
	r := bufio.NewReaderSize(c.stdout, readBuffer)
	line, err := firstLine(r)
	if err != nil || !handshakeLine.MatchString(line) {
		c.refuseHandshake(line, err)
	} else {
		parts := strings.Split(line, "|")
		c.mu.Lock()
		c.plain = len(parts) < 6 || parts[5] == ""
		c.mu.Unlock()
		go c.forwardLine(line) // ends with the reader or with tell
	}
	c.log.copyLines(r, streamOut)
}

func (c *child) forwardLine(line string) { _, _ = io.WriteString(c.tell, line+"\n") }

func (c *child) refuseHandshake(line string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil || line != "":
		c.bad = fmt.Errorf("the first line of its standard output is not the handshake of a plugin: %q", clipText(line))
	default:
		c.bad = errors.New("it ended without the handshake of a plugin")
	}
	c.tell.Close()
}

// firstLine reads a line of bounded length.
func firstLine(r *bufio.Reader) (string, error) {
	var line []byte
	for len(line) < maxHandshake {
		b, err := r.ReadByte()
		if err != nil {
			return string(line), err
		}
		if b == '\n' {
			break
		}
		line = append(line, b)
	}
	return strings.TrimSpace(string(line)), nil
}

func (c *child) readStderr() { c.log.copyLines(bufio.NewReaderSize(c.stderr, readBuffer), streamErr) }

// Wait returns after the end of the process.
func (c *child) Wait(context.Context) error {
	<-c.done
	return nil
}

// Kill ends the process and all of its group. Killing twice is a no-op.
func (c *child) Kill(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.pid == 0 || c.reaped {
		return nil
	}
	return syscall.Kill(-c.pid, syscall.SIGKILL)
}

// endForHanging notes why the process is ended; false when it has ended, or is being ended for
// that reason already.
func (c *child) endForHanging(why error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == 0 || c.killed || c.reaped || c.hung != nil {
		return false
	}
	c.hung = why
	return true
}

func (c *child) blameFor() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hung
}

// askToQuit asks the process for its goroutines and its end.
func (c *child) askToQuit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(c.pid, syscall.SIGQUIT) // an error: it has ended
	}
}

// handshakeRefusal returns why the handshake was refused.
func (c *child) handshakeRefusal() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bad
}

// hasCertificate reports whether the plugin gave a certificate.
func (c *child) hasCertificate() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.plain
}

// Stdout returns the handshake line, and the end of the process.
func (c *child) Stdout() io.ReadCloser { return c.handshake }

// Stderr returns nothing but the end of the process.
func (c *child) Stderr() io.ReadCloser { return c.blank }

// Name returns the path of the program.
func (c *child) Name() string { return c.cmd.Path }

// ID returns the number of the process, and "" before its start.
func (c *child) ID() string {
	if pid := c.processNumber(); pid != 0 {
		return fmt.Sprint(pid)
	}
	return ""
}

func (c *child) processNumber() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.pid
}

// Diagnose has nothing to add.
func (c *child) Diagnose(context.Context) string { return "" }

// PluginToHost accepts a socket in the private folder, and with a certificate
// also a port on this machine.
func (c *child) PluginToHost(network, address string) (string, string, error) {
	switch {
	case network == "unix" && filepath.Dir(filepath.Clean(address)) == filepath.Clean(c.socketDir):
		return network, address, nil
	case network == "unix":
		return "", "", fmt.Errorf("it listens on %q, which is not in the folder of PLUGIN_UNIX_SOCKET_DIR", clipText(address))
	case network == "tcp" && c.hasCertificate() && isLoopbackAddress(address):
		return network, address, nil
	}
	return "", "", fmt.Errorf("it listens on %s %q; only a unix socket is accepted, or with a certificate a port of 127.0.0.1", network, clipText(address))
}

// isLoopbackAddress reports whether a host and port are of loopback.
func isLoopbackAddress(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && local.IsLoopback(host)
}

// HostToPlugin changes nothing.
func (c *child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
