//go:build e2e

package runbooks

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

// cluster is a site with aggregators and one agent, which collects jobs.
type cluster struct {
	*site.Cluster

	t     *testing.T
	site  *site.Site
	nodes []*site.Aggregator
	agent *site.Agent
	jobs  *site.Jobs
}

// newCluster makes the configuration of three nodes; nothing runs yet.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, "")
}

// startCluster is a cluster that runs and holds the first jobs.
func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.startNodes(200)
	return c
}

// startNodes starts everything, and waits until all nodes hold the first n jobs.
func (c *cluster) startNodes(n int) {
	c.t.Helper()
	c.agent.Start()
	c.jobs.Write(n)
	c.Start()
	c.awaitWhole(c.nodes...)
}

// newClusterWith is newCluster with settings of the agent's buffer.
func newClusterWith(t *testing.T, buffer string) *cluster {
	t.Helper()
	c := &cluster{t: t, site: site.New(t)}
	c.jobs = c.site.Jobs()
	c.agent = c.site.Agent(site.AgentSpec{Name: "head1", Buffer: buffer, Sources: c.jobs.Source()})
	c.Cluster = c.site.Cluster(3, "", c.agent)
	c.nodes = c.Nodes
	c.setSettings(`min_free = "1MiB"`)
	return c
}

// setSettings gives all nodes settings.
func (c *cluster) setSettings(settings string) {
	for _, g := range c.nodes {
		g.Settings = settings
		g.Configure()
	}
}

// awaitWhole waits until the nodes hold every job, are all voters, and agree.
func (c *cluster) awaitWhole(nodes ...*site.Aggregator) {
	c.t.Helper()
	for _, g := range nodes {
		g.AwaitRecords(int64(c.jobs.Count))
		c.site.Eventually("all are voters", func() (bool, string) {
			list, err := g.Members()
			voters := 0
			for _, m := range list {
				if m.Voter {
					voters++
				}
			}
			return err == nil && len(list) == len(nodes) && voters == len(nodes), fmt.Sprint(list, " ", err)
		})
	}
	for _, g := range nodes {
		if n := len(g.ByID()); n != c.jobs.Count {
			c.t.Errorf("%s holds %d records, want %d", g.URL, n, c.jobs.Count)
		}
	}
}

// awaitFinding waits until a node's status has one of these findings, or none of them.
func (c *cluster) awaitFinding(g *site.Aggregator, there bool, findings ...string) {
	c.t.Helper()
	c.site.Eventually(fmt.Sprintf("the status has %v: %v", findings, there), func() (bool, string) {
		all, err := g.Findings()
		has := slices.ContainsFunc(all, func(f site.Finding) bool { return slices.Contains(findings, f.ID) })
		return err == nil && has == there, fmt.Sprint(all, " ", err)
	})
}

// otherNodes are all nodes but one.
func (c *cluster) otherNodes(but *site.Aggregator) (list []*site.Aggregator) {
	for _, g := range c.nodes {
		if g != but {
			list = append(list, g)
		}
	}
	return list
}

// requireText is a text that has to say something.
func (c *cluster) requireText(text, want string) {
	c.t.Helper()
	if !strings.Contains(text, want) {
		c.t.Errorf("want %q in:\n%s", want, text)
	}
}
