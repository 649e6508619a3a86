//go:build e2e

package runbooks

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/pebble/v2"

	"github.com/bursar-accounting/bursar/e2e/site"
	"github.com/bursar-accounting/bursar/proto/systemd"
)

// exitDisk is with what a node ends whose disk takes nothing more.
const exitDisk = 74

func TestRunbook_DiskFull_Holds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	disks := map[*site.Aggregator]site.Disk{}
	for _, g := range c.nodes {
		disks[g] = c.site.SmallDisk(g.DataDir, "256m")
	}
	c.startNodes(200)
	full := c.Leader()
	disks[full].Fill(0)
	c.jobs.Write(2000)
	for _, g := range c.otherNodes(full) {
		g.AwaitRecords(int64(c.jobs.Count))
	}
	c.awaitFinding(c.otherNodes(full)[0], true, "disk-low", "disk-readonly", "node-silent")
	c.requireText(c.runBlock(commandBlocks(t, "A disk is full")[0], full), "MiB are free again")
	disks[full].Empty()
	if full.Ended() { // systemd would have tried all the time
		if code := full.Exit(); code != exitDisk || strings.Contains(full.Log(200), "goroutine ") {
			t.Errorf("it has ended with %d:\n%s", code, full.Log(40))
		}
		full.Kill()
		full.Start()
	}
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
}

// refuses waits until a node that was started ends since it must not go on, and
// has said why.
func (c *cluster) refuses(g *site.Aggregator, why string) {
	c.t.Helper()
	if code := g.Exit(); code != systemd.ExitFenced {
		c.t.Errorf("it has ended with %d", code)
	}
	c.requireText(g.Log(10), why)
}

func TestRunbook_RaftDBDamaged_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	bad := c.nodes[1]
	c.stopNode(bad)
	site.DamageLast(t, filepath.Join(bad.DataDir, "raft", "raft.db"), "logs") // the newest entry
	bad.Start()
	c.refuses(bad, "raft.db: entry ")
	c.jobs.Write(100)
	c.runBlock(commandBlocks(t, "raft.db is damaged")[0], bad)
	c.awaitWhole(c.nodes...)

	bad = c.nodes[2] // whose newest entries are in the journal when it is killed
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
	bad.Kill()
	site.Flip(t, filepath.Join(bad.DataDir, "raft", "journal-a"), 60)
	bad.Start()
	c.refuses(bad, "journal-a: a stored batch of entries is damaged")
	c.runBlock(commandBlocks(t, "raft.db is damaged")[0], bad)
	c.awaitWhole(c.nodes...)
}

func TestOlderCopyOfNodeData_DoesNotVoteUntilCaughtUp(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	whole, back, lagging := c.nodes[0], c.nodes[1], c.nodes[2]
	c.stopNode(lagging)
	c.stopNode(back)
	older := back.DataDir + ".older"
	if err := os.CopyFS(older, os.DirFS(back.DataDir)); err != nil {
		t.Fatal(err)
	}
	site.Start(back)
	c.jobs.Write(300)
	whole.AwaitRecords(int64(c.jobs.Count))
	back.AwaitRecords(int64(c.jobs.Count))
	c.stopNode(back)
	whole.Kill()
	if err := errors.Join(os.RemoveAll(back.DataDir), os.Rename(older, back.DataDir)); err != nil {
		t.Fatal(err)
	}
	back.Start()
	lagging.Start()
	c.awaitFinding(back, true, "node-old-copy")
	c.awaitFinding(lagging, true, "no-leader")
	c.runBlock(commandBlocks(t, "A node's data are an older copy")[0], whole)
	c.awaitWhole(c.nodes...)
	c.awaitFinding(back, false, "node-old-copy")
}

// Where the record of the progress went back as well, the nodes that lack what was
// confirmed lead. The node that has it says so and stops, and either history can stay.
func TestRunbook_TwoHistories_EitherStays(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	whole, back, lagging := c.nodes[0], c.nodes[1], c.nodes[2]
	for _, keep := range []bool{true, false} {
		c.fork(whole, back, lagging)
		c.refuses(whole, "two histories")
		whole.Start()
		c.refuses(whole, "two histories")
		steps := commandBlocks(t, "There are two histories")
		if keep {
			c.runBlock(steps[0], c.otherNodes(whole)...)
			c.runBlock(steps[1], whole)
			whole.AwaitRecords(int64(c.jobs.Count))
			c.runBlock(steps[2], c.otherNodes(whole)...)
		} else {
			c.runBlock(steps[3], whole)
		}
		c.awaitWhole(c.nodes...)
		for _, g := range c.otherNodes(whole) {
			c.awaitFinding(g, false, "two-histories", "node-silent")
		}
	}
}

// fork takes a node back to older copies of its data and of its progress while another
// lags, and starts the third, which has all, when these two lead.
func (c *cluster) fork(whole, back, lagging *site.Aggregator) {
	c.t.Helper()
	c.stopNode(lagging)
	c.stopNode(back)
	folders := []string{back.DataDir, back.DataDir + "-progress"}
	for _, dir := range folders {
		if err := os.CopyFS(dir+".older", os.DirFS(dir)); err != nil {
			c.t.Fatal(err)
		}
	}
	site.Start(back)
	c.jobs.Write(300)
	whole.AwaitRecords(int64(c.jobs.Count))
	back.AwaitRecords(int64(c.jobs.Count))
	back.Kill()
	whole.Kill()
	for _, dir := range folders {
		if err := errors.Join(os.RemoveAll(dir), os.Rename(dir+".older", dir)); err != nil {
			c.t.Fatal(err)
		}
	}
	site.Start(back, lagging)
	c.jobs.Write(10)
	back.AwaitRecords(int64(c.jobs.Count))
	whole.Start()
	c.awaitFinding(back, true, "two-histories")
	c.awaitFinding(lagging, true, "two-histories")
}

func TestRunbook_StoreDamaged_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	bad := c.nodes[0]
	c.stopNode(bad)
	site.Start(bad) // what was in Pebble's log is in tables now
	c.stopNode(bad)
	c.damageTables(bad.DataDir)
	bad.Start()
	c.refuses(bad, ".sst")
	c.jobs.Write(100)
	c.requireText(c.runBlock(commandBlocks(t, "The store is damaged")[0], bad), "does not read")
	c.awaitWhole(c.nodes...)
}

// damageTables turns over bits in the tables of a store.
func (c *cluster) damageTables(data string) {
	c.t.Helper()
	names, err := filepath.Glob(filepath.Join(data, "store", "db-*", "*.sst"))
	if err != nil || len(names) == 0 {
		c.t.Fatal("no tables: ", err)
	}
	for _, name := range names {
		raw, err := os.ReadFile(name)
		if err != nil {
			c.t.Fatal(err)
		}
		for i := range raw[:len(raw)/2] {
			raw[i] ^= 4
		}
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

func TestRunbook_NodeFenced_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	bad := c.nodes[2]
	c.stopNode(bad)
	c.falsify(bad, 1)
	bad.Start()
	c.runCommand("bursar operator raft transfer-leader", c.nodes[0]) // who begins to lead compares
	c.refuses(bad, "this node is fenced")
	bad.Start()
	c.refuses(bad, "this node is fenced")
	c.jobs.Write(100)
	c.requireText(c.runBlock(commandBlocks(t, "A node is fenced")[0], bad), "the store is not sound")
	c.awaitWhole(c.nodes...)
}

func TestRunbook_AllNodesDiffer_Holds(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	for _, g := range c.nodes {
		c.stopNode(g)
	}
	sound := c.nodes[1]
	for i, g := range c.otherNodes(sound) {
		c.falsify(g, byte(i+1))
	}
	c.Start()
	c.awaitFinding(sound, true, "state-differs")
	c.jobs.Write(100)
	for _, g := range c.nodes {
		said := c.runBlock(commandBlocks(t, "A node is fenced")[1], g)
		if g == sound {
			c.requireText(said, "the store is sound")
		} else {
			c.requireText(said, "the store is not sound")
		}
	}
	for _, g := range c.otherNodes(sound) {
		g.Kill()
	}
	c.goOnWith(sound)
}

// falsify changes a counter in the state of a node that does not run, as if a
// command had been applied in another way there: the state hash is of what is there.
func (c *cluster) falsify(g *site.Aggregator, how byte) {
	c.t.Helper()
	names, err := filepath.Glob(filepath.Join(g.DataDir, "store", "db-*"))
	if err != nil || len(names) != 1 {
		c.t.Fatal(names, err)
	}
	db, err := pebble.Open(names[0], &pebble.Options{FormatMajorVersion: pebble.FormatNewest})
	if err != nil {
		c.t.Fatal(err)
	}
	it, err := db.NewIter(&pebble.IterOptions{LowerBound: []byte{'k'}, UpperBound: []byte{'l'}})
	if err != nil || !it.First() {
		c.t.Fatal("no counters: ", err)
	}
	key, value := slices.Clone(it.Key()), slices.Clone(it.Value())
	wrong := slices.Clone(value)
	wrong[0] ^= how << 1                      // what came in is not what became of it
	state, closer, err := db.Get([]byte{'z'}) // its end is the hash, a sum of 128 bits
	if err != nil {
		c.t.Fatal(err)
	}
	state = slices.Clone(state)
	hash := state[len(state)-16:]
	hi, lo := binary.LittleEndian.Uint64(hash), binary.LittleEndian.Uint64(hash[8:])
	oldHi, oldLo := hashOfPair(key, value)
	newHi, newLo := hashOfPair(key, wrong)
	lo, borrow := bits.Sub64(lo, oldLo, 0)
	hi, _ = bits.Sub64(hi, oldHi, borrow)
	lo, carry := bits.Add64(lo, newLo, 0)
	hi, _ = bits.Add64(hi, newHi, carry)
	binary.LittleEndian.PutUint64(hash, hi)
	binary.LittleEndian.PutUint64(hash[8:], lo)
	if err := errors.Join(it.Close(), closer.Close(), db.Set(key, wrong, pebble.Sync), db.Set([]byte{'z'}, state, pebble.Sync), db.Close()); err != nil {
		c.t.Fatal(err)
	}
}

// hashOfPair is what a key with its value adds to the state hash.
func hashOfPair(key, value []byte) (hi, lo uint64) {
	b := append(append(binary.AppendUvarint([]byte{1}, uint64(len(key))), key...), value...)
	hi = xxhash.Sum64(b)
	b[0] = 2
	return hi, xxhash.Sum64(b)
}

func TestRunbook_ClockWrong_Holds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	clocks := c.ownClocks()
	c.startNodes(200)
	late := c.Leader()
	if err := os.WriteFile(clocks[late], []byte("-1h"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.awaitFinding(c.otherNodes(late)[0], true, "clock-apart")
	c.site.Eventually("another node leads", func() (bool, string) { return c.Leader() != late, late.Log(3) })
	c.requireText(late.Log(200), "this node proposes nothing until its clock is right")
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
	c.awaitFinding(late, true, "clock-apart")
	c.requireText(c.runBlock(commandBlocks(t, "A clock is wrong")[0], late), "the clocks of ")
	if err := os.Remove(clocks[late]); err != nil {
		t.Fatal(err)
	}
	c.awaitFinding(late, false, "clock-apart")
	c.jobs.Write(100)
	c.awaitWhole(c.nodes...)
}

// ownClocks gives each node a clock that is off by what a file says. It needs the
// program of make e2e.
func (c *cluster) ownClocks() map[*site.Aggregator]string {
	c.t.Helper()
	program := filepath.Join(c.site.Bin, "faults", "bursar")
	if _, err := os.Stat(program); err != nil {
		c.t.Fatalf("%v: make e2e builds it", err)
	}
	files := map[*site.Aggregator]string{}
	for _, g := range c.nodes {
		files[g] = g.DataDir + ".clock"
		g.Become(program)
		g.Env = append(g.Env, "BURSAR_TEST_CLOCK_OFFSET=@"+files[g])
	}
	return files
}
