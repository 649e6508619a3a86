//go:build e2e

package e2e_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/e2e/rig"
	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// factsOf are the facts among an agent's frames.
type factsOf struct {
	Capacity  []wire.Capacity
	Census    []wire.Census
	Directory []wire.Directory
	Watermark []record.Time
	Refused   []string
}

func facts(a *site.Agent) (out factsOf) {
	for _, f := range a.Frames() {
		switch f.Kind {
		case wire.KindCapacity:
			out.Capacity = append(out.Capacity, f.Capacity)
		case wire.KindCensus:
			out.Census = append(out.Census, f.Census)
		case wire.KindDirectory:
			out.Directory = append(out.Directory, f.Directory)
		case wire.KindWatermark:
			out.Watermark = append(out.Watermark, f.Watermark)
		case wire.KindQuarantine:
			out.Refused = append(out.Refused, f.Quarantine.Message)
		}
	}
	return out
}

// fullCluster runs three jobs that take all cores, two of Alice's and one of
// Bob's, and lets one of hers and three of his wait.
func fullCluster(t *testing.T, c *rig.Cluster) {
	t.Helper()
	t.Cleanup(c.Clear)
	whole := fmt.Sprintf("-n%d", rig.CPUsPerNode)
	array := c.Submit(rig.Alice, "--array=1-2", "-N1", whole, "--wrap", "sleep 600")
	single := c.Submit(rig.Bob, "-N1", whole, "--wrap", "sleep 600")
	for _, job := range []string{array + "_1", array + "_2", single} {
		c.WaitState(job, "RUNNING")
	}
	c.Submit(rig.Alice, "-p", rig.GPU, "--gpus=1", "--wrap", "sleep 600")
	c.Submit(rig.Bob, "--array=1-3", "--wrap", "sleep 600")
}

// slurmFacts checks what the source knows beside jobs, on a cluster where nothing has run.
func slurmFacts(t *testing.T, c *rig.Cluster) {
	s := site.New(t)
	config := fmt.Sprintf("getent = %q\ncapacity_interval = \"0s\"", filepath.Join(c.BinDir(), "getent"))
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: slurmSource(c, "rig", config, "")})
	fullCluster(t, c)
	began := time.Now()
	agent.CollectOnce()
	first := facts(agent)
	checkFacts(t, first)
	checkWatermark(t, first, began)

	// A node that drains is still there; the rest does not change.
	c.Scontrol("update", "NodeName=n3", "State=DRAIN", "Reason=its CPUTot=99 is odd")
	agent.CollectOnce()
	second := facts(agent)
	if len(second.Capacity) != 1 || len(second.Directory) != 1 || len(second.Census) != 2 {
		t.Errorf("after a node drained: %+v", second)
	}

	// An aggregator takes them with the records.
	agg := s.Aggregator(agent)
	agg.Add(fmt.Sprintf(`
cluster "rig" {
  match   = { site_id = "e2e" }
  sources = ["head1/slurm/rig"]
}
price "p" {
  currency = "EUR"
  per "Cores" { hour = "0.5" }
}
project "radium" {
  pi    = "curie"
  users = [%q]
}
budget "radium" {
  project = "radium"
  period  = "year"
  amount  = 100
  unit    = "EUR"
}
`, rig.Alice))
	agent.Start()
	agg.Start()
	awaitExpected(t, s, agg, c, "rig")
	awaitServed(t, s, agg)
	checkSound(t, agg, agent)
	agent.Stop()

	// A controller that is gone holds up no record and empties nothing.
	before := facts(agent)
	t.Cleanup(func() { c.StartDaemon("slurmctld") })
	c.StopDaemon("slurmctld")
	agent.CollectOnce()
	after := facts(agent)
	if len(after.Watermark) != len(before.Watermark)+1 {
		t.Errorf("without slurmctld: watermarks %v, before %v", after.Watermark, before.Watermark)
	}
	before.Watermark, after.Watermark = nil, nil
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("without slurmctld (-before +after):\n%s", diff)
	}
}

// awaitServed waits until the aggregator says what checkFacts found, and derives by it.
func awaitServed(t *testing.T, s *site.Site, g *site.Aggregator) {
	t.Helper()
	s.Eventually("the aggregator tells what Slurm has", func() (bool, string) {
		var there struct {
			Clusters []struct {
				Name       string
				Components map[string]int64
			}
			Census struct{ Running, Pending int64 }
		}
		err := g.Get("/v1/capacity", &there)
		ok := err == nil && len(there.Clusters) == 1 && there.Clusters[0].Name == "rig" && there.Clusters[0].Components["Cores"] == 3*rig.CPUsPerNode
		return ok && there.Census.Running == 3 && there.Census.Pending == 4, fmt.Sprintf("%+v %v", there, err)
	})
	var people struct {
		People []struct {
			ID     string
			Name   string
			Groups []string
		}
	}
	if err := g.Get("/v1/directory", &people); err != nil || len(people.People) < 2 || people.People[0].Name != "The rig's alice" {
		t.Errorf("directory: %+v, %v", people, err)
	}
	var used struct {
		Groups   []struct{ Values []*string }
		Measures []struct {
			Name   string
			Values []*float64
		}
	}
	err := g.Get("/v1/usage?window=7d&by=pi,cluster&measure=records,utilization,cost&where[pi]=curie", &used)
	values := func(list []*string) (out []string) {
		for _, v := range list {
			if v != nil {
				out = append(out, *v)
			}
		}
		return out
	}
	if err != nil || len(used.Groups) != 1 || len(used.Measures) != 3 || *used.Measures[0].Values[0] != 2 {
		t.Errorf("usage: %+v, %v", used, err)
	} else if diff := cmp.Diff([]string{"curie", "rig"}, values(used.Groups[0].Values)); diff != "" {
		t.Error(diff)
	}
	var budgets struct{ Budgets []struct{ Name, Unit string } }
	if err := g.Get("/v1/budgets", &budgets); err != nil || len(budgets.Budgets) != 1 || budgets.Budgets[0].Unit != "EUR" {
		t.Errorf("budgets: %+v, %v", budgets, err)
	}
}

// checkFacts compares with what the rig's configuration and fullCluster say.
func checkFacts(t *testing.T, got factsOf) {
	t.Helper()
	if len(got.Capacity) != 1 || len(got.Census) != 1 || len(got.Directory) != 1 || len(got.Refused) != 0 {
		t.Fatalf("%+v", got)
	}
	has := map[string]int64{}
	for _, component := range got.Capacity[0].Components {
		has[component.Name] = component.Amount
	}
	if diff := cmp.Diff(map[string]int64{"Cores": 3 * rig.CPUsPerNode, "Memory": 3 * 8000, "GPUs": 2, "GPUs:tesla": 2}, has); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	queue := []wire.CensusRow{
		{User: rig.Alice, Queue: rig.Compute, Running: 2},
		{User: rig.Alice, Queue: rig.GPU, Pending: 1},
		{User: rig.Bob, Queue: rig.Compute, Running: 1, Pending: 3},
	}
	if diff := cmp.Diff(queue, got.Census[0].Rows); diff != "" {
		t.Errorf("census (-want +got):\n%s", diff)
	}
	people := []wire.DirectoryRow{
		{User: rig.Alice, Groups: []string{rig.Chem, rig.Physics}, Name: "The rig's alice"},
		{User: rig.Bob, Groups: []string{rig.Chem}, Name: "The rig's bob"},
		{User: "root", Groups: []string{"root"}, Name: "root"},
	}
	if diff := cmp.Diff(people, got.Directory[0].Rows); diff != "" {
		t.Errorf("directory (-want +got):\n%s", diff)
	}
}

// checkWatermark: the source is complete up to its lag before the collection.
func checkWatermark(t *testing.T, got factsOf, began time.Time) {
	t.Helper()
	const lag = 2 * time.Minute
	least, most := record.Time(began.Truncate(time.Second).Add(-lag).UnixMicro()), record.Time(time.Now().Add(-lag).UnixMicro())
	if len(got.Watermark) != 1 || got.Watermark[0] < least || got.Watermark[0] > most {
		t.Errorf("watermarks %v, want one from %s to %s", got.Watermark, least, most)
	}
}

// slurmTimeLimit checks that the default mapping gives the time limit of running jobs only.
func slurmTimeLimit(t *testing.T, c *rig.Cluster) {
	s := site.New(t)
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: fmt.Sprintf("source \"slurm\" \"rig\" {\n  config {\n    sacct = %q\n    lag   = \"0s\"\n  }\n}\n", c.SacctPath())})
	limited := c.Submit(rig.Alice, "-t", "10", "--wrap", "sleep 600")
	c.WaitState(limited, "RUNNING")
	said := func() (limits []string) {
		agent.CollectOnce()
		for _, f := range agent.Frames() {
			if f.Kind == wire.KindRecord && f.Record.ID == "rig-"+limited {
				limits = append(limits, fmt.Sprint(f.Record.Open(), f.Record.Meta.Get("time_limit")))
			}
		}
		return limits
	}
	s.Eventually("the running job has its limit", func() (bool, string) {
		got := said()
		return len(got) > 0 && got[0] == "true [600]", fmt.Sprint(got)
	})
	c.Scancel(rig.Alice, limited)
	c.WaitState(limited, "CANCELLED")
	s.Eventually("the job that has ended has none", func() (bool, string) {
		got := said()
		return got[len(got)-1] == "false []", fmt.Sprint(got)
	})
}
