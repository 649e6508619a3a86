//go:build e2e

package runbooks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/filetest"
)

func TestRunbook_PersonErased_NameIsGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.setSettings(`min_free = "1MiB"
  compaction {
    keep  = "1s"
    every = "1s"
    whole = "2s"
    files = "2s"
  }`)
	c.startNodes(3000)
	f, err := os.OpenFile(c.jobs.Path, os.O_APPEND|os.O_WRONLY, 0)
	for i := range 100 {
		c.jobs.Count++
		if err == nil {
			_, err = fmt.Fprintf(f, `{"id":"%d","start":%d,"stop":%d,"user":"erika","cpus":1}`+"\n", c.jobs.Count, 1_760_000_000+i, 1_760_000_100+i)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	c.awaitWhole(c.nodes...)
	for _, g := range c.nodes { // what a node has in memory only is in its files then
		c.stopNode(g)
	}
	for _, g := range c.nodes {
		if len(filetest.Containing(t, filepath.Join(g.DataDir, "store"), "erika")) == 0 {
			t.Error("the name was never in the database: the test proves nothing")
		}
	}
	c.Start()
	c.awaitWhole(c.nodes...)
	totals := func() string {
		return c.runCommand("bursar usage -window 2025 -bucket day -measure records,started,stopped,people,Cores -format csv", c.nodes[1])
	}
	before := totals()
	c.runBlock(commandBlocks(t, "A person's records are erased")[0], c.nodes[0])
	c.awaitWhole(c.nodes...)
	if after := totals(); after != before || strings.Count(before, "\n") < 2 {
		t.Errorf("totals before\n%s\nand after\n%s", before, after)
	}
	if got := c.runCommand("bursar records -limit -1 -format json", c.nodes[1]); strings.Count(got, "record_id") != c.jobs.Count || strings.Contains(got, "erika") {
		t.Errorf("%d records are left of %d", strings.Count(got, "record_id"), c.jobs.Count)
	}
	for _, g := range c.nodes {
		c.site.Eventually("the name leaves the files", func() (bool, string) {
			in := filetest.Containing(t, g.DataDir, "erika")
			return len(in) == 0, fmt.Sprint(in)
		})
		c.stopNode(g)
		if in := filetest.Containing(t, g.DataDir, "erika"); len(in) > 0 {
			t.Error("the runbook does not say that the name remains in", in)
		}
	}
}
