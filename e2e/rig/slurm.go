//go:build e2e

package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Variant says which Slurm is started.
type Variant int

// The variants.
const (
	Host   Variant = iota // Slurm 22.05, Debian 12's, from the machine itself
	Chroot                // Slurm 24.11, Debian 13's, from the chroot that setup.sh made
)

// String is the variant's Slurm release, "22.05" or "24.11".
func (v Variant) String() string {
	if v == Chroot {
		return "24.11"
	}
	return "22.05"
}

// Variants are all that there are, for tests that hold for each.
func Variants() []Variant { return []Variant{Host, Chroot} }

// The users and accounts of the rig's cluster. Alice may use Physics (her default)
// and Chem, Bob Chem; neither user exists outside the rig.
const (
	ClusterName = "rig"
	Alice       = "alice"
	Bob         = "bob"
	Physics     = "physics"
	Chem        = "chem"
	AliceID     = 21001 // uid and gid
	BobID       = 21002
)

// The partitions. Compute (the default) has the nodes n1 to n3 of CPUsPerNode cores
// each, GPU only n1, which has two GPUs of type "tesla".
const (
	Compute     = "compute"
	GPU         = "gpu"
	CPUsPerNode = 4
)

// Option changes how Slurm is started.
type Option func(*options)

type options struct {
	conf []string
	show []string
}

// WithConf appends lines to slurm.conf. They may name the rig's own directory as
// $RIG.
func WithConf(lines ...string) Option {
	return func(o *options) { o.conf = append(o.conf, lines...) }
}

// WithPath makes a file or directory of the machine visible to Slurm's daemons and
// jobs under the same path, in the Chroot variant too: a hook program, for instance,
// or the directory of a socket that it talks to.
func WithPath(paths ...string) Option {
	return func(o *options) { o.show = append(o.show, paths...) }
}

// Cluster is a running Slurm: munged, MariaDB, slurmdbd, slurmctld and one slurmd
// for each node. It is stopped at the end of the test that started it.
type Cluster struct {
	t       testing.TB
	variant Variant
	dir     string
	box     *box
	daemons map[string]daemon
	running map[string]*server
}

// Slurm starts a Slurm with an empty accounting database and returns when its nodes
// are idle. It needs root. Several may run at the same time.
func Slurm(t testing.TB, v Variant, opts ...Option) *Cluster {
	t.Helper()
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	c := &Cluster{t: t, variant: v, dir: tempDir(t, "slurm"), running: map[string]*server{}}
	if err := c.writeConfig(o); err != nil {
		t.Fatalf("rig: prepare Slurm %s: %v", v, err)
	}
	b, err := newBox(c.dir, c.rootOfVariant(), o.show)
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	c.box = b
	t.Cleanup(c.stopCluster)
	if err := c.startDaemons(); err != nil {
		t.Fatalf("rig: start Slurm %s: %v\n%s", v, err, c.logTails())
	}
	return c
}

// In is the cluster for a part of the test that started it, which fails alone.
func (c *Cluster) In(t testing.TB) *Cluster {
	part := *c
	part.t = t
	return &part
}

// Clear cancels all jobs, lets drained nodes take jobs again, and returns when the nodes
// are idle.
func (c *Cluster) Clear() {
	c.t.Helper()
	for _, user := range []string{Alice, Bob} {
		c.Scancel(user, "--user="+user)
	}
	c.awaitOrFail("an idle cluster", func() error {
		drained, err := c.runAsRoot("sinfo", "-h", "-N", "-p", Compute, "-t", "drain", "-o", "%N")
		for node := range strings.FieldsSeq(drained) {
			_, wrong := c.runAsRoot("scontrol", "update", "NodeName="+node, "State=RESUME")
			err = errors.Join(err, wrong)
		}
		return errors.Join(err, c.allIdle())
	})
}

// BeginAnew makes Slurm forget all jobs, as a purge or a new database does, and start job
// numbers at 1. No job may be running.
func (c *Cluster) BeginAnew() {
	c.t.Helper()
	c.StopDaemon("slurmctld")
	state, err := filepath.Glob(filepath.Join(c.dir, "state", "*"))
	if err != nil {
		c.t.Fatal(err)
	}
	for _, path := range state {
		if err := os.RemoveAll(path); err != nil {
			c.t.Fatal(err)
		}
	}
	c.SQL("delete from rig_step_table; delete from rig_job_table;")
	c.StartDaemon("slurmctld")
	c.Clear()
}

// rootOfVariant is the directory that holds the variant's Debian; "" is the machine's own.
func (c *Cluster) rootOfVariant() string {
	if c.variant == Chroot {
		return requireInstalled(c.t, filepath.Join(Cache(), "trixie"))
	}
	return ""
}

// stopCluster stops everything. When the test has failed it first shows the logs' ends.
func (c *Cluster) stopCluster() {
	if c.t.Failed() {
		c.t.Logf("rig: Slurm %s, ends of the logs:\n%s", c.variant, c.logTails())
	}
	c.box.endProcesses()
}

// startDaemons starts the daemons in order, each when what it needs answers.
func (c *Cluster) startDaemons() error {
	c.daemons = c.daemonSet()
	if err := c.writeWrappers(); err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"munged", c.bootMunge},
		{"mariadb", c.bootDatabase},
		{"slurmdbd", c.bootAccounting},
		{"slurmctld", c.bootController},
		{"slurmd", c.bootNodes},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

func (c *Cluster) bootMunge() error {
	if err := c.startDaemon("munged"); err != nil {
		return err
	}
	return c.awaitReady(func() error { _, err := c.runAsRoot("munge", "-n"); return err })
}

func (c *Cluster) bootDatabase() error {
	// In /tmp, two that are made at the same time would share names.
	_, err := c.runAsRoot("mariadb-install-db", "--no-defaults", "--user=mysql", "--datadir="+c.dir+"/db", "--tmpdir="+c.dir+"/dbtmp",
		"--auth-root-authentication-method=socket", "--skip-test-db", "--skip-name-resolve")
	if err != nil {
		return err
	}
	if err := c.startDaemon("mariadbd"); err != nil {
		return err
	}
	if err := c.awaitReady(func() error { _, err := c.sqlIn("mysql", "select 1"); return err }); err != nil {
		return err
	}
	_, err = c.sqlIn("mysql", "create database "+dbName+"; create user slurm@localhost identified by '"+dbPassword+
		"'; grant all on "+dbName+".* to slurm@localhost; create user slurm@'127.0.0.1' identified by '"+dbPassword+
		"'; grant all on "+dbName+".* to slurm@'127.0.0.1'")
	return err
}

func (c *Cluster) bootAccounting() error {
	if err := c.startDaemon("slurmdbd"); err != nil {
		return err
	}
	if err := c.awaitReady(func() error { _, err := c.runAsRoot("sacctmgr", "-n", "show", "cluster"); return err }); err != nil {
		return err
	}
	for _, line := range associations {
		if _, err := c.runAsRoot("sacctmgr", append([]string{"-i", "-Q"}, strings.Fields(line)...)...); err != nil {
			return err
		}
	}
	return nil
}

// associations are the sacctmgr commands that make the cluster and who may use it.
var associations = []string{
	"add cluster " + ClusterName,
	"add account " + Physics + "," + Chem + " Organization=uni",
	"add user " + Alice + " Account=" + Physics + "," + Chem + " DefaultAccount=" + Physics,
	"add user " + Bob + " Account=" + Chem + " DefaultAccount=" + Chem,
}

func (c *Cluster) bootController() error {
	if err := c.startDaemon("slurmctld"); err != nil {
		return err
	}
	return c.awaitReady(func() error {
		out, err := c.runAsRoot("scontrol", "ping")
		if err == nil && !strings.Contains(out, "UP") {
			return errors.New(strings.TrimSpace(out))
		}
		return err
	})
}

func (c *Cluster) bootNodes() error {
	for _, n := range clusterNodes() {
		if err := c.startDaemon("slurmd-" + n.name); err != nil {
			return err
		}
	}
	return c.awaitReady(c.allIdle)
}

func (c *Cluster) allIdle() error {
	out, err := c.runAsRoot("sinfo", "-h", "-N", "-p", Compute, "-o", "%N %t")
	if err == nil && strings.Count(out, " idle\n") != len(clusterNodes()) {
		return errors.New(strings.TrimSpace(out))
	}
	return err
}

// bootLimit is how long a daemon may take to answer, on a loaded machine too.
const bootLimit = 6 * time.Minute

func (c *Cluster) awaitReady(ready func() error) error {
	deadline := time.Now().Add(bootLimit)
	for {
		err := ready()
		if err == nil || time.Now().After(deadline) || c.anyDead() {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// anyDead says whether a daemon that was started has ended by itself.
func (c *Cluster) anyDead() bool {
	for _, s := range c.running {
		select {
		case <-s.done:
			return true
		default:
		}
	}
	return false
}

// runAsRoot runs a command as root inside the box and returns its standard output.
func (c *Cluster) runAsRoot(name string, args ...string) (string, error) {
	return output(c.command(context.Background(), "root", name, args...))
}

// command prepares a command inside the box with SLURM_CONF set.
func (c *Cluster) command(ctx context.Context, user, name string, args ...string) *exec.Cmd {
	wd := c.dir
	if user == Alice || user == Bob {
		wd = filepath.Join(c.dir, "home", user)
	}
	return c.box.command(ctx, user, wd, []string{"SLURM_CONF=" + c.ConfPath()}, name, args...)
}

// Init is the process id of the first process of the cluster's namespaces, for what
// has to share its network.
func (c *Cluster) Init() int { return c.box.init.Process.Pid }

// output runs cmd and returns its standard output; the error holds what it said.
func output(cmd *exec.Cmd) (string, error) {
	var out, diag strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &diag
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(diag.String()))
	}
	return out.String(), nil
}

// SQL runs statements in slurmdbd's database and returns the rows, tab-separated,
// one a line, without a heading.
func (c *Cluster) SQL(statements string) string {
	c.t.Helper()
	out, err := c.sqlIn(dbName, statements)
	if err != nil {
		c.t.Fatalf("rig: %v", err)
	}
	return out
}

func (c *Cluster) sqlIn(database, statements string) (string, error) {
	cmd := c.command(context.Background(), "root", "mariadb", "--no-defaults", "-S", c.socket(), "-N", "-B", "--default-character-set=utf8mb4", database)
	cmd.Stdin = strings.NewReader(statements)
	return output(cmd)
}

// logTails is the last lines of every log and of what failed jobs may have printed.
func (c *Cluster) logTails() string {
	var b strings.Builder
	for _, pattern := range []string{"log/*.log", "log/m*.out", "home/*/slurm-*.out"} {
		paths, _ := filepath.Glob(filepath.Join(c.dir, pattern))
		for _, path := range paths {
			text, _ := os.ReadFile(path)
			lines := strings.Split(strings.TrimSpace(string(text)), "\n")
			if len(text) > 0 {
				fmt.Fprintf(&b, "== %s\n%s\n", filepath.Base(path), strings.Join(lines[max(0, len(lines)-40):], "\n"))
			}
		}
	}
	return b.String()
}
