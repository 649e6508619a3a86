// Package condor asks HTCondor's commands: condor_history, condor_q, condor_status and
// condor_config_val.
package condor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
	"github.com/bursar-accounting/bursar/plugins/source/htcondor/internal/classad"
)

// Client asks one schedd, or a pool.
type Client struct {
	Dir     string        // of the commands
	Config  string        // CONDOR_CONFIG; "" as it is in the environment
	Schedd  string        // "" for that of the machine
	Pool    string        // "" for that of the configuration
	Timeout time.Duration // without any output, > 0
}

func (c *Client) runTool(ctx context.Context, name string, read func(io.Reader) error, args ...string) error {
	t := process.Tool{Name: name, Path: filepath.Join(c.Dir, name), Args: args, Env: c.toolEnvironment(), Timeout: c.Timeout,
		Known: map[string]error{"No Job Run Instance recordings": ErrNoEpochs}}
	return t.Run(ctx, func(r io.Reader) error {
		if err := read(r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

func (c *Client) toolEnvironment() []string {
	env := []string{"TZ=UTC", "LC_ALL=C"}
	if c.Config != "" {
		env = append(env, "CONDOR_CONFIG="+c.Config)
	}
	for _, kv := range os.Environ() {
		name, _, _ := strings.Cut(kv, "=")
		if name == "TZ" || name == "LC_ALL" || name == "CONDOR_CONFIG" && c.Config != "" || strings.HasPrefix(name, "BURSAR_PLUGIN") {
			continue
		}
		env = append(env, kv)
	}
	return env
}

// scheddArgs are the arguments that say whom to ask.
func (c *Client) scheddArgs() (args []string) {
	if c.Schedd != "" {
		args = append(args, "-name", c.Schedd)
	}
	if c.Pool != "" {
		args = append(args, "-pool", c.Pool)
	}
	return args
}

// Value is a parameter of HTCondor's configuration.
func (c *Client) Value(ctx context.Context, name string) (string, error) {
	var text []byte
	err := c.runTool(ctx, "condor_config_val", func(r io.Reader) (err error) {
		text, err = io.ReadAll(io.LimitReader(r, 64<<10))
		return err
	}, name)
	return strings.TrimSpace(string(text)), err
}

// Yield takes an ad with its text; err is why it cannot be read. Both are lent.
type Yield func(ad *classad.Ad, raw []byte, err error) error

// Query is what to ask condor_history.
type Query struct {
	Epochs      bool     // runs in place of jobs
	Constraints []string // all of which hold
	Since       string   // stop at the first ad, from the newest on, for which this is true
	Limit       int      // 0: all
}

// History calls yield for the ads of past jobs or their runs, the newest first.
func (c *Client) History(ctx context.Context, q Query, yield Yield) error {
	args := c.scheddArgs()
	if q.Epochs {
		args = append(args, "-epochs")
	}
	args = append(args, "-json", "-backwards")
	for _, text := range q.Constraints {
		args = append(args, "-constraint", text)
	}
	if q.Since != "" {
		args = append(args, "-since", q.Since)
	}
	if q.Limit > 0 {
		args = append(args, "-limit", fmt.Sprint(q.Limit))
	}
	return c.runTool(ctx, "condor_history", func(r io.Reader) error { return classad.ReadJSON(r, yield) }, args...)
}

// ErrNoEpochs is the error of a pool that writes no epochs.
var ErrNoEpochs = errors.New("the pool writes no epoch history")

// Columns calls yield with the values of attributes of past jobs, or of their runs, for
// which an expression is true.
func (c *Client) Columns(ctx context.Context, epochs bool, constraint string, names []string, yield func([]string) error) error {
	args := c.scheddArgs()
	if epochs {
		args = append(args, "-epochs")
	}
	args = append(args, "-constraint", constraint, "-af:t")
	return c.runTool(ctx, "condor_history", func(r io.Reader) error {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			values := strings.Split(lines.Text(), "\t")
			if len(values) != len(names) {
				return fmt.Errorf("a line has %d columns, not %d: %.200q", len(values), len(names), lines.Text())
			}
			if err := yield(values); err != nil {
				return err
			}
		}
		return lines.Err()
	}, append(args, names...)...)
}
