//go:build e2e

package site

import "fmt"

// Cluster is aggregators that replicate each other.
type Cluster struct {
	Nodes []*Aggregator // agg1, agg2, …
	site  *Site
}

// Cluster makes n aggregators with the same blocks, which pull from the agents; none of
// them runs yet.
func (s *Site) Cluster(n int, blocks string, agents ...*Agent) *Cluster {
	s.t.Helper()
	var listen, peers []string
	for i := range n {
		listen = append(listen, s.Address())
		peers = append(peers, Peer(fmt.Sprintf("agg%d", i+1), listen[i]))
	}
	c := &Cluster{site: s}
	for i := range n {
		c.Nodes = append(c.Nodes, s.Node(NodeSpec{
			Name: fmt.Sprintf("agg%d", i+1), Listen: listen[i], Peers: peers, Agents: agentAddresses(agents), Blocks: blocks,
		}))
	}
	return c
}

// Peer is a line of the block peers.
func Peer(name, address string) string { return fmt.Sprintf("%s = %q", name, address) }

// Start starts all nodes and waits until each of them answers.
func (c *Cluster) Start() {
	c.site.t.Helper()
	Start(c.Nodes...)
}

// Start starts nodes and waits until each of them answers.
func Start(nodes ...*Aggregator) {
	for _, g := range nodes {
		g.Start()
	}
	for _, g := range nodes {
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
			members, err := g.Members()
			last = fmt.Sprint(members, " ", err)
			for _, m := range members {
				for _, n := range c.Nodes {
					if m.Leader && n.Name == m.Name && n.PID() != 0 {
						found = n
					}
				}
			}
			return found != nil, last
		}
		return false, last
	})
	return found
}
