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

const (
	gridRoot  = "/var/lib/gridengine"
	gridSpool = "/var/spool/gridengine"
	gridCell  = "default"
	gridAdmin = "sgeadmin"
)

// Grid is a running Grid Engine 8.1.9 of Debian: a qmaster and an execd with four
// slots. It has the parallel environments smp and make, of which make lets jobs
// start slave tasks, and the projects astro and bio. It is stopped at the end of
// the test that started it.
type Grid struct {
	t   testing.TB
	dir string
	box *box
}

// GridEngine starts a Grid Engine with an empty cell and returns when its queue is
// ready. It needs root. Several may run at the same time.
func GridEngine(t testing.TB) *Grid {
	t.Helper()
	requireInstalled(t, "/usr/sbin/sge_qmaster")
	g := &Grid{t: t, dir: tempDir(t, "grid")}
	if err := g.copyCell(); err != nil {
		t.Fatalf("rig: prepare Grid Engine: %v", err)
	}
	var err error
	if g.box, err = newBox(g.dir, "", nil); err != nil {
		t.Fatalf("rig: %v", err)
	}
	t.Cleanup(g.stopGrid)
	if err := g.startDaemons(); err != nil {
		t.Fatalf("rig: start Grid Engine: %v\n%s", err, g.messageEnds())
	}
	return g
}

func (g *Grid) stopGrid() {
	if g.t.Failed() {
		g.t.Logf("rig: Grid Engine, messages:\n%s", g.messageEnds())
	}
	g.box.endProcesses()
}

// copyCell copies the cell that the packages made, and names its host.
func (g *Grid) copyCell() error {
	for _, d := range []string{"etc", "home", "bin", "jobs"} {
		if err := os.Mkdir(filepath.Join(g.dir, d), 0o755); err != nil {
			return err
		}
	}
	users := []account{{Alice, AliceID}, {Bob, BobID}}
	if err := writeEtc(g.dir, "", users); err != nil {
		return err
	}
	for _, u := range users {
		home := filepath.Join(g.dir, "home", u.name)
		if err := os.Mkdir(home, 0o755); err != nil {
			return err
		}
		if err := os.Chown(home, u.id, u.id); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{gridRoot: "root", gridSpool: "spool"} {
		if out, err := exec.Command("cp", "-a", from, filepath.Join(g.dir, to)).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w: %s", from, err, out)
		}
	}
	for name, text := range map[string]string{"act_qmaster": boxHost + "\n", "host_aliases": boxHost + " localhost\n"} {
		if err := os.WriteFile(g.commonPath(name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (g *Grid) commonPath(name string) string {
	return filepath.Join(g.dir, "root", gridCell, "common", name)
}

// Accounting is the path of the accounting file.
func (g *Grid) Accounting() string { return g.commonPath("accounting") }

// Dir is Grid Engine's own directory.
func (g *Grid) Dir() string { return g.dir }

// Commands is a directory of Grid Engine's commands that act on this one from
// anywhere on the machine.
func (g *Grid) Commands() string { return filepath.Join(g.dir, "bin") }

func (g *Grid) startDaemons() error {
	for _, name := range []string{"qstat", "qhost", "qconf", "qacct", "qsub", "qdel"} {
		if err := g.box.writeWrapper(filepath.Join(g.Commands(), name), g.env(), "/usr/bin/"+name); err != nil {
			return err
		}
	}
	for from, to := range map[string]string{"root": gridRoot, "spool": gridSpool} {
		if _, err := g.runAsRoot("mount", "--bind", filepath.Join(g.dir, from), to); err != nil {
			return err
		}
	}
	if err := g.startMaster(); err != nil {
		return err
	}
	if err := g.configureQueue(); err != nil {
		return fmt.Errorf("configure: %w", err)
	}
	if err := g.startDaemon("sge_execd"); err != nil {
		return err
	}
	return g.awaitReady(func() error {
		out, err := g.runAsRoot("qstat", "-f")
		if err == nil && !strings.Contains(out, "lx-") || strings.Contains(out, " au") {
			err = errors.New("the queue is not there: " + out)
		}
		return err
	})
}

func (g *Grid) env() []string { return []string{"SGE_ROOT=" + gridRoot, "SGE_CELL=" + gridCell} }

func (g *Grid) startMaster() error {
	if err := g.startDaemon("sge_qmaster"); err != nil {
		return err
	}
	return g.awaitReady(func() error { _, err := g.runAsRoot("qconf", "-sss"); return err })
}

// startDaemon starts a daemon, which goes into the background.
func (g *Grid) startDaemon(name string) error {
	_, err := g.runAsRoot("/bin/sh", "-c", "install -d -o "+gridAdmin+" /run/gridengine && "+
		"SGE_MASTER_PIDFILE=/run/gridengine/qmaster.pid SGE_EXECD_PIDFILE=/run/gridengine/execd.pid /usr/sbin/"+name+" </dev/null >/dev/null 2>&1")
	return err
}

// KillMaster kills the qmaster; StartMaster brings it back with the state it had.
func (g *Grid) KillMaster() {
	g.t.Helper()
	if _, err := g.runAsRoot("pkill", "-KILL", "-x", "sge_qmaster"); err != nil {
		g.t.Fatalf("rig: kill qmaster: %v", err)
	}
	waitFor(g.t, "end of qmaster", bootLimit, func() error {
		if _, err := g.runAsRoot("pgrep", "-x", "sge_qmaster"); err == nil {
			return errors.New("it still runs")
		}
		return nil
	})
}

// StartMaster starts the qmaster again and returns when it answers. The execd, which
// would take a minute to find it, is started again; its jobs run on.
func (g *Grid) StartMaster() {
	g.t.Helper()
	err := g.startMaster()
	if err == nil {
		_, _ = g.runAsRoot("pkill", "-KILL", "-x", "sge_execd") // it may have ended
		err = g.startDaemon("sge_execd")
	}
	if err != nil {
		g.t.Fatalf("rig: start qmaster: %v", err)
	}
}

// configureQueue makes host, queue, projects and parallel environments, and lets all
// happen within a second.
func (g *Grid) configureQueue() error {
	objects := []struct{ verb, text string }{
		{"-Ae", "hostname " + boxHost + "\nload_scaling NONE\ncomplex_values NONE\nuser_lists NONE\nxuser_lists NONE\nprojects NONE\nxprojects NONE\nusage_scaling NONE\nreport_variables NONE\n"},
		{"-Ahgrp", "group_name @allhosts\nhostlist " + boxHost + "\n"},
		{"-Aprj", "name astro\noticket 0\nfshare 0\nacl NONE\nxacl NONE\n"},
		{"-Aprj", "name bio\noticket 0\nfshare 0\nacl NONE\nxacl NONE\n"},
		{"-Ap", parallelEnvironment("smp", "$pe_slots", "FALSE", "FALSE")},
		{"-Ap", parallelEnvironment("make", "$round_robin", "TRUE", "FALSE")},
		{"-Ap", parallelEnvironment("sum", "$round_robin", "TRUE", "TRUE")},
		{"-Aq", gridQueue()},
	}
	admin := func(args ...string) error {
		line := append([]string{"--reuid", gridAdmin, "--regid", gridAdmin, "--clear-groups", "qconf"}, args...)
		_, err := g.runAsRoot("setpriv", line...)
		return err
	}
	if err := errors.Join(admin("-ah", boxHost), admin("-as", boxHost)); err != nil {
		return err
	}
	for _, o := range objects {
		file := filepath.Join(g.dir, "object")
		if err := os.WriteFile(file, []byte(o.text), 0o644); err != nil {
			return err
		}
		if err := admin(o.verb, file); err != nil {
			return err
		}
	}
	return g.scheduleAtOnce(admin)
}

// scheduleAtOnce makes Grid Engine schedule and write at once.
func (g *Grid) scheduleAtOnce(admin func(...string) error) error {
	for _, c := range []struct {
		show, change, file string
		set                map[string]string
	}{
		{"-ssconf", "-Msconf", "sched", map[string]string{"schedule_interval": "0:0:1", "flush_submit_sec": "1", "flush_finish_sec": "1", "load_formula": "np_load_avg"}},
		{"-sconf", "-Mconf", "global", map[string]string{"reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00"}},
	} {
		text, err := g.runAsRoot("qconf", c.show)
		if err != nil {
			return err
		}
		var b strings.Builder
		for line := range strings.Lines(text) {
			name, _, _ := strings.Cut(line, " ")
			if value, ok := c.set[name]; ok {
				line = name + " " + value + "\n"
			}
			if !strings.HasPrefix(line, "#") {
				b.WriteString(line)
			}
		}
		file := filepath.Join(g.dir, c.file)
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			return err
		}
		if err := admin(c.change, file); err != nil {
			return err
		}
	}
	return nil
}

func parallelEnvironment(name, rule, slaves, summary string) string {
	return "pe_name " + name + "\nslots 999\nuser_lists NONE\nxuser_lists NONE\nstart_proc_args NONE\nstop_proc_args NONE\nallocation_rule " + rule +
		"\ncontrol_slaves " + slaves + "\njob_is_first_task FALSE\nurgency_slots min\naccounting_summary " + summary + "\nqsort_args NONE\n"
}

func gridQueue() string {
	var b strings.Builder
	for _, line := range []string{
		"qname all.q", "hostlist @allhosts", "seq_no 0", "load_thresholds NONE", "suspend_thresholds NONE", "nsuspend 1", "suspend_interval 00:05:00",
		"priority 0", "min_cpu_interval 00:05:00", "processors UNDEFINED", "qtype BATCH INTERACTIVE", "ckpt_list NONE", "pe_list smp make sum", "rerun FALSE",
		"slots 4", "tmpdir /tmp", "shell /bin/sh", "prolog NONE", "epilog NONE", "shell_start_mode posix_compliant", "notify 00:00:60", "initial_state default",
	} {
		b.WriteString(line + "\n")
	}
	for _, name := range []string{"starter_method", "suspend_method", "resume_method", "terminate_method", "owner_list", "user_lists", "xuser_lists",
		"subordinate_list", "complex_values", "projects", "xprojects", "calendar"} {
		b.WriteString(name + " NONE\n")
	}
	for _, name := range []string{"rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem"} {
		b.WriteString("s_" + name + " INFINITY\nh_" + name + " INFINITY\n")
	}
	return b.String()
}

func (g *Grid) awaitReady(ready func() error) error {
	deadline := time.Now().Add(bootLimit)
	for {
		err := ready()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// runAsRoot runs a command as root inside the box.
func (g *Grid) runAsRoot(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	return output(g.box.command(ctx, "root", g.dir, g.env(), name, args...))
}

// As runs a command as user in the user's home.
func (g *Grid) As(user, name string, args ...string) string {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), clientLimit)
	defer cancel()
	out, err := output(g.box.command(ctx, user, filepath.Join(g.dir, "home", user), g.env(), name, args...))
	if err != nil {
		g.t.Fatalf("rig: %v", err)
	}
	return out
}

// Submit runs qsub for a command line as user and returns the job's number.
func (g *Grid) Submit(user, line string, args ...string) string {
	g.t.Helper()
	args = append(append([]string{"-terse", "-b", "y", "-o", "/dev/null", "-e", "/dev/null"}, args...), "/bin/sh", "-c", "'"+line+"'")
	id, _, _ := strings.Cut(strings.TrimSpace(g.As(user, "qsub", args...)), ".")
	return id
}

// Run runs one of Grid Engine's commands as root.
func (g *Grid) Run(name string, args ...string) (string, error) { return g.runAsRoot(name, args...) }

// messageEnds are the ends of what the daemons have written.
func (g *Grid) messageEnds() string {
	var b strings.Builder
	paths, _ := filepath.Glob(filepath.Join(g.dir, "spool/*/messages"))
	more, _ := filepath.Glob(filepath.Join(g.dir, "spool/*/*/messages"))
	for _, path := range append(paths, more...) {
		text, _ := os.ReadFile(path)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		fmt.Fprintf(&b, "== %s\n%s\n", path, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	return b.String()
}
