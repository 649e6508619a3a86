package store

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

var cuts = flag.Int("cuts", 200, "how many times the power is cut")

// crashLog is a log of commands with everything in it that a site does.
func crashLog(t *testing.T) [][]byte {
	b := newBox(t)
	rng := rand.New(rand.NewPCG(1, 2))
	next := 0
	for step := range 60 {
		now := t0 + record.Time(step)*record.Second
		switch {
		case step%20 == 7:
			var ws []record.Write
			for range 1200 {
				ws = append(ws, put(sample(fmt.Sprintf("job-%d", next), next), int64(step+1)))
				next++
			}
			b.ingest("head1", now, ws...)
		case step%5 == 4:
			b.apply(&DeleteCommand{IDs: []string{fmt.Sprintf("job-%d", rng.IntN(next+1))}, Now: now})
		case step%5 == 3:
			b.apply(&PutStopCommand{ID: fmt.Sprintf("job-%d", rng.IntN(next+1)), Stop: t0 + record.Hour, Now: now})
		case step%5 == 2:
			r := sample(fmt.Sprintf("job-%d", rng.IntN(next+1)), step)
			b.ingest("head1", now, put(r, int64(step+1)))
		default:
			b.post(now, sample(fmt.Sprintf("job-%d", next), next))
			next++
		}
	}
	return b.log
}

func TestPowerCutAtAnyPointLosesNothingThatTheLogHolds(t *testing.T) {
	log := crashLog(t)
	want := make([]Hash, len(log)+1)
	whole := newBox(t)
	for i, data := range log {
		if _, err := whole.s.Apply(uint64(i+1), 1, data); err != nil {
			t.Fatal(err)
		}
		_, want[i+1] = whole.s.Hash()
	}
	rng := rand.New(rand.NewPCG(3, 4))
	fs := vfs.NewCrashableMem()
	at := 0
	for cycle := range racetest.Few(*cuts) {
		at = crashOnce(t, cycle, &fs, log, want, at, rng)
	}
}

// crashOnce opens what a power cut left, applies some more, and cuts again. It
// returns the index up to which the log may be forgotten: the last Flush.
func crashOnce(t *testing.T, cycle int, fs **vfs.MemFS, log [][]byte, want []Hash, flushed int, rng *rand.Rand) int {
	s, err := Open(Options{Dir: "/s", FS: *fs, MemTableBytes: 256 << 10})
	if err != nil {
		t.Fatalf("cycle %d: %v", cycle, err)
	}
	index, _ := s.Applied()
	if int(index) < flushed {
		t.Fatalf("cycle %d: applied %d, flushed %d", cycle, index, flushed)
	}
	checkCrashed(t, s, cycle, want)
	if int(index) == len(log) {
		sound(t, s)
		*fs = vfs.NewCrashableMem()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return 0
	}
	for range rng.IntN(12) {
		if int(index) == len(log) {
			break
		}
		index++
		if _, err := s.Apply(index, 1, log[index-1]); err != nil {
			t.Fatalf("cycle %d: %v", cycle, err)
		}
		checkCrashed(t, s, cycle, want)
		if rng.IntN(6) == 0 {
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			flushed = int(index)
		}
	}
	clone := (*fs).CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	*fs = clone
	return flushed
}

// checkCrashed holds the state against that of a node that applied the same without
// a power cut.
func checkCrashed(t *testing.T, s *Store, cycle int, want []Hash) {
	t.Helper()
	if index, h := s.Hash(); h != want[index] {
		t.Fatalf("cycle %d: the state at %d is not that of the log", cycle, index)
	}
}

func sound(t *testing.T, s *Store) {
	t.Helper()
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	found, err := v.Check(context.Background())
	if err != nil || len(found) > 0 {
		t.Fatalf("%s %v", strings.Join(found, "\n"), err)
	}
}
