package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// DevOptions say what is started, and where.
type DevOptions struct {
	Out io.Writer // what the user asked for: where the pages are, what to try
	Err io.Writer // what goes wrong, and what the daemons warn of
	// Executable is the path of bursar; bursar-agent and the folder plugins are
	// beside it.
	Executable string
	// Getenv reads the environment.
	Getenv func(string) string
	// Listen is the address of the pages and the API. When it is taken and
	// ListenChosen is false, another port is taken.
	Listen       string
	ListenChosen bool
	// DataDir keeps everything; empty is a temporary folder, removed at the end.
	DataDir string
	// Config is a folder of HCL files. Source blocks take the place of what is
	// found; everything else is the aggregator's: actions, prices, projects. Empty
	// is none.
	Config string
	// Empty plays no recorded cluster where there is no scheduler.
	Empty bool
	// Verbose shows all that the daemons log.
	Verbose bool
	Color   bool
}

// RunDev starts everything and waits until ctx ends. Then, or when one of the
// daemons ends by itself, which is an error, it stops all of them.
func RunDev(ctx context.Context, opt DevOptions) (err error) {
	dir, remove, err := makeRunFolder(opt.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	site, err := prepareSite(ctx, opt, dir)
	if err != nil {
		return err
	}
	unlink, err := linkDevSocket(opt.Getenv, site.socket, os.Getpid())
	defer func() { err = errors.Join(err, unlink()) }()
	if err != nil {
		return err
	}
	daemons := newProcesses(filepath.Join(dir, "log"), opt)
	defer daemons.close()
	if err := startSite(ctx, daemons, site); err != nil {
		return errors.Join(err, daemons.stopAll())
	}
	if err := followSite(ctx, daemons, site, opt); err != nil && ctx.Err() == nil {
		return errors.Join(err, daemons.stopAll())
	}
	_, err = fmt.Fprintln(opt.Out, "\nStopping.")
	return errors.Join(err, daemons.stopAll())
}

// makeRunFolder makes the folder of a run, and returns what removes it.
func makeRunFolder(chosen string) (dir string, remove func() error, err error) {
	if chosen == "" {
		dir, err = os.MkdirTemp("", "bursar-dev-")
		return dir, func() error { return os.RemoveAll(dir) }, err
	}
	dir, err = filepath.Abs(chosen)
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	return dir, func() error { return nil }, err
}

// startSite starts the agent, and when it listens the aggregator.
func startSite(ctx context.Context, f *processes, s *site) error {
	if err := f.startDaemon("agent", s.agent, withConfigs(s.configs.agent, "-dev")...); err != nil {
		return err
	}
	if err := s.awaitAgent(ctx); err != nil {
		return err
	}
	return f.startDaemon("aggregator", s.bursar, withConfigs(s.configs.aggregator, "aggregator", "-dev")...)
}

// withConfigs adds an option for each configuration file to arguments.
func withConfigs(files []string, args ...string) []string {
	for _, path := range files {
		args = append(args, "-config", path)
	}
	return args
}

// followSite tells the user what is there, and waits for the end.
func followSite(ctx context.Context, f *processes, s *site, opt DevOptions) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-f.ended:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	records, err := s.awaitRecords(ctx)
	if err == nil {
		if err := s.printWelcome(ctx, opt.Out, records); err != nil {
			return err
		}
		<-ctx.Done()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// freePort returns an address of a host, which is this machine, that no one listens on. It is
// below the ports that the kernel gives to connections, so that none of them takes it until a
// daemon listens there.
func freePort(host string) (string, error) {
	const lowest, count = 10_000, 22_000
	for range 100 {
		at := net.JoinHostPort(host, strconv.Itoa(lowest+rand.IntN(count)))
		conn, err := net.DialTimeout("tcp", at, time.Second)
		if err == nil {
			err = conn.Close()
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			return at, nil
		}
	}
	return "", fmt.Errorf("no port of %s is free", host)
}

// listenAddress finds the address where the pages will be.
func listenAddress(opt DevOptions) (string, error) {
	if host, port, err := net.SplitHostPort(opt.Listen); err == nil && port == "0" {
		return freePort(host)
	}
	l, err := net.Listen("tcp", opt.Listen)
	if err == nil {
		at := l.Addr().String()
		return at, l.Close()
	}
	if opt.ListenChosen {
		return "", fmt.Errorf("%w; -listen chooses another address", err)
	}
	at, other := freePort(loopback)
	if _, err := fmt.Fprintf(opt.Err, "%s is taken, so this is on %s.\n", opt.Listen, at); err != nil {
		return at, err
	}
	return at, other
}

// loopback is the host of what only this machine reaches.
const loopback = "127.0.0.1"

// shortly is how long the first records are waited for.
const shortly = 3 * time.Second
