//go:build e2e

package e2e_test

import (
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// tlsAddresses are where agents dial in.
func tlsAddresses(nodes []*site.Aggregator) (list []string) {
	for _, g := range nodes {
		list = append(list, strings.TrimPrefix(g.TLSURL, "https://"))
	}
	return list
}

func TestAgent_DialsInAndKills_CountEachJobOnce(t *testing.T) {
	t.Parallel()
	s := site.New(t)
	cluster := s.Cluster(3, `agent "head1" { dials_in = true }`)
	jobs := s.Jobs()
	agent := s.Agent(site.AgentSpec{Name: "head1", Sources: jobs.Source(), Dial: tlsAddresses(cluster.Nodes)})
	jobs.Write(1000)
	agent.Start()
	cluster.Start()
	for range 3 {
		leader := cluster.Leader()
		jobs.Write(1000)
		jobs.Arrive(leader)
		jobs.Write(1000)
		leader.Kill()
		next := cluster.Leader()
		jobs.Arrive(next)
		jobs.Write(1000)
		agent.Restart()
		jobs.Arrive(next)
		leader.Start()
		leader.AwaitReady()
	}
	leader := cluster.Leader()
	checkConserved(t, leader)
	s.Eventually("the agent shows that it is connected to all nodes, and listens nowhere", func() (bool, string) {
		out, err := s.Run("bursar-agent", "status", "-config", agent.Config)
		return err == nil && strings.Count(out, ": connected to agg") == 3 && !strings.Contains(out, "Listening"), out
	})
	if out, err := leader.Bursar("agents"); err != nil || !strings.Contains(out, "dials in") {
		t.Error(out, err)
	}
	leader.Stop() // as upgrades do: it waits for no agent
	jobs.Write(1000)
	jobs.Arrive(cluster.Leader())
}
