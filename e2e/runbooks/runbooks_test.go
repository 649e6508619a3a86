//go:build e2e

package runbooks

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/bursar-accounting/bursar/e2e/site"
)

func TestRunbooks_MarkedExecuted_AreExecuted(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		tests.Write(text)
	}
	for line := range strings.Lines(readRunbooks(t)) {
		heading, marked := strings.CutSuffix(strings.TrimSpace(line), executed)
		heading, is := strings.CutPrefix(heading, "## ")
		if is && marked && !strings.Contains(tests.String(), `t, "`+heading+`")`) {
			t.Errorf("no test executes %q", heading)
		}
	}
}

func TestRunbooks_EveryCommand_Exists(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	commands := regexp.MustCompile("(?m)(?:^|`)(bursar(?:-agent)? [^`#|>\n]+)").FindAllStringSubmatch(readRunbooks(t), -1)
	word := regexp.MustCompile("^[a-z][a-z-]*$")
	if len(commands) < 20 {
		t.Fatal("only", commands)
	}
	for _, found := range commands {
		args := strings.Fields(found[1])
		name := args[:slices.IndexFunc(append(args[1:], "-"), func(a string) bool { return !word.MatchString(a) })+1]
		out, err := c.site.Run(args[0], append(args[1:], "-h")...)
		if err != nil || !strings.Contains(out, "\nUsage:\n  "+strings.Join(name, " ")+" ") {
			t.Errorf("%s: %v\n%s", found[1], err, out)
		}
	}
}

func TestRunbook_NodeLost_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	lost := c.nodes[2]
	c.lose(lost)
	c.jobs.Write(100)
	c.runBlock(commandBlocks(t, "A node is lost and replaced")[0], lost)
	c.awaitWhole(c.nodes...)
}

// lose ends nodes and takes their data away.
func (c *cluster) lose(nodes ...*site.Aggregator) {
	c.t.Helper()
	for _, g := range nodes {
		g.Kill()
		if err := os.RemoveAll(g.DataDir); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestRunbook_DataFolderEmptied_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.runBlock(commandBlocks(t, "A node's data folder was emptied")[0], c.nodes[1])
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
}

func TestRunbook_TwoNodesLost_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, g := range c.nodes[1:] {
		g.Kill()
	}
	c.jobs.Write(100)
	c.goOnWith(c.nodes[0])
}

// goOnWith follows the runbook of a node that is the only one left.
func (c *cluster) goOnWith(left *site.Aggregator) {
	c.t.Helper()
	steps := commandBlocks(c.t, "Two of three nodes are lost for good")
	c.runBlock(steps[0], left)
	left.AwaitRecords(int64(c.jobs.Count))
	c.runBlock(steps[1], c.otherNodes(left)...)
	c.awaitWhole(c.nodes...)
}

func TestRunbook_SnapshotRestored_AgentRefills(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.runBlock(commandBlocks(t, "Save a snapshot")[0], c.nodes[1])
	c.jobs.Write(150)
	c.awaitWhole(c.nodes...)
	steps := commandBlocks(t, "Restore a snapshot")
	c.runBlock(steps[0], c.nodes[2])
	c.runBlock(steps[1], c.Leader())
	c.awaitWhole(c.nodes...)
	c.jobs.Write(50)
	c.awaitWhole(c.nodes...)
}

func TestRunbook_AllNodesLostWithBackup_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	c.runBlock(commandBlocks(t, "Save a snapshot")[0], c.nodes[0])
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
	c.lose(c.nodes...)
	first := c.nodes[0]
	step := commandBlocks(t, "All nodes are lost, and there is a backup")[0]
	serve := ""
	for i, line := range step {
		if strings.HasPrefix(line, "bursar aggregator ") { // it stays
			serve, step[i] = line, ""
		}
	}
	c.runBlock(step, first)
	c.seed(serve)
	site.Start(first)
	site.Start(c.nodes[1:]...)
	c.awaitWhole(c.nodes...)
}

// seed runs the command that begins a cluster until it serves, and interrupts it.
func (c *cluster) seed(line string) {
	c.t.Helper()
	first := c.nodes[0]
	args := strings.Fields(c.placePaths(line, first))
	if len(args) < 2 {
		c.t.Fatal("the runbook has no such command")
	}
	d := c.site.Daemon("seed", args[0], args[1:]...)
	d.Start()
	c.site.Eventually("the snapshot is in place", func() (bool, string) {
		s, err := first.Status()
		return err == nil && s.Records >= 200, d.Log(3)
	})
	if err := d.Signal(syscall.SIGINT); err != nil {
		c.t.Fatal(err)
	}
	if code := d.Exit(); code != 0 {
		c.t.Fatalf("it ends with %d:\n%s", code, d.Log(20))
	}
}

func TestRunbook_AllNodesLostWithoutBackup_Holds(t *testing.T) {
	t.Parallel()
	c := newClusterWith(t, `max_size = "1MiB"`)
	c.jobs.Pad = 100
	c.startNodes(16_000)
	old, _ := c.clusters("")
	if len(old) != 1 {
		t.Fatal("the agent knows the clusters", old)
	}
	for _, g := range c.nodes {
		g.Kill()
	}
	steps := commandBlocks(t, "All nodes are lost, and there is no backup")
	c.runBlock(steps[0], c.nodes...)
	c.jobs.Write(10)
	c.site.Eventually("the new cluster has what the agent retains", func() (bool, string) {
		ids, behind := c.clusters(old[0])
		return len(ids) == 1 && behind == 0, c.agent.Log(3)
	})
	if s, err := c.nodes[0].Status(); err != nil || s.Records < 10 || s.Records >= int64(c.jobs.Count) {
		t.Fatalf("of %d jobs the new cluster has %d, %v; there is nothing to recollect", c.jobs.Count, s.Records, err)
	}
	c.requireText(c.runBlock(putValue(steps[1], "OLDID", old[0]), c.nodes[0]), "Forgot cluster "+old[0])
	if ids, _ := c.clusters(""); len(ids) != 1 || ids[0] == old[0] {
		t.Error("the agent still knows the clusters", ids)
	}
	c.requireText(c.runBlock(putValue(steps[2], "slurm/nemo", "replay/lab"), c.nodes[0]), "Recollected replay/lab")
	c.awaitWhole(c.nodes...)
}

// clusters returns the ids of the clusters that the agent knows, but one, and how
// many frames they lack. They are done when all that was written is in the buffer.
func (c *cluster) clusters(but string) (ids []string, behind uint64) {
	c.t.Helper()
	s, err := c.agent.Status()
	if err != nil {
		c.t.Fatal(err)
	}
	if got := s.Source("lab").Counts.Records; got < int64(c.jobs.Count) {
		behind += uint64(int64(c.jobs.Count) - got)
	}
	for _, k := range s.Buffer.Clusters {
		if k.ID != but {
			ids, behind = append(ids, k.ID), behind+k.Behind
		}
	}
	return ids, behind
}

func TestRunbook_OneNodeGrowsToThree_Holds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	first, peers := c.nodes[0], c.nodes[0].Peers
	first.Peers = peers[:1]
	first.Configure()
	c.agent.Start()
	c.jobs.Write(200)
	site.Start(c.nodes[0])
	c.awaitWhole(c.nodes[0])
	first.Peers = peers
	first.Configure()
	steps := commandBlocks(t, "Grow from one node to three")
	c.runBlock(steps[0], c.nodes[0])
	c.runBlock(steps[1], c.nodes[1])
	c.runBlock(steps[1], c.nodes[2])
	c.awaitWhole(c.nodes...)
}
