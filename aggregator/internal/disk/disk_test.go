package disk

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"
)

func TestWritesWaitWhileTheDiskIsNearlyFullAndGoOnAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := uint64(200)
		g := NewGuard("/", 100, slog.New(slog.DiscardHandler))
		g.free = func(string) (uint64, error) { return free, nil }
		for _, step := range []struct {
			free uint64
			want error
		}{{200, nil}, {99, ErrFull}, {100, nil}} {
			free = step.free
			time.Sleep(time.Second)
			if err := g.Check(); !errors.Is(err, step.want) {
				t.Errorf("%d free: %v, want %v", free, err, step.want)
			}
		}
	})
}

func TestTheFreeSpaceOfARealFileSystemIsRead(t *testing.T) {
	if free, err := Free(t.TempDir()); err != nil || free == 0 {
		t.Error(free, err)
	}
	if _, err := Free("/no/such/folder"); err == nil {
		t.Error("a folder that is not there has free space")
	}
}
