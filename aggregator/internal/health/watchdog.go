package health

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"syscall"
	"time"
)

// Watchdog acts where a disk does not answer or has no room: the node hands the
// leadership to another one, and ends where waiting is of no use.
type Watchdog struct {
	// Stalls say how long a write has been hanging, 0 when none is.
	Stalls []func() time.Duration
	// Level is how full the disk is.
	Level func() DiskLevel
	// Leads says whether this node leads.
	Leads func() bool
	// Roomy names a member with space, to which the leadership may go; "" for
	// none.
	Roomy func() string
	// PassLeadership moves the leadership to a node, or to any where id is "".
	PassLeadership func(ctx context.Context, id string) error
	// Exit ends the process at once.
	Exit func(code int)
	Log  *slog.Logger
	// Every is how often it looks; zero is half a second.
	Every time.Duration
}

// How long a write may hang, and how long a hand-over may take and is not tried
// again.
const (
	stallHandOver = 5 * time.Second
	stallExit     = 20 * time.Second
	handOverTime  = 5 * time.Second
	handOverAgain = 30 * time.Second
)

// ExitStalled is the exit code of a node whose disk hangs.
const ExitStalled = 70

// Run watches until ctx ends.
func (w *Watchdog) Run(ctx context.Context) error {
	every := cmp.Or(w.Every, 500*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	held := make([]stallTime, len(w.Stalls))
	last, tried := time.Now(), time.Time{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		gap := time.Since(last)
		last = time.Now()
		worst := time.Duration(0)
		for i, stall := range w.Stalls {
			worst = max(worst, held[i].addStall(stall(), gap, 2*every))
		}
		if worst > stallExit {
			w.Log.Error("the disk hangs: this node ends", "since", worst)
			w.Exit(ExitStalled)
			return nil
		}
		if w.Leads() && time.Since(tried) > handOverAgain && w.transferIfUnfit(ctx, worst) {
			tried = time.Now()
		}
	}
}

// stallTime adds up how long a write has been seen to hang. A process that was stopped
// or a machine that slept saw nothing meanwhile: a gap counts for little.
type stallTime struct{ seen time.Duration }

func (h *stallTime) addStall(stalled, gap, most time.Duration) time.Duration {
	switch {
	case stalled == 0:
		h.seen = 0
	case stalled < gap: // it is another write
		h.seen = min(stalled, most)
	default:
		h.seen += min(gap, most)
	}
	return h.seen
}

// transferIfUnfit gives the leadership away where this node should not lead, and says whether it tried.
func (w *Watchdog) transferIfUnfit(ctx context.Context, stalled time.Duration) bool {
	to, why := "", "the disk hangs"
	if stalled <= stallHandOver {
		if w.Level() < Low {
			return false
		}
		if to, why = w.Roomy(), "the disk is nearly full"; to == "" {
			return false
		}
	}
	ctx, cancel := context.WithTimeout(ctx, handOverTime)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.PassLeadership(ctx, to) }() // where the disk hangs, so may this
	var err error
	select {
	case err = <-done:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		w.Log.Warn("the leadership could not be handed over", "why", why, "error", err)
		return true
	}
	w.Log.Warn("the leadership is handed over", "why", why, "to", to)
	return true
}

// isDiskFull reports whether there was no space.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
