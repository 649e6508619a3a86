//go:build e2e

package runbooks

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

func TestRunbook_Gap_Holds(t *testing.T) {
	t.Parallel()
	c := newClusterWith(t, `max_size = "1MiB"`)
	c.startNodes(200)
	c.runBlock(commandBlocks(t, "Save a snapshot")[0], c.nodes[0])
	c.jobs.Pad = 100
	c.jobs.Write(16_000) // more than the agent keeps
	c.awaitWhole(c.nodes...)
	c.runBlock(commandBlocks(t, "Restore a snapshot")[1], c.Leader())
	c.awaitFinding(c.nodes[0], true, "gaps")
	steps := commandBlocks(t, "There is a gap")
	c.requireText(c.runBlock(steps[0], c.nodes[1]), c.agent.Name)
	c.requireText(c.runBlock(putValue(steps[1], "slurm/nemo", "replay/lab"), c.nodes[0]), "Recollected replay/lab")
	c.awaitWhole(c.nodes...)
}

func TestRunbook_AgentsBufferDamaged_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, g := range c.nodes {
		c.stopNode(g)
	}
	c.jobs.Write(100)
	c.site.Eventually("the agent has what no node has", func() (bool, string) {
		s, err := c.agent.Status()
		return err == nil && s.Source("lab").Counts.Records == int64(c.jobs.Count), fmt.Sprint(s, err)
	})
	c.agent.Stop()
	site.DamageLast(t, filepath.Join(c.agent.DataDir, "buffer.db"), "chunks") // the newest frames
	c.agent.Start()
	c.Start()
	c.awaitFinding(c.nodes[0], true, "agent-damaged")
	steps := commandBlocks(t, "An agent's buffer is damaged")
	c.requireText(c.runCommand("bursar status", c.nodes[0]), "buffer.db")
	c.runBlock(steps[0], c.nodes[0])
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
}
