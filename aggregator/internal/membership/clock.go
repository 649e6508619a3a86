package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/proto/gauges"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// ErrClock is wrapped by the error of [Clock.Check] while this node's clock is
// far from those of the others.
var ErrClock = errors.New("the clock of this node is wrong")

// Leadership is what a leader with a wrong clock gives up.
type Leadership interface {
	// TransferLeadership hands the leadership to another node.
	TransferLeadership(ctx context.Context) error
}

// ClockOptions are what a [Clock] needs.
type ClockOptions struct {
	Peers      Peers
	Leadership Leadership
	// Tolerance is how far the clock may be from those of the others; 0 means
	// [DefaultTolerance].
	Tolerance time.Duration
	Log       *slog.Logger
	Metrics   prometheus.Registerer
	// Every is how often the clocks are compared; 0 means a second.
	Every time.Duration
	// Now is for tests; nil is time.Now. What it gives is compared with
	// [Peer].Heard only.
	Now func() time.Time
}

// DefaultTolerance is how far a clock may be from the others by default. Times
// of receipt, of deletion and of AUDITOR's writes are the leader's; seconds do no
// harm there, and clocks that anyone looks after are milliseconds apart.
const DefaultTolerance = 5 * time.Second

const (
	// fresh is how old an answer may be that counts.
	fresh = 15 * time.Second
	// handOverEvery is how often a leader with a wrong clock tries to hand on.
	handOverEvery = 2 * time.Second
	handOverTime  = 5 * time.Second
)

// Clock compares the clock of this node with those of the others. While it is
// far from those of a majority of the members, on the same side, nothing is
// proposed: the times in the log would be wrong.
type Clock struct {
	opt ClockOptions

	mu     sync.Mutex
	offset time.Duration // how far this clock is ahead of the middle of all
	err    error
}

// NewClock makes a guard of the clock.
func NewClock(opt ClockOptions) *Clock {
	opt.Tolerance, opt.Every = cmp.Or(opt.Tolerance, DefaultTolerance), cmp.Or(opt.Every, defaultLook)
	if opt.Now == nil {
		opt.Now = time.Now
	}
	c := &Clock{opt: opt}
	opt.Metrics.MustRegister(
		newGauge("bursar_clock_offset_seconds", "How far this node's clock is ahead of the middle of all nodes' clocks.", func() float64 { return c.Offset().Seconds() }),
		newGauge("bursar_clock_wrong", "1 while this node's clock is so far from the others' that it proposes nothing.", func() float64 { return gauges.OneIf(c.Check() != nil) }),
	)
	return c
}

// Run compares the clocks until ctx ends.
func (c *Clock) Run(ctx context.Context) error {
	repeat.Every(ctx, c.opt.Every, func() bool {
		c.compareClocks()
		return true
	})
	return nil
}

// Lead hands the leadership on while the clock is wrong.
func (c *Clock) Lead(ctx context.Context) error {
	var next time.Time
	repeat.Every(ctx, min(c.opt.Every, handOverEvery), func() bool {
		c.compareClocks()
		if c.Check() != nil && !time.Now().Before(next) {
			c.passLeadership(ctx)
			next = time.Now().Add(handOverEvery)
		}
		return true
	})
	return nil
}

func (c *Clock) passLeadership(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	if err := c.opt.Leadership.TransferLeadership(ctx); err != nil && ctx.Err() == nil {
		c.opt.Log.Warn("the leadership could not be handed to a node whose clock is right", "error", err)
	}
}

// compareClocks compares the clocks.
func (c *Clock) compareClocks() {
	offset, err := compareClocks(c.opt.Peers.Peers(), c.opt.Now(), c.opt.Tolerance)
	c.mu.Lock()
	defer c.mu.Unlock()
	if (err == nil) != (c.err == nil) {
		c.reportDifference(err)
	}
	c.offset, c.err = offset, err
}

func (c *Clock) reportDifference(err error) {
	if err != nil {
		c.opt.Log.Error("this node proposes nothing until its clock is right", "error", err)
		return
	}
	c.opt.Log.Info("the clock is right again", "tolerance", c.opt.Tolerance)
}

// compareClocks returns how far the own clock is ahead of the middle of all that
// were heard, and an error when more than half of all members are known to be
// further than tolerance from it, on the same side. An offset counts as far only
// when it is so in spite of its doubt.
func compareClocks(peers []Member, now time.Time, tolerance time.Duration) (time.Duration, error) {
	all := []time.Duration{0}
	ahead, behind, voters := 0, 0, 1
	for _, p := range peers {
		if !p.Voter {
			continue
		}
		voters++
		if p.Heard.IsZero() || now.Sub(p.Heard) > fresh {
			continue
		}
		all = append(all, p.Offset)
		switch {
		case p.Offset-p.Doubt > tolerance:
			ahead++
		case p.Offset+p.Doubt < -tolerance:
			behind++
		}
	}
	offset := -medianOf(all)
	if 2*max(ahead, behind) <= voters {
		return offset, nil
	}
	side := "behind"
	if offset > 0 {
		side = "ahead of"
	}
	return offset, fmt.Errorf("%w: it is %s %s those of %d of %d nodes, and %s are tolerated; look at its time service (timedatectl, chronyc tracking)",
		ErrClock, offset.Abs().Round(time.Millisecond), side, max(ahead, behind), voters, tolerance)
}

// medianOf returns the median; of an even number, that of the two in the middle
// which is nearer to zero.
func medianOf(list []time.Duration) time.Duration {
	slices.Sort(list)
	a, b := list[(len(list)-1)/2], list[len(list)/2]
	if a.Abs() < b.Abs() {
		return a
	}
	return b
}

// Offset returns how far this node's clock is ahead of the middle of all.
func (c *Clock) Offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset
}

// Check returns an error that wraps [ErrClock] while nothing may be proposed.
func (c *Clock) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
