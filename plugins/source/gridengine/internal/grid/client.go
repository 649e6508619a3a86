package grid

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/getent"
	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// Client asks one cell of Grid Engine.
type Client struct {
	Dir        string // of the commands
	Root, Cell string // SGE_ROOT and SGE_CELL; "" as they are in the environment
	Getent     string
	Timeout    time.Duration // without any output, > 0
}

func (c *Client) runTool(ctx context.Context, name, path string, read func(io.Reader) error, args ...string) error {
	t := process.Tool{Name: name, Path: path, Args: args, Env: c.toolEnvironment(), Timeout: c.Timeout}
	return t.Run(ctx, func(r io.Reader) error {
		if err := read(r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// toolEnvironment is that of this process without what shapes the output of the
// commands.
func (c *Client) toolEnvironment() []string {
	env := []string{"TZ=UTC", "LC_ALL=C"}
	if c.Root != "" {
		env = append(env, "SGE_ROOT="+c.Root)
	}
	if c.Cell != "" {
		env = append(env, "SGE_CELL="+c.Cell)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		switch {
		case name == "TZ", name == "LC_ALL", name == "SGE_ROOT" && c.Root != "", name == "SGE_CELL" && c.Cell != "",
			strings.HasPrefix(name, "SGE_LONG"), strings.HasPrefix(name, "BURSAR_PLUGIN"):
			continue
		}
		env = append(env, kv)
	}
	return env
}

// Hosts returns the hosts with their queues.
func (c *Client) Hosts(ctx context.Context) (hosts []Host, err error) {
	err = c.runTool(ctx, "qhost", filepath.Join(c.Dir, "qhost"), func(r io.Reader) error {
		hosts, err = ReadHosts(r)
		return err
	}, "-F", "mem_total", "-q", "-xml")
	return hosts, err
}

// Jobs calls yield for the jobs that run and wait.
func (c *Client) Jobs(ctx context.Context, yield func(Job)) error {
	return c.runTool(ctx, "qstat", filepath.Join(c.Dir, "qstat"), func(r io.Reader) error { return ReadJobs(r, yield) }, "-u", "*", "-xml")
}

// Groups returns the groups of all users, as far as getent names their members.
func (c *Client) Groups(ctx context.Context) (groups map[string][]string, err error) {
	err = c.runTool(ctx, "getent", c.Getent, func(r io.Reader) error {
		groups, err = getent.ReadGroups(r)
		return err
	}, "group")
	return groups, err
}

const notAll = 2 // getent's status when it does not know all of them

// Names returns the names of those users that have one.
func (c *Client) Names(ctx context.Context, users []string) (names map[string]string, err error) {
	err = c.runTool(ctx, "getent", c.Getent, func(r io.Reader) error {
		names, err = getent.ReadNames(r)
		return err
	}, append([]string{"passwd", "--"}, users...)...)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notAll {
		err = nil
	}
	return names, err
}
