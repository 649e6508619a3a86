package action

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// cluster is the replicated state and the world outside, which nodes share.
type cluster struct {
	t     testing.TB
	store *store.Store

	mu    sync.Mutex
	index uint64
	term  uint64
	// happened are the effects that have happened, in order.
	happened []effect
}

type effect struct {
	name, key, value string
	fence            uint64
}

// newCluster is called within the bubble of a test that has one: a database that is
// opened outside of it begins goroutines inside when its log grows, which do not end.
func newCluster(t testing.TB) *cluster {
	t.Helper()
	s, err := store.Open(store.Options{Dir: "/store", FS: vfs.NewMem(), MemTableBytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	c := &cluster{t: t, store: s}
	if _, err := c.apply(&store.SetClusterCommand{ID: "test"}); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *cluster) apply(command store.Command) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.index++
	return c.store.Apply(c.index, max(c.term, 1), store.Encode(command))
}

// all are the effects that have happened, in order.
func (c *cluster) all() []effect {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.happened)
}

// values are the last values by name, and how often each key has happened.
func (c *cluster) values() (last map[string]string, times map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last, times = map[string]string{}, map[string]int{}
	for _, e := range c.happened {
		last[e.name] = e.value
		times[e.key]++
	}
	return last, times
}

// node is a node that leads until it is dead.
type node struct {
	*cluster

	term  uint64
	plug  *plugin
	steps int  // until it dies; 0: never
	after bool // it dies after what the step does
	died  chan struct{}
	mu2   sync.Mutex
	dead  bool
}

var errDead = errors.New("this node is dead")

// step counts down. The results say whether the node is alive, and whether it dies
// after what it does now.
func (n *node) step() (alive, last bool) {
	n.mu2.Lock()
	defer n.mu2.Unlock()
	if n.dead {
		return false, false
	}
	if n.steps > 0 {
		if n.steps--; n.steps == 0 {
			n.dead = true
			close(n.died)
			return n.after, true
		}
	}
	return true, false
}

// View implements Views.
func (n *node) View() (*store.View, error) { return n.store.View() }

// Write implements Writer.
func (n *node) Write(_ context.Context, c store.Command) (any, error) {
	alive, last := n.step()
	if !alive {
		return nil, errDead
	}
	result, err := n.apply(c)
	if last {
		return nil, errDead
	}
	return result, err
}

// Term implements Leader.
func (n *node) Term() uint64 { return n.term }

// Verify implements Leader.
func (n *node) Verify(context.Context, uint64) error {
	if alive, last := n.step(); !alive || last {
		return errDead
	}
	return nil
}

// Open implements Plugins.
func (n *node) Open(context.Context, *Setting) (Plugin, error) {
	n.plug.mu.Lock()
	defer n.plug.mu.Unlock()
	if n.plug.broken != nil {
		return nil, n.plug.broken
	}
	return &session{plugin: n.plug, node: n}, nil
}

// Identity implements Plugins.
func (n *node) Identity(*Setting) string {
	n.plug.mu.Lock()
	defer n.plug.mu.Unlock()
	return n.plug.binary
}

// plugin is what a plugin does; change changes it while it works.
type plugin struct {
	mu sync.Mutex
	behaviour
}

func (p *plugin) change(f func(b *behaviour)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.behaviour)
}

type behaviour struct {
	about   Description
	plan    func(start sdk.PlanStart) (sdk.Plan, error)
	execute func(a sdk.Attempt) (result sdk.Result, happens bool, err error)
	probe   func(a sdk.Attempt) sdk.Result
	broken  error
	binary  string
}

type session struct {
	*plugin
	node *node
	gone bool
}

func (s *session) Description() *Description { return &s.about }
func (s *session) Gone() bool                { return s.gone }
func (s *session) Stale() bool               { return false }
func (s *session) Close() error              { return nil }
func (s *session) Hang(error)                {}
func (s *session) Kill() error               { return nil }

func (s *session) Plan(_ context.Context, start sdk.PlanStart) (*sdk.Plan, error) {
	if alive, last := s.node.step(); !alive || last {
		s.gone = true
		return nil, errDead
	}
	s.plugin.mu.Lock()
	defer s.plugin.mu.Unlock()
	p, err := s.plan(start)
	return &p, err
}

func (s *session) Execute(_ context.Context, a sdk.Attempt) (sdk.Result, error) {
	alive, last := s.node.step()
	if !alive {
		s.gone = true
		return sdk.Result{}, errDead
	}
	s.plugin.mu.Lock()
	defer s.plugin.mu.Unlock()
	result, happens, err := s.execute(a)
	if happens {
		s.node.mu.Lock()
		s.node.happened = append(s.node.happened, effect{a.Effect.Name, a.Key, string(a.Effect.Payload), a.Fence})
		s.node.mu.Unlock()
	}
	if last {
		err = errDead
	}
	s.gone = err != nil
	return result, err
}

func (s *session) Probe(_ context.Context, a sdk.Attempt) (sdk.Result, error) {
	if alive, last := s.node.step(); !alive || last {
		s.gone = true
		return sdk.Result{}, errDead
	}
	s.plugin.mu.Lock()
	defer s.plugin.mu.Unlock()
	return s.probe(a), nil
}

// fine is a plugin whose effects happen.
func fine(class sdk.EffectClass, schedule string, effects int) *plugin {
	return &plugin{behaviour: behaviour{
		about: Description{ActionDescription: sdk.ActionDescription{Type: "test", Version: "1", Class: class, Schedule: schedule}},
		plan: func(start sdk.PlanStart) (sdk.Plan, error) {
			n, _ := strconv.Atoi(string(start.State))
			p := sdk.Plan{State: []byte(strconv.Itoa(n + 1))}
			for i := range effects {
				p.Effects = append(p.Effects, sdk.Effect{Name: fmt.Sprint("effect", i), Payload: []byte(strconv.Itoa(n))})
			}
			return p, nil
		},
		execute: func(sdk.Attempt) (sdk.Result, bool, error) { return sdk.Result{Outcome: sdk.Done}, true, nil },
	}}
}

var testName = Name{"test", "a"}

// lead makes a node the leader.
func (c *cluster) lead(p *plugin) *node {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.term++
	return &node{cluster: c, term: c.term, plug: p, died: make(chan struct{})}
}

// manager makes the manager of a node.
func (n *node) manager() *Manager {
	m := New(Options{
		Node: fmt.Sprint("node", n.term), Views: n, Writer: n, Leader: n, Plugins: n, Quiet: func() time.Duration { return 5 * time.Second },
		Life: store.Document{Space: "cluster", Key: "incarnation"}, Now: time.Now, Log: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	m.Set([]Setting{{Name: testName, Digest: "one"}})
	return m
}

// run has the node lead until stop is called, which waits.
func (n *node) run(m *Manager) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Lead(ctx); err != nil {
			n.t.Error(err)
		}
	}()
	// What a test looks at after so many minutes must not fall together with what the
	// schedule does just then.
	time.Sleep(100 * time.Millisecond)
	return func() {
		cancel()
		<-done
	}
}

// status is that of the action.
func (n *node) status(m *Manager) Status {
	n.t.Helper()
	list, err := store.With(n, func(view *store.View) ([]Status, error) { return m.List(view) })
	if err != nil || len(list) != 1 {
		n.t.Fatal(list, err)
	}
	return list[0]
}

// ledger is all effects of all runs, by their key.
func (c *cluster) ledger() map[string]Effect {
	c.t.Helper()
	view, err := c.store.View()
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	out := map[string]Effect{}
	err = view.Documents(effectSpace, "", func(d store.Document) error {
		e, err := decodeDocument[Effect](d.Value)
		if err == nil {
			out[e.Key] = *e
		}
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}
