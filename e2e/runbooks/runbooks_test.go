//go:build e2e

package runbooks

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestANodeIsLostAndReplaced(t *testing.T) {
	c := newCluster(t)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes...)
	c.whole(c.nodes...)
	lost := c.nodes[2]
	lost.Kill()
	if err := os.RemoveAll(lost.DataDir); err != nil {
		t.Fatal(err)
	}
	c.write(100)
	c.follow(blocks(t, "A node is lost and replaced")[0], lost)
	c.whole(c.nodes...)
}

func TestANodesDataFolderWasEmptied(t *testing.T) {
	c := newCluster(t)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes...)
	c.whole(c.nodes...)
	c.follow(blocks(t, "A node's data folder was emptied")[0], c.nodes[1])
	c.write(100)
	c.whole(c.nodes...)
}

func TestTwoOfThreeNodesAreLostForGood(t *testing.T) {
	c := newCluster(t)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes...)
	c.whole(c.nodes...)
	for _, g := range c.nodes[1:] {
		g.Kill()
	}
	c.write(100)
	steps := blocks(t, "Two of three nodes are lost for good")
	c.follow(steps[0], c.nodes[0])
	c.nodes[0].AwaitRecords(int64(c.wrote), patience)
	for _, g := range c.nodes[1:] {
		c.follow(steps[1], g)
	}
	c.whole(c.nodes...)
}

func TestASnapshotIsRestoredAndTheAgentRefillsWhatIsNewer(t *testing.T) {
	c := newCluster(t)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes...)
	c.whole(c.nodes...)
	c.follow(blocks(t, "Save a snapshot")[0], c.nodes[1])
	c.write(150)
	c.whole(c.nodes...)
	steps := blocks(t, "Restore a snapshot")
	c.follow(steps[0], c.nodes[2])
	c.follow(steps[1], c.leader())
	c.whole(c.nodes...)
	c.write(50)
	c.whole(c.nodes...)
}

func TestAllNodesAreLostAndThereIsABackup(t *testing.T) {
	c := newCluster(t)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes...)
	c.whole(c.nodes...)
	c.follow(blocks(t, "Save a snapshot")[0], c.nodes[0])
	c.write(100)
	c.whole(c.nodes...)
	for _, g := range c.nodes {
		g.Kill()
		if err := os.RemoveAll(g.DataDir); err != nil {
			t.Fatal(err)
		}
	}
	first := c.nodes[0]
	step := blocks(t, "All nodes are lost, and there is a backup")[0]
	serve := ""
	for i, line := range step {
		if strings.HasPrefix(line, "bursar aggregator ") { // it stays
			serve, step[i] = line, ""
		}
	}
	c.follow(step, first)
	c.seed(serve)
	first.Start()
	c.start(c.nodes[1:]...)
	c.whole(c.nodes...)
}

// seed runs the command that begins a cluster until it serves, and interrupts it.
func (c *cluster) seed(line string) {
	c.t.Helper()
	first := c.nodes[0]
	args := strings.Fields(strings.NewReplacer("/etc/bursar/aggregator.hcl", first.Config, "/var/backups", c.site.Dir).Replace(line))
	if len(args) < 2 {
		c.t.Fatal("the runbook has no such command")
	}
	d := c.site.Daemon("seed", args[0], args[1:]...)
	d.Start()
	c.site.Eventually(patience, "the snapshot is in place", func() (bool, string) {
		s, err := first.Status()
		return err == nil && s.Records >= 200, d.Log(3)
	})
	if err := d.Signal(syscall.SIGINT); err != nil {
		c.t.Fatal(err)
	}
	if err := d.Terminate(time.Minute); err != nil {
		c.t.Fatal(err)
	}
}

func TestOneNodeGrowsToThree(t *testing.T) {
	c := newCluster(t)
	c.configure(1)
	c.agent.Start()
	c.write(200)
	c.start(c.nodes[0])
	c.whole(c.nodes[0])
	c.configure(3)
	steps := blocks(t, "Grow from one node to three")
	c.follow(steps[0], c.nodes[0])
	for _, g := range c.nodes[1:] {
		c.follow(steps[1], g)
	}
	c.whole(c.nodes...)
}
