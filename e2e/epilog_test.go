//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// epilogs are the hooks of a Slurm that tell agents of the ends of jobs.
type epilogs struct {
	t   *testing.T
	s   *site.Site
	dir string // that everyone may enter
}

// labels are those of the sources that are told: one that has a source slurm of the
// same label beside it, and one that is alone.
func labels() []string { return []string{"rig", "alone"} }

func newEpilogs(t *testing.T, s *site.Site) *epilogs {
	dir, err := os.MkdirTemp("", "bursar-epilog-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	h := &epilogs{t, s, dir}
	program, err := os.ReadFile(filepath.Join(s.Bin, "bursar-epilog"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("bursar-epilog", string(program), 0o755)
	h.write("said", "", 0o666)
	// The hook says when it began, what it said, and how it ended.
	hook := "#!/bin/sh\nstatus=0\n"
	for _, label := range labels() {
		h.write(label+".hcl", fmt.Sprintf("socket = %q\nspool = %q\n", h.socket(label), h.spool(label)), 0o644)
		hook += fmt.Sprintf("%[1]s/bursar-epilog -config %[1]s/%[2]s.hcl 2>>%[1]s/said || status=1\n", dir, label)
		h.makeSpool(label)
	}
	h.write("hook", hook+fmt.Sprintf("[ $status = 0 ] || echo FAILED >>%s/said\nexit $status\n", dir), 0o755)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *epilogs) write(name, text string, mode os.FileMode) {
	path := filepath.Join(h.dir, name)
	if err := programtest.WriteProgram(path, text); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		h.t.Fatal(err)
	}
}

// makeSpool makes the folders as the package of bursar-epilog does.
func (h *epilogs) makeSpool(label string) {
	slurm, err := user.Lookup("slurm")
	if err != nil {
		h.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(slurm.Uid)
	own := filepath.Join(h.spool(label), slurm.Uid)
	if err := os.MkdirAll(own, 0o711); err != nil {
		h.t.Fatal(err)
	}
	if err := os.Chown(own, uid, -1); err != nil {
		h.t.Fatal(err)
	}
}

func (h *epilogs) socket(label string) string { return filepath.Join(h.dir, label+".sock") }
func (h *epilogs) spool(label string) string  { return filepath.Join(h.dir, "spool-"+label) }

// conf are the lines of slurm.conf.
func (h *epilogs) conf() []string {
	return []string{"EpilogSlurmctld=" + h.dir + "/hook", "Epilog=" + h.dir + "/hook"}
}

// sources are those of an agent.
func (h *epilogs) sources(c *rig.Cluster) string {
	text := slurmSource(c, "rig", "", usedCPU)
	for _, label := range labels() {
		text += strings.Replace(slurmSource(c, label, fmt.Sprintf("socket = %q\n    delay = \"1s\"", h.socket(label)), usedCPU),
			`source "slurm"`, `source "slurm-epilog"`, 1)
	}
	return text
}

// waiting counts the epilogs in the spools.
func (h *epilogs) waiting() (n int) {
	for _, label := range labels() {
		for _, pattern := range []string{"*.event", "*/*.event"} {
			files, _ := filepath.Glob(filepath.Join(h.spool(label), pattern)) // a pattern that is right
			n += len(files)
		}
	}
	return n
}

// drain hands over what is in the spools, as the timer does.
func (h *epilogs) drain() {
	h.t.Helper()
	h.s.Eventually("the spools are drained", func() (bool, string) {
		said := ""
		for _, label := range labels() {
			if out, err := h.s.Run("bursar-epilog", "-drain", "-config", filepath.Join(h.dir, label+".hcl")); err != nil {
				said += out + err.Error()
			}
		}
		return h.waiting() == 0 && said == "", fmt.Sprint(h.waiting(), " wait ", said)
	})
}

// finished are the records that the runs of the accounting database must have become
// that have ended.
func finished(c *rig.Cluster, label string) map[string]slurmRecord {
	all := expected(label, c.Runs())
	maps.DeleteFunc(all, func(_ string, r slurmRecord) bool { return !r.Ended })
	return all
}

// await waits until the records are those of the accounting database: with both
// sources all of them, from epilogs alone those of runs that ended.
func (h *epilogs) await(g *site.Aggregator, c *rig.Cluster) {
	h.t.Helper()
	awaitExpected(h.t, h.s, g, c, "rig")
	h.s.Eventually("the records of epilogs alone are those of the accounting database", func() (bool, string) {
		return same(finished(c, "alone"), labelled(h.t, g, "alone"))
	})
}

// harmless checks that no job and no node paid for an epilog.
func (h *epilogs) harmless(c *rig.Cluster) {
	h.t.Helper()
	said, err := os.ReadFile(filepath.Join(h.dir, "said"))
	if err != nil || strings.Contains(string(said), "FAILED") || strings.Contains(string(said), "lost") {
		h.t.Errorf("an epilog failed: %v\n%s", err, said)
	}
	// Slurm drains a node whose Epilog fails.
	if out, err := c.Run("root", "sinfo", "-h", "-N", "-o", "%t"); err != nil || strings.Contains(out, "drain") {
		h.t.Errorf("nodes after their epilogs: %s %v", out, err)
	}
}

func TestEpilogs_Kills_TellOfEachRunOnce(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	h := newEpilogs(t, s)
	c := rig.Slurm(t, rig.Host, rig.WithConf(h.conf()...), rig.WithPath(h.dir))
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: h.sources(c)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	c.Menu()
	h.await(agg, c)

	t.Log("the agent is away: jobs end as they do, and their epilogs wait")
	agent.Kill()
	jobs := []string{c.Submit(rig.Alice, "--wrap", "true"), c.Submit(rig.Bob, "-N2", "--ntasks-per-node=1", "--wrap", "srun true")}
	for _, id := range jobs {
		c.WaitState(id, "COMPLETED")
	}
	s.Eventually("the epilogs wait in the spool", func() (bool, string) {
		return h.waiting() >= 2*5, fmt.Sprint(h.waiting()) // for each label: three nodes' and two of slurmctld
	})
	agent.Start()
	h.drain()
	h.await(agg, c)

	h.kill(agent, c)
	h.drain()
	h.await(agg, c)
	h.harmless(c)
	checkSound(t, agg, agent)
}

// kill kills the agent and its plugins while jobs end, and slurmdbd is away for some of
// the time.
func (h *epilogs) kill(agent *site.Agent, c *rig.Cluster) {
	h.t.Helper()
	var jobs []string
	killing{
		victims: []func(){agent.Restart, agent.KillChildren},
		alive:   []*site.Daemon{agent.Daemon},
		pause:   700 * time.Millisecond,
		before: func(chance *rand.Rand, n int) {
			switch away := 7; {
			case n%20 == 5 && n+away < *kills:
				c.StopDaemon("slurmdbd")
			case n%20 == 5+away:
				c.StartDaemon("slurmdbd")
			}
			if n%2 == 0 {
				jobs = append(jobs, c.Submit(rig.Alice, "-a", "1-3", "--wrap", "sleep 0."+strconv.Itoa(chance.IntN(10))))
			}
		},
	}.run(h.t)
	for _, id := range jobs {
		for task := 1; task <= 3; task++ {
			c.WaitState(fmt.Sprintf("%s_%d", id, task), "COMPLETED")
		}
	}
}
