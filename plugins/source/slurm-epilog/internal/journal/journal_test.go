package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
)

func eventOf(n int) event.Event {
	return event.Event{ID: fmt.Sprintf("%032x", n), At: 1795241600000000, Job: int64(n + 1), User: "alice", Exit: "0:0"}
}

func open(t testing.TB, opt Options) *Journal {
	t.Helper()
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Keep == 0 {
		opt.Keep = time.Hour
	}
	j, err := Open(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t testing.TB, j *Journal, numbers ...int) {
	t.Helper()
	for _, n := range numbers {
		if err := j.Append(eventOf(n)); err != nil {
			t.Fatal(err)
		}
	}
}

// jobs are the jobs behind a stamp, and their stamps.
func jobs(t testing.TB, j *Journal, after int64) (numbers []int, stamps []int64) {
	t.Helper()
	err := j.After(after, func(e Entry) error {
		numbers, stamps = append(numbers, int(e.Job-1)), append(stamps, e.Stamp)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return numbers, stamps
}

func want(t testing.TB, j *Journal, after int64, numbers ...int) []int64 {
	t.Helper()
	got, stamps := jobs(t, j, after)
	if diff := cmp.Diff(numbers, got); diff != "" {
		t.Fatalf("behind %d (-want +got)\n%s", after, diff)
	}
	return stamps
}

func golden(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "entry.golden"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "\n")
}

func TestTheFormatStaysAsItIs(t *testing.T) {
	e := Entry{Stamp: 1795241600000001, Event: eventOf(1)}
	if got, err := encodeEntry(&e); err != nil || string(got) != golden(t) {
		t.Errorf("%v\n%s", err, got)
	}
	got, err := parseEntry([]byte(golden(t)))
	if diff := cmp.Diff(e, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

func TestOpen_CopyOfARunningJournal_HasWhatWasAppended(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	for n := range 50 {
		add(t, j, n)
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		crashed := t.TempDir()
		if err := os.WriteFile(filepath.Join(crashed, file), text, 0o600); err != nil {
			t.Fatal(err)
		}
		other := open(t, Options{Dir: crashed})
		if got, _ := jobs(t, other, 0); len(got) != n+1 {
			t.Fatalf("%d of %d", len(got), n+1)
		}
		other.Close()
	}
}

func TestAnEventThatComesTwiceIsOne(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	add(t, j, 1, 2, 1)
	j.Close()
	j = open(t, Options{Dir: dir})
	add(t, j, 2, 3)
	want(t, j, 0, 1, 2, 3)
}

func TestStampsGrowWhateverTheClockDoes(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	add(t, j, 1)
	future := time.Now().Add(1000 * time.Hour).UnixMicro()
	j.Raise(future) // as a cluster remembers it
	add(t, j, 2)
	j.Close()
	j = open(t, Options{Dir: dir})
	add(t, j, 3)
	if stamps := want(t, j, future, 2, 3); stamps[0] <= future || stamps[1] <= stamps[0] {
		t.Errorf("stamps %d after %d", stamps, future)
	}
}

func TestOnlyWhatIsSettledAndOldGoes(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir(), Keep: time.Nanosecond})
	add(t, j, 0, 1, 2, 3, 4, 5)
	_, stamps := jobs(t, j, 0)
	j.Settled(stamps[3] - 1)
	want(t, j, 0, 3, 4, 5)
	j.Settled(stamps[5])
	want(t, j, 0, 5) // it has the last stamp
	kept := open(t, Options{Dir: t.TempDir(), Keep: time.Hour})
	add(t, kept, 0, 1, 2, 3, 4, 5)
	kept.Settled(kept.Last())
	want(t, kept, 0, 0, 1, 2, 3, 4, 5)
}

func TestAFullJournalTakesNothingAndGoesOnWhenSomeIsSettled(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir(), MaxSize: 100_000})
	var err error
	for n := 0; err == nil && n < 10_000; n += 100 {
		var events []event.Event
		for i := range 100 {
			events = append(events, eventOf(n+i))
		}
		err = j.AppendAll(events)
	}
	if !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	j.Settled(j.Last())
	add(t, j, 10_001)
}

func TestASecondProcessWaitsForTheFirst(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, Options{Dir: dir}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	opened := make(chan error)
	go func() {
		next, err := Open(context.Background(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			err = next.Close()
		}
		opened <- err
	}()
	j.Close()
	if err := <-opened; err != nil {
		t.Error(err)
	}
}

func TestDamageCostsOnlyTheEntryThatHasIt(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	add(t, j, 0, 1, 2)
	j.Close()
	path := filepath.Join(dir, file)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	id := []byte(eventOf(1).ID)
	if err := os.WriteFile(path, bytes.ReplaceAll(text, id, append([]byte("7"), id[1:]...)), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	j = open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	want(t, j, 0, 0, 2)
	if !strings.Contains(said.String(), path) {
		t.Errorf("the log names no place: %s", said.String())
	}
}

func TestOpen_DamagedFile_SaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, file), make([]byte, 1<<16), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "move the file away") {
		t.Error(err)
	}
}

func TestOpen_SegmentOfBefore_IsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "00000000000000000001.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "000001.log is of a version before 1.0") {
		t.Error(err)
	}
}

func TestManyAtOnceAreAllThereOnceAndInOrder(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var committed []int64
	j := open(t, Options{Dir: dir, Committed: func(entries []Entry) {
		mu.Lock()
		defer mu.Unlock()
		for _, e := range entries {
			committed = append(committed, e.Stamp)
		}
	}})
	var all sync.WaitGroup
	for n := range 200 {
		all.Go(func() {
			if err := j.Append(eventOf(n)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	got, stamps := jobs(t, j, 0)
	slices.Sort(got)
	if len(slices.Compact(got)) != 200 || !slices.IsSorted(stamps) || !slices.Equal(stamps, committed) {
		t.Errorf("%d entries, committed %d", len(got), len(committed))
	}
}

func TestAfterCloseNothingIsTaken(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir()})
	add(t, j, 1)
	j.Close()
	if err := j.Append(eventOf(2)); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add(golden(f))
	f.Add("00000000 {}")
	f.Add(golden(f) + strings.Repeat("x", 100_000))
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := parseEntry([]byte(text)); err == nil && e.Check() != nil {
			t.Error(e.Check())
		}
	})
}
