//go:build e2e

package rig

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// clients are the commands for which the cluster has wrappers: Slurm's, and the one
// that knows its users.
var clients = []string{"getent", "sacct", "sacctmgr", "salloc", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "sreport", "srun", "sshare"}

// ConfPath is the path of slurm.conf, the value of SLURM_CONF.
func (c *Cluster) ConfPath() string { return filepath.Join(c.dir, "etc/slurm.conf") }

// Dir is the cluster's own directory; its logs are in log/.
func (c *Cluster) Dir() string { return c.dir }

// BinDir is a directory of commands that act on this cluster from anywhere on the
// machine, with any environment: sacct, scontrol, sbatch and so on. They need root.
func (c *Cluster) BinDir() string { return filepath.Join(c.dir, "bin") }

// SacctPath is the path of a working sacct.
func (c *Cluster) SacctPath() string { return filepath.Join(c.BinDir(), "sacct") }

func (c *Cluster) writeWrappers() error {
	for _, name := range clients {
		err := c.box.writeWrapper(filepath.Join(c.BinDir(), name), []string{"SLURM_CONF=" + c.ConfPath()}, "/usr/bin/"+name)
		if err != nil {
			return err
		}
	}
	return nil
}

// Run runs a command as user (Alice, Bob, "slurm" or "root") where the cluster is, in
// the user's home, and returns its standard output. An exit code other than 0 is an
// error, and so is to take more than three minutes.
func (c *Cluster) Run(user, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	return output(c.command(ctx, user, name, args...))
}

// clientLimit is how long a client command may take.
const clientLimit = 6 * time.Minute

// Submit runs sbatch as user and returns the job's id.
func (c *Cluster) Submit(user string, args ...string) string {
	c.t.Helper()
	id, err := c.TrySubmit(user, args...)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return id
}

// TrySubmit is Submit for a job that Slurm may refuse.
func (c *Cluster) TrySubmit(user string, args ...string) (string, error) {
	out, err := c.Run(user, "sbatch", append([]string{"--parsable"}, args...)...)
	return strings.TrimSpace(out), err
}

// Sacct runs sacct as root and returns what it prints.
func (c *Cluster) Sacct(args ...string) string {
	c.t.Helper()
	return c.mustRun("root", "sacct", args...)
}

// Scontrol runs scontrol as root and returns what it prints.
func (c *Cluster) Scontrol(args ...string) string {
	c.t.Helper()
	return c.mustRun("root", "scontrol", args...)
}

// Scancel runs scancel as user.
func (c *Cluster) Scancel(user string, args ...string) {
	c.t.Helper()
	c.mustRun(user, "scancel", args...)
}

func (c *Cluster) mustRun(user, name string, args ...string) string {
	c.t.Helper()
	out, err := c.Run(user, name, args...)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return out
}

// WaitState waits until the accounting database has the job (as sacct prints ids:
// "7", "7_2", "7+1") in one of the states, and returns which. It looks at the job's
// latest run; a state is one word, without "by UID".
func (c *Cluster) WaitState(job string, states ...string) string {
	c.t.Helper()
	var state string
	c.awaitOrFail(fmt.Sprintf("job %s in %s", job, strings.Join(states, " or ")), func() error {
		var err error
		if state, err = c.State(job); err == nil && !slices.Contains(states, state) {
			err = fmt.Errorf("job %s is %q", job, state)
		}
		return err
	})
	return state
}

// State is the state of the job's latest run, "" while the accounting database does
// not know the job.
func (c *Cluster) State(job string) (string, error) {
	out, err := output(c.command(context.Background(), "root", "sacct", "-n", "-X", "-P", "-D", "-j", job, "-o", "JobID,State"))
	state := ""
	for line := range strings.Lines(out) {
		id, s, _ := strings.Cut(strings.TrimSpace(line), "|")
		if id == job {
			state, _, _ = strings.Cut(s, " ")
		}
	}
	return state, err
}
