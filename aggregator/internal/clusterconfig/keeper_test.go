package clusterconfig_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/clusterconfig"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// trio is three nodes that share a log: here, one store.
type trio struct {
	t     *testing.T
	store *store.Store
	mu    sync.Mutex
	index uint64
	deny  error
	nodes map[string]*node
}

// node is one of them, whose keeper comes and goes.
type node struct {
	*clusterconfig.Keeper

	dir    string
	log    *strings.Builder
	obeyed []string
	refuse error
}

func newTrio(t *testing.T) *trio {
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return &trio{t: t, store: s, nodes: map[string]*node{}}
}

// Write implements shared.Writer.
func (c *trio) Write(_ context.Context, cmd store.Command) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deny != nil {
		return nil, c.deny
	}
	c.index++
	return c.store.Apply(c.index, 1, store.Encode(cmd))
}

// start starts a node with those files, or starts it again.
func (c *trio) start(name string, files *clusterconfig.Document) *node {
	n := c.nodes[name]
	if n == nil {
		n = &node{dir: c.t.TempDir(), log: &strings.Builder{}}
		c.nodes[name] = n
	}
	n.Keeper = clusterconfig.NewKeeper(clusterconfig.Options{
		Node: name, Dir: n.dir, Views: c.store, Writer: c, Files: files, Now: func() time.Time { return time.Unix(1_700_000_000, 0) },
		Log: slog.New(slog.NewTextHandler(n.log, nil)), Metrics: prometheus.NewRegistry(), Diff: difference,
		Obey: func(d *clusterconfig.Document) error {
			n.obeyed = append(n.obeyed, addresses(d))
			return n.refuse
		},
	})
	return n
}

func addresses(d *clusterconfig.Document) string {
	var set struct {
		Agent []struct{ Address string }
	}
	if err := json.Unmarshal(d.Settings, &set); err != nil {
		return err.Error()
	}
	var list []string
	for _, a := range set.Agent {
		list = append(list, a.Address)
	}
	return strings.Join(list, " ")
}

// difference compares the agents of two documents.
func difference(files, cluster *clusterconfig.Document) []clusterconfig.Difference {
	return clusterconfig.Diff(files.Written, doc("a", addresses(cluster)).Written)
}

// lead has a node lead; committed is what it makes of it.
func (c *trio) lead(n *node) (committed string) {
	c.t.Helper()
	if err := n.Reconcile(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	return c.committed()
}

func (c *trio) committed() string {
	c.t.Helper()
	view, err := c.store.View()
	if err != nil {
		c.t.Fatal(err)
	}
	defer view.Close()
	now, err := clusterconfig.Read(view)
	if err != nil {
		c.t.Fatal(err)
	}
	if now == nil {
		return "nothing"
	}
	return addresses(now.Document) + " by " + now.By
}

func (n *node) look(t *testing.T) clusterconfig.Facts {
	t.Helper()
	if err := n.Look(); err != nil {
		t.Fatal(err)
	}
	return n.Facts()
}

func one(address string) *clusterconfig.Document { return doc("a", address) }

// want fails when got is not want.
func want(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestTheFirstLeaderGivesTheClusterItsConfigurationAndAllObeyIt(t *testing.T) {
	c := newTrio(t)
	a, b := c.start("a", one("a:1")), c.start("b", one("b:1"))
	want(t, "b before", b.look(t).Committed == nil, true)
	want(t, "committed", c.lead(a), "a:1 by a")
	facts := b.look(t)
	want(t, "b differs", facts.Differs, true)
	want(t, "b obeys", b.obeyed, []string{"a:1"})
	want(t, "a obeys", a.obeyed, []string{"a:1"})
	b.look(t)
	want(t, "b obeys once", b.obeyed, []string{"a:1"})
	want(t, "b says so once", strings.Count(b.log.String(), "differ from the cluster's configuration"), 1)
	if !strings.Contains(b.log.String(), `a.hcl:1: agent \"a\" has address = \"b:1\" in these files`) {
		t.Error(b.log)
	}
}

func TestANewLeaderDoesNotOverwriteWithFilesThatHaveNotChanged(t *testing.T) {
	c := newTrio(t)
	a, b := c.start("a", one("old")), c.start("b", one("old"))
	c.lead(a)
	b.look(t)
	a.SetFiles(one("new"))
	want(t, "after a's change", c.lead(a), "new by a")
	want(t, "b leads with its old files", c.lead(b), "new by a")
	b = c.start("b", one("old"))
	want(t, "and after a restart", c.lead(b), "new by a")
	want(t, "b differs", b.Facts().Differs, true)
	b.SetFiles(one("new"))
	want(t, "b differs no more", b.look(t).Differs, false)
}

func TestAChangeMadeOnAFollowerIsCommittedWhenItLeads(t *testing.T) {
	c := newTrio(t)
	a, b := c.start("a", one("old")), c.start("b", one("old"))
	c.lead(a)
	b.look(t)
	b = c.start("b", one("new")) // stopped, changed, started
	want(t, "b follows", c.committed(), "old by a")
	want(t, "b differs", b.look(t).Differs, true)
	b = c.start("b", one("new")) // a second restart forgets nothing
	want(t, "b leads", c.lead(b), "new by b")
	want(t, "a does not take it back", c.lead(a), "new by b")
}

func TestAChangeThatSomeoneElseOvertookIsNotCommittedLater(t *testing.T) {
	c := newTrio(t)
	a, b := c.start("a", one("old")), c.start("b", one("old"))
	c.lead(a)
	b.look(t)
	b.SetFiles(one("first"))
	a.SetFiles(one("second"))
	c.lead(a)
	want(t, "b leads", c.lead(b), "second by a")
	if !strings.Contains(b.log.String(), "changed elsewhere") {
		t.Error(b.log)
	}
	b.SetFiles(one("third"))
	want(t, "a newer change of b", c.lead(b), "third by b")
}

func TestANodeThatWasEmptiedDoesNotImposeItsFiles(t *testing.T) {
	c := newTrio(t)
	c.lead(c.start("a", one("right")))
	b := c.start("b", one("of long ago"))
	want(t, "b leads", c.lead(b), "right by a")
}

func TestAnOperatorsCommitHoldsAgainstTheFilesOfTheLeader(t *testing.T) {
	c := newTrio(t)
	a := c.start("a", one("old"))
	c.lead(a)
	before := a.Facts().Committed
	for _, done := range []bool{true, false} {
		result, err := c.Write(t.Context(), clusterconfig.Commit(one("said"), before, "alice", time.Unix(0, 0)))
		if err != nil {
			t.Fatal(err)
		}
		want(t, "done", result.(store.DocumentResult).Done, done)
	}
	want(t, "a leads on", c.lead(a), "said by alice")
	want(t, "a obeys", a.obeyed, []string{"old", "said"})
	want(t, "a differs", a.Facts().Differs, true)
}

func TestACommitThatFailsIsTriedAgain(t *testing.T) {
	c := newTrio(t)
	a := c.start("a", one("x"))
	c.deny = errors.New("not now")
	want(t, "denied", c.lead(a), "nothing")
	c.deny = nil
	want(t, "allowed", c.lead(a), "x by a")
}

func TestALeaderThatCannotObeyDoesNotLead(t *testing.T) {
	c := newTrio(t)
	c.lead(c.start("a", one("x")))
	b := c.start("b", one("x"))
	b.refuse = errors.New("unknown block")
	if err := b.Reconcile(t.Context()); !errors.Is(err, b.refuse) {
		t.Error(err)
	}
	if err := b.Facts().Problem; !errors.Is(err, b.refuse) {
		t.Error(err)
	}
	b.refuse = nil
	want(t, "problem", b.look(t).Problem, nil)
	want(t, "obeyed again", b.obeyed, []string{"x", "x"})
}

func TestRunAndLeadFollowTheLogUntilTheyEnd(t *testing.T) {
	c := newTrio(t)
	a := c.start("a", one("1"))
	ctx, cancel := context.WithCancel(t.Context())
	var both sync.WaitGroup
	for _, live := range []func(context.Context) error{a.Run, a.Lead} {
		both.Go(func() {
			if err := live(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	for _, next := range []string{"1", "2", "3"} {
		a.SetFiles(one(next))
		for deadline := time.Now().Add(time.Minute); c.committed() != next+" by a"; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(next, " was not committed\n", a.log)
			}
		}
	}
	cancel()
	both.Wait()
}
