package program

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/syslog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/deliver"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/spool"
)

// Program is one run of bursar-epilog.
type Program struct {
	Version string
	Getenv  func(string) string
	UID     int
	Stdout  io.Writer
	Stderr  io.Writer

	// Syslog takes what an operator should know of an epilog, whose standard error
	// Slurm may drop. Nil: no one.
	Syslog func(string)
	// Exit ends the process from within; it is called when the time is up.
	Exit func(status int)
}

// Run does what the arguments say and returns the exit status. As an epilog that
// is always 0.
func (p *Program) Run(args []string) (status int) {
	began := time.Now()
	s, usage, config := readSettings(args, p.Stderr)
	switch {
	case errors.Is(usage, flag.ErrHelp):
		return 0
	case usage != nil && p.Getenv("SLURM_JOB_ID") == "":
		fmt.Fprintln(p.Stderr, "bursar-epilog:", usage)
		return 2
	case usage != nil: // a job must not pay for a mistake on the command line
		p.reportError(usage)
		s, _, config = readSettings(nil, p.Stderr)
	}
	if config != nil {
		p.reportError(config)
	}
	switch {
	case s.about:
		fmt.Fprintln(p.Stdout, "bursar-epilog", p.Version)
		return 0
	case s.check:
		return p.checkSetup(s, config)
	case s.drain:
		return p.drainAll(s)
	}
	return p.runEpilog(s, began)
}

// reportError tells the operator.
func (p *Program) reportError(err error) {
	fmt.Fprintln(p.Stderr, "bursar-epilog:", err)
	if p.Syslog != nil {
		p.Syslog(err.Error())
	}
}

// devLog is where a syslog listens.
const devLog = "/dev/log"

// Syslog sends a line to the syslog of this machine, and nothing where none listens.
func Syslog(text string) {
	conn, err := net.DialTimeout("unixgram", devLog, 100*time.Millisecond)
	if err != nil {
		return
	}
	conn.Close()
	w, err := syslog.New(syslog.LOG_WARNING|syslog.LOG_DAEMON, "bursar-epilog")
	if err != nil {
		return
	}
	defer w.Close()                        //nolint:errcheck // nowhere left to report it
	_ = w.Warning(strings.TrimSpace(text)) // nowhere left to report it
}

// runEpilog tells of one job. Half of the time is for the agent, the other half for the
// spool.
func (p *Program) runEpilog(s *settings, began time.Time) (status int) {
	end := began.Add(s.timeout)
	dog := time.AfterFunc(time.Until(end), func() { p.giveUp(s) })
	defer dog.Stop()
	host, _ := os.Hostname() // without a name the event is as good
	e, err := event.FromEnvironment(p.Getenv, host, began)
	if err != nil {
		p.reportError(err)
		if errors.Is(err, event.ErrNoJob) {
			fmt.Fprintln(p.Stderr, "bursar-epilog: -h says how it is used")
		}
		return 0
	}
	ctx, cancel := context.WithDeadline(context.Background(), began.Add(s.timeout/2))
	defer cancel()
	if err := p.sendEvent(ctx, s, e); err != nil {
		p.spoolEvent(s, &e, err)
	}
	return 0
}

// giveUp ends the process: a job does not wait for a disk that hangs.
func (p *Program) giveUp(s *settings) {
	go p.reportError(fmt.Errorf("job %s may be lost to the epilog: neither %s nor the disk answered within %s", p.Getenv("SLURM_JOB_ID"), s.Target.String(), s.timeout))
	time.Sleep(lastWords)
	p.Exit(0)
}

const lastWords = 20 * time.Millisecond

// Bounds of how much of the spool a job's epilog drains: the timer does the rest.
const (
	drainMost = 64
	drainTime = 100 * time.Millisecond
)

// sendEvent sends the event to the agent, and then some of what waits.
func (p *Program) sendEvent(ctx context.Context, s *settings, e event.Event) error {
	line, err := deliver.Dial(ctx, &s.Target)
	if err != nil {
		return err
	}
	defer line.Close() //nolint:errcheck // what was handed over is acknowledged
	if err := line.Send(e); err != nil {
		return err
	}
	until := time.Now().Add(drainTime)
	_, err = spool.Of(s.spool, p.UID).Drain(drainMost, func(e event.Event) error {
		if time.Now().After(until) {
			return errLater
		}
		return skipRefused(line.Send(e))
	})
	if err != nil && !errors.Is(err, errLater) && !errors.Is(err, spool.ErrBusy) {
		p.reportError(fmt.Errorf("drain the spool: %w", err))
	}
	return nil
}

var errLater = errors.New("there is no time for more")

func skipRefused(err error) error {
	if errors.Is(err, deliver.ErrRefused) {
		return fmt.Errorf("%w: %w", spool.ErrSkip, err)
	}
	return err
}

// spoolEvent puts the event into the spool.
func (p *Program) spoolEvent(s *settings, e *event.Event, why error) {
	err := spool.Of(s.spool, p.UID).Put(e)
	if err == nil {
		p.reportError(fmt.Errorf("job %s waits in %s, since %s did not take it: %w", e.JobID(), s.spool, s.Target.String(), why))
		return
	}
	line, _ := e.Line() // it could be written, as it was read
	p.reportError(fmt.Errorf("job %s is lost to the epilog, which could neither tell %s (%w) nor keep it (%w): %s", e.JobID(), s.Target.String(), why, err, line))
}

// drainTimeout bounds how long one event may take while the spool is drained.
const drainTimeout = 30 * time.Second

// drainAll hands over all that waits. The status is 1 when some of it still does.
func (p *Program) drainAll(s *settings) (status int) {
	all, err := spool.All(s.spool, p.UID)
	if err != nil {
		p.reportError(err)
		return 1
	}
	for _, one := range all {
		if err := p.drainOne(s, one); err != nil {
			p.reportError(fmt.Errorf("drain %s: %w", one.Dir, err))
			status = 1
		}
	}
	return status
}

// drainOnce is how many files one connection drains.
const drainOnce = 1000

func (p *Program) drainOne(s *settings, from spool.Spool) error {
	for {
		waiting, err := from.Waiting()
		if err != nil || waiting == 0 {
			return err
		}
		given, err := p.drainSome(s, from)
		if err != nil {
			return err
		}
		if given > 0 {
			fmt.Fprintf(p.Stdout, "handed over %d of %d\n", given, waiting)
		}
		if given < drainOnce {
			return nil
		}
	}
}

func (p *Program) drainSome(s *settings, from spool.Spool) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	line, err := deliver.Dial(ctx, &s.Target)
	if err != nil {
		return 0, err
	}
	defer line.Close() //nolint:errcheck // what was handed over is acknowledged
	return from.Drain(drainOnce, func(e event.Event) error { return skipRefused(line.Send(e)) })
}

// checkSetup says whether an epilog would work here.
func (p *Program) checkSetup(s *settings, config error) (status int) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	tell := func(what string, err error) {
		if err != nil {
			fmt.Fprintf(p.Stdout, "%s: %s\n", what, err)
			status = 1
			return
		}
		fmt.Fprintf(p.Stdout, "%s: good\n", what)
	}
	tell("settings", config)
	tell("agent at "+s.Target.String(), pingAgent(ctx, s))
	mine := spool.Of(s.spool, p.UID)
	tell("spool "+mine.Dir, mine.Try())
	if n, err := mine.Waiting(); err != nil || n > 0 {
		fmt.Fprintf(p.Stdout, "%d jobs wait in the spool\n", n)
	}
	return status
}

func pingAgent(ctx context.Context, s *settings) error {
	line, err := deliver.Dial(ctx, &s.Target)
	if err != nil {
		return err
	}
	defer line.Close() //nolint:errcheck // what was handed over is acknowledged
	return line.Ping()
}
