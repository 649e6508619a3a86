//go:build e2e

package e2e_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// collected is a site with an agent that collects jobs, and an aggregator; nothing runs
// yet.
func collected(t *testing.T) (*site.Site, *site.Jobs, *site.Agent, *site.Aggregator) {
	t.Helper()
	s := site.New(t)
	jobs := s.Jobs()
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source()})
	return s, jobs, agent, s.Aggregator(agent)
}

func TestReplay_Kills_CountEachJobOnce(t *testing.T) {
	t.Parallel()
	_, jobs, agent, agg := collected(t)
	jobs.Write(1000)
	agent.Start()
	agg.Start()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(150 * time.Millisecond):
				jobs.Write(300)
			}
		}
	})
	killing{
		victims: []func(){agent.Restart, agg.Restart, agent.KillChildren},
		alive:   []*site.Daemon{agent.Daemon, agg.Daemon},
		pause:   900 * time.Millisecond,
	}.run(t)
	close(stop)
	writing.Wait()
	jobs.Arrive(agg)
	checkConserved(t, agg)
}

// checkConserved checks that every write that was pulled has one outcome.
func checkConserved(t *testing.T, g *site.Aggregator) {
	t.Helper()
	var answer struct {
		Counters []struct {
			Source    string `json:"source"`
			Pulled    int64  `json:"pulled"`
			Conserved bool   `json:"conserved"`
		} `json:"counters"`
	}
	if err := g.Get("/v1/counters", &answer); err != nil {
		t.Fatal(err)
	}
	for _, c := range answer.Counters {
		if !c.Conserved || c.Pulled == 0 {
			t.Errorf("counters of %s do not add up: %+v", c.Source, c)
		}
	}
	if len(answer.Counters) == 0 {
		t.Error("no counters")
	}
}

func TestAggregator_Wiped_IsRefilledByTheAgent(t *testing.T) {
	t.Parallel()
	_, jobs, agent, agg := collected(t)
	jobs.Write(20_000)
	agent.Start()
	agg.Start()
	jobs.Arrive(agg)
	agg.Kill()
	if err := os.RemoveAll(agg.DataDir); err != nil {
		t.Fatal(err)
	}
	agg.Start()
	jobs.Arrive(agg)
}

func TestAgent_Wiped_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	_, jobs, agent, agg := collected(t)
	jobs.Write(20_000)
	agent.Start()
	agg.Start()
	jobs.Arrive(agg)
	agent.Kill()
	jobs.Write(5000)
	if err := os.RemoveAll(agent.DataDir); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	jobs.Arrive(agg)
	checkConserved(t, agg)
}

func TestAgent_RestoredFromAnOldCopy_LosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	s, jobs, agent, agg := collected(t)
	jobs.Write(10_000)
	agent.Start()
	agg.Start()
	jobs.Arrive(agg)
	agent.Stop()
	backup := filepath.Join(s.Dir, "backup")
	if err := os.CopyFS(backup, os.DirFS(agent.DataDir)); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	jobs.Write(10_000)
	jobs.Arrive(agg)
	agent.Kill()
	jobs.Write(3000)
	if err := os.RemoveAll(agent.DataDir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(agent.DataDir, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	agent.Start()
	jobs.Arrive(agg)
	checkConserved(t, agg)
}
