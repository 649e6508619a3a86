package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"
)

// TestAnswersNeverTakeMoreThanTheBudgetAndAllComeToAnEnd lets many answers of random
// sizes take and free memory in random steps.
func TestAnswersNeverTakeMoreThanTheBudgetAndAllComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		b := NewBudget(total, time.Hour, nil)
		var inUse atomic.Int64
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				size := 1 + rand.Int64N(total)
				first := int64(0)
				for {
					l, err := b.Begin(t.Context(), first)
					if err != nil {
						t.Error(err)
						return
					}
					err = answerOf(t.Context(), l, size, &inUse, total)
					l.End()
					more, again := errors.AsType[*MoreError](err)
					if !again {
						if err != nil {
							t.Error(err)
						}
						return
					}
					first = more.Bytes
				}
			})
		}
		all.Wait()
		if b.taken.Load() != 0 || !b.room.TryAcquire(total) {
			t.Error("not all was given back:", b.taken.Load())
		}
	})
}

// answerOf takes size bytes step by step.
func answerOf(ctx context.Context, l *Lease, size int64, inUse *atomic.Int64, total int64) error {
	has := int64(0)
	defer func() { inUse.Add(-has) }()
	for has < size {
		n := min(1+rand.Int64N(size), size-has)
		if err := l.Use(ctx, n); err != nil {
			return err
		}
		has += n
		if inUse.Add(n) > total {
			return errors.New("more is in use than there is")
		}
		time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	}
	less := rand.Int64N(size)
	has -= less
	inUse.Add(-less)
	l.Free(less)
	time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
	return nil
}

func TestSeveral_AnswersOfRandomSizes_AllComeToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const total = 1000
		b := NewBudget(total, time.Hour, nil)
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				outer, err := b.Begin(t.Context(), 0)
				if err != nil {
					t.Error(err)
					return
				}
				defer outer.End()
				keeps, takes := 1+rand.Int64N(total/8), 1+rand.Int64N(total/2)
				err = Several(WithLease(t.Context(), outer), func(ctx context.Context) error {
					l := LeaseOf(ctx)
					if !l.OfSeveral() || l == outer {
						t.Error("the answers do not share a lease of their own")
					}
					for range 4 {
						if err := l.Use(ctx, takes); err != nil {
							return errors.New("a question failed") // its kind is lost on the way
						}
						time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
						l.Free(takes)
						if err := l.Use(ctx, keeps); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil || outer.Used() != 4*keeps {
					t.Error(err, outer.Used(), keeps)
				}
				time.Sleep(time.Duration(rand.IntN(10)) * time.Millisecond)
			})
		}
		all.Wait()
		if b.taken.Load() != 0 || !b.room.TryAcquire(total) {
			t.Error("not all was given back:", b.taken.Load())
		}
	})
}

func TestSeveral_ErrorOfAnotherKind_IsReturnedAtOnce(t *testing.T) {
	b := NewBudget(100, time.Second, nil)
	outer, _ := b.Begin(t.Context(), 0)
	defer outer.End()
	calls, other := 0, errors.New("another")
	err := Several(WithLease(t.Context(), outer), func(ctx context.Context) error {
		calls++
		return errors.Join(other, LeaseOf(ctx).Use(ctx, 50))
	})
	if !errors.Is(err, other) || calls != 1 || b.taken.Load() != 0 {
		t.Error(err, calls, b.taken.Load())
	}
	err = Several(WithLease(t.Context(), outer), func(ctx context.Context) error { return LeaseOf(ctx).Use(ctx, 101) })
	if !errors.Is(err, ErrTooMuch) {
		t.Error(err)
	}
}

func TestAnAnswerWaitsForMemoryAndNoLongerThanItsPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(100, 25*time.Second, nil)
		l, err := b.Begin(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := b.Begin(t.Context(), 10); !errors.Is(err, ErrNoRoom) || time.Since(begun) != 25*time.Second {
			t.Error(err, time.Since(begun))
		}
		time.AfterFunc(5*time.Second, l.End)
		other, err := b.Begin(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := other.Use(t.Context(), 100); err != nil {
			t.Error(err)
		}
		if err := other.Use(t.Context(), 1); !errors.Is(err, ErrTooMuch) {
			t.Error(err)
		}
		other.End()
	})
}

func TestWhoHasSomeIsToldToBeginAnewWithMore(t *testing.T) {
	b := NewBudget(100, time.Second, nil)
	one, _ := b.Begin(t.Context(), 60)
	two, _ := b.Begin(t.Context(), 30)
	defer one.End()
	defer two.End()
	if err := two.Use(t.Context(), 30); err != nil {
		t.Error(err)
	}
	more, ok := errors.AsType[*MoreError](two.Use(t.Context(), 20))
	if !ok || more.Bytes < 50 {
		t.Error(more)
	}
	two.Free(10)
	if err := two.Use(t.Context(), 20); err != nil {
		t.Error("after some was given back:", err)
	}
}

func TestWithoutABudgetNothingIsBounded(t *testing.T) {
	var b *Budget
	l, err := b.Begin(t.Context(), 1<<60)
	if err != nil || l.Use(t.Context(), 1<<60) != nil || l.Pressed() || b.Waiting() {
		t.Error(err)
	}
	l.Also(1)
	l.Free(1)
	l.End()
	if LeaseOf(t.Context()) != nil {
		t.Error("a lease out of nothing")
	}
}

func TestTheMemoryOfAProcessIsTheLeastOfItsBounds(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	const machine = "MemTotal:       8000000 kB\nMemFree: 1 kB\n"
	for name, c := range map[string]struct {
		files fstest.MapFS
		want  int64
		group bool
	}{
		"machine":       {fstest.MapFS{"proc/meminfo": file(machine)}, 8_000_000 << 10, false},
		"no bound":      {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("max\n")}, 8_000_000 << 10, false},
		"group":         {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/b/memory.max": file("1000000\n")}, 1_000_000, true},
		"group above":   {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("0::/a/b\n"), "sys/fs/cgroup/a/memory.high": file("900\n"), "sys/fs/cgroup/a/b/memory.max": file("1000000\n")}, 900, true},
		"in container":  {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("5000\n")}, 5000, true},
		"version 1":     {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("5:cpu,memory:/x\n1:name=systemd:/y\n"), "sys/fs/cgroup/memory/x/memory.limit_in_bytes": file("7000\n")}, 7000, true},
		"larger group":  {fstest.MapFS{"proc/meminfo": file(machine), "proc/self/cgroup": file("0::/\n"), "sys/fs/cgroup/memory.max": file("9999999999999\n")}, 8_000_000 << 10, false},
		"nothing known": {fstest.MapFS{"proc/self/cgroup": file("rubbish\n0:\n")}, 0, false},
	} {
		if got, group := ProcessMemory(c.files); got != c.want || group != c.group {
			t.Errorf("%s: %d %v", name, got, group)
		}
	}
	for bytes, want := range map[int64]int64{0: mostAnswers, 1 << 20: leastAnswers, 4 << 30: 512 << 20, 1 << 40: mostAnswers} {
		if got := AnswerMemory(bytes); got != want {
			t.Errorf("of %d bytes answers get %d", bytes, got)
		}
	}
}
