package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// process is a child, which ends with this program.
type process struct {
	cmd  *exec.Cmd
	log  *journal
	done chan struct{} // closed when it has ended
}

// startProcess starts a program. Its environment is this program's and env.
func startProcess(path string, args, env []string) (*process, error) {
	cmd := exec.Command(path, args...)
	cmd.Env = append(os.Environ(), env...)
	return startCommand(cmd)
}

func startCommand(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, log: newJournal(), done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.Stdout, cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = p.cmd.Wait() // how it ended is in ProcessState
		close(p.done)
	}()
	return p, nil
}

// stopTime is how long a child may take to stop.
const stopTime = 2 * time.Minute

// stopProcess ends the process in order and waits for it.
func (p *process) stopProcess() error {
	select {
	case <-p.done:
		return p.endedError()
	default:
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTime):
		return errors.Join(fmt.Errorf("%s does not stop", p.cmd.Path), p.cmd.Process.Kill())
	}
}

// endedError is the error of a process that has ended although no one asked.
func (p *process) endedError() error {
	return fmt.Errorf("%s has ended: %s; it said last: %s", p.cmd.Path, p.cmd.ProcessState, p.log.lastLines())
}

// checkAlive is an error when the process has ended.
func (p *process) checkAlive() error {
	select {
	case <-p.done:
		return p.endedError()
	default:
		return nil
	}
}

func (p *process) procFile(name string) string {
	return fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, name)
}

// tick is the unit of times in /proc.
const tick = 100

// cpuSeconds returns the seconds that the process has computed so far.
func (p *process) cpuSeconds() float64 {
	text, err := os.ReadFile(p.procFile("stat"))
	if err != nil {
		return 0
	}
	fields := statFields(text)
	return (numberOf(fields[11]) + numberOf(fields[12])) / tick
}

// statFields are the fields of a file stat in /proc from the process's state on.
func statFields(text []byte) []string {
	_, rest, _ := strings.Cut(string(text), ") ")
	return append(strings.Fields(rest), make([]string, 15)...)
}

// anonymousMemory returns the resident memory of the process's own, in MiB.
func (p *process) anonymousMemory() float64 {
	kib, _ := strconv.ParseFloat(strings.TrimSuffix(fileField(p.procFile("status"), "RssAnon"), " kB"), 64)
	return kib / 1024
}

// memoryOrZero is anonymous of a process that may be nil.
func (p *process) memoryOrZero() float64 {
	if p == nil {
		return 0
	}
	return p.anonymousMemory()
}

// watchMemory samples the process's memory until the returned function is called, which
// gives the greatest and the last in MiB.
func (p *process) watchMemory() func() (most, last float64) {
	var most, last float64
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			last = p.anonymousMemory()
			most = max(most, last)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() (float64, float64) {
		cancel()
		<-done
		return most, last
	}
}

// journal keeps the last lines of a process and tells of those that are waited
// for.
type journal struct {
	mu    sync.Mutex
	part  []byte
	lines []string
	waits map[string]chan string
}

func newJournal() *journal { return &journal{waits: map[string]chan string{}} }

// expectLine returns a channel that gets the first line with that text, of the last
// ones or of those to come.
func (j *journal) expectLine(text string) <-chan string {
	j.mu.Lock()
	defer j.mu.Unlock()
	ch := make(chan string, 1)
	for _, line := range j.lines {
		if strings.Contains(line, text) {
			ch <- line
			return ch
		}
	}
	j.waits[text] = ch
	return ch
}

const keptLines = 8

// Write implements io.Writer.
func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.part = append(j.part, b...)
	for {
		line, rest, whole := bytes.Cut(j.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		j.addLine(string(line))
		j.part = rest
	}
}

func (j *journal) addLine(line string) {
	j.lines = append(j.lines, line)
	j.lines = j.lines[max(0, len(j.lines)-keptLines):]
	for text, ch := range j.waits {
		if strings.Contains(line, text) {
			ch <- line
			delete(j.waits, text)
		}
	}
}

func (j *journal) lastLines() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}
