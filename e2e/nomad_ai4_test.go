//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
)

// snapshot writes what Nomad says now of all tasks named main as ai4-accounting does,
// into a file of a time of its own.
func snapshot(t *testing.T, c *rig.NomadCluster, dir string, at time.Time) {
	t.Helper()
	var allocs []struct {
		ID, Namespace, JobID, ClientStatus string
		TaskStates                         map[string]struct {
			State                 string
			StartedAt, FinishedAt *string
		}
	}
	if err := c.Get("/v1/allocations?namespace=*&task_states=true", &allocs); err != nil {
		t.Fatal(err)
	}
	all := map[string][]object{}
	for _, a := range allocs {
		state, there := a.TaskStates["main"]
		if !there {
			continue
		}
		status := state.State
		if status == "dead" {
			status = a.ClientStatus
		}
		all[a.Namespace] = append(all[a.Namespace], object{
			"job_ID": a.JobID, "name": a.JobID, "status": status, "owner": ownerOf(a.JobID), "alloc_ID": a.ID,
			"submit_time": at.Format("2006-01-02 15:04:05"), "alloc_start": state.StartedAt, "alloc_end": state.FinishedAt,
			"resources": object{"cpu_num": 7, "cpu_MHz": 7, "gpu_num": 0, "memory_MB": 7, "disk_MB": 7},
		})
	}
	text, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, at.Format("2006-01-02T15:04:05")+".json"), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// One Nomad through the snapshots of ai4-accounting and through the source nomad is
// counted once, whichever came first, tasks that were restarted before the first
// snapshot saw them included.
func TestNomad_SnapshotsInEitherOrder_AreOneAccount(t *testing.T) {
	t.Parallel()
	c := rig.Nomad(t)
	s, other := site.New(t), site.New(t) // a site for each order
	w := c.Watch()
	c.Namespace("phys")
	dir := t.TempDir()
	before, after := s.Agent(site.AgentSpec{Name: "before", Sources: nomadSource(c, "")}), other.Agent(site.AgentSpec{Name: "after", Sources: nomadSource(c, "")})
	first, second := s.Aggregator(before), other.Aggregator(after)
	before.Start()
	first.Start()
	second.Start()
	second.AwaitReady()

	began := time.Now().UTC()
	restarted := func(id, long string, restarts int) object {
		return mockJob("phys", id, "batch", long, func(_, group, task object) {
			task["Config"].(object)["exit_code"] = 1
			group["RestartPolicy"] = object{"Attempts": restarts, "Delay": 200 * time.Millisecond, "Interval": time.Hour, "Mode": "fail"}
			group["ReschedulePolicy"] = object{"Attempts": 0, "Unlimited": false}
		})
	}
	c.Register(restarted("module-early", "100ms", 1)) // its first start is over when it is seen first
	awaitOver(s, w, "module-early", 1)
	c.Register(restarted("tool-seen", "2s", 1)) // both of its starts are seen
	c.Register(mockJob("default", "plain", "batch", "3s", nil))
	c.Register(mockJob("default", "web", "service", "1h", nil))
	awaitStarted(s, w, "web")
	for n := range 40 {
		snapshot(t, c, dir, began.Add(time.Duration(n)*time.Second))
		time.Sleep(200 * time.Millisecond)
	}
	awaitOver(s, w, "tool-seen", 1)
	awaitOver(s, w, "plain", 1)
	c.Stop("default", "web")
	awaitOver(s, w, "web", 1)
	snapshot(t, c, dir, began.Add(41*time.Second))

	awaitNomad(t, s, first, w)
	first.Import("cloud", "ai4", dir)
	second.Import("cloud", "ai4", dir)
	if n := len(second.Whole()); n < 5 {
		t.Fatal(n, "records of the snapshots")
	}
	after.Start()
	awaitNomadShown(t, s, second, w)
	for name, agg := range map[string]*site.Aggregator{"Nomad first": first, "snapshots first": second} {
		for range 2 {
			agg.Import("cloud", "ai4", dir)
			awaitNomad(t, s, agg, w)
			if status, err := agg.Status(); err != nil || status.Conflicts != 0 {
				t.Errorf("%s: %+v, %v", name, status, err)
			}
		}
	}
	nomadConverted(t, c, dir)
}

// nomadConverted collects by the configuration of ai4-accounting, and compares with the
// snapshots of the jobs that it counts.
func nomadConverted(t *testing.T, c *rig.NomadCluster, dir string) {
	s := site.New(t)
	config := regexp.MustCompile(`(?m)^\s*(address|ca|cert|key|tls_server_name)\s+=.*$`)
	source := convertedSource(t, s, filepath.Join(site.Top(), "aggregator/internal/convert/testdata/ai4/conf.py"), "")
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: strings.Replace(config.ReplaceAllString(source, ""), "config {", fmt.Sprintf("config {\n address = %q", c.URL), 1)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	other := s.Node(site.NodeSpec{Name: "other"})
	other.Start()
	other.AwaitReady()
	other.Import("ai4eosc", "ai4", dir)
	jobs := func(records map[string]nomadRecord) map[string]nomadRecord {
		out := map[string]nomadRecord{}
		for id, r := range records {
			if r.Namespace != "default" && !strings.Contains(id, "@") { // restarts that snapshots see depend on when they are made
				out[id] = nomadRecord{User: r.User, Namespace: r.Namespace, Job: r.Job}
			}
		}
		return out
	}
	want := jobs(nomadRecords(other))
	s.Eventually("the jobs are those of the snapshots", func() (bool, string) {
		d := cmp.Diff(want, jobs(nomadRecords(agg)))
		return d == "" && len(want) >= 2, d
	})
}

// awaitNomadShown waits until all starts of the watch are there as Nomad tells them.
func awaitNomadShown(t *testing.T, s *site.Site, g *site.Aggregator, w *rig.NomadWatch) {
	t.Helper()
	s.Eventually("Nomad's starts are there", func() (bool, string) {
		got := nomadRecords(g)
		for id, want := range nomadExpected(w) {
			if got[id] != want {
				return false, fmt.Sprintf("%s: %+v, want %+v", id, got[id], want)
			}
		}
		return true, ""
	})
}
