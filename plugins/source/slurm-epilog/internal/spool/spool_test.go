package spool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/spool"
)

func eventOf(n int) event.Event {
	return event.Event{ID: fmt.Sprintf("%032x", n), At: int64(1795241600000000 + n), Job: int64(n + 1)}
}

// own is a spool of this process's user.
func own(t *testing.T) spool.Spool {
	return spool.Spool{Dir: filepath.Join(t.TempDir(), "spool"), UID: os.Geteuid()}
}

func put(t *testing.T, s spool.Spool, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		e := eventOf(n)
		if s.UID != 0 {
			_ = os.MkdirAll(s.Dir, 0o700) // as the package makes it
		}
		if err := s.Put(&e); err != nil {
			t.Fatal(err)
		}
	}
}

// drain returns the jobs that were given, but for those that give refuses.
func drain(t *testing.T, s spool.Spool, most int) (jobs []int64, err error) {
	t.Helper()
	_, err = s.Drain(most, func(e event.Event) error { jobs = append(jobs, e.Job); return nil })
	return jobs, err
}

func TestWhatIsPutIsDrainedOnceAndInOrder(t *testing.T) {
	s := own(t)
	put(t, s, 3, 1, 2)
	if n, err := s.Waiting(); n != 3 || err != nil {
		t.Error(n, err)
	}
	if jobs, err := drain(t, s, 2); err != nil || fmt.Sprint(jobs) != "[2 3]" {
		t.Error(jobs, err)
	}
	if jobs, err := drain(t, s, 10); err != nil || fmt.Sprint(jobs) != "[4]" {
		t.Error(jobs, err)
	}
	if jobs, err := drain(t, s, 10); err != nil || len(jobs) > 0 {
		t.Error(jobs, err)
	}
}

func TestManyPutAndDrainAtOnceAndNothingIsLost(t *testing.T) {
	s := own(t)
	put(t, s, 0)
	var mu sync.Mutex
	given := map[int64]int{}
	give := func(e event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		given[e.Job]++
		return nil
	}
	var all sync.WaitGroup
	for n := range 20 {
		all.Go(func() {
			for i := range 5 {
				e := eventOf(1 + n*5 + i)
				if err := s.Put(&e); err != nil {
					t.Error(err)
				}
				if _, err := s.Drain(3, give); err != nil && !errors.Is(err, spool.ErrBusy) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if _, err := s.Drain(1000, give); err != nil {
		t.Error(err)
	}
	for job, n := range given {
		if n != 1 {
			t.Errorf("job %d was given %d times", job, n)
		}
	}
	if len(given) != 101 {
		t.Errorf("%d jobs of 101", len(given))
	}
}

func TestWhatCannotBeGivenStays(t *testing.T) {
	s := own(t)
	put(t, s, 1, 2, 3)
	down := errors.New("the agent is away")
	if n, err := s.Drain(10, func(event.Event) error { return down }); n != 0 || !errors.Is(err, down) {
		t.Error(n, err)
	}
	// One that is refused for itself does not hold up the others.
	_, err := s.Drain(10, func(e event.Event) error {
		if e.Job == 3 {
			return fmt.Errorf("%w: a later format", spool.ErrSkip)
		}
		return nil
	})
	if n, waits := s.Waiting(); n != 1 || waits != nil || !errors.Is(err, spool.ErrSkip) {
		t.Error(n, waits, err)
	}
}

func TestFilesOfOthersAndHalfWrittenOnesAreNotDrained(t *testing.T) {
	s := own(t)
	put(t, s, 1)
	e := eventOf(2)
	line, err := e.Line()
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	write := func(path string, mode os.FileMode, text []byte) {
		if err := errors.Join(os.WriteFile(path, text, mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(elsewhere, 0o600, line)
	write(filepath.Join(s.Dir, "0-world.event"), 0o666, line)
	write(filepath.Join(s.Dir, "0-half.new"), 0o600, line[:20])
	write(filepath.Join(s.Dir, "0-torn.event"), 0o600, line[:20])
	write(filepath.Join(s.Dir, "0-long.event"), 0o600, []byte(strings.Repeat("x", 100_000)))
	if err := os.Symlink(elsewhere, filepath.Join(s.Dir, "0-link.event")); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(elsewhere, filepath.Join(s.Dir, "0-hard.event")); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		write(filepath.Join(s.Dir, "0-alien.event"), 0o600, line)
		if err := os.Chown(filepath.Join(s.Dir, "0-alien.event"), 4711, -1); err != nil {
			t.Fatal(err)
		}
	}
	if jobs, err := drain(t, s, 100); fmt.Sprint(jobs) != "[2]" || !errors.Is(err, spool.ErrSkip) {
		t.Error(jobs, err)
	}
}

func TestRootDrainsTheSpoolsOfAllAndOthersTheirOwn(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"64030", "0", "else", "-3"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	of := func(uid int) string {
		all, err := spool.All(root, uid)
		if err != nil {
			t.Fatal(err)
		}
		var dirs []string
		for _, s := range all {
			rel, _ := filepath.Rel(root, s.Dir)
			dirs = append(dirs, rel)
		}
		return strings.Join(dirs, " ")
	}
	if of(0) != ". 64030" || of(64030) != "64030" {
		t.Errorf("root's: %s; slurm's: %s", of(0), of(64030))
	}
}

func TestAFolderThatCannotBeMadeIsAnErrorThatSaysWhatToDo(t *testing.T) {
	s := spool.Spool{Dir: filepath.Join(t.TempDir(), "none", "64030"), UID: 64030}
	e := eventOf(1)
	if err := s.Put(&e); err == nil || !strings.Contains(err.Error(), "install -d -o 64030") {
		t.Error(err)
	}
	if err := s.Try(); err == nil {
		t.Error("it says that it works")
	}
	if err := own(t).Try(); os.Geteuid() == 0 && err != nil {
		t.Error(err)
	}
}
