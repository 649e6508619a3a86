//go:build e2e

package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

func nomadSource(c *rig.NomadCluster, config string) string {
	return fmt.Sprintf("source \"nomad\" \"cloud\" {\n  config {\n    address = %q\n    %s\n  }\n}\n", c.URL, config)
}

type object = map[string]any

// mockJob is a job with a group of one task that runs for a while without a process.
// Change may change the job, its group and its task.
func mockJob(namespace, id, typ, runFor string, change func(job, group, task object)) object {
	task := object{"Name": "main", "Driver": "mock_driver", "Config": object{"run_for": runFor}, "Resources": object{"CPU": 100, "MemoryMB": 64}}
	group := object{"Name": "g", "Count": 1, "EphemeralDisk": object{"SizeMB": 300}}
	job := object{
		"ID": id, "Name": id, "Namespace": namespace, "Type": typ, "Datacenters": []string{"*"},
		"Meta": object{"owner": "u-" + id, "owner_name": "U " + id, "owner_email": id + "@example.org"},
	}
	if change != nil {
		change(job, group, task)
	}
	if group["Tasks"] == nil {
		group["Tasks"] = []object{task}
	}
	job["TaskGroups"] = []object{group}
	return job
}

// nomadRecord is what a test compares of a record with a start. The times are in
// microseconds; what is not there is 0.
type nomadRecord struct {
	Start, Stop                int64
	User, Namespace, Job, Task string
	Cores, MHz, Memory         int64
	Estimated                  string
}

// nomadExpected says which records the starts of a watch must have become.
func nomadExpected(w *rig.NomadWatch) map[string]nomadRecord {
	allocations := w.Allocations()
	out := map[string]nomadRecord{}
	for _, s := range w.Starts() {
		a := allocations[s.Allocation]
		id := "cloud-" + s.Allocation + "-" + s.Task
		if !s.First {
			id += fmt.Sprintf("@%d", s.Start/1e6)
		}
		r := nomadRecord{Start: s.Start / 1000, User: ownerOf(a.JobID), Namespace: a.Namespace, Job: a.JobID, Task: s.Task}
		r.Stop = s.Stop / 1000
		given := a.AllocatedResources.Tasks[s.Task]
		r.Cores, r.MHz, r.Memory = int64(len(given.Cpu.ReservedCores)), given.Cpu.CpuShares, given.Memory.MemoryMB
		out[id] = r
	}
	return out
}

// ownerOf is the owner of a mockJob; children of a job have their parent's.
func ownerOf(job string) string {
	parent, _, _ := strings.Cut(job, "/")
	return "u-" + parent
}

func nomadRecords(g *site.Aggregator) map[string]nomadRecord {
	out := map[string]nomadRecord{}
	for id, r := range g.Whole() {
		meta := func(key string) string { return strings.Join(r.Meta.Get(key), "§") }
		n := nomadRecord{Start: int64(r.Start), User: meta("user_id"), Namespace: meta("group_id"), Job: meta("job"), Task: meta("task"),
			Cores: amount(&r, "Cores"), MHz: amount(&r, "MHz"), Memory: amount(&r, "Memory"), Estimated: meta("estimated")}
		if r.Stop != record.None {
			n.Stop = int64(r.Stop)
		}
		out[id] = n
	}
	return out
}

// awaitNomad waits until the records are the starts of the watch.
func awaitNomad(t *testing.T, s *site.Site, g *site.Aggregator, w *rig.NomadWatch) {
	t.Helper()
	s.Eventually("the records are Nomad's starts", func() (bool, string) {
		if !g.Ready() {
			return false, "the aggregator is not ready"
		}
		want, got := nomadExpected(w), nomadRecords(g)
		for _, records := range []map[string]nomadRecord{want, got} { // purgeRunning looks at it
			maps.DeleteFunc(records, func(_ string, r nomadRecord) bool { return r.Job == "purged" })
		}
		diff := cmp.Diff(want, got)
		return diff == "", "(-Nomad +records)\n" + diff[:min(len(diff), 4000)]
	})
}

// awaitOver waits until a job has so many allocations, all of them over.
func awaitOver(s *site.Site, w *rig.NomadWatch, job string, allocations int) {
	s.Eventually(fmt.Sprintf("%d allocations of %s are over", allocations, job), func() (bool, string) {
		over, all := 0, w.Of(job)
		for _, a := range all {
			if a.Over() {
				over++
			}
		}
		return len(all) == allocations && over == allocations, fmt.Sprintf("%d of %d are", over, len(all))
	})
}

func awaitStarted(s *site.Site, w *rig.NomadWatch, job string) {
	s.Eventually(job+" has started", func() (bool, string) {
		for _, a := range w.Of(job) {
			if a.ClientStatus == "running" {
				return true, ""
			}
		}
		return false, fmt.Sprint(w.Of(job))
	})
}

func TestNomad_EveryKindOfTask_IsCountedOnce(t *testing.T) {
	t.Parallel()
	c := rig.Nomad(t)
	s := site.New(t)
	w := c.Watch()
	c.Namespace("phys")
	// What comes and is purged in between is told by the event stream alone.
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: nomadSource(c, "list_interval = \"10m\"\n directory_interval = \"1s\"\n")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	nomadMenu(c, s, w)
	awaitNomad(t, s, agg, w)

	// Jobs that are over and purged within a second or two.
	for i := range 3 {
		id := fmt.Sprintf("brief%d", i)
		c.Register(mockJob("phys", id, "batch", "200ms", nil))
		awaitOver(s, w, id, 1)
		c.Purge("phys", id)
		c.Collect()
	}
	awaitNomad(t, s, agg, w)
	purgeRunning(t, s, c, agg, w)

	// The server is killed; tasks end and jobs come meanwhile and after.
	c.Register(mockJob("default", "through", "batch", "3s", nil))
	awaitStarted(s, w, "through")
	c.KillServer()
	c.StartServer()
	c.AwaitServer()
	c.Register(mockJob("default", "after", "batch", "100ms", nil))
	awaitOver(s, w, "through", 1)
	awaitOver(s, w, "after", 1)
	c.Stop("phys", "web")
	c.Collect()
	s.Eventually("web has stopped", func() (bool, string) {
		return !slices.ContainsFunc(w.Of("web"), func(a rig.NomadAllocation) bool { return !a.Over() }), ""
	})
	awaitNomad(t, s, agg, w)
	checkSound(t, agg, agent)
	checkNomadFacts(t, agent)
	example := filepath.Join(site.Top(), "hcl/examples/agent-nomad.hcl")
	if out, err := s.Run("bursar-agent", "-check", "-dev", "-config", example); err != nil {
		t.Error(out, err)
	}
}

// purgeRunning purges a job that runs. Nomad drops its allocation at once, so that it
// says of no end but the purge.
func purgeRunning(t *testing.T, s *site.Site, c *rig.NomadCluster, g *site.Aggregator, w *rig.NomadWatch) {
	t.Helper()
	c.Register(mockJob("phys", "purged", "service", "1h", nil))
	awaitStarted(s, w, "purged")
	id := "cloud-" + w.Of("purged")[0].ID + "-main"
	s.Eventually("the run is counted", func() (bool, string) { _, there := nomadRecords(g)[id]; return there, "" })
	before := time.Now()
	c.Purge("phys", "purged")
	after := time.Now()
	s.Eventually("the run ends with the purge", func() (bool, string) {
		r := nomadRecords(g)[id]
		return r.Stop >= before.UnixMicro() && r.Stop <= after.UnixMicro() && r.Estimated == "true" && r.User == "u-purged", fmt.Sprintf("%+v, purged at %s", r, before)
	})
}

// nomadMenu has jobs of every kind, and waits for those that end.
func nomadMenu(c *rig.NomadCluster, s *site.Site, w *rig.NomadWatch) {
	c.Register(mockJob("phys", "batch", "batch", "1s", func(_, group, task object) {
		group["Count"] = 2
		task["Resources"] = object{"Cores": 1, "MemoryMB": 64, "Devices": []object{{"Name": "nomad/file/mock", "Count": 1}}}
		pre := object{"Name": "pre", "Driver": "mock_driver", "Config": object{"run_for": "50ms"}, "Resources": object{"CPU": 50, "MemoryMB": 20},
			"Lifecycle": object{"Hook": "prestart", "Sidecar": false}}
		group["Tasks"] = []object{task, pre}
	}))
	c.Register(mockJob("default", "fails", "batch", "200ms", func(_, group, task object) {
		task["Config"].(object)["exit_code"] = 7
		group["RestartPolicy"] = object{"Attempts": 2, "Delay": 200 * time.Millisecond, "Interval": time.Hour, "Mode": "fail"}
		group["ReschedulePolicy"] = object{"Attempts": 1, "Interval": time.Hour, "Delay": 5 * time.Second, "DelayFunction": "constant", "Unlimited": false}
	}))
	// More restarts than Nomad has events for.
	c.Register(mockJob("default", "loops", "batch", "100ms", func(_, group, task object) {
		task["Config"].(object)["exit_code"] = 1
		group["RestartPolicy"] = object{"Attempts": 8, "Delay": 200 * time.Millisecond, "Interval": time.Hour, "Mode": "fail"}
		group["ReschedulePolicy"] = object{"Attempts": 0, "Unlimited": false}
	}))
	c.Register(mockJob("phys", "web", "service", "1h", nil))
	c.Register(mockJob("default", "cron", "batch", "100ms", func(job, _, _ object) {
		job["Periodic"] = object{"Enabled": true, "Spec": "0 0 1 1 *", "SpecType": "cron"}
	}))
	c.Register(mockJob("default", "param", "batch", "100ms", func(job, _, _ object) {
		job["ParameterizedJob"] = object{"MetaOptional": []string{"run"}}
	}))
	for i := range 2 {
		c.Do(http.MethodPut, "/v1/job/param/dispatch", object{"Meta": object{"run": fmt.Sprint(i)}}, nil)
	}
	c.Do(http.MethodPut, "/v1/job/cron/periodic/force", nil, nil)
	awaitStarted(s, w, "web")
	c.Register(mockJob("phys", "web", "service", "2h", nil)) // a new version, which replaces the allocation
	awaitOver(s, w, "batch", 2)
	awaitOver(s, w, "fails", 2)
	awaitOver(s, w, "loops", 1)
	s.Eventually("web is replaced", func() (bool, string) {
		all := w.Of("web")
		return len(all) == 2 && all[0].Over() != all[1].Over(), fmt.Sprint(all)
	})
	s.Eventually("the children are over", func() (bool, string) {
		over := 0
		for _, a := range w.Allocations() {
			if strings.Contains(a.JobID, "/") && a.Over() {
				over++
			}
		}
		return over == 3, fmt.Sprint(over)
	})
}

// checkNomadFacts compares what the agent was told beside records with the rig's
// configuration.
func checkNomadFacts(t *testing.T, a *site.Agent) {
	t.Helper()
	a.Stop()
	got := facts(a)
	if len(got.Capacity) == 0 || len(got.Census) == 0 || len(got.Directory) == 0 {
		t.Fatalf("%+v", got)
	}
	has := map[string]int64{}
	for _, component := range got.Capacity[len(got.Capacity)-1].Components {
		has[component.Name] = component.Amount
	}
	if has["MHz"] != 100_000 || has["Memory"] != 100_000 || has["Cores"] == 0 {
		t.Errorf("capacity %v", has)
	}
	people := map[string]wire.DirectoryRow{}
	for _, p := range got.Directory[len(got.Directory)-1].Rows {
		people[p.User] = p
	}
	if p := people["u-web"]; p.Name != "U web" || p.Address != "web@example.org" || !slices.Equal(p.Groups, []string{"phys"}) {
		t.Errorf("directory %+v", people)
	}
	if len(got.Refused) != 0 {
		t.Errorf("refused: %v", got.Refused)
	}
}

func TestNomad_Kills_CountEachStartOnce(t *testing.T) {
	t.Parallel()
	c := rig.Nomad(t)
	s := site.New(t)
	w := c.Watch()
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: nomadSource(c, `list_interval = "1s"`)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	jobs := 0
	killing{
		victims: []func(){agent.Restart, agent.KillChildren, func() { c.KillServer(); c.StartServer() }},
		alive:   []*site.Daemon{agent.Daemon, agg.Daemon},
		pause:   time.Millisecond, // what is registered takes its time
		before: func(chance *rand.Rand, _ int) {
			forget(c, agg, w, jobs)
			for range 2 {
				jobs++
				c.Register(mockJob("default", fmt.Sprintf("j%d", jobs), "batch", fmt.Sprintf("%dms", 50+chance.IntN(2500)), func(_, group, task object) {
					task["Config"].(object)["exit_code"] = chance.IntN(2)
					group["Count"] = 1 + chance.IntN(2)
					group["RestartPolicy"] = object{"Attempts": chance.IntN(3), "Delay": 200 * time.Millisecond, "Interval": time.Hour, "Mode": "fail"}
					group["ReschedulePolicy"] = object{"Attempts": 0, "Unlimited": false}
				}))
			}
		},
	}.run(t)
	s.Eventually("all jobs are over", func() (bool, string) {
		seen := map[string]bool{}
		for _, a := range w.Allocations() {
			if !a.Over() {
				return false, a.JobID + " is not"
			}
			seen[a.JobID] = true
		}
		return len(seen) == jobs, fmt.Sprintf("%d of %d were seen", len(seen), jobs)
	})
	awaitNomad(t, s, agg, w)
	checkSound(t, agg, agent)
	t.Logf("%d starts of %d jobs, seed %d", len(w.Starts()), jobs, *seed)
}

// forget purges a job of which everything is counted, and has Nomad collect what is over once
// all of that is counted.
func forget(c *rig.NomadCluster, g *site.Aggregator, w *rig.NomadWatch, jobs int) {
	if !g.Ready() {
		return
	}
	records := nomadRecords(g)
	counted := map[string]bool{}
	for id, want := range nomadExpected(w) {
		_, known := counted[want.Job]
		counted[want.Job] = (!known || counted[want.Job]) && want.Stop > 0 && records[id] == want
	}
	over := func(job string) bool {
		return !slices.ContainsFunc(w.Of(job), func(a rig.NomadAllocation) bool { return !a.Over() })
	}
	all, purged := len(counted) == jobs, false
	for job, whole := range counted {
		if whole = whole && over(job); whole && !purged {
			c.Purge("default", job)
			purged = true
		}
		all = all && whole
	}
	if all { // Nomad takes every job that is over, also where the source has not read its user yet
		c.Collect()
	}
}
