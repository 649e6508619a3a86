//go:build e2e

package rig

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// daemon is how one of Slurm's servers is started: in the foreground, as user.
type daemon struct {
	user string
	line []string
}

// daemonSet is every server by name. The database writes each commit to its log at once, so
// that a kill loses none: slurmctld, killed with it, does not say again that a job has ended.
func (c *Cluster) daemonSet() map[string]daemon {
	set := map[string]daemon{
		"munged": {"munge", []string{"munged", "--foreground", "--force", "--num-threads=2",
			"--key-file=" + c.dir + "/munge/munge.key", "--socket=/run/munge/munge.socket.2",
			"--pid-file=" + c.dir + "/munge/munged.pid", "--log-file=" + c.dir + "/munge/munged.log", "--seed-file=" + c.dir + "/munge/seed"}},
		"mariadbd": {"root", []string{"mariadbd", "--no-defaults", "--user=mysql", "--datadir=" + c.dir + "/db", "--tmpdir=" + c.dir + "/dbtmp", "--socket=" + c.socket(),
			"--pid-file=" + c.dir + "/db/mysqld.pid", "--bind-address=127.0.0.1", fmt.Sprintf("--port=%d", dbPort),
			"--innodb-buffer-pool-size=256M", "--innodb-log-file-size=64M", "--innodb-lock-wait-timeout=900",
			"--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--skip-name-resolve"}},
		"slurmdbd":  {"slurm", []string{"slurmdbd", "-D"}},
		"slurmctld": {"slurm", []string{"slurmctld", "-D"}},
	}
	for _, n := range clusterNodes() {
		set["slurmd-"+n.name] = daemon{"root", []string{"slurmd", "-D", "-N", n.name}}
	}
	return set
}

func (c *Cluster) socket() string { return c.dir + "/db/mysql.sock" }

// startDaemon starts a daemon; what it prints goes to log/NAME.out.
func (c *Cluster) startDaemon(name string) error {
	d, ok := c.daemons[name]
	if !ok {
		return fmt.Errorf("no daemon %q", name)
	}
	out, err := os.OpenFile(filepath.Join(c.dir, "log", name+".out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := c.command(context.Background(), d.user, d.line[0], d.line[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	s, err := startTied(cmd)
	if err == nil {
		c.running[name] = s
	}
	return err
}

// StopDaemon kills one of the daemons: "slurmdbd", "slurmctld", "mariadbd",
// "munged", or "slurmd-n1" and so on. The others stay, and StartDaemon brings it
// back with the state it had.
func (c *Cluster) StopDaemon(name string) {
	c.t.Helper()
	pattern := strings.Join(c.daemons[name].line, " ")
	delete(c.running, name)
	if _, err := c.runAsRoot("pkill", "-KILL", "-x", "-f", pattern); err != nil {
		c.t.Fatalf("rig: stop %s: %v", name, err)
	}
	c.awaitOrFail("end of "+name, func() error {
		if _, err := c.runAsRoot("pgrep", "-x", "-f", pattern); err == nil {
			return fmt.Errorf("%s still runs", name)
		}
		return nil
	})
}

// StartDaemon starts a daemon that StopDaemon ended and returns when it answers.
func (c *Cluster) StartDaemon(name string) {
	c.t.Helper()
	if err := c.startDaemon(name); err != nil {
		c.t.Fatalf("rig: start %s: %v", name, err)
	}
	probe := map[string][]string{
		"slurmdbd":  {"sacctmgr", "-n", "show", "cluster"},
		"slurmctld": {"sinfo", "-h"},
		"munged":    {"munge", "-n"},
		"mariadbd":  {"mariadb-admin", "--no-defaults", "-S", c.socket(), "ping"},
	}[name]
	if probe == nil {
		return
	}
	c.awaitOrFail(name, func() error { _, err := c.runAsRoot(probe[0], probe[1:]...); return err })
}

// awaitOrFail waits until ready returns nil and fails the test when that takes too long.
func (c *Cluster) awaitOrFail(what string, ready func() error) {
	c.t.Helper()
	waitFor(c.t, what, 6*time.Minute, ready)
}
