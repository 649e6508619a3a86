//go:build e2e

package site

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Cluster is aggregators that replicate each other.
type Cluster struct {
	Nodes []*Aggregator // agg1, agg2, …
	site  *Site
}

// Cluster makes n aggregators with the same text of blocks behind their own; none of
// them runs yet.
func (s *Site) Cluster(n int, text string) *Cluster {
	s.t.Helper()
	c := &Cluster{site: s}
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("127.0.0.1:%d", s.FreePort()))
		name := fmt.Sprintf("agg%d", i+1)
		g := &Aggregator{
			URL: fmt.Sprintf("http://127.0.0.1:%d", s.FreePort()), Config: s.path(name + ".hcl"), DataDir: s.path(name),
		}
		g.Daemon = s.Daemon(name, "bursar", "aggregator", "-dev", "-config", g.Config)
		c.Nodes = append(c.Nodes, g)
	}
	for i, g := range c.Nodes {
		s.Write(filepath.Base(g.Config), c.config(i, peers)+text)
	}
	return c
}

// config is the aggregator block of a node.
func (c *Cluster) config(i int, peers []string) string {
	name, all := fmt.Sprintf("agg%d", i+1), ""
	for j, p := range peers {
		all += fmt.Sprintf("\n      agg%d = %q", j+1, p)
	}
	return fmt.Sprintf(`aggregator {
  name     = %q
  data_dir = %q
  raft {
    listen = %q
    peers = {%s
    }
  }
  api {
    listen = [%q]
  }
  %s
}
`+plainAccess, name, c.Nodes[i].DataDir, peers[i], all, strings.TrimPrefix(c.Nodes[i].URL, "http://"), TLSBlock(c.site.Cert(identity.Aggregator, name)))
}

// Start starts all nodes and waits until each of them answers.
func (c *Cluster) Start() {
	c.site.t.Helper()
	for _, g := range c.Nodes {
		g.Start()
	}
	for _, g := range c.Nodes {
		g.AwaitReady()
	}
}

// Leader waits until one of the nodes that run leads, and returns it.
func (c *Cluster) Leader() (found *Aggregator) {
	c.site.t.Helper()
	c.site.Eventually("a node leads", func() (bool, string) {
		last := ""
		for _, g := range c.Nodes {
			if g.PID() == 0 {
				continue
			}
			var answer struct {
				Members []struct {
					Name   string `json:"name"`
					Leader bool   `json:"leader"`
				} `json:"members"`
			}
			err := g.Get("/v1/cluster/members", &answer)
			last = fmt.Sprint(answer, " ", err)
			for _, m := range answer.Members {
				if i := slices.IndexFunc(c.Nodes, func(g *Aggregator) bool { return g.name == m.Name }); m.Leader && i >= 0 && c.Nodes[i].PID() != 0 {
					found = c.Nodes[i]
				}
			}
			return found != nil, last
		}
		return false, last
	})
	return found
}
