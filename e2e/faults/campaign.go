//go:build e2e

package faults

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Recovery is how long all may take, after the last fault has ended, until every
// node holds all there is. A loaded machine needs some of it.
const Recovery = 5 * time.Minute

// aftermath is how long clients go on after the last fault has ended.
const aftermath = 300 * time.Millisecond

// Campaign runs a schedule of faults on a site and compares with the truth.
type Campaign struct {
	t    testing.TB
	site *Site
	seed uint64

	mu       sync.Mutex
	started  time.Time
	damaged  map[*Member]Damage
	flips    map[string]int // by class of file
	fate     map[string]int // what became of them
	slowest  time.Duration  // recovery
	progress progress
	checked  int                 // operations on registers
	promoted int                 // how often a new node has to have been given its vote
	revived  int                 // daemons that a service manager started again
	pushed   map[string]Register // what clients' writes have led to, in cycles before
}

// NewCampaign makes one.
func NewCampaign(t testing.TB, s *Site, seed uint64) *Campaign {
	return &Campaign{t: t, site: s, seed: seed, started: time.Now(), damaged: map[*Member]Damage{}, flips: map[string]int{}, fate: map[string]int{}, pushed: map[string]Register{},
		progress: progress{cursors: map[string]uint64{}}}
}

func (c *Campaign) say(format string, args ...any) {
	c.t.Logf("%7.1fs "+format, append([]any{time.Since(c.started).Seconds()}, args...)...)
}

// Begin starts all daemons and waits until they work.
func (c *Campaign) Begin() {
	c.t.Helper()
	for _, m := range c.site.All() {
		m.Start()
	}
	c.fail(c.Settle(Recovery))
}

// Run runs a schedule, and ends the test at the first thing that is not as it has
// to be.
func (c *Campaign) Run(plan []Cycle) {
	c.t.Helper()
	c.fail(c.Try(plan))
	c.say("the slowest recovery took %s; %d operations on registers are linearizable; %d daemons on full disks were started again; damage: %v",
		c.slowest.Round(time.Millisecond), c.checked, c.revived, c.fate)
}

// Try runs a schedule and returns the first thing that is not as it has to be.
func (c *Campaign) Try(plan []Cycle) error {
	for i, cycle := range plan {
		c.say("cycle %d of %d", i+1, len(plan))
		if err := c.runCycle(i, cycle); err != nil {
			return err
		}
	}
	return nil
}

func (c *Campaign) fail(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatalf("%v\n-seed %d gives this schedule again", err, c.seed)
	}
}

// runCycle lets jobs and writes of clients flow while things go wrong, heals all, and
// compares.
func (c *Campaign) runCycle(n int, cycle Cycle) error {
	stop := make(chan struct{})
	var working sync.WaitGroup
	var jobs, seen, tended error
	clients := NewClients(c.site.Nodes, fmt.Sprint(n), 4, c.seed+uint64(n))
	working.Go(func() { jobs = c.writeJobs(cycle.Jobs) })
	working.Go(func() { seen = c.watchNodes(stop) })
	working.Go(func() { clients.Run(stop) })
	struck := c.runFaults(cycle.Faults)
	c.site.Network.Heal()
	began := time.Now()
	time.Sleep(aftermath)
	close(stop)
	working.Wait()
	if err := errors.Join(jobs, seen, struck); err != nil {
		return err
	}
	stop = make(chan struct{})
	working.Go(func() { tended = c.restartEnded(stop) })
	settled := c.awaitSettled()
	close(stop)
	working.Wait()
	if err := errors.Join(tended, settled); err != nil {
		return err
	}
	for _, m := range c.site.All() {
		m.full = false
	}
	c.slowest = max(c.slowest, time.Since(began))
	return c.checkLinearizable(clients)
}

// checkLinearizable reads once more what the clients wrote, and checks their history.
func (c *Campaign) checkLinearizable(clients *Clients) error {
	last, err := clients.Read()
	if err != nil {
		return err
	}
	if err := clients.history.Check(filepath.Join(c.site.Dir, "history.html")); err != nil {
		return err
	}
	c.checked += clients.history.Len()
	for id, value := range last {
		if !clients.history.open[id] { // or it may still change
			c.pushed[id] = value
		}
	}
	return nil
}

// writeJobs makes the schedulers make up jobs, a few at a time.
func (c *Campaign) writeJobs(n int) error {
	const pieces = 5
	for range pieces {
		for _, a := range c.site.Agents {
			if err := a.Jobs.Write(n / pieces); err != nil {
				return err
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}

// watchNodes asks the nodes by turns until stop, and compares each answer with the one
// before.
func (c *Campaign) watchNodes(stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		case <-time.After(100 * time.Millisecond):
		}
		node := c.site.Nodes[i%len(c.site.Nodes)]
		if cursors, err := node.Cursors(); err == nil {
			if err := c.progress.compareCursors(cursors); err != nil {
				return fmt.Errorf("%s: %w", node.Name, err)
			}
		}
	}
}

// runFaults runs the faults of a cycle, which may overlap, to their ends.
func (c *Campaign) runFaults(faults []Fault) error {
	errs := make([]error, len(faults))
	var all sync.WaitGroup
	for i, f := range faults {
		time.Sleep(f.After)
		all.Go(func() { errs[i] = c.runFault(f) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// restartEnded starts what has ended by itself again, as a service manager does, until
// stop. Only a daemon whose disk is full may end, and says so.
func (c *Campaign) restartEnded(stop <-chan struct{}) error {
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		for _, m := range c.site.All() {
			if err := c.restartMember(m); err != nil {
				return err
			}
		}
	}
}

func (c *Campaign) restartMember(m *Member) error {
	if !m.struck.TryLock() {
		return nil // the fault sees to it
	}
	defer m.struck.Unlock()
	if _, damaged := c.damageOf(m); damaged || !m.Ended() {
		return nil
	}
	last := m.Log(100)
	if !m.full || !strings.Contains(last, "no space left") {
		return fmt.Errorf("%s ended by itself:\n%s", m.Name, last)
	}
	c.say("%s has ended and is started again", m.Name)
	c.revived++
	m.Kill() // its children
	m.Start()
	return nil
}

func (c *Campaign) damageOf(m *Member) (Damage, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	d, damaged := c.damaged[m]
	return d, damaged
}

// awaitSettled waits until all is there, with the remedy for what was damaged.
func (c *Campaign) awaitSettled() error {
	if len(c.damaged) == 0 {
		return c.Settle(Recovery)
	}
	err := c.settleUnless(c.hasRefused, untilRemedy)
	if err != nil && !errors.Is(err, ErrNotYet) {
		return err
	}
	for m, d := range c.damaged {
		fate := "right all the same"
		if err != nil {
			fate, err = c.repairMember(m, d)
		} else if !c.isAlone(m) { // or the bit is read cycles later, when another node may have lost its data
			err = c.replaceMember(m)
		}
		if err != nil {
			return err
		}
		c.say("%s: %s", d, fate)
		c.fate[d.Class+": "+fate]++
	}
	clear(c.damaged)
	return c.Settle(Recovery)
}

// untilRemedy is how long an operator waits before he heals a daemon that is
// damaged and has not ended.
const untilRemedy = 15 * time.Second

// hasRefused reports whether a damaged daemon has ended.
func (c *Campaign) hasRefused() bool {
	for m := range c.damaged {
		if m.Ended() {
			return true
		}
	}
	return false
}

// repairMember does what an operator does with a daemon whose data are damaged: a node
// of three and an agent start over, a node alone gets its data back from a copy.
func (c *Campaign) repairMember(m *Member, d Damage) (fate string, err error) {
	fate = "did not go on, did not end"
	if m.Ended() {
		fate = "refused"
		c.say("%s refused:\n%s", m.Name, m.Log(3))
	}
	if !c.isAlone(m) {
		return fate, c.replaceMember(m)
	}
	m.Kill()
	err = d.Turn()
	m.Start()
	return fate, err
}

// isAlone reports whether a daemon is the only aggregator.
func (c *Campaign) isAlone(m *Member) bool { return m.Jobs == nil && len(c.site.Nodes) == 1 }

// replaceMember has a daemon start over without its data.
func (c *Campaign) replaceMember(m *Member) error {
	m.Kill()
	err := c.wipeData(m)
	m.Start()
	return err
}

// truthOfAll is what all schedulers together have made up.
func (c *Campaign) truthOfAll() Truth {
	all := Truth{}
	for _, a := range c.site.Agents {
		maps.Copy(all, a.Jobs.truth)
	}
	return all
}

// Settle waits until every node holds the truth, all of it and nothing else, and
// all nodes have the same hash at the same index.
func (c *Campaign) Settle(within time.Duration) error {
	return c.settleUnless(func() bool { return false }, within)
}

func (c *Campaign) settleUnless(giveUp func() bool, within time.Duration) error {
	truth := c.truthOfAll()
	for end := time.Now().Add(within); ; time.Sleep(100 * time.Millisecond) {
		err := c.checkSettled(truth)
		if err == nil || !errors.Is(err, ErrNotYet) {
			return err
		}
		if giveUp() || time.Now().After(end) {
			return fmt.Errorf("not within %s: %w", within, err)
		}
	}
}

func (c *Campaign) checkSettled(truth Truth) error {
	if c.promoted > 0 && c.site.countPromotions() < c.promoted {
		return fmt.Errorf("%w: a node that began anew has no vote yet", ErrNotYet)
	}
	for _, n := range c.site.Nodes {
		st, err := n.Status()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotYet, err)
		}
		if st.Records < int64(len(truth)) {
			return fmt.Errorf("%w: %s has %d records, there are %d", ErrNotYet, n.Name, st.Records, len(truth))
		}
	}
	for _, n := range c.site.Nodes {
		h, err := n.Holding()
		if err != nil {
			return fmt.Errorf("%w: %w", ErrNotYet, err)
		}
		if err := truth.Compare(h); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := h.Keeps(c.pushed); err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if err := n.Conserved(); err != nil {
			return err
		}
		if err := truth.CompareUsage(n); err != nil {
			return err
		}
	}
	c.promoted = 0
	return c.checkHashes()
}

// checkHashes checks that the nodes have one hash, as far as they are at one index.
func (c *Campaign) checkHashes() error {
	first, err := c.site.Nodes[0].Status()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotYet, err)
	}
	for _, n := range c.site.Nodes[1:] {
		st, err := n.Status()
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrNotYet, err)
		case st.Index != first.Index:
			return fmt.Errorf("%w: %s is at %d, %s at %d", ErrNotYet, n.Name, st.Index, c.site.Nodes[0].Name, first.Index)
		case st.Hash != first.Hash:
			return fmt.Errorf("the state of %s differs from that of %s at index %d", n.Name, c.site.Nodes[0].Name, st.Index)
		}
	}
	return nil
}
