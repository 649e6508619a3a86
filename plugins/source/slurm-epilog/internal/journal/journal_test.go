package journal

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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

var update = flag.Bool("update", false, "write the golden files anew")

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

func TestWhatWasAppendedIsThereAfterAnyCut(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	var ends []int64 // of the file after each event
	for n := range 3 {
		add(t, j, n)
		ends = append(ends, j.size)
	}
	path := j.segments[0].path
	j.Close()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for size := range int64(len(whole) + 1) {
		cut := t.TempDir()
		if err := os.WriteFile(filepath.Join(cut, filepath.Base(path)), whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(t.Context(), Options{Dir: cut, Log: slog.New(slog.DiscardHandler), Keep: time.Hour})
		if err != nil {
			t.Fatalf("cut at %d: %v", size, err)
		}
		safe := 0
		for _, end := range ends {
			if end <= size {
				safe++
			}
		}
		got, _ := jobs(t, j, 0)
		if diff := cmp.Diff([]int{0, 1, 2}[:safe], append([]int{}, got...)); diff != "" {
			t.Fatalf("cut at %d (-want +got)\n%s", size, diff)
		}
		if size%20 == 0 { // it goes on
			add(t, j, 77)
			if got, _ := jobs(t, j, 0); !slices.Contains(got, 77) || len(got) != safe+1 {
				t.Fatalf("cut at %d, then: %v", size, got)
			}
		}
		j.Close()
	}
}

func TestTheFormatStaysAsItIs(t *testing.T) {
	e := Entry{Stamp: 1795241600000001, Event: eventOf(1)}
	got, err := appendEntry([]byte(header), &e)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "segment.golden")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, golden) {
		t.Errorf("%v\n%s", err, got)
	}
	dir := t.TempDir()
	if err := os.WriteFile(segmentPath(dir, 1), golden, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, open(t, Options{Dir: dir}), 0, 1)
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
	j := open(t, Options{Dir: t.TempDir(), Segment: 300, Keep: time.Nanosecond})
	add(t, j, 0, 1, 2, 3, 4, 5)
	if len(j.segments) < 3 {
		t.Fatalf("only %d segments", len(j.segments))
	}
	_, stamps := jobs(t, j, 0)
	j.Settled(stamps[3] - 1)
	got, _ := jobs(t, j, 0)
	if !slices.Contains(got, 3) || slices.Contains(got, 0) {
		t.Errorf("after the first three were settled there are %v", got)
	}
	j.Settled(stamps[5])
	if got, _ := jobs(t, j, 0); len(got) == 0 {
		t.Error("the last segment is gone, and with it the last stamp")
	}
	kept := open(t, Options{Dir: t.TempDir(), Segment: 300, Keep: time.Hour})
	add(t, kept, 0, 1, 2, 3, 4, 5)
	kept.Settled(kept.Last())
	want(t, kept, 0, 0, 1, 2, 3, 4, 5)
}

func TestAFullJournalTakesNothingAndGoesOnWhenSomeIsSettled(t *testing.T) {
	j := open(t, Options{Dir: t.TempDir(), Segment: 300, MaxSize: 3000})
	n := 0
	var err error
	for ; err == nil && n < 100; n++ {
		err = j.Append(eventOf(n))
	}
	if !errors.Is(err, ErrFull) || n < 5 {
		t.Fatalf("after %d: %v", n, err)
	}
	j.Settled(j.Last())
	add(t, j, 1000)
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

func TestDamageCostsOnlyTheLineThatHasIt(t *testing.T) {
	dir := t.TempDir()
	j := open(t, Options{Dir: dir})
	add(t, j, 0, 1, 2)
	path := j.segments[0].path
	j.Close()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(text, []byte("\n"))
	lines[2][20] ^= 1
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	j = open(t, Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	want(t, j, 0, 0, 2)
	if !strings.Contains(said.String(), path) {
		t.Errorf("the log names no place: %s", said.String())
	}
}

func TestAFileOfAnotherVersionIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(segmentPath(dir, 1), []byte("bursar-epilog-journal 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Options{Dir: dir, Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "upgrade") {
		t.Error(err)
	}
}

func TestManyAtOnceAreAllThereOnceAndInOrder(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var committed []int64
	j := open(t, Options{Dir: dir, Segment: 4000, Committed: func(entries []Entry) {
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

func FuzzSegment(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "segment.golden"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(golden)
	f.Add([]byte(header + "00000000 {}\n"))
	f.Add(append(golden, strings.Repeat("x", 100_000)...))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		path := segmentPath(dir, 1)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		whole, err := segment{path, 1}.read(func(e Entry) error { return e.Check() }, func(error) {})
		if err == nil && whole > int64(len(text)) {
			t.Errorf("%d whole bytes of %d", whole, len(text))
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			t.Error(err)
		}
	})
}
