package health

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestWritesWaitWhileTheDiskIsNearlyFullAndGoOnAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		space := DiskSpace{Free: 500, Size: 1000}
		var broken error
		g := NewDiskGuard("/", DiskMarks{Warn: 150, Low: 120, ReadOnly: 100}, slog.New(slog.DiscardHandler))
		g.space = func(string) (DiskSpace, error) { return space, broken }
		for _, step := range []struct {
			free        uint64
			level       DiskLevel
			write, pull error
		}{
			{500, Normal, nil, nil}, {150, Normal, nil, nil}, {149, Warn, nil, nil}, {119, Low, nil, ErrFull},
			{99, ReadOnly, ErrFull, ErrFull}, {100, Low, nil, ErrFull}, {120, Warn, nil, nil}, {200, Normal, nil, nil},
		} {
			time.Sleep(time.Second)
			space.Free = step.free
			if write, pull := g.Check(), g.CheckPull(); !errors.Is(write, step.write) || !errors.Is(pull, step.pull) {
				t.Errorf("%d free: %v and %v", step.free, write, pull)
			}
			if s := g.State(); s.Level != step.level || s.Since.After(time.Now()) || s.Since.IsZero() {
				t.Errorf("%d free: %+v, want %v", step.free, s, step.level)
			}
		}
		since := g.State().Since
		time.Sleep(time.Hour)
		if got := g.State().Since; !got.Equal(since) {
			t.Error("the level began anew at", got)
		}
		broken = os.ErrPermission
		time.Sleep(time.Second)
		if err := g.Check(); !errors.Is(err, os.ErrPermission) {
			t.Error("a disk that cannot be looked at is written to:", err)
		}
	})
}

func TestTheSpaceOfARealFileSystemIsMeasured(t *testing.T) {
	if s, err := MeasureDisk(t.TempDir()); err != nil || s.Free == 0 || s.Size < s.Free {
		t.Error(s, err)
	}
	if _, err := MeasureDisk("/no/such/folder"); err == nil {
		t.Error("a folder that is not there has free space")
	}
}

func TestMarksSuitSmallAndLargeDisks(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		name       string
		size, keep uint64
		want       DiskMarks
	}{
		{"100 GiB", 100 * gib, 0, DiskMarks{Warn: 100 * gib / 100 * 15, Low: 100 * gib / 100 * 10, ReadOnly: 4 * gib}},
		{"60 GiB", 60 * gib, 0, DiskMarks{Warn: 60 * gib / 100 * 15, Low: 60 * gib / 100 * 10, ReadOnly: 60 * gib / 100 * 5}},
		{"16 GiB: 2 GiB are low", 16 * gib, 0, DiskMarks{Warn: 16 * gib / 100 * 15, Low: 2 * gib, ReadOnly: 16 * gib / 100 * 5}},
		{"256 MiB: an eighth is low", 256 * mib, 0, DiskMarks{Warn: 256 * mib / 100 * 15, Low: 32 * mib, ReadOnly: 256 * mib / 100 * 5}},
		{"as the configuration says", 256 * mib, 100 * mib, DiskMarks{Warn: 110 * mib, Low: 100 * mib, ReadOnly: 100 * mib}},
		{"a large disk that others fill", 500 * gib, 256 * mib, DiskMarks{Warn: 768 * mib, Low: 512 * mib, ReadOnly: 256 * mib}},
		{"10 TiB", 10 << 40, 0, DiskMarks{Warn: 64 * gib, Low: 32 * gib, ReadOnly: 4 * gib}},
	} {
		got := DiskMarksOf(c.size, c.keep)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		if got.ReadOnly > got.Low || got.Low >= got.Warn || got.Warn >= c.size {
			t.Errorf("%s: %+v is not in order", c.name, got)
		}
	}
}

func TestTheBallastIsGivenUpAndMadeAnew(t *testing.T) {
	dir := t.TempDir()
	b := NewBallast(dir, 64<<20, 256<<20)
	if err := b.Keep(2<<20-1, 1<<20); err != nil || b.Size() != 0 {
		t.Fatal("it is made where there is no room:", err, b.Size())
	}
	if err := b.Keep(2<<20, 1<<20); err != nil || b.Size() != 1<<20 {
		t.Fatal(err, b.Size())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Error(entries, err)
	}
	for _, want := range []uint64{1 << 20, 0} {
		if freed, err := FreeBallast(dir); err != nil || freed != want || b.Size() != 0 {
			t.Error(freed, err)
		}
	}
	if err := b.Keep(1<<30, 0); err != nil || b.Size() != 1<<20 {
		t.Error("it is not made again:", err)
	}
	if _, err := FreeBallast(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there has a ballast")
	}
}

func TestABallastTakesASixtyFourthOfASmallDisk(t *testing.T) {
	for size, want := range map[uint64]uint64{1 << 40: 256 << 20, 16 << 30: 256 << 20, 256 << 20: 4 << 20} {
		if b := NewBallast("/d", size, 256<<20); b.size != want {
			t.Errorf("%d of %d", b.size, size)
		}
	}
}
