//go:build e2e

package faults

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Siege kills and pauses leaders while all actions are armed.
type Siege struct {
	t        testing.TB
	site     *Site
	campaign *Campaign
	armed    []*Armed
	chance   *rand.Rand
	stale    map[string]bool // attempts that a paused leader may have finished late
	jobs     chan struct{}   // closed when there are to be no more
	working  sync.WaitGroup
}

// NewSiege makes a site with all actions armed, and waits until all of them run. From
// then on jobs flow, until Judge.
func NewSiege(t testing.TB, seed uint64, read APEL, serve MailServer) *Siege {
	t.Helper()
	g := &Siege{t: t, chance: rand.New(rand.NewPCG(seed, 4)), stale: map[string]bool{}, jobs: make(chan struct{})}
	g.site = NewSite(t, Plan{Nodes: 3, Agents: 2, Seed: seed, Actions: func(s *Site) string {
		for _, a := range s.Agents {
			a.Jobs.now = dayOfLastMonth()
		}
		armed, text, err := Arm(s, read, serve)
		s.must(err)
		g.armed = armed
		return text
	}})
	g.campaign = NewCampaign(t, g.site, seed)
	g.campaign.Begin()
	g.await("every action has run", g.newerThan(nil))
	g.working.Go(g.makeJobs)
	t.Cleanup(g.stopJobs)
	g.await("the first job is a record", g.hasRecords)
	return g
}

// hasRecords asks whether there is a record.
func (g *Siege) hasRecords() error {
	var answer struct {
		Records []json.RawMessage `json:"records"`
	}
	if err := g.site.Leader().fetchJSON("/v1/records?limit=1", &answer); err != nil || len(answer.Records) == 0 {
		return fmt.Errorf("%w: %w", ErrNotYet, cmp.Or(err, errors.New("there is none")))
	}
	return nil
}

// makeJobs makes up jobs until jobs is closed.
func (g *Siege) makeJobs() {
	for {
		for _, a := range g.site.Agents {
			if err := a.Jobs.Write(10); err != nil {
				g.t.Error(err)
				return
			}
		}
		select {
		case <-g.jobs:
			return
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// stopJobs ends the work.
func (g *Siege) stopJobs() {
	select {
	case <-g.jobs:
	default:
		close(g.jobs)
	}
	g.working.Wait()
}

// await waits until what is asked is so.
func (g *Siege) await(what string, ask func() error) {
	g.t.Helper()
	err := errors.New("it was not asked")
	for end := time.Now().Add(Recovery); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
		if !errors.Is(err, ErrNotYet) {
			break
		}
	}
	g.t.Fatalf("%s: %v", what, err)
}

// newestRuns are the newest runs of all actions, as any node says; nil while none does.
func (g *Siege) newestRuns() (map[string]uint64, error) {
	all, err := g.site.Leader().Actions()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	out := map[string]uint64{}
	for _, a := range g.armed {
		s := all[a.String()]
		if s.Disabled != nil || s.Problem != nil {
			return nil, fmt.Errorf("%w: %s is %s: %+v %+v", ErrNotYet, a, s.State, s.Disabled, s.Problem)
		}
		out[a.String()] = s.newestRun()
	}
	return out, nil
}

// newerThan asks whether all actions have newer runs than those.
func (g *Siege) newerThan(runs map[string]uint64) func() error {
	return func() error {
		now, err := g.newestRuns()
		if err != nil {
			return err
		}
		for name, n := range now {
			if n <= runs[name] {
				return fmt.Errorf("%w: the newest run of %s is %d, before it was %d", ErrNotYet, name, n, runs[name])
			}
		}
		return nil
	}
}

// closeGates lets some actions stop at their gates, and returns them when they have.
func (g *Siege) closeGates(points ...string) []*Armed {
	g.t.Helper()
	var stopped []*Armed
	for _, i := range g.chance.Perm(len(g.armed)) {
		a := g.armed[i]
		if a.Target == nil || len(stopped) > 0 && g.chance.IntN(2) == 0 {
			continue
		}
		g.site.must(a.Target.Close(points[g.chance.IntN(len(points))]))
		stopped = append(stopped, a)
	}
	for _, a := range stopped {
		g.await(a.String()+" has begun an effect", func() error {
			begun, err := a.Target.Begun()
			if err == nil && len(begun) == 0 {
				err = ErrNotYet
			}
			return err
		})
	}
	return stopped
}

func (g *Siege) openGates() {
	for _, a := range g.armed {
		if a.Target != nil {
			g.site.must(a.Target.Open())
		}
	}
}

// Kill kills the leader in the midst of runs, and as many of its successors, each at
// some moment of its beginning. It returns when all actions go on.
func (g *Siege) Kill(successors int) {
	g.t.Helper()
	g.sendOldRecords()
	before := map[string]uint64{}
	if g.chance.IntN(4) == 0 {
		time.Sleep(time.Duration(g.chance.IntN(1500)) * time.Millisecond) // any moment
	} else {
		g.closeGates(Before, After)
	}
	g.await("the runs before", func() (err error) { before, err = g.newestRuns(); return err })
	g.killLeader(g.openGates)
	for range successors {
		time.Sleep(time.Duration(g.chance.IntN(4000)) * time.Millisecond) // any moment
		g.killLeader(g.openGates)
	}
	g.await("every action goes on", g.newerThan(before))
}

// sendOldRecords sends old records, so that there is something to archive and to remove.
func (g *Siege) sendOldRecords() { g.armed[0].Old.sendRecords(g, 1+g.chance.IntN(20)) }

// killLeader kills the leader, and returns when there is another one and the old one has
// been started again.
func (g *Siege) killLeader(then func()) {
	g.t.Helper()
	leader, reigns := g.site.Leader(), g.site.countReigns()
	leader.Kill()
	then()
	leader.Start()
	g.campaign.say("%s was killed while it led", leader.Name)
	g.await("another leader", g.reignAfter(reigns))
}

func (g *Siege) reignAfter(reigns int) func() error {
	return func() error {
		if g.site.countReigns() == reigns {
			return ErrNotYet
		}
		return nil
	}
}

// Pause stops the leader in the midst of runs, lets it go on after another one has
// taken over, and has what it began happen as late as that, or not any more.
func (g *Siege) Pause() {
	g.t.Helper()
	g.sendOldRecords()
	before := map[string]uint64{}
	stopped := g.closeGates(Before)
	g.await("the runs before", func() (err error) { before, err = g.newestRuns(); return err })
	leader, reigns := g.site.Leader(), g.site.countReigns()
	g.site.must(leader.Signal(syscall.SIGSTOP))
	g.campaign.say("%s was paused while it led", leader.Name)
	g.await("another leader", g.reignAfter(reigns))
	g.await("what "+leader.Name+" had begun", func() error { return g.noteStale(leader.Name) })
	late := map[*Armed][]Happened{}
	for _, a := range stopped {
		begun, err := a.Target.Begun()
		g.site.must(err)
		late[a] = begun[:1]
		g.stale[begun[0].String()] = true
		g.await("the new leader goes on with "+a.String(), func() error { return g.wentOn(a, before) })
	}
	if g.chance.IntN(2) == 0 {
		g.openGates()
		for a, list := range late {
			g.await("what the old leader began of "+a.String(), func() error { return a.hasHappened(list[0]) })
		}
		g.site.must(leader.Signal(syscall.SIGCONT))
	} else { // it finds out that it leads no longer, and may come to do it before it ends it
		g.site.must(leader.Signal(syscall.SIGCONT))
		time.Sleep(time.Duration(g.chance.IntN(2500)) * time.Millisecond) // any moment
		g.openGates()
	}
	g.await("every action goes on", g.newerThan(before))
}

// noteStale notes as stale what a node has begun in the newest runs and did not say how it ended: the
// node may have been paused just before it had its plugin do it.
func (g *Siege) noteStale(node string) error {
	newest, err := g.newestRuns()
	if err != nil {
		return err
	}
	for _, a := range g.armed {
		run, err := g.site.Leader().fetchRun(a.String(), newest[a.String()])
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotYet, err)
		}
		for _, e := range run.Ledger {
			for _, t := range e.Attempts {
				if t.Node == node && t.Fence == 0 {
					g.stale[(&Happened{Key: e.Key, Attempt: t.Number}).String()] = true
				}
			}
		}
	}
	return nil
}

// wentOn asks whether another leader has begun an effect, or has left none to begin.
func (g *Siege) wentOn(a *Armed, before map[string]uint64) error {
	begun, err := a.Target.Begun()
	if err != nil || len(begun) > 1 {
		return err
	}
	now, err := g.newestRuns()
	if err == nil && now[a.String()] <= before[a.String()] {
		err = fmt.Errorf("%w: its newest run is still %d", ErrNotYet, now[a.String()])
	}
	return err
}

// hasHappened asks whether an attempt has happened.
func (a *Armed) hasHappened(want Happened) error {
	all, err := a.Target.Happened()
	if slices.Contains(all, want) {
		return nil
	}
	return errors.Join(err, ErrNotYet)
}

// Judge compares the receivers with the ledger, the records with the jobs, and the
// nodes with each other.
func (g *Siege) Judge() {
	g.t.Helper()
	g.stopJobs()
	truth := g.campaign.truthOfAll()
	node := g.site.Leader()
	for _, a := range g.armed {
		var runs []Run
		g.await(a.String()+" has done what it should", func() (err error) {
			if runs, err = a.Account(node, g.stale); err != nil || a.Judge == nil {
				return err
			}
			return a.Judge(node, truth, runs)
		})
		states := map[string]int{}
		for i := range runs {
			for _, e := range runs[i].Ledger {
				states[e.State]++
			}
		}
		g.campaign.say("%s: %d runs, effects %v", a, len(runs), states)
	}
	for _, a := range g.armed {
		g.await("the pause of "+a.String(), func() error {
			if err := node.Order(a.String(), "pause"); err != nil {
				return fmt.Errorf("%w: %w", ErrNotYet, err)
			}
			return nil
		})
	}
	if err := g.campaign.Settle(Recovery); err != nil {
		g.t.Fatal(err)
	}
	g.campaign.say("all records are there, and the nodes are the same")
}
