package action

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/plugins/host"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/racetest"
)

func TestScheduledRunsAreCarriedOutAndKeepTheirState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.lead(fine(sdk.ClassSet, "1m", 3))
		m := n.manager()
		stop := n.run(m)
		time.Sleep(5*time.Minute + 30*time.Second)
		stop()
		s := n.status(m)
		if s.State() != "healthy" || s.Stored.Next != 7 || s.Last.Counts.Done != 3 {
			t.Errorf("%+v, last %+v", s.Stored, s.Last)
		}
		last, times := c.values()
		if last["effect2"] != "5" || len(times) != 18 {
			t.Errorf("%v %v", last, times)
		}
	})
}

var seeds = flag.Uint64("seeds", 8, "how many times leaders die, for each class")

// TestNoCrashOfTheLeaderMakesAnEffectTwiceOrLosesOne has leaders die at any step.
func TestNoCrashOfTheLeaderMakesAnEffectTwiceOrLosesOne(t *testing.T) {
	for _, class := range []sdk.EffectClass{sdk.ClassSet, sdk.ClassKeyed, sdk.ClassAtMostOnce} {
		for seed := range uint64(racetest.Few(int(*seeds))) {
			t.Run(fmt.Sprintf("%d/%d", class, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { dying(t, newCluster(t), class, rand.New(rand.NewPCG(seed, uint64(class)))) })
			})
		}
	}
}

func dying(t *testing.T, c *cluster, class sdk.EffectClass, dice *rand.Rand) {
	odd := fine(class, "1m", 4)
	odd.about.Probes = dice.IntN(2) == 0
	odd.probe = func(a sdk.Attempt) sdk.Result {
		_, times := c.values()
		if times[a.Key] > 0 {
			return sdk.Result{Outcome: sdk.Done}
		}
		return sdk.Result{Outcome: sdk.Retry}
	}
	whole := odd.execute
	odd.execute = func(a sdk.Attempt) (sdk.Result, bool, error) {
		switch dice.IntN(10) {
		case 0:
			return sdk.Result{Outcome: sdk.Retry}, false, nil
		case 1:
			return sdk.Result{}, true, errors.New("it crashed after the effect")
		case 2:
			return sdk.Result{}, false, errors.New("it crashed before the effect")
		}
		return whole(a)
	}
	for range 30 {
		n := c.lead(odd)
		n.steps, n.after = 1+dice.IntN(25), dice.IntN(2) == 0
		m := n.manager()
		if s := n.status(m); s.Stored.Disabled != nil {
			if err := m.Resume(t.Context(), testName); err != nil && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
		}
		stop := n.run(m)
		select {
		case <-n.died:
		case <-time.After(10 * time.Minute):
		}
		stop()
	}
	odd.execute = whole
	n := c.lead(odd)
	m := n.manager()
	if n.status(m).Stored.Disabled != nil {
		if err := m.Resume(t.Context(), testName); err != nil {
			t.Fatal(err)
		}
	}
	stop := n.run(m)
	time.Sleep(10*time.Minute + 30*time.Second)
	stop()
	judge(t, c, class, n.status(m))
}

func judge(t *testing.T, c *cluster, class sdk.EffectClass, s Status) {
	t.Helper()
	last, times := c.values()
	ledger := c.ledger()
	for key, n := range times {
		e, ok := ledger[key]
		if !ok || e.Tries < n {
			t.Errorf("an effect happened %d times, and the ledger has %d attempts", n, e.Tries)
		}
		if class == sdk.ClassAtMostOnce && n > 1 {
			t.Errorf("an effect of at most once happened %d times: %+v", n, e)
		}
	}
	for key, e := range ledger {
		if e.State == Done && times[key] == 0 {
			t.Errorf("an effect is done, and has not happened: %+v", e)
		}
	}
	fences := map[string]uint64{}
	for _, e := range c.all() {
		if e.fence <= fences[e.name] {
			t.Errorf("a fence went back from %d to %d", fences[e.name], e.fence)
		}
		fences[e.name] = e.fence
	}
	if class == sdk.ClassAtMostOnce {
		return
	}
	if s.State() != "healthy" || s.Stored.Current != 0 {
		t.Errorf("in the end the action is %s: %+v", s.State(), s.Stored)
	}
	kept, _ := stateOf(c, s.Stored.Kept)
	for name, value := range last {
		if value+"+1" != kept {
			t.Errorf("in the end %s is %s, and the state is %s", name, value, kept)
		}
	}
}

// stateOf is the state of a run as the plan wrote it, as "n+1".
func stateOf(c *cluster, run uint64) (string, error) {
	view, err := c.store.View()
	if err != nil {
		return "", err
	}
	defer func() { _ = view.Close() }()
	raw, err := readState(view, testName, run)
	n := 0
	_, _ = fmt.Sscan(string(raw), &n)
	return fmt.Sprintf("%d+1", n-1), err
}

func TestWhatWasBegunBySomebodyWhoIsGoneIsRepeatedOnlyWhereItMayBe(t *testing.T) {
	for _, x := range []struct {
		class  sdk.EffectClass
		probes bool
		state  string
		times  int
	}{
		{sdk.ClassSet, false, Done, 2}, {sdk.ClassKeyed, false, Done, 2}, {sdk.ClassAtMostOnce, false, Unknown, 1},
		{sdk.ClassSet, true, Done, 1}, {sdk.ClassAtMostOnce, true, Done, 1},
	} {
		t.Run(fmt.Sprint(x.class, x.probes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				p := fine(x.class, "@manual", 1)
				p.about.Probes = x.probes
				p.probe = func(sdk.Attempt) sdk.Result { return sdk.Result{Outcome: sdk.Done} }
				n := c.lead(p)
				n.steps, n.after = 6, true // the order, the state, the plan, its record, the dispatch, the question, the effect
				m := n.manager()
				if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
					t.Fatal(err)
				}
				stop := n.run(m)
				<-n.died
				stop()
				if _, times := c.values(); len(times) != 1 {
					t.Fatal("the effect has not happened: ", times)
				}
				n = c.lead(p)
				m = n.manager()
				stop = n.run(m)
				time.Sleep(time.Second)
				for _, e := range c.ledger() {
					if e.State != Dispatched {
						t.Errorf("before the quiet period it is %s", e.State)
					}
				}
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

func TestAPersonDecidesWhatIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassAtMostOnce, "@manual", 2)
		odd := true
		p.execute = func(sdk.Attempt) (sdk.Result, bool, error) {
			if odd {
				return sdk.Result{Outcome: sdk.Unknown, Message: "no answer"}, true, nil
			}
			return sdk.Result{Outcome: sdk.Done}, true, nil
		}
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		if _, err := m.Run(t.Context(), testName, "me", map[string]string{"month": "2026-10"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := n.status(m); s.State() != "unknown" || s.Last.Counts.Unknown != 2 || s.Last.Arguments["month"] != "2026-10" {
			t.Fatalf("%s %+v", s.State(), s.Last)
		}
		p.change(func(*behaviour) { odd = false })
		if err := m.Retry(t.Context(), testName, "me", 1, 0); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if s := n.status(m); s.State() != "unknown" || s.Last.Counts.Done != 1 || s.Last.Counts.Unknown != 1 {
			t.Fatalf("%s %+v", s.State(), s.Last)
		}
		if err := m.Skip(t.Context(), testName, "me", 1, 1); err != nil {
			t.Fatal(err)
		}
		if s := n.status(m); s.State() != "healthy" || s.Last.Counts.Skipped != 1 {
			t.Errorf("%s %+v", s.State(), s.Last)
		}
		if err := m.Retry(t.Context(), testName, "me", 1, 0); !errors.Is(err, ErrRefused) {
			t.Errorf("a retry of what is done: %v", err)
		}
		if err := m.Skip(t.Context(), testName, "me", 7, 0); !errors.Is(err, ErrNone) {
			t.Errorf("a run that is not there: %v", err)
		}
	})
}

func TestARestorePausesAllActions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.lead(fine(sdk.ClassKeyed, "1m", 1))
		m := n.manager()
		defer n.run(m)()
		time.Sleep(90 * time.Second)
		_, before := c.values()
		if _, err := c.apply(&store.DocumentCommand{Sets: []store.Document{newDocument("cluster", "incarnation", []byte("another life"))}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if s := n.status(m); s.State() != "paused" || !strings.Contains(s.Stored.Paused.Why, "restored") {
			t.Errorf("%+v", s.Stored)
		}
		if _, times := c.values(); len(times) != len(before) {
			t.Errorf("%d effects, before the restore %d", len(times), len(before))
		}
		if _, err := m.Run(t.Context(), testName, "me", nil); !errors.Is(err, ErrRefused) {
			t.Errorf("a run of a paused action: %v", err)
		}
		if err := m.Resume(t.Context(), testName); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if s := n.status(m); s.State() != "healthy" {
			t.Errorf("%+v", s.Stored)
		}
	})
}

func TestAPluginThatCrashesAgainAndAgainIsDisabledUntilItIsAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "1m", 1)
		p.binary = "old"
		well := p.execute
		p.execute = func(sdk.Attempt) (sdk.Result, bool, error) { return sdk.Result{}, false, errors.New("exit status 2") }
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		time.Sleep(10 * time.Minute)
		if s := n.status(m); s.State() != "disabled" || !strings.Contains(s.Stored.Disabled.Why, "exit status 2") {
			t.Fatalf("%+v", s.Stored)
		}
		p.change(func(b *behaviour) { b.execute, b.binary = well, "new" })
		time.Sleep(10 * time.Minute)
		if s := n.status(m); s.State() != "healthy" {
			t.Errorf("%s %+v", s.State(), s.Stored)
		}
	})
}

func TestAPluginThatDoesNotStartIsDisabledButOneThatIsNotThereIsWaitedFor(t *testing.T) {
	for state, broken := range map[string]error{
		"disabled": fmt.Errorf("start it: %w; exit status 3", host.ErrCrash),
		"failing":  host.ErrNotFound,
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			p := fine(sdk.ClassSet, "1m", 1)
			p.broken = broken
			n := c.lead(p)
			m := n.manager()
			defer n.run(m)()
			time.Sleep(10 * time.Minute)
			if s := n.status(m); s.State() != state {
				t.Errorf("%v: %s, %+v", broken, s.State(), s.Stored)
			}
			p.change(func(b *behaviour) { b.broken, b.binary = nil, "new" })
			time.Sleep(10 * time.Minute)
			if s := n.status(m); s.State() != "healthy" {
				t.Errorf("%v: %s, %+v", broken, s.State(), s.Stored)
			}
		})
	}
}

func TestOrder_ActionIsDisabledMeanwhile_IsInTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "@manual", 1)
		p.broken = fmt.Errorf("start it: %w; exit status 3", host.ErrCrash)
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		accepted := uint64(0)
		for s := n.status(m); s.State() != "disabled"; s = n.status(m) {
			if _, err := m.Run(t.Context(), testName, "me", nil); err == nil {
				accepted++
			}
			time.Sleep(300 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if s := n.status(m); accepted == 0 || len(s.Stored.Requests) > 0 || s.Stored.Next-1 < accepted {
			t.Errorf("of %d orders %d wait, and there are %d runs", accepted, len(s.Stored.Requests), s.Stored.Next-1)
		}
	})
}

func TestAnEffectThatFailsIsTriedAgainAndANewPlanTakesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "10m", 2)
		down := true
		p.execute = func(a sdk.Attempt) (sdk.Result, bool, error) {
			if down && a.Effect.Name == "effect0" {
				return sdk.Result{Outcome: sdk.Retry, Message: "connection refused"}, false, nil
			}
			return sdk.Result{Outcome: sdk.Done}, true, nil
		}
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		time.Sleep(9 * time.Minute)
		if last, _ := c.values(); last["effect1"] != "0" {
			t.Error("the effect behind one that fails is not done")
		}
		if s := n.status(m); s.State() != "running" {
			t.Errorf("%s", s.State())
		}
		time.Sleep(10 * time.Minute)
		p.change(func(*behaviour) { down = false })
		time.Sleep(10 * time.Minute)
		if s := n.status(m); s.State() != "healthy" {
			t.Errorf("%s", s.State())
		}
		for _, e := range c.all() {
			if e.name == "effect0" {
				if e.value != "0" {
					t.Errorf("the first to happen is %s: the state of a run that was superseded has been kept", e.value)
				}
				break
			}
		}
		runs := 0
		for _, e := range c.ledger() {
			if e.State == Superseded {
				runs++
			}
		}
		if runs == 0 {
			t.Error("nothing was superseded")
		}
	})
}

func TestAPlanThatCannotBeMadeIsToldAndTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "1m", 1)
		well := p.plan
		var broken atomic.Bool
		broken.Store(true)
		p.plan = func(start sdk.PlanStart) (sdk.Plan, error) {
			if broken.Load() {
				return sdk.Plan{}, errors.New("no such meta key")
			}
			return well(start)
		}
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		time.Sleep(3 * time.Minute)
		if s := n.status(m); s.State() != "failing" || !strings.Contains(s.Stored.Problem.Why, "no such meta key") {
			t.Errorf("%+v", s.Stored)
		}
		broken.Store(false)
		time.Sleep(10 * time.Minute)
		if s := n.status(m); s.State() != "healthy" || s.Stored.Problem != nil {
			t.Errorf("%+v", s.Stored)
		}
	})
}

func TestOrderedRun_PlanFails_IsInTheHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "@manual", 1)
		well := p.plan
		p.plan = func(start sdk.PlanStart) (sdk.Plan, error) {
			if start.Arguments["month"] == "bad" {
				return sdk.Plan{}, errors.New("month: bad")
			}
			return well(start)
		}
		n := c.lead(p)
		m := n.manager()
		defer n.run(m)()
		time.Sleep(time.Minute)
		var ordered []int64
		for _, month := range []string{"bad", "good", "bad", "bad", "good", "bad"} {
			at, err := m.Run(t.Context(), testName, "me", map[string]string{"month": month})
			if err != nil {
				t.Fatal(err)
			}
			ordered = append(ordered, at)
		}
		time.Sleep(30 * time.Minute)
		var got []string
		_, err := store.With(n, func(view *store.View) (bool, error) {
			return true, m.History(view, testName, func(r *Run) bool {
				at := slices.Index(ordered, r.Ordered)
				got = append([]string{fmt.Sprint(at, " ", r.Arguments["month"], " ", r.By, " ", r.Effects, " ", r.Ended != 0, " ", r.Failure)}, got...)
				return true
			})
		})
		want := []string{"0 bad me 0 true month: bad", "1 good me 1 true ", "2 bad me 0 true month: bad", "3 bad me 0 true month: bad", "4 good me 1 true ", "5 bad me 0 true month: bad"}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%v\n%q\nwant\n%q", err, got, want)
		}
		s := n.status(m)
		if s.State() != "failing" || len(s.Stored.Requests) != 0 || !strings.Contains(s.Stored.Problem.Why, "run 6, which me ordered") || s.Last == nil || s.Last.Number != 5 {
			t.Errorf("%s %+v %+v", s.State(), s.Stored, s.Last)
		}
	})
}

func TestAPluginThatIsNotThereLeavesWhatHasBegunAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		p := fine(sdk.ClassSet, "@manual", 1)
		n := c.lead(p)
		n.steps = 6 // the order, the state, the plan, its record, the dispatch, the question
		m := n.manager()
		if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
			t.Fatal(err)
		}
		stop := n.run(m)
		<-n.died
		stop()
		p.broken = errors.New("plugin not found")
		n = c.lead(p)
		m = n.manager()
		stop = n.run(m)
		time.Sleep(10 * time.Minute)
		stop()
		for _, e := range c.ledger() {
			if e.State != Dispatched {
				t.Errorf("it is %s", e.State)
			}
		}
		if s := n.status(m); s.Stored.Problem == nil || s.Stored.Problem.Why != "plugin not found" {
			t.Errorf("%+v", s.Stored)
		}
		p.broken = nil
		n = c.lead(p)
		m = n.manager()
		stop = n.run(m)
		time.Sleep(10 * time.Minute)
		stop()
		if s := n.status(m); s.State() != "healthy" || s.Last.Counts.Done != 1 {
			t.Errorf("%s %+v", s.State(), s.Stored)
		}
	})
}

func TestAPlanOfManyMegabytesIsWrittenWhole(t *testing.T) {
	c := newCluster(t)
	big := strings.Repeat("0123456789abcdef", 100_000)
	p := fine(sdk.ClassKeyed, "@manual", 0)
	p.plan = func(sdk.PlanStart) (sdk.Plan, error) {
		return sdk.Plan{Effects: []sdk.Effect{{Name: "a", Payload: []byte(big), Show: "much"}, {Name: "b", Payload: []byte(big + "b")}}}, nil
	}
	n := c.lead(p)
	m := n.manager()
	defer n.run(m)()
	if _, err := m.Run(t.Context(), testName, "me", nil); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); n.status(m).Last == nil || n.status(m).Last.Ended == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the run has not ended within a minute")
		}
	}
	last, _ := c.values()
	if last["a"] != big || last["b"] != big+"b" {
		t.Errorf("%d and %d bytes", len(last["a"]), len(last["b"]))
	}
	view, err := c.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = view.Close() }()
	if payload, show, err := m.Payload(view, testName, 1, 0); string(payload) != big || show != "much" || err != nil {
		t.Errorf("shown are %d bytes, %q, %v", len(payload), show, err)
	}
}

func TestALongEffectOfAChangedActionHoldsNoOtherActionUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		n := c.lead(fine(sdk.ClassSet, "10m", 1))
		n.plug.about.Deadline = 20 * time.Minute
		m := n.manager()
		m.Plugins = slow{n, testName}
		defer n.run(m)()
		time.Sleep(time.Minute) // its effect takes ten
		other := Name{"test", "b"}
		m.Set([]Setting{{Name: testName, Digest: "two"}, {Name: other, Digest: "one"}})
		time.Sleep(10 * time.Second)
		m.Set([]Setting{{Name: testName, Digest: "one"}, {Name: other, Digest: "one"}})
		time.Sleep(time.Minute)
		list, err := store.With(n, func(view *store.View) ([]Status, error) { return m.List(view) })
		if err != nil || len(list) != 2 || list[0].State() != "running" || list[1].Last == nil || list[1].Last.Counts.Done != 1 {
			t.Fatalf("%+v %v", list, err)
		}
		time.Sleep(30 * time.Minute)
		list, err = store.With(n, func(view *store.View) ([]Status, error) { return m.List(view) })
		if err != nil || list[0].Last.Number < 2 {
			t.Errorf("the action that was changed and changed back does not go on: %+v %v", list[0].Stored, err)
		}
	})
}

// slow starts plugins of which one takes ten minutes for an effect.
type slow struct {
	*node

	name Name
}

// Open implements Plugins.
func (s slow) Open(ctx context.Context, set *Setting) (Plugin, error) {
	p, err := s.node.Open(ctx, set)
	if err != nil || set.Name != s.name {
		return p, err
	}
	return sleeper{p}, nil
}

type sleeper struct{ Plugin }

// Execute implements Plugin.
func (s sleeper) Execute(ctx context.Context, a sdk.Attempt) (sdk.Result, error) {
	sleepFor(ctx, 10*time.Minute)
	return s.Plugin.Execute(ctx, a)
}
