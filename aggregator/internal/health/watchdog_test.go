package health

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// dog is a watchdog with what it did.
type dog struct {
	Watchdog

	level  DiskLevel
	leads  bool
	roomy  string
	fails  error
	handed []string
	code   int
}

func newDog(stalls ...func() time.Duration) *dog {
	d := &dog{leads: true}
	d.Stalls, d.Log = stalls, slog.New(slog.DiscardHandler)
	d.Level, d.Leads, d.Roomy = func() DiskLevel { return d.level }, func() bool { return d.leads }, func() string { return d.roomy }
	d.PassLeadership = func(_ context.Context, id string) error {
		d.handed = append(d.handed, id)
		d.leads = d.fails != nil
		return d.fails
	}
	d.Exit = func(code int) { d.code = code }
	return d
}

// watch lets the watchdog run for a while.
func (d *dog) watch(t *testing.T, long time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	if err := d.Run(ctx); err != nil {
		t.Error(err)
	}
	synctest.Wait()
}

func TestADiskThatHangsLosesTheLeadershipAndThenTheNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		p := &DiskProbe{Log: slog.New(slog.DiscardHandler), Write: func() error { <-release; return nil }}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		d := newDog(p.Stalled)
		d.watch(t, 4*time.Second)
		if len(d.handed) != 0 {
			t.Error("handed over after 4 s")
		}
		d.watch(t, 7*time.Second)
		if len(d.handed) != 1 || d.handed[0] != "" || d.code != 0 {
			t.Error("after 11 s:", d.handed, d.code)
		}
		d.watch(t, 30*time.Second)
		if d.code != ExitStalled {
			t.Error("after 40 s the exit code is", d.code)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error("the probe waits for a write that hangs:", err)
		}
		close(release)
	})
}

func TestAnIdleNodeProbesItsDiskEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		p := &DiskProbe{Log: slog.New(slog.DiscardHandler), Write: func() error {
			time.Sleep(10 * time.Millisecond)
			if n.Add(1) == 3 {
				return io.ErrShortWrite
			}
			return nil
		}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second) // the last write ends
		if took, failed := p.Last(); n.Load() < 59 || n.Load() > 61 || took != 10*time.Millisecond || failed != 1 || p.Stalled() != 0 {
			t.Error(n.Load(), took, failed, p.Stalled())
		}
	})
}

func TestTheProbeWritesAFile(t *testing.T) {
	p := &DiskProbe{Path: filepath.Join(t.TempDir(), "probe")}
	for range 2 {
		if err := p.writeAndSync(); err != nil {
			t.Error(err)
		}
	}
	p.Path = filepath.Join(t.TempDir(), "none", "probe")
	if err := p.writeAndSync(); err == nil {
		t.Error("it was written nowhere")
	}
}

func TestAProcessThatWasStoppedDoesNotTakeThatForAStall(t *testing.T) {
	var h stallTime
	const tick = 500 * time.Millisecond
	if got := h.addStall(time.Hour, time.Hour, 2*tick); got > 2*tick {
		t.Error("a write that an hour of SIGSTOP ran through counts", got)
	}
	if got := h.addStall(time.Minute, time.Hour, 2*tick); got > 2*tick {
		t.Error("one that began after it counts", got)
	}
	for range 60 {
		h.addStall(time.Hour, tick, 2*tick)
	}
	if h.seen < 30*time.Second {
		t.Error("30 s of a stall count", h.seen)
	}
	if h.addStall(0, tick, 2*tick) != 0 {
		t.Error("it counts on")
	}
}

func TestALeaderWithoutRoomHandsOverToANodeThatHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDog()
		d.level = Low
		d.watch(t, time.Minute)
		if len(d.handed) != 0 {
			t.Error("handed over although no node has room")
		}
		d.roomy, d.leads = "agg2", false
		d.watch(t, time.Minute)
		if len(d.handed) != 0 {
			t.Error("a follower hands over")
		}
		d.leads, d.fails = true, errors.New("no")
		d.watch(t, 70*time.Second)
		if len(d.handed) < 2 || len(d.handed) > 4 {
			t.Error("a hand-over that fails is tried", len(d.handed), "times in 70 s")
		}
		d.handed, d.fails = nil, nil
		d.watch(t, time.Minute)
		if len(d.handed) != 1 || d.handed[0] != "agg2" {
			t.Error(d.handed)
		}
		d.level, d.leads = Warn, true
		d.watch(t, time.Minute)
		if len(d.handed) != 1 || d.code != 0 {
			t.Error("a disk that only fills up:", d.handed, d.code)
		}
	})
}
