//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// silent is an sacct that answers without rows while the file silent is there, as when
// slurmctld cannot tell slurmdbd of jobs, and slurmdbd itself is well.
func (h *epilogs) silent(c *rig.Cluster) (path string, speak func()) {
	quiet := filepath.Join(h.dir, "silent")
	h.write("silent", "", 0o644)
	h.write("sacct", fmt.Sprintf("#!/bin/sh\ncase \"$*\" in\n*helpformat*|*--version*|*-V*) exec %[2]s \"$@\" ;;\nesac\n[ -e %[1]s ] && exit 0\nexec %[2]s \"$@\"\n", quiet, c.SacctPath()), 0o755)
	return filepath.Join(h.dir, "sacct"), func() {
		h.t.Helper()
		if err := os.Remove(quiet); err != nil {
			h.t.Fatal(err)
		}
	}
}

// told are the records and the quarantined jobs of a source of epilogs alone.
func told(s *site.Site, g *site.Aggregator, label string) (records int, quarantined string) {
	for id := range g.Whole() {
		if strings.HasPrefix(id, label+"-") {
			records++
		}
	}
	out, err := g.Bursar("quarantine", "list", "-format", "csv")
	if err != nil {
		return records, err.Error()
	}
	for line := range strings.Lines(out) {
		if strings.Contains(line, "slurm-epilog") {
			quarantined += line
		}
	}
	return records, quarantined
}

// Slurmd's epilogs know no places in arrays, and those of old Slurms no start. While
// slurmdbd lacks their runs, they become records with the jobs' plain numbers or go to
// quarantine; when it has them, each run is one record with its own id, and nothing is
// left in quarantine, also when the agent was killed in between.
func TestEpilogs_SlurmdbdLackedRuns_AreOneRecordEach(t *testing.T) {
	t.Parallel()
	for _, v := range rig.Variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			s := site.New(t)
			h := newEpilogs(t, s)
			c := rig.Slurm(t, v, rig.WithConf("Epilog="+h.dir+"/hook", "Prolog="+h.dir+"/hook"), rig.WithPath(h.dir))
			sacct, speak := h.silent(c)
			sources := strings.ReplaceAll(h.sources(c), fmt.Sprintf("%q", c.SacctPath()), fmt.Sprintf("%q", sacct))
			sources = strings.ReplaceAll(sources, `delay = "1s"`, "delay = \"1s\"\n    wait = \"5s\"")
			agent := s.Agent(site.AgentSpec{Name: "head1", Sources: sources})
			agg := s.Aggregator(agent)
			agent.Start()
			agg.Start()
			agg.AwaitReady()

			array := c.Submit(rig.Alice, "-a", "1-3", "--wrap", "sleep 1")
			jobs := []string{c.Submit(rig.Bob, "--wrap", "sleep 1"), array + "_1", array + "_2", array + "_3"}
			for _, id := range jobs {
				c.WaitState(id, "COMPLETED")
			}
			s.Eventually("all are told without slurmdbd's word", func() (bool, string) {
				records, quarantined := told(s, agg, "alone")
				return records+strings.Count(quarantined, "head1/slurm-epilog/alone") >= len(jobs), fmt.Sprint(records, " records, ", quarantined)
			})
			agent.Kill()
			agent.Start()
			speak()
			s.Eventually("the records of both are those of the accounting database, and nothing is in quarantine", func() (bool, string) {
				for _, label := range labels() {
					if ok, why := same(finished(c, label), labelled(t, agg, label)); !ok {
						return false, label + ": " + why
					}
				}
				_, quarantined := told(s, agg, "alone")
				return quarantined == "", quarantined
			})
			h.harmless(c)
			said, err := os.ReadFile(filepath.Join(h.dir, "said"))
			if err != nil || !strings.Contains(string(said), "prolog_slurmd") {
				t.Errorf("bursar-epilog as a prolog said nothing: %v %s", err, said)
			}
		})
	}
}
