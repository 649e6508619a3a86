package cluster

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/bursar-accounting/bursar/proto/racetest"
)

// someEntry makes an entry; large ones go past the journal.
func someEntry(rng *rand.Rand, index, term uint64) *raft.Log {
	n := rng.IntN(300)
	switch rng.IntN(20) {
	case 0:
		n = rng.IntN(30_000)
	case 1:
		n = rng.IntN(2 * journalMost)
	}
	l := &raft.Log{Index: index, Term: term, Type: raft.LogType(rng.IntN(3)), Data: make([]byte, n), Extensions: make([]byte, 1+rng.IntN(9))}
	for i := range l.Data {
		l.Data[i] = byte(rng.Uint32())
	}
	if rng.IntN(2) == 0 {
		l.AppendedAt = time.Unix(0, rng.Int64())
	}
	return l
}

func sameEntry(a, b *raft.Log) bool {
	return a.Index == b.Index && a.Term == b.Term && a.Type == b.Type && bytes.Equal(a.Data, b.Data) &&
		bytes.Equal(a.Extensions, b.Extensions) && a.AppendedAt.Equal(b.AppendedAt)
}

// sameLog compares a log with what it should hold.
func sameLog(t *testing.T, got raft.LogStore, want *raft.InmemStore) {
	t.Helper()
	first, err1 := got.FirstIndex()
	last, err2 := got.LastIndex()
	wantFirst, _ := want.FirstIndex()
	wantLast, _ := want.LastIndex()
	if err := errors.Join(err1, err2); err != nil || first != wantFirst || last != wantLast {
		t.Fatalf("entries %d to %d, want %d to %d: %v", first, last, wantFirst, wantLast, err)
	}
	for i := first; i <= last && last > 0; i++ {
		var a, b raft.Log
		if err := errors.Join(got.GetLog(i, &a), want.GetLog(i, &b)); err != nil || !sameEntry(&a, &b) {
			t.Fatalf("entry %d: %+v, want %+v: %v", i, a, b, err)
		}
	}
}

// ended leaves a journal as a process that is killed does, but for the move that runs.
func ended(t *testing.T, j *journal) {
	t.Helper()
	if j.moved != nil {
		if err := <-j.moved; err != nil {
			t.Fatal(err)
		}
	}
	if err := j.closeFiles(); err != nil {
		t.Fatal(err)
	}
}

func TestJournal_AnyOrderOfWritesCutsAndKills_HoldsWhatTheLogHolds(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng, dir := rand.New(rand.NewPCG(seed, 7)), t.TempDir()
			want := raft.NewInmemStore()
			under, err := raftboltdb.New(raftboltdb.Options{Path: dir + "/raft.db", NoSync: true, MsgpackUseNewTimeFormat: true})
			if err != nil {
				t.Fatal(err)
			}
			defer under.Close()
			j, err := openJournal(dir, under)
			if err != nil {
				t.Fatal(err)
			}
			var last, term uint64 = 0, 1
			for range 600 {
				first, _ := want.FirstIndex()
				switch k := rng.IntN(100); {
				case k < 90:
					var logs []*raft.Log
					for range 1 + rng.IntN(16) {
						last++
						logs = append(logs, someEntry(rng, last, term))
					}
					err = errors.Join(j.StoreLogs(logs), want.StoreLogs(logs))
				case k < 93 && last > first+1: // the end is of a leader that lost
					from := first + 1 + rng.Uint64N(last-first)
					err = errors.Join(j.DeleteRange(from, last), want.DeleteRange(from, last))
					last, term = from-1, term+1
				case k < 95 && last > first+2:
					upTo := first + rng.Uint64N(last-first-1)
					err = errors.Join(j.DeleteRange(first, upTo), want.DeleteRange(first, upTo))
				case k < 98:
					ended(t, j)
					j, err = openJournal(dir, under)
				case k == 98:
					if err = j.Close(); err == nil {
						sameLog(t, under, want)
						j, err = openJournal(dir, under)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			sameLog(t, j, want)
			ended(t, j)
			read, err := readJournal(dir, under) // as those look that write nothing
			if err != nil {
				t.Fatal(err)
			}
			sameLog(t, read, want)
		})
	}
}

// filled returns the folder of a journal of some batches that ended without a Close, and
// where in which file each begins.
func filled(t *testing.T, batches int) (dir string, starts []int64) {
	t.Helper()
	dir = t.TempDir()
	j, err := openJournal(dir, raft.NewInmemStore())
	if err != nil {
		t.Fatal(err)
	}
	for i := range batches {
		starts = append(starts, j.at)
		if err := j.StoreLog(&raft.Log{Index: uint64(i + 1), Term: 1, Data: []byte("some command"), Extensions: []byte{1, 2, 3, 4, 5}}); err != nil {
			t.Fatal(err)
		}
	}
	starts = append(starts, j.at)
	ended(t, j)
	return dir, starts
}

// A write that was cut, anywhere, was of a batch that no one was told is stored.
func TestJournal_LastBatchCut_AllBeforeItAreThere(t *testing.T) {
	dir, starts := filled(t, 3)
	whole, err := os.ReadFile(journalPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	for at := starts[2]; at < starts[3]; at++ {
		cut := slices.Clone(whole)
		clear(cut[at:starts[3]])
		if at == starts[3]-1 && whole[at] == 0 {
			continue
		}
		if err := os.WriteFile(journalPath(dir, 0), cut, 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := readJournal(dir, raft.NewInmemStore())
		if err != nil || !slices.Equal(j.heldIndexes(), []uint64{1, 2}) {
			t.Fatalf("cut at byte %d of the last batch: %v, %v", at-starts[2], j, err)
		}
	}
}

func TestJournal_AnyByteBeforeTheLastBatchDamaged_IsCorrupt(t *testing.T) {
	dir, starts := filled(t, 3)
	whole, err := os.ReadFile(journalPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	for at := range starts[2] {
		if at >= 16 && at < journalHead {
			continue // reserved
		}
		bad := slices.Clone(whole)
		bad[at] ^= 0x40
		if err := os.WriteFile(journalPath(dir, 0), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openJournal(dir, raft.NewInmemStore()); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
	if err := os.WriteFile(journalPath(dir, 0), whole[:starts[3]], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir, raft.NewInmemStore()); !errors.Is(err, ErrCorrupt) {
		t.Fatalf("a file that was cut: %v", err)
	}
}

// fullLog is a bbolt whose disk is full.
type fullLog struct {
	*raft.InmemStore
	full bool
}

func (f *fullLog) StoreLogs(logs []*raft.Log) error {
	if f.full {
		return errors.New("no space left on device")
	}
	return f.InmemStore.StoreLogs(logs)
}

func TestJournal_EntriesCannotBeMoved_WritesFailUntilTheyCanAndNothingIsLost(t *testing.T) {
	under, want := &fullLog{InmemStore: raft.NewInmemStore(), full: true}, raft.NewInmemStore()
	dir := t.TempDir()
	j, err := openJournal(dir, under)
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for i := uint64(1); i < 500; i++ {
		l := &raft.Log{Index: i, Term: 1, Data: make([]byte, 10_000)}
		err := j.StoreLog(l)
		if err != nil {
			failed++
			i--
			under.full = failed < 5
			continue
		}
		if err := want.StoreLog(l); err != nil {
			t.Fatal(err)
		}
	}
	if failed != 5 {
		t.Errorf("%d writes failed, want 5: after two files are full", failed)
	}
	sameLog(t, j, want)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	sameLog(t, under, want)
}

func TestJournal_ABatchOfAnySize_IsOneSync(t *testing.T) {
	j, err := openJournal(t.TempDir(), raft.NewInmemStore())
	if err != nil {
		t.Fatal(err)
	}
	synced := 0
	j.sync = func(f *os.File) error { synced++; return syncFileData(f) }
	var last uint64
	for _, n := range []int{1, 16, 256} {
		var logs []*raft.Log
		for range n {
			last++
			logs = append(logs, &raft.Log{Index: last, Term: 1, Data: make([]byte, 150)})
		}
		if err := j.StoreLogs(logs); err != nil {
			t.Fatal(err)
		}
	}
	if synced != 3 || j.syncs.Load() != 3 {
		t.Errorf("3 batches took %d syncs, counted %d", synced, j.syncs.Load())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestJournal_TheFormat_StaysForEver(t *testing.T) {
	dir, starts := filled(t, 1)
	whole, err := os.ReadFile(journalPath(dir, 0))
	if err != nil {
		t.Fatal(err)
	}
	const want = "424a4601000000000000000152cc167e00000000" +
		"424a45010000000000000001000000000000000000000017" + "bb7520c8" + "010100000501020304050c736f6d6520636f6d6d616e64"
	if got := hex.EncodeToString(whole[:starts[1]]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	old, err := hex.DecodeString(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(journalPath(dir, 0), append(old, make([]byte, journalSize-len(old))...), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := readJournal(dir, raft.NewInmemStore())
	var l raft.Log
	if err == nil {
		err = j.GetLog(1, &l)
	}
	if err != nil || string(l.Data) != "some command" {
		t.Errorf("%+v: %v", l, err)
	}
}

func FuzzJournalFile(f *testing.F) {
	f.Add([]byte{})
	f.Add(append(slices.Clone(frameMagic[:]), make([]byte, 100)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		file := parseJournalFile(data)
		j := &journal{entries: map[uint64]*raft.Log{}}
		for _, payload := range file.frames {
			_ = j.loadFrame(0, payload)
		}
		_ = j.loadFrame(1, data)
	})
}

// What a node that was killed leaves is whole only with its journal: programs that know
// none must refuse it, and a lost journal is noticed. After an orderly end all is in
// bbolt.
func TestJournal_OfANodeThatWasKilled_IsNotForgotten(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	r := lead(t, lone(t, dir, state))
	for i := range 20 {
		propose(t, r.Node, fmt.Sprint(i))
	}
	killed, lost := t.TempDir(), t.TempDir()
	for _, to := range []string{killed, lost} {
		if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := usesJournal(killed); err != nil || !used {
		t.Fatal(used, err)
	}
	after := &memory{}
	again := lead(t, lone(t, killed, after))
	propose(t, again.Node, "later")
	if got := after.commands(); len(got) != 21 || got[0] != "0" || got[20] != "later" {
		t.Errorf("after the kill: %v", got)
	}
	if err := os.Remove(journalPath(lost+"/raft", 0)); err != nil {
		t.Fatal(err)
	}
	refused(t, lone(t, lost, &memory{}), ErrForgotten, "journal-a")
	r.stop(t)
	if used, err := usesJournal(dir); err != nil || used {
		t.Fatal(used, err)
	}
}

var errPower = errors.New("the power went")

// The power goes during a sync: any of the sectors that were written since the last one are on
// disk, and the others have what they had.
func TestJournal_PowerCutDuringAnySync_HoldsWhatWasConfirmed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(racetest.Few(racetest.Few(60))) {
		rng, dir := rand.New(rand.NewPCG(seed, 11)), t.TempDir()
		under, err := raftboltdb.New(raftboltdb.Options{Path: dir + "/raft.db", NoSync: true, MsgpackUseNewTimeFormat: true})
		if err != nil {
			t.Fatal(err)
		}
		j, err := openJournal(dir, under)
		if err != nil {
			t.Fatal(err)
		}
		disk := map[string][]byte{} // as of the last sync of each file
		for i := range j.files {
			disk[j.files[i].Name()] = slurp(t, j.files[i].Name())
		}
		left := 1 + rng.IntN(400)
		var syncing sync.Mutex // a write syncs one file while the other is prepared
		j.sync = func(f *os.File) error {
			syncing.Lock()
			defer syncing.Unlock()
			if left--; left <= 0 {
				return errPower
			}
			disk[f.Name()] = slurp(t, f.Name())
			return nil
		}
		want := raft.NewInmemStore()
		var logs []*raft.Log
		for last := uint64(0); err == nil; {
			logs = nil
			for range 1 + rng.IntN(4) {
				last++
				logs = append(logs, &raft.Log{Index: last, Term: 1, Data: make([]byte, rng.IntN(8000))})
			}
			if err = j.StoreLogs(logs); err == nil {
				err = want.StoreLogs(logs)
			}
			if j.moved != nil { // so that no move meets the next write
				moved := <-j.moved
				j.moved, err = nil, errors.Join(err, moved)
			}
		}
		if !errors.Is(err, errPower) {
			t.Fatal(err)
		}
		if err := j.closeFiles(); err != nil {
			t.Fatal(err)
		}
		for name, old := range disk {
			now := slurp(t, name)
			for at := 0; at < len(now); at += 512 {
				if rng.IntN(2) == 0 {
					copy(now[at:at+512], old[at:])
				}
			}
			if err := os.WriteFile(name, now, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again, err := openJournal(dir, under)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if last, _ := again.LastIndex(); last == logs[len(logs)-1].Index { // the last batch is whole, or not there
			_ = want.StoreLogs(logs)
		}
		sameLog(t, again, want)
		if err := errors.Join(again.Close(), under.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func slurp(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
