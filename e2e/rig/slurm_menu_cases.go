//go:build e2e

package rig

import (
	"fmt"
	"slices"
	"strings"
)

// menuCases is the menu, in the order of submission.
func menuCases() []menuCase {
	return slices.Concat(longCases(), wholeCases(), neverCases(), oddCases(), interactiveCases())
}

// longCases are jobs that are driven while they run.
func longCases() []menuCase {
	return []menuCase{
		{name: "requeued", user: Bob, start: startRequeued, drive: requeue,
			wants: []want{{state: "REQUEUED"}, {state: "COMPLETED"}}},
		{name: "suspended", user: Alice, args: []string{"--wrap", "sleep 6"}, drive: suspend,
			wants: []want{{state: "COMPLETED"}}},
		{name: "cancelled-running", user: Bob, args: []string{"-N1", "-n2", "--wrap", "sleep 600"},
			drive: func(c *Cluster, id string) { c.WaitState(id, "RUNNING"); pause(); c.Scancel(Bob, id) },
			wants: []want{{state: "CANCELLED", cores: 2}}},
		{name: "running", user: Alice, args: []string{"--wrap", "sleep 86400"},
			drive: func(c *Cluster, id string) { c.WaitState(id, "RUNNING") },
			wants: []want{{state: "RUNNING"}}},
	}
}

// wholeCases run to their end by themselves.
func wholeCases() []menuCase {
	return []menuCase{
		{name: "completed", user: Alice, args: []string{"-N1", "-n2", "--wrap", "sleep 2"},
			wants: []want{{state: "COMPLETED", cores: 2}}},
		{name: "instant", user: Alice, args: []string{"-A", Chem, "--wrap", "true"},
			wants: []want{{state: "COMPLETED"}}},
		{name: "failed", user: Alice, args: []string{"--wrap", "sleep 1; exit 7"},
			wants: []want{{state: "FAILED", exit: 7}}},
		{name: "killed", user: Bob, args: []string{"--wrap", "sleep 1; kill -9 $$"},
			wants: []want{{state: "FAILED", signal: 9}}},
		{name: "array", user: Alice, args: []string{"-a", "1-4%2", "--wrap", "sleep 1; [ $SLURM_ARRAY_TASK_ID != 3 ]"},
			wants: []want{{suffix: "_1", state: "COMPLETED"}, {suffix: "_2", state: "COMPLETED"},
				{suffix: "_3", state: "FAILED", exit: 1}, {suffix: "_4", state: "COMPLETED"}}},
		{name: "array-pending", user: Alice, args: []string{"-H", "-a", "1-3", "--wrap", "sleep 1"},
			drive: func(c *Cluster, id string) { c.Scontrol("release", id+"_1") },
			wants: []want{{suffix: "_1", state: "COMPLETED"}, {suffix: "_[2-3]", state: "PENDING", never: true}}},
		{name: "het", user: Alice, args: []string{"-N1", "-n1", ":", "-N1", "-n2", "--wrap", "srun --het-group=0,1 sleep 1"},
			wants: []want{{suffix: "+0", state: "COMPLETED", steps: []string{"0", "batch", "extern"}},
				{suffix: "+1", state: "COMPLETED", cores: 2, steps: []string{"0", "extern"}}}},
		{name: "gpu", user: Alice, args: []string{"-p", GPU, "--gres=gpu:tesla:2", "--wrap", "sleep 1"},
			wants: []want{{state: "COMPLETED", gpus: 2}}},
		{name: "multi-node", user: Bob, args: []string{"-N2", "--ntasks-per-node=2", "--wrap", "srun sleep 1"},
			wants: []want{{state: "COMPLETED", cores: 4, nodes: 2, steps: []string{"0", "batch", "extern"}}}},
		{name: "steps", user: Alice, args: []string{"--wrap", "srun sleep 1; srun bash -c 'exit 3'; exit 0"},
			wants: []want{{state: "COMPLETED", steps: []string{"0", "1", "batch", "extern"}}}},
	}
}

// neverCases never start.
func neverCases() []menuCase {
	return []menuCase{
		{name: "cancelled-pending", user: Bob, start: startBlocked,
			wants: []want{{state: "CANCELLED", never: true}}},
		{name: "cancelled-held", user: Bob, args: []string{"-H", "--wrap", "true"},
			drive: func(c *Cluster, id string) { c.Scancel(Bob, id) },
			wants: []want{{state: "CANCELLED", never: true}}},
		{name: "held", user: Bob, args: []string{"-H", "--wrap", "true"},
			wants: []want{{state: "PENDING", never: true}}},
		{name: "dependency-never", user: Bob, start: startDependent,
			wants: []want{{state: "CANCELLED", never: true}}},
	}
}

// oddCases have texts that break naive parsers.
func oddCases() []menuCase {
	return []menuCase{
		{name: "comment", user: Alice, args: []string{"--comment", MenuComment, "--wrap", "sleep 2"},
			drive: func(c *Cluster, id string) { c.Scontrol("update", "JobId="+id, "AdminComment="+MenuAdminComment) },
			text:  MenuComment, admin: MenuAdminComment,
			wants: []want{{state: "COMPLETED"}}},
		{name: "not-utf8", user: Alice, args: []string{"--comment", "caf\xe9 au lait", "--wrap", "sleep 2"},
			wants: []want{{state: "COMPLETED"}}},
		{name: "odd-name", user: Bob, args: []string{"-J", MenuName, "--wrap", "sleep 1"},
			stored: strings.ReplaceAll(MenuName, `"`, "`"),
			wants:  []want{{state: "COMPLETED"}}},
	}
}

// interactiveCases have no batch script.
func interactiveCases() []menuCase {
	return []menuCase{
		{name: "srun", user: Alice, start: foreground("srun", "-N1", "-n2", "sleep", "1"),
			wants: []want{{state: "COMPLETED", cores: 2, steps: []string{"0", "extern"}}}},
		{name: "salloc", user: Bob, start: foreground("salloc", "srun", "sleep", "1"),
			wants: []want{{state: "COMPLETED", steps: []string{"0", "extern"}}}},
		{name: "interactive", user: Alice, start: foreground("salloc", "srun", "--interactive", "sleep", "1"),
			wants: []want{{state: "COMPLETED", steps: []string{"extern", "interactive"}}}},
	}
}

func timeoutCase() menuCase {
	return menuCase{name: "timeout", user: Bob, args: []string{"-t1", "--wrap", "sleep 600"},
		wants: []want{{state: "TIMEOUT"}}}
}

// startRequeued submits a job that only ends by itself in its second run.
func startRequeued(c *Cluster, m menuCase) string {
	c.t.Helper()
	return c.Submit(m.user, "-J", m.name, "--requeue", "--wrap", `[ "${SLURM_RESTART_COUNT:-0}" -gt 0 ] || sleep 600; sleep 1`)
}

// requeue puts the job back while it runs. Slurm would let it wait for two minutes,
// in which the first run's step daemons end and its revoked credential ages: a node
// refuses a second run of which the credential is of the same second. So the end of
// those daemons is waited for, and then some seconds more.
func requeue(c *Cluster, id string) {
	c.t.Helper()
	c.WaitState(id, "RUNNING")
	pause()
	c.Scontrol("requeue", id)
	c.awaitOrFail("requeued job "+id+" pending", func() error {
		if out := c.Scontrol("-o", "show", "job", id); !strings.Contains(out, "JobState=PENDING") {
			return fmt.Errorf("%s", out)
		}
		if daemons, err := c.runAsRoot("pgrep", "-a", "-f", `^slurmstepd: \[`+id+`\.`); err == nil {
			return fmt.Errorf("still there: %s", daemons)
		}
		return nil
	})
	pause()
	c.Scontrol("update", "JobId="+id, "StartTime=now")
}

func suspend(c *Cluster, id string) {
	c.t.Helper()
	c.WaitState(id, "RUNNING")
	c.Scontrol("suspend", id)
	c.WaitState(id, "SUSPENDED")
	pause()
	c.Scontrol("resume", id)
}

// startBlocked submits a job for which there is no room, and cancels it at once: it
// would keep others from starting.
func startBlocked(c *Cluster, m menuCase) string {
	c.t.Helper()
	id := c.Submit(m.user, "-J", m.name, "-N3", "--exclusive", "--wrap", "true")
	c.Scancel(m.user, id)
	return id
}

// startDependent submits a job that waits for the success of one that fails.
func startDependent(c *Cluster, m menuCase) string {
	c.t.Helper()
	fails := c.Submit(m.user, "-J", "fails-first", "--wrap", "exit 1")
	return c.Submit(m.user, "-J", m.name, "--dependency=afterok:"+fails, "--kill-on-invalid-dep=yes", "--wrap", "true")
}

// foreground starts a job by a command that returns when the job has ended.
func foreground(name string, args ...string) func(*Cluster, menuCase) string {
	return func(c *Cluster, m menuCase) string {
		c.t.Helper()
		c.mustRun(m.user, name, append([]string{"-J", m.name}, args...)...)
		return c.idByName(m.name)
	}
}

// idByName finds the only job of that name.
func (c *Cluster) idByName(name string) string {
	c.t.Helper()
	var id string
	c.awaitOrFail("job "+name, func() error {
		id = strings.TrimSpace(c.Sacct("-a", "-n", "-X", "-P", "--name", name, "-o", "JobID"))
		if id == "" || strings.Contains(id, "\n") {
			return fmt.Errorf("sacct has ids %q", id)
		}
		return nil
	})
	return id
}
