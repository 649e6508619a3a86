//go:build e2e

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// pickMember finds whom a fault strikes.
func (c *Campaign) pickMember(f Fault) *Member {
	s := c.site
	if f.Whom == Agent {
		return s.Agents[f.Which]
	}
	leader := s.Leader()
	if f.Whom == Leader {
		return leader
	}
	var followers []*Member
	for _, n := range s.Nodes {
		if n != leader {
			followers = append(followers, n)
		}
	}
	return followers[f.Which%len(followers)]
}

// runFault does what the fault says, to its end.
func (c *Campaign) runFault(f Fault) error {
	m := c.pickMember(f)
	c.say("%s strikes %s", f, m.Name)
	switch f.Kind {
	case Isolate, Deafen, Mute, Part, Lag, Reset:
		c.disturbNetwork(f, m)
		return nil
	case KillAll, CutAll:
		return c.strikeAll(f)
	case Kill, KillChild, Cut, Restart, Pause, FillDisk, SlowDisk, HangDisk, Jump, Flip, Wipe:
	}
	m.struck.Lock() // one after the other on one machine
	defer m.struck.Unlock()
	switch f.Kind {
	case Kill:
		m.Kill()
		m.Start()
	case KillChild:
		m.KillChildren()
	case Cut:
		if err := m.Cut(); err != nil {
			return err
		}
		m.Start()
	case Restart:
		if err := m.Terminate(); err != nil {
			return err
		}
		m.Start()
	case Pause:
		m.Pause(f.For)
	case FillDisk:
		return m.fillDisk(f.For)
	case SlowDisk:
		m.Disk.Slow(time.Duration(20+f.Salt%200)*time.Millisecond, 20*time.Millisecond, f.For)
	case HangDisk:
		m.Disk.Freeze()
		time.Sleep(f.For)
		m.Disk.Thaw()
	case Jump:
		return c.jumpClock(f, m)
	case Flip:
		return c.flipBit(f, m)
	case Wipe:
		m.Kill()
		err := c.wipeData(m)
		m.Start()
		return err
	case KillAll, CutAll, Isolate, Deafen, Mute, Part, Lag, Reset: // above
	}
	return nil
}

// fillDisk fills the disk for a time.
func (m *Member) fillDisk(d time.Duration) error {
	m.mu.Lock()
	m.full = true
	m.mu.Unlock()
	if err := m.Disk.Fill(0); err != nil {
		return err
	}
	time.Sleep(d)
	return m.Disk.Empty()
}

// strikeAll kills all aggregators at once, or cuts their power.
func (c *Campaign) strikeAll(f Fault) error {
	for _, n := range c.site.Nodes {
		n.struck.Lock()
		defer n.struck.Unlock()
	}
	errs := make([]error, len(c.site.Nodes))
	var all sync.WaitGroup
	for i, n := range c.site.Nodes {
		all.Go(func() {
			if f.Kind == KillAll {
				n.Kill()
			} else {
				errs[i] = n.Cut()
			}
		})
	}
	all.Wait()
	for i, n := range c.site.Nodes {
		if errs[i] != nil {
			return errs[i]
		}
		n.Start()
	}
	return nil
}

// disturbNetwork lets the network do what the fault says, for its time.
func (c *Campaign) disturbNetwork(f Fault, m *Member) {
	net := c.site.Network
	others := c.site.All()
	if f.Kind == Part {
		others = c.site.Nodes
		for i, n := range others {
			if n == m {
				others = others[(i+1)%len(others) : (i+1)%len(others)+1]
				break
			}
		}
	}
	set := func(l Link) {
		for _, o := range others {
			if o == m {
				continue
			}
			if f.Kind != Mute {
				net.Set(o.Name, m.Name, l)
			}
			if f.Kind != Deafen {
				net.Set(m.Name, o.Name, l)
			}
		}
	}
	switch f.Kind {
	case Reset:
		net.Reset(m.Name)
		return
	case Lag:
		set(Link{Delay: time.Duration(10+f.Salt%290) * time.Millisecond})
	default:
		set(Link{Held: true})
	}
	time.Sleep(f.For)
	set(Link{})
	if f.Salt%2 == 0 { // or else what was held arrives late
		net.Reset(m.Name)
	}
}

// flipBit turns over a bit while the daemon is down. What becomes of that is seen
// when the cycle ends.
func (c *Campaign) flipBit(f Fault, m *Member) error {
	m.Kill()
	c.mu.Lock()
	d, err := FlipBit(m.Data, f.Salt, c.flips)
	c.damaged[m] = d
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.say("%s: %s", m.Name, d)
	m.Start()
	return nil
}

// wipeData takes all data from a daemon that does not run.
func (c *Campaign) wipeData(m *Member) error {
	if m.Jobs == nil {
		c.promoted = c.site.countPromotions() + 1
	}
	return m.Disk.Wipe()
}

// jumpClock lets an aggregator run for a time with a clock that is wrong. It is the
// program of make e2e that can be told so.
func (c *Campaign) jumpClock(f Fault, m *Member) error {
	offsets := []time.Duration{-25 * time.Hour, -time.Hour, -time.Minute, time.Minute, time.Hour, 25 * time.Hour}
	program, env := filepath.Join(c.site.Bin, "faults", "bursar"), m.Env
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("%w: make e2e builds it", err)
	}
	m.Kill()
	m.Env = append(slices.Clone(env), fmt.Sprintf("%s=%s", clockOffset, offsets[f.Salt%uint64(len(offsets))]))
	before := m.Become(program)
	m.Start()
	time.Sleep(f.For)
	m.Kill()
	m.Env = env
	m.Become(before)
	m.Start()
	return nil
}

// clockOffset is what a daemon that was built with the tag faults adds to the
// wall clock.
const clockOffset = "BURSAR_TEST_CLOCK_OFFSET"
