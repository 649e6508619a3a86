//go:build e2e

package runbooks

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// cluster is a site with aggregators and one agent, which reads a file.
type cluster struct {
	t     *testing.T
	site  *site.Site
	nodes []*site.Aggregator
	agent *site.Agent
	jobs  string
	files map[string]identity.Files
	peers []string
	wrote int
	pad   int    // bytes of chance in each job
	more  string // settings of the aggregators
}

// newCluster makes the configuration of three nodes; nothing runs yet.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, "")
}

// running is a cluster that runs and holds the first jobs.
func running(t *testing.T) *cluster {
	t.Helper()
	c := newCluster(t)
	c.begin(200)
	return c
}

// begin starts everything, and waits until all nodes hold the first n jobs.
func (c *cluster) begin(n int) {
	c.t.Helper()
	c.agent.Start()
	c.write(n)
	c.start(c.nodes...)
	c.whole(c.nodes...)
}

// newClusterWith is newCluster with settings of the agent's buffer.
func newClusterWith(t *testing.T, buffer string) *cluster {
	t.Helper()
	c := &cluster{t: t, site: site.New(t), files: map[string]identity.Files{}}
	c.jobs = filepath.Join(c.site.Dir, "jobs.ndjson")
	c.agent = c.site.Agent(site.AgentSpec{Name: "head1", Buffer: buffer, Sources: fmt.Sprintf(
		"source \"replay\" \"lab\" {\n  interval = \"200ms\"\n  config { path = %q }\n}\n", c.jobs)})
	for i := range 3 {
		name := fmt.Sprint("agg", i+1)
		c.peers = append(c.peers, fmt.Sprintf("127.0.0.1:%d", c.site.FreePort()))
		c.files[name] = c.site.Cert(identity.Aggregator, name)
		g := &site.Aggregator{
			URL: fmt.Sprintf("http://127.0.0.1:%d", c.site.FreePort()), Config: filepath.Join(c.site.Dir, name+".hcl"),
			TLSURL:  fmt.Sprintf("https://127.0.0.1:%d", c.site.FreePort()),
			DataDir: filepath.Join(c.site.Dir, name),
		}
		g.Daemon = c.site.Daemon(name, "bursar", "aggregator", "-config", g.Config)
		c.nodes = append(c.nodes, g)
	}
	c.configure(3)
	return c
}

// configure writes the configuration of all nodes with the first n as peers.
func (c *cluster) configure(n int) {
	var peers []string
	for i := range n {
		peers = append(peers, fmt.Sprintf("agg%d = %q", i+1, c.peers[i]))
	}
	for i, g := range c.nodes {
		name := fmt.Sprint("agg", i+1)
		c.site.Write(name+".hcl", fmt.Sprintf(`aggregator {
  name     = %q
  data_dir = %q
  min_free = "1MiB"
  raft {
    listen = %q
    peers = {
      %s
    }
  }
  api {
    listen     = [%q]
    tls_listen = [%q]
  }
  %s
  %s
}

agent "head1" { address = %q }
access { plain_role = "monitor,read,write" }
`, name, g.DataDir, c.peers[i], strings.Join(peers, "\n      "), strings.TrimPrefix(g.URL, "http://"), strings.TrimPrefix(g.TLSURL, "https://"), site.TLSBlock(c.files[name]), c.more, c.agent.Address))
	}
}

// write lets the scheduler finish n jobs.
func (c *cluster) write(n int) {
	c.t.Helper()
	f, err := os.OpenFile(c.jobs, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	chance := make([]byte, c.pad)
	for range n {
		c.wrote++
		_, _ = rand.Read(chance) // it never fails
		fmt.Fprintf(f, `{"id":"%d","start":%d,"stop":%d,"user":"u%x","cpus":1}`+"\n", c.wrote, 1_760_000_000+c.wrote, 1_760_000_100+c.wrote, chance)
	}
}

// start starts nodes, and waits until each of them answers.
func (c *cluster) start(nodes ...*site.Aggregator) {
	c.t.Helper()
	for _, g := range nodes {
		g.Start()
	}
	for _, g := range nodes {
		g.AwaitReady()
	}
}

// whole waits until the nodes hold every job, are all voters, and agree.
func (c *cluster) whole(nodes ...*site.Aggregator) {
	c.t.Helper()
	for _, g := range nodes {
		g.AwaitRecords(int64(c.wrote))
		c.site.Eventually("all are voters", func() (bool, string) {
			list, err := members(g)
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
		if n := len(g.ByID()); n != c.wrote {
			c.t.Errorf("%s holds %d records, want %d", g.URL, n, c.wrote)
		}
	}
}

// member is what a test looks at in a member of the cluster.
type member struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Voter  bool   `json:"voter"`
	Leader bool   `json:"leader"`
}

func members(g *site.Aggregator) ([]member, error) {
	var answer struct {
		Members []member `json:"members"`
	}
	err := g.Get("/v1/cluster/members", &answer)
	return answer.Members, err
}

// leader returns the node that leads.
func (c *cluster) leader() (found *site.Aggregator) {
	c.t.Helper()
	c.site.Eventually("a node leads", func() (bool, string) {
		list, err := members(c.nodes[0])
		for _, m := range list {
			for i, g := range c.nodes {
				if m.Leader && m.Name == fmt.Sprint("agg", i+1) {
					found = g
				}
			}
		}
		return found != nil, fmt.Sprint(list, " ", err)
	})
	return found
}

// await waits until a node's status has one of these findings, or none of them.
func (c *cluster) await(g *site.Aggregator, there bool, findings ...string) {
	c.t.Helper()
	c.site.Eventually(fmt.Sprintf("the status has %v: %v", findings, there), func() (bool, string) {
		var answer struct {
			Findings []struct {
				ID   string `json:"id"`
				What string `json:"what"`
			} `json:"findings"`
		}
		err := g.Get("/v1/status", &answer)
		has := false
		for _, f := range answer.Findings {
			has = has || slices.Contains(findings, f.ID)
		}
		return err == nil && has == there, fmt.Sprint(answer.Findings, " ", err)
	})
}

// others are all nodes but one.
func (c *cluster) others(but *site.Aggregator) (list []*site.Aggregator) {
	for _, g := range c.nodes {
		if g != but {
			list = append(list, g)
		}
	}
	return list
}

// told is a text that has to say something.
func (c *cluster) told(text, want string) {
	c.t.Helper()
	if !strings.Contains(text, want) {
		c.t.Errorf("want %q in:\n%s", want, text)
	}
}
