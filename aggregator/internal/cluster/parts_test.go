package cluster

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/bursar-accounting/bursar/proto/image"
)

func TestTheShapeOfTheLogIsWhatANaiveCountSays(t *testing.T) {
	type entry struct {
		size    int64
		command bool
	}
	rapid.Check(t, func(t *rapid.T) {
		var s shape
		log := map[uint64]entry{}
		first, next := uint64(1), uint64(1)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0: // cut the head
				to := rapid.Uint64Range(first, next).Draw(t, "head")
				s.cutRange(first, to)
				for i := first; i <= to; i++ {
					delete(log, i)
				}
				first = min(to+1, next)
			case 1: // cut the tail
				if first == next {
					continue
				}
				from := rapid.Uint64Range(first, next-1).Draw(t, "tail")
				s.cutRange(from, next-1)
				for i := from; i < next; i++ {
					delete(log, i)
				}
				next = from
			default:
				e := entry{int64(rapid.IntRange(1, 9).Draw(t, "size")), rapid.Bool().Draw(t, "command")}
				s.addEntry(next, int(e.size), e.command)
				log[next] = e
				next++
			}
			at := rapid.Uint64Range(0, next+1).Draw(t, "at")
			budget := int64(rapid.IntRange(0, 60).Draw(t, "budget"))
			var after, held int64
			var last, fit uint64
			for i := first; i < next; i++ {
				if i > at {
					after += log[i].size
				} else if log[i].command {
					last = i
				}
			}
			for i := next; i > first; i-- {
				if held += log[i-1].size; held > budget {
					break
				}
				fit++
			}
			if got := s.bytesAfter(at); got != after {
				t.Fatalf("bytes after %d: %d, want %d", at, got, after)
			}
			if got := s.lastCommand(at); got != last {
				t.Fatalf("last command at %d: %d, want %d", at, got, last)
			}
			if got := s.newestWithin(budget); got != fit {
				t.Fatalf("newest in %d: %d, want %d", budget, got, fit)
			}
		}
	})
}

// stubLog is a raft.LogStore in memory whose entries can be spoiled.
type stubLog struct {
	raft.LogStore
	fail error
}

func (s *stubLog) StoreLogs(l []*raft.Log) error {
	if s.fail != nil {
		return s.fail
	}
	return s.LogStore.StoreLogs(l)
}

func newStub() (*stubLog, *entryLog, *[]error) {
	under := &stubLog{LogStore: raft.NewInmemStore()}
	var halts []error
	return under, &entryLog{under: under, path: "raft.db", halt: func(err error) { halts = append(halts, err) }, end: func() {}}, &halts
}

func TestEveryKindOfEntryIsSealedAndEveryDamageIsSeen(t *testing.T) {
	for _, kind := range []raft.LogType{raft.LogCommand, raft.LogNoop, raft.LogBarrier, raft.LogConfiguration} {
		for name, spoil := range map[string]func(*raft.Log){
			"data":      func(l *raft.Log) { l.Data = append([]byte("x"), l.Data...) },
			"term":      func(l *raft.Log) { l.Term++ },
			"type":      func(l *raft.Log) { l.Type ^= 1 },
			"checksum":  func(l *raft.Log) { l.Extensions[2] ^= 1 },
			"none":      func(l *raft.Log) { l.Extensions = nil },
			"cut":       func(l *raft.Log) { l.Extensions = l.Extensions[:3] },
			"newer":     func(l *raft.Log) { l.Extensions[0] = 2 },
			"exchanged": func(l *raft.Log) { l.Index++ },
		} {
			under, log, halts := newStub()
			e := &raft.Log{Index: 7, Term: 3, Type: kind, Data: []byte("data")}
			if err := log.StoreLog(e); err != nil || len(e.Extensions) != sealLen {
				t.Fatal(err)
			}
			if err := log.GetLog(7, new(raft.Log)); err != nil {
				t.Fatal(err)
			}
			spoiled := *e
			spoiled.Extensions = bytes.Clone(e.Extensions)
			spoil(&spoiled)
			under.LogStore = &fixed{under.LogStore, spoiled}
			err := log.GetLog(7, new(raft.Log))
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) || len(*halts) != 1 {
				t.Errorf("%v %s: %v, halts %v", kind, name, err, *halts)
			}
			if err != nil && !strings.Contains(err.Error(), "raft.db: entry 7") {
				t.Errorf("%v %s: %v names no place", kind, name, err)
			}
		}
	}
}

type fixed struct {
	raft.LogStore
	log raft.Log
}

func (f *fixed) GetLog(_ uint64, l *raft.Log) error {
	*l = f.log
	return nil
}

func TestADamagedEntryFromTheLeaderIsNotStored(t *testing.T) {
	_, log, halts := newStub()
	e := &raft.Log{Index: 1, Term: 1, Data: []byte("a")}
	sealEntry(e)
	e.Data = []byte("b")
	if err := log.StoreLog(e); !errors.Is(err, ErrCorrupt) || len(*halts) != 1 {
		t.Fatal(err, *halts)
	}
	if last, _ := log.LastIndex(); last != 0 {
		t.Fatal(last)
	}
}

func TestAFullDiskHaltsAFollowerButNotALeader(t *testing.T) {
	under, log, halts := newStub()
	under.fail = &os.PathError{Op: "write", Path: "raft.db", Err: syscall.ENOSPC}
	e := &raft.Log{Index: 1, Term: 1}
	if err := log.StoreLog(e); err == nil || len(*halts) != 0 {
		t.Fatalf("own entry: %v, halts %v", err, *halts)
	}
	if err := log.StoreLog(e); err == nil || len(*halts) != 1 {
		t.Fatalf("entry of another: %v, halts %v", err, *halts)
	}
	under.fail = errors.New("input/output error")
	if err := log.StoreLog(&raft.Log{Index: 1}); err == nil || len(*halts) != 2 {
		t.Fatalf("broken disk: %v, halts %v", err, *halts)
	}
}

// stubVotes is a raft.StableStore that is full at first.
type stubVotes struct {
	raft.StableStore
	full int
}

func (s *stubVotes) Set(k, v []byte) error {
	if s.full > 0 {
		s.full--
		return syscall.ENOSPC
	}
	return s.StableStore.Set(k, v)
}

func TestADamagedVoteIsNotUsed(t *testing.T) {
	under := raft.NewInmemStore()
	var halts []error
	v := &votes{under: under, path: "raft.db", halt: func(e error) { halts = append(halts, e) }, end: func() {},
		voted: func() error { return nil }, logger: slog.New(slog.DiscardHandler)}
	key := []byte("LastVoteTerm")
	if _, err := v.GetUint64(key); err == nil || err.Error() != "not found" {
		t.Fatal(err)
	}
	if err := v.SetUint64(key, 9); err != nil {
		t.Fatal(err)
	}
	if n, err := v.GetUint64(key); n != 9 || err != nil {
		t.Fatal(n, err)
	}
	good, _ := under.Get(key)
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 4
		under.Set(key, bad)
		if _, err := v.GetUint64(key); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrFormat) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	under.Set(key, good)
	if _, err := v.Get([]byte("LastVoteCand")); err == nil || len(halts) != len(good) {
		t.Fatal(err, halts)
	}
}

func TestATermWaitsForSpaceOnTheDisk(t *testing.T) {
	t.Parallel()
	v := &votes{under: &stubVotes{raft.NewInmemStore(), 1}, path: "raft.db", halt: func(e error) { t.Error(e) }, end: func() {},
		voted: func() error { return nil }, logger: slog.New(slog.DiscardHandler)}
	if err := v.SetUint64([]byte("k"), 3); err != nil {
		t.Fatal(err)
	}
}

func TestASealedFileShowsEveryDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := writeSealed(path, identity{ID: "one"}); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got identity
	for i := range good[:len(good)-1] {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		got = identity{}
		if err := openSealed(path, bad, &got); err == nil && got.ID != "one" {
			t.Errorf("byte %d: %+v", i, got)
		}
	}
	if err := openSealed(path, good, &got); err != nil || got.ID != "one" {
		t.Fatal(err)
	}
	newer := bytes.Replace(good, []byte(`"format":1`), []byte(`"format":3`), 1)
	if err := openSealed(path, newer, &got); !errors.Is(err, ErrFormat) {
		t.Fatal(err)
	}
}

// imageDir makes a directory and its archive.
func imageDir(t testing.TB, files map[string]string) (string, []byte) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o700), os.WriteFile(p, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	r, size, err := streamImage(copied, imageMeta{Applied: 12, Term: 3})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || int64(len(raw)) != size {
		t.Fatalf("%d bytes, foretold %d: %v", len(raw), size, err)
	}
	return dir, raw
}

var sample = map[string]string{
	"MANIFEST-000001": strings.Repeat("m", 511), "000007.sst": strings.Repeat("s", 70_000),
	"a/b": "", "a.c": "x", "a-d/e": strings.Repeat("y", 512), "CURRENT": "MANIFEST-000001\n",
}

func TestAnImageArrivesAsItWas(t *testing.T) {
	_, raw := imageDir(t, sample)
	dir, err := unpackTemp(t.TempDir(), bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	files, err := image.List(dir)
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name))
		if err != nil {
			t.Fatal(err)
		}
		got[f.Name] = string(b)
	}
	if diff := cmp.Diff(sample, got); diff != "" || err != nil {
		t.Fatal(err, diff)
	}
}

func TestADamagedOrCutImageIsRefusedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	_, raw := imageDir(t, map[string]string{"x": "1234567", "y/z": "8"})
	meta, err := readImage(bytes.NewReader(raw), nil)
	if err != nil || meta.Applied != 12 || meta.Term != 3 {
		t.Fatal(meta, err)
	}
	parent := t.TempDir()
	bad := map[string][]byte{"longer": append(bytes.Clone(raw), 0), "empty": nil}
	for i := 0; i < len(raw); i += 37 {
		bad["cut"] = raw[:i]
		checkBadImages(t, parent, bad)
	}
	for _, word := range []string{"1234567", "x\x00", `"applied":12`, "  state/y/z"} {
		i := bytes.Index(raw, []byte(word))
		flipped := bytes.Clone(raw)
		flipped[i] ^= 1
		bad[word] = flipped
	}
	checkBadImages(t, parent, bad)
}

func checkBadImages(t *testing.T, parent string, bad map[string][]byte) {
	t.Helper()
	for name, b := range bad {
		if _, err := unpackTemp(parent, bytes.NewReader(b)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, _ := os.ReadDir(parent); len(left) > 0 {
		t.Fatal(left)
	}
}

func FuzzImage(f *testing.F) {
	_, raw := imageDir(f, map[string]string{"x": "1234567", "y/z": "8"})
	f.Add(raw)
	f.Add(raw[:1000])
	f.Add(bytes.ReplaceAll(raw, []byte("state/y/z"), []byte("state/../")))
	f.Fuzz(func(t *testing.T, b []byte) {
		meta, err := readImage(bytes.NewReader(b), nil)
		if err == nil && meta.Format != imageFormat {
			t.Fatal(meta)
		}
	})
}

func FuzzSealed(f *testing.F) {
	f.Add([]byte(`{"format":1,"crc32c":"00000000","body":{"id":"x"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var id identity
		_ = openSealed("f", b, &id)
	})
}

func FuzzVote(f *testing.F) {
	f.Add([]byte("k"), sealVote([]byte("k"), []byte("value")))
	f.Fuzz(func(t *testing.T, key, stored []byte) {
		if v, err := openVote(key, stored); err == nil && !bytes.Equal(sealVote(key, v), stored) {
			t.Fatalf("%q", stored)
		}
	})
}

func TestADamagedSnapshotIsAnErrorThatNamesIt(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	n := lead(t, conf)
	propose(t, n.Node, "a")
	takeSnapshot(t, n.Node)
	newest, err := n.snaps.newestMeta()
	if err != nil {
		t.Fatal(err)
	}
	n.stop(t)
	path := filepath.Join(conf.snapshotDir(), newest.ID, snapshotFile)
	flip(t, path, `"state_index":`, `"state_index":1`)
	refused(t, lone(t, dir, state.afterCrash()), ErrCorrupt, path)
}

func TestOnlyTwoSnapshotsStayAndHalfOnesAreSwept(t *testing.T) {
	dir, state := t.TempDir(), &memory{}
	conf := lone(t, dir, state)
	n := lead(t, conf)
	for _, c := range numbered(0, 5) {
		propose(t, n.Node, c)
		takeSnapshot(t, n.Node)
	}
	n.stop(t)
	if err := os.MkdirAll(filepath.Join(conf.snapshotDir(), "1-2-3"+tempSuffix), 0o700); err != nil {
		t.Fatal(err)
	}
	n = lead(t, lone(t, dir, state))
	n.stop(t)
	left, err := os.ReadDir(conf.snapshotDir())
	if err != nil || len(left) != snapshotsKept {
		t.Fatal(left, err)
	}
}

func TestRaftsLogIsReadableInSlog(t *testing.T) {
	var out bytes.Buffer
	l := newHCLog(slog.New(slog.NewTextHandler(&out, nil)))
	l.Named("x").With("peer", 7).Info("hello", "servers", hclog.Fmt("%d of %s", 3, "all"))
	l.Debug("hidden")
	if got := out.String(); !strings.Contains(got, `msg="raft: hello" peer=7 servers="3 of all"`) || strings.Contains(got, "hidden") {
		t.Fatal(got)
	}
	if l.IsDebug() || !l.IsInfo() || l.GetLevel() != hclog.Info {
		t.Fatal(l.GetLevel())
	}
}
