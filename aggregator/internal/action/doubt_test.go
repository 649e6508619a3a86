package action

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// unsteady is a node that fails once in what it is told to, and stays the leader.
type unsteady struct {
	*node

	verify bool   // the question whether it leads
	write  string // what writes an effect in this state
	after  bool   // and it is written all the same
}

var errUnsteady = errors.New("no answer in time")

// Verify implements Leader.
func (u *unsteady) Verify(ctx context.Context, term uint64) error {
	if u.verify {
		u.verify = false
		return errUnsteady
	}
	return u.node.Verify(ctx, term)
}

// Write implements Writer.
func (u *unsteady) Write(ctx context.Context, c store.Command) (any, error) {
	if !u.hit(c) {
		return u.node.Write(ctx, c)
	}
	u.write = ""
	if u.after {
		if _, err := u.node.Write(ctx, c); err != nil {
			return nil, err
		}
	}
	return nil, errUnsteady
}

func (u *unsteady) hit(c store.Command) bool {
	docs, ok := c.(*store.DocumentCommand)
	if !ok || len(docs.Sets) != 1 || docs.Sets[0].Space != effectSpace {
		return false
	}
	e, err := decodeDocument[Effect](docs.Sets[0].Value)
	return err == nil && e.State == u.write
}

// once runs an action once and returns its only effect, and how often it happened.
func (u *unsteady) once(t *testing.T) (Effect, int) {
	t.Helper()
	m := u.manager()
	m.Leader, m.Writer = u, u
	if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
		t.Fatal(err)
	}
	stop := u.run(m)
	time.Sleep(time.Minute)
	stop()
	ledger := u.ledger()
	if len(ledger) != 1 {
		t.Fatalf("%+v", ledger)
	}
	for key, e := range ledger {
		_, times := u.values()
		return e, times[key]
	}
	return Effect{}, 0
}

func TestALeaderThatStaysDoesNothingTwiceBecauseOfAnAnswerThatDidNotCome(t *testing.T) {
	for _, x := range []struct {
		name  string
		fails unsteady
		state string
		times int
	}{
		{"the question", unsteady{verify: true}, Done, 1},
		{"the dispatch, not written", unsteady{write: Dispatched}, Done, 1},
		{"the dispatch, written", unsteady{write: Dispatched, after: true}, Done, 1},
		{"the end, not written", unsteady{write: Done}, Done, 1},
		{"the end, written", unsteady{write: Done, after: true}, Done, 1},
		{"the question, then the end", unsteady{verify: true, write: Done}, Done, 1},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				u := x.fails
				u.node = c.lead(fine(sdk.ClassAtMostOnce, "@manual", 1))
				if e, times := u.once(t); e.State != x.state || times != x.times {
					t.Errorf("it is %s and happened %d times, want %s and %d: %+v", e.State, times, x.state, x.times, e)
				}
			})
		})
	}
}

func TestOfAtMostOnceWhatSomebodyElseBeganIsNotRepeatedThoughAProbeDoesNotFindIt(t *testing.T) {
	for _, x := range []struct {
		class sdk.EffectClass
		probe sdk.Outcome
		state string
		times int
	}{
		{sdk.ClassSet, sdk.Retry, Done, 1}, {sdk.ClassKeyed, sdk.Retry, Done, 1}, {sdk.ClassAtMostOnce, sdk.Retry, Unknown, 0},
		{sdk.ClassKeyed, sdk.Rejected, Rejected, 0}, {sdk.ClassAtMostOnce, sdk.Rejected, Rejected, 0}, // a later plan makes it good
	} {
		t.Run(fmt.Sprint(x.class, x.state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				p := fine(x.class, "@manual", 1)
				p.about.Probes = true
				p.probe = func(sdk.Attempt) sdk.Result { return sdk.Result{Outcome: x.probe} }
				n := c.lead(p)
				n.steps = 6 // the order, the state, the plan, its record, the dispatch, the question
				m := n.manager()
				if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
					t.Fatal(err)
				}
				stop := n.run(m)
				<-n.died
				stop()
				n = c.lead(p)
				stop = n.run(n.manager())
				time.Sleep(time.Minute)
				stop()
				for key, e := range c.ledger() {
					if _, times := c.values(); e.State != x.state || times[key] != x.times {
						t.Errorf("it is %s and happened %d times, want %s and %d", e.State, times[key], x.state, x.times)
					}
				}
			})
		})
	}
}

func TestWhatThisLeaderBeganItselfIsRepeatedWhereAProbeDoesNotFindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassAtMostOnce, "@manual", 1)
		p.about.Probes = true
		p.probe = func(sdk.Attempt) sdk.Result { return sdk.Result{Outcome: sdk.Retry} }
		p.execute = func(a sdk.Attempt) (sdk.Result, bool, error) {
			if a.Number == 1 {
				return sdk.Result{Outcome: sdk.Unknown}, false, nil
			}
			return sdk.Result{Outcome: sdk.Done}, true, nil
		}
		u := unsteady{node: c.lead(p)}
		if e, times := u.once(t); e.State != Done || e.Tries != 2 || times != 1 {
			t.Errorf("it happened %d times: %+v", times, e)
		}
	})
}

// hanging is a plugin that does not end by itself.
type hanging struct {
	*session

	killed func()
}

// Execute implements Plugin.
func (h *hanging) Execute(ctx context.Context, _ sdk.Attempt) (sdk.Result, error) {
	<-ctx.Done()
	return sdk.Result{}, ctx.Err()
}

// Kill implements Plugin.
func (h *hanging) Kill() error {
	h.killed()
	return nil
}

// Hang implements Plugin.
func (h *hanging) Hang(error) { h.killed() }

// hangs starts plugins that hang.
type hangs struct {
	*node

	killed func()
}

// Open implements Plugins.
func (h hangs) Open(context.Context, *Setting) (Plugin, error) {
	return &hanging{&session{plugin: h.plug, node: h.node}, h.killed}, nil
}

func TestAPluginThatHangsIsKilledBeforeAnythingIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.lead(fine(sdk.ClassSet, "@manual", 1))
		m := n.manager()
		kills := 0
		m.Plugins = hangs{n, func() {
			kills++
			for _, e := range c.ledger() {
				if e.State != Dispatched {
					t.Errorf("when it is killed the effect is %s", e.State)
				}
			}
		}}
		if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
			t.Fatal(err)
		}
		stop := n.run(m)
		time.Sleep(90 * time.Second)
		stop() // the second try is under way
		if kills != 2 {
			t.Errorf("it was killed %d times", kills)
		}
	})
}
