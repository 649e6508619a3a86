//go:build e2e

package rig_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
)

// That jobs of every kind reach the accounting database is what the test of Slurm beside
// this package begins with.
func TestSlurm_EachVersion_AccountsServesAndComesBack(t *testing.T) {
	t.Parallel()
	for _, v := range rig.Variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			c := rig.Slurm(t, v)
			t.Run("Fill_History_IsServedBySacct", func(t *testing.T) { servesWhatFillWrote(t, c.In(t)) }) // first: it counts all jobs
			t.Run("Job_Ran_IsAccounted", func(t *testing.T) { accountsAJob(t, c.In(t), v) })
			t.Run("Daemon_Stopped_ComesBackWithItsState", func(t *testing.T) { comesBack(t, c.In(t)) })
		})
	}
}

func accountsAJob(t *testing.T, c *rig.Cluster, v rig.Variant) {
	id := c.Submit(rig.Alice, "-n2", "--wrap", "exit 7")
	c.WaitState(id, "FAILED")
	cmd := exec.Command(c.SacctPath(), "-n", "-X", "-P", "-j", id, "-o", "User,Account,NCPUS,ExitCode")
	cmd.Env = []string{"PATH=/usr/bin:/usr/sbin"}
	out, err := cmd.CombinedOutput()
	if got, want := strings.TrimSpace(string(out)), "alice|physics|2|7:0"; err != nil || got != want {
		t.Errorf("sacct by its wrapper: %q, %v; want %q", got, err, want)
	}
	if got := c.Sacct("-V"); !strings.Contains(got, v.String()) {
		t.Errorf("sacct -V: %q, want %s", got, v)
	}
}

func servesWhatFillWrote(t *testing.T, c *rig.Cluster) {
	f := c.Fill(20000, 90, time.Now())
	out := c.Sacct("-a", "-n", "-X", "-P", "-D", "-S", f.Start.Format("2006-01-02T15:04:05"), "-o", "NCPUS,ElapsedRaw")
	var jobs int
	var sum int64
	for line := range strings.Lines(out) {
		var cpus, elapsed int64
		if _, err := fmt.Sscanf(line, "%d|%d", &cpus, &elapsed); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		jobs, sum = jobs+1, sum+cpus*elapsed
	}
	if jobs != f.Jobs || sum != f.CoreSeconds {
		t.Errorf("sacct has %d jobs of %d core-seconds, want %d of %d", jobs, sum, f.Jobs, f.CoreSeconds)
	}
}

func comesBack(t *testing.T, c *rig.Cluster) {
	before := c.Submit(rig.Alice, "--wrap", "sleep 1")
	c.WaitState(before, "COMPLETED")
	for _, name := range []string{"slurmdbd", "slurmctld", "mariadbd", "slurmd-n1"} {
		c.StopDaemon(name)
		if err := exec.Command(c.SacctPath(), "-n", "-j", before).Run(); name == "slurmdbd" && err == nil {
			t.Error("sacct succeeded without slurmdbd")
		}
		c.StartDaemon(name)
	}
	if got := c.WaitState(before, "COMPLETED"); got != "COMPLETED" {
		t.Errorf("job is %s", got)
	}
	c.WaitState(c.Submit(rig.Bob, "-w", "n1", "--wrap", "exit 2"), "FAILED")
}

func TestPostgres_Started_AnswersOnItsSocket(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("psql", rig.Postgres(t), "-Atc", "show server_version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "15.") {
		t.Errorf("psql: %q, %v", out, err)
	}
}

func TestPython_Installed_HasAuditorsClient(t *testing.T) {
	t.Parallel()
	out, err := exec.Command(rig.Python(t), "-c", "import pyauditor, tzlocal; print(pyauditor.Record)").CombinedOutput()
	if err != nil {
		t.Errorf("python: %q, %v", out, err)
	}
}
