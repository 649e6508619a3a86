//go:build e2e

package e2e_test

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
)

// usedCPU is the component that is made from the steps of jobs; without it sacct
// is not asked for them.
const usedCPU = `
    component "TotalCPU" {
      amount = job.cpu_seconds
      kind   = "total"
      when   = job.cpu_seconds != null
    }`

// slurmSource is a source with a mapping as a site would write it; config and
// components go into the blocks config and record.
func slurmSource(c *rig.Cluster, label, config, components string) string {
	return fmt.Sprintf(`
source "slurm" %q {
  interval = "1s"
  config {
    sacct = %q
    %s
  }
  record {
    id   = "${source.label}-${job.id}"
    meta = {
      site_id   = "e2e"
      user_id   = job.user
      group_id  = job.group
      account   = job.Account
      partition = job.Partition
      name      = job.JobName
      comment   = job.Comment != "" ? job.Comment : null
      voms      = try(jsondecode(regex("{.*}", job.Comment)).voms, null)
      project   = try(jsondecode(regex("{.*}", job.Comment)).project, null)
      admin     = try(jsondecode(job.AdminComment).stdout, null)
    }
    component "Cores" { amount = job.AllocCPUS }
    component "Memory" { amount = job.alloc_memory_bytes / 1048576 }
    component "GPUs" {
      amount = job.gpus
      when   = job.gpus > 0
    }
    %s
  }
}
`, label, c.SacctPath(), config, components)
}

// slurmRecord is what a test compares of a record with a run. The times are in
// seconds; what is not there is 0.
type slurmRecord struct {
	Start, Stop, Submit            int64
	State                          string
	Ended                          bool
	Code, Signal                   int32
	Cores, Memory, GPUs            int64
	User, Group, Account           string
	Partition, Name, Comment       string
	Voms, Project, AdminOfComments string
}

// seconds is t, which has to be whole seconds; the zero of the scheduler for none.
func seconds(t testing.TB, id string, at record.Time) int64 {
	if at == record.None {
		return 0
	}
	if at%record.Second != 0 {
		t.Errorf("%s: %s is no whole second", id, at)
	}
	return int64(at / record.Second)
}

func amount(r *record.Record, component string) int64 {
	if c := r.Component(component); c != nil {
		return c.Amount
	}
	return 0
}

func observed(t testing.TB, r record.Record) slurmRecord {
	meta := func(key string) string { return strings.Join(r.Meta.Get(key), "§") }
	if site := meta("site_id"); site != "e2e" {
		t.Errorf("%s: site_id is %q", r.ID, site)
	}
	return slurmRecord{
		Start: seconds(t, r.ID, r.Start), Stop: seconds(t, r.ID, r.Stop), Submit: seconds(t, r.ID, r.Submit),
		State: r.State, Ended: r.Exit.Known, Code: r.Exit.Code, Signal: r.Exit.Signal,
		Cores: amount(&r, "Cores"), Memory: amount(&r, "Memory"), GPUs: amount(&r, "GPUs"),
		User: meta("user_id"), Group: meta("group_id"), Account: meta("account"),
		Partition: meta("partition"), Name: meta("name"), Comment: meta("comment"),
		Voms: meta("voms"), Project: meta("project"), AdminOfComments: meta("admin"),
	}
}

// expected says which records the runs of the accounting database must have
// become, by id. Runs that had no nodes become none; the first run of a job has
// the job's id, later ones have their time of submission behind it.
func expected(label string, runs []rig.Run) map[string]slurmRecord {
	all, known := map[string]slurmRecord{}, map[uint32]bool{}
	for _, r := range runs {
		id := label + "-" + r.JobID
		if known[r.RawID] {
			id += fmt.Sprintf("-%d", r.Submit)
		}
		known[r.RawID] = true
		if r.Ran() {
			all[id] = expectedOf(r)
		}
	}
	return all
}

func expectedOf(r rig.Run) slurmRecord {
	want := slurmRecord{
		Start: r.Start, Stop: r.End, Submit: r.Submit, State: r.State,
		Ended: r.Finished(), Code: int32(r.ExitCode), Signal: int32(r.Signal),
		Cores: r.Cores, Memory: r.MemoryMB, GPUs: r.GPUs,
		User: r.User, Group: r.User, Account: r.Account, Partition: r.Partition, Name: r.Name, Comment: r.Comment,
	}
	switch {
	case r.Comment == rig.MenuComment:
		want.Voms, want.Project = "/atlas/Role=pilot", "P7"
	case strings.HasPrefix(r.Comment, `{"project":`):
		want.Project = strings.Trim(strings.TrimPrefix(r.Comment, `{"project":`), `"}`)
	}
	if r.AdminComment == rig.MenuAdminComment {
		want.AdminOfComments = "/x"
	}
	return want
}

// labelled are the records of one source.
func labelled(t testing.TB, g *site.Aggregator, label string) map[string]slurmRecord {
	out := map[string]slurmRecord{}
	for id, r := range g.Whole() {
		if strings.HasPrefix(id, label+"-") {
			out[id] = observed(t, r)
		}
	}
	return out
}

// same says whether two sets of records are the same, and how the first ones
// differ that are not.
func same(want, got map[string]slurmRecord) (bool, string) {
	var odd []string
	for id, w := range want {
		if g, there := got[id]; !there || g != w {
			odd = append(odd, id)
		}
	}
	for id := range got {
		if _, there := want[id]; !there {
			odd = append(odd, id)
		}
	}
	slices.Sort(odd)
	text := fmt.Sprintf("%d records of %d differ (-accounting +records)", len(odd), len(want))
	for _, id := range odd[:min(len(odd), 5)] {
		w, g := map[string]slurmRecord{}, map[string]slurmRecord{}
		if r, there := want[id]; there {
			w[id] = r
		}
		if r, there := got[id]; there {
			g[id] = r
		}
		text += "\n" + cmp.Diff(w, g)
	}
	return len(odd) == 0, text
}

// awaitExpected waits until a source's records are those of the accounting
// database, which goes on changing meanwhile.
func awaitExpected(t testing.TB, s *site.Site, g *site.Aggregator, c *rig.Cluster, label string) {
	t.Helper()
	s.Eventually("the records of "+label+" are those of the accounting database", func() (bool, string) {
		return same(expected(label, c.Runs()), labelled(t, g, label))
	})
}

// TestSlurm_EachVersion_IsAccountedAsItIs has one cluster of each version for all that
// needs neither hooks nor a history of a year. Each part leaves the cluster idle.
func TestSlurm_EachVersion_IsAccountedAsItIs(t *testing.T) {
	t.Parallel()
	for _, v := range rig.Variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			c := rig.Slurm(t, v)
			t.Run("Facts_FullCluster_AreServed", func(t *testing.T) { slurmFacts(t, c.In(t)) }) // first: no one has run a job
			t.Run("TimeLimit_DefaultMapping_IsOfRunningJobsOnly", func(t *testing.T) { slurmTimeLimit(t, c.In(t)) })
			t.Run("Priorities_GroupsHaveUsed_ArePartitions", func(t *testing.T) { slurmPriorities(t, c.In(t), v) })
			t.Run("Jobs_OfEveryKind_BecomeRecords", func(t *testing.T) { slurmMenu(t, c.In(t)) })
			t.Run("ConvertedConfigurations_OfAuditor_MakeItsRecords", func(t *testing.T) { slurmConverted(t, c.In(t)) })
			if v == rig.Host { // late: it moves all that has run into the past
				t.Run("LateRuns_BehindEveryOverlap_AreFoundAndCollected", func(t *testing.T) { slurmLateRuns(t, c.In(t)) })
			}
			// last: it forgets all jobs
			t.Run("Numbers_GivenAgain_LoseNoRun", func(t *testing.T) { slurmNumbersAgain(t, c.In(t)) })
		})
	}
}

// slurmNumbersAgain makes Slurm forget all jobs and reuse their numbers, with the agent
// stopped and running: recorded runs stay, and new jobs count once.
func slurmNumbersAgain(t *testing.T, c *rig.Cluster) {
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: slurmSource(c, "rig", "", usedCPU)})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	for range 3 {
		c.WaitState(c.Submit(rig.Alice, "--wrap=true"), "COMPLETED")
	}
	want := len(expected("rig", c.Runs())) // other parts compare what they say
	s.Eventually("every run so far is a record", func() (bool, string) {
		n := len(agg.Whole())
		return n == want, fmt.Sprintf("%d records of %d", n, want)
	})
	for life, away := range []bool{true, false} {
		before := agg.Whole()
		if away {
			agent.Stop()
		}
		c.BeginAnew()
		if away {
			agent.Start()
		}
		again := 0
		for n := range 3 {
			id := c.Submit(rig.Bob, "--wrap=true")
			if _, known := before["rig-"+id]; known {
				again++
			}
			c.WaitState(id, "COMPLETED")
			if n == 1 {
				agent.Stop() // what it knew of the jobs before is gone
				agent.Start()
			}
		}
		if want += 3; again == 0 {
			t.Fatalf("no number of life %d was given before", life+2)
		}
		s.Eventually(fmt.Sprintf("the runs of life %d are there", life+2), func() (bool, string) {
			all := agg.Whole()
			return len(all) == want, fmt.Sprintf("%d records of %d", len(all), want)
		})
		for id, r := range before {
			if diff := cmp.Diff(r, agg.Whole()[id]); diff != "" {
				t.Errorf("life %d changed %s: %s", life+2, id, diff)
			}
		}
	}
	checkSound(t, agg, agent)
}

// slurmMenu collects jobs of every kind by two sources, of which the second wants only
// jobs that end well.
func slurmMenu(t *testing.T, c *rig.Cluster) {
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: slurmSource(c, "rig", "", usedCPU) + slurmSource(c, "good", `states = ["COMPLETED"]`, "")})
	agg := s.Aggregator(agent)
	agent.Start()
	agg.Start()
	facts := c.MenuWithTimeout()
	awaitExpected(t, s, agg, c, "rig")
	checkMenu(t, facts, agg.Whole())
	checkWithdrawn(t, s, agg, c, facts)
	checkSound(t, agg, agent)
}

// checkMenu says for each case of the menu what must hold, beside the comparison
// with the accounting database.
func checkMenu(t *testing.T, facts []rig.Fact, all map[string]record.Record) {
	t.Helper()
	again := map[string]bool{}
	for _, f := range facts {
		id := "rig-" + f.JobID
		if again[id] {
			id += fmt.Sprintf("-%d", f.Submit)
		}
		again["rig-"+f.JobID] = true
		r, there := all[id]
		switch {
		case there != f.Ran():
			t.Errorf("%s: the record %s is there: %t", f.Case, id, there)
		case there && r.Open() != (f.State == "RUNNING"):
			t.Errorf("%s: the record %s of a job that is %s is open: %t", f.Case, id, f.State, r.Open())
		}
	}
	cases := map[string]bool{}
	for _, f := range facts {
		cases[f.Case] = true
	}
	if len(cases) < 20 {
		t.Errorf("the menu had only %v", slices.Sorted(maps.Keys(cases)))
	}
}

// checkWithdrawn ends the job that is still running: for one source its record is
// closed, for the other, which does not want cancelled jobs, it is taken back.
func checkWithdrawn(t *testing.T, s *site.Site, g *site.Aggregator, c *rig.Cluster, facts []rig.Fact) {
	t.Helper()
	at := slices.IndexFunc(facts, func(f rig.Fact) bool { return f.Case == "running" })
	id := facts[at].JobID
	if open, there := g.Whole()["good-"+id]; !there || !open.Open() {
		t.Errorf("the running job %s has no open record: %+v", id, open)
	}
	c.Scancel(rig.Alice, id)
	c.WaitState(id, "CANCELLED")
	awaitExpected(t, s, g, c, "rig")
	s.Eventually("the records of good are those of the jobs that ended well", func() (bool, string) {
		want := expected("good", c.Runs())
		maps.DeleteFunc(want, func(_ string, r slurmRecord) bool { return r.State != "COMPLETED" })
		return same(want, labelled(t, g, "good"))
	})
}

// checkSound checks that nothing was refused on the way and that the counts add up.
func checkSound(t *testing.T, g *site.Aggregator, a *site.Agent) {
	t.Helper()
	status, err := g.Status()
	if err != nil || status.Quarantined != 0 || status.Conflicts != 0 {
		t.Errorf("%+v, %v: want nothing in quarantine and no conflict", status, err)
	}
	agent, err := a.Status()
	if err != nil {
		t.Error(err)
	}
	for _, source := range agent.Sources {
		if source.Error != "" || source.Counts.Refused+source.Counts.Quarantined != 0 {
			t.Errorf("source %+v", source)
		}
	}
	checkConserved(t, g)
}

var history = flag.Int("history", 60_000, "finished jobs that Slurm has before the agent comes")

func TestBackfill_OfAYearWhileNewJobsArrive_HasEveryJobOnce(t *testing.T) {
	t.Parallel()
	c := rig.Slurm(t, rig.Host)
	s := site.New(t)
	filled := c.Fill(*history, 365, time.Now().Truncate(time.Second))
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: slurmSource(c, "rig", "", usedCPU)})
	agg := s.Aggregator(agent)
	began := time.Now()
	agent.Start()
	agg.Start()
	news := submitUntil(t, c, agg, int64(*history))
	t.Logf("%d jobs were back-filled in %s, while %d new ones arrived", *history, time.Since(began).Round(100*time.Millisecond), news)
	s.Eventually("the new jobs have ended", func() (bool, string) {
		ended := strings.TrimSpace(c.SQL("select count(*) from rig_job_table where job_name = 'new' and state = 3"))
		return ended == strconv.Itoa(news), ended
	})
	awaitExpected(t, s, agg, c, "rig")
	checkHistory(t, agg, filled, news)
	checkSound(t, agg, agent)
}

// submitUntil submits a short job every second until the aggregator has want
// records, and returns how many. It fails when no record arrives for three minutes.
func submitUntil(t *testing.T, c *rig.Cluster, g *site.Aggregator, want int64) (news int) {
	t.Helper()
	var have int64
	for moved := time.Now(); have < want; time.Sleep(time.Second) {
		if status, err := g.Status(); err == nil && status.Records > have {
			have, moved = status.Records, time.Now()
		}
		if time.Since(moved) > 3*time.Minute {
			t.Fatalf("no record arrived for three minutes; there are %d of %d; MariaDB does\n%s", have, want, c.SQL("show full processlist"))
		}
		c.Submit(rig.Alice, "-J", "new", "--wrap", "sleep 1")
		news++
	}
	return news
}

// checkHistory compares the records of a filled history with its sums, which were
// computed without the database.
func checkHistory(t *testing.T, g *site.Aggregator, want rig.Filled, news int) {
	t.Helper()
	got := rig.Filled{FirstJob: want.FirstJob, LastJob: want.LastJob, Start: want.Start, End: want.End,
		ByAccount: map[string]int64{}, ByUser: map[string]int64{}, ByState: map[string]int{}}
	others := 0
	for _, r := range g.Whole() {
		if r.Meta.Get("name")[0] == "new" {
			others++
			continue
		}
		elapsed, _ := r.Runtime()
		used := elapsed * amount(&r, "Cores")
		got.Jobs++
		got.CoreSeconds += used
		got.GPUSeconds += elapsed * amount(&r, "GPUs")
		got.CPUSeconds += amount(&r, "TotalCPU")
		got.ByAccount[r.Meta.Get("account")[0]] += used
		got.ByUser[r.Meta.Get("user_id")[0]] += used
		got.ByState[r.State]++
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-history +records)\n%s", diff)
	}
	if others != news {
		t.Errorf("%d records of the %d new jobs", others, news)
	}
}
