package store

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/racetest"
	"github.com/bursar-accounting/bursar/proto/record"
)

var damages = flag.Int("damages", 70, "how many damages a killed store gets; 0 is one for each byte of each small file")

// smallFile bounds the files of which every byte is flipped.
const smallFile = 32 << 10

// killed is what a process that was killed left on disk, and the state hash of
// each index of the log that led to it.
func killed(t *testing.T, still bool) (fs *vfs.MemFS, want []Hash) {
	fs = vfs.NewCrashableMem()
	b := &box{t: t, o: Options{Dir: "/store", FS: fs, MemTableBytes: 64 << 10, still: still}, agent: map[string]*Cursor{}}
	b.open()
	want = []Hash{{}}
	note := func() {
		for len(want) <= len(b.log) {
			_, h := b.s.Hash()
			want = append(want, h)
		}
	}
	next, rng := 0, rand.New(rand.NewPCG(5, 6))
	for step := range 14 {
		now := t0 + record.Time(step)*record.Second
		var ws []record.Write
		for range 40 + 1000*(step%2) {
			ws = append(ws, put(sample(fmt.Sprintf("job-%d", next), next), int64(step+1)))
			next++
		}
		for range 20 { // others get another version
			k := rng.IntN(next)
			ws = append(ws, put(sample(fmt.Sprintf("job-%d", k), k+step), int64(step+1)))
		}
		b.ingest("head1", now, ws...)
		note()
		open := sample(fmt.Sprint("open-", step), step)
		open.Stop = record.None
		b.post(now, open)
		note()
		b.apply(&DeleteCommand{IDs: []string{fmt.Sprintf("job-%d", rng.IntN(next))}, Now: now})
		note()
		if step%4 == 3 {
			if err := b.s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	fs = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rng})
	if err := b.s.Close(); err != nil {
		t.Fatal(err)
	}
	return fs, want
}

// filesBelow lists files with their contents.
func filesBelow(t *testing.T, fs vfs.FS, dir string, list map[string][]byte) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		p := path.Join(dir, name)
		info, err := fs.Stat(p)
		if errors.Is(err, os.ErrNotExist) { // Pebble removes what is obsolete meanwhile
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			filesBelow(t, fs, p, list)
			continue
		}
		f, err := fs.Open(p)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if list[p], err = io.ReadAll(f); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// damage is a file with other contents.
type damage struct {
	file string
	at   int
	flip byte // 0: cut there
}

func (d damage) String() string {
	return fmt.Sprintf("%s at %d ^ %#x", path.Base(d.file), d.at, d.flip)
}

func (d damage) of(b []byte) []byte {
	if d.flip == 0 {
		return b[:d.at]
	}
	b = slices.Clone(b)
	b[d.at] ^= d.flip
	return b
}

// damagesOf are the damages to be tried.
func damagesOf(files map[string][]byte, rng *rand.Rand) (list []damage) {
	for _, name := range sortedKeys(files) {
		n := len(files[name])
		for at := 0; at < n; at += 100 / racetest.Few(100) {
			if n <= smallFile || *damages > 0 {
				list = append(list, damage{name, at, byte(1 + rng.IntN(255))})
			}
		}
		for range min(n, racetest.Few(40)) {
			list = append(list, damage{file: name, at: rng.IntN(n)})
		}
	}
	if *damages == 0 {
		rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		return list[:racetest.Few(racetest.Few(racetest.Few(len(list))))] // one goroutine reads them
	}
	// The files get the same share, whatever their size.
	byFile := map[string][]damage{}
	for _, d := range list {
		byFile[d.file] = append(byFile[d.file], d)
	}
	list = nil
	for _, name := range sortedKeys(byFile) {
		for range max(1, *damages/len(byFile)) {
			list = append(list, byFile[name][rng.IntN(len(byFile[name]))])
		}
	}
	return list
}

// build puts files into a file system of their own.
func build(t *testing.T, files map[string][]byte, d damage) vfs.FS {
	t.Helper()
	fs := vfs.NewMem()
	for name, b := range files {
		if name == d.file {
			b = d.of(b)
		}
		if err := fs.MkdirAll(path.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := writeSynced(fs, name, string(b)); err != nil {
			t.Fatal(err)
		}
	}
	return fs
}

// A start either has every record that the log up to its index says, or refuses
// with an error that the daemon knows a remedy for.
func TestADamagedFileOfAKilledStoreHidesNothing(t *testing.T) {
	t.Parallel()
	outcomes := map[string]int{}
	for _, still := range []bool{true, false} {
		fs, want := killed(t, still)
		files := map[string][]byte{}
		filesBelow(t, fs, "/store", files)
		for _, d := range damagesOf(files, rand.New(rand.NewPCG(7, 8))) {
			kind := strings.TrimRight(path.Base(d.file), "0123456789")
			if i := strings.LastIndexByte(kind, '.'); i >= 0 {
				kind = kind[i:]
			}
			outcomes[kind+" "+tryDamaged(t, build(t, files, d), d, want)]++
		}
	}
	for _, o := range sortedKeys(outcomes) {
		t.Log(o, outcomes[o])
	}
	if outcomes["MANIFEST- refused by what was read"] == 0 && !(racetest.Enabled && testing.Short()) { // there only some are tried
		t.Error("no damage of the manifest hid anything: the test proves nothing")
	}
}

func tryDamaged(t *testing.T, fs vfs.FS, d damage, want []Hash) string {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%v: panic: %v", d, p)
		}
	}()
	s, err := Open(Options{Dir: "/store", FS: fs, MemTableBytes: 64 << 10})
	if err != nil {
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%v: the daemon knows no remedy: %v", d, err)
		}
		if strings.HasPrefix(err.Error(), "store: open") {
			return "refused"
		}
		return "refused by what was read"
	}
	defer s.Close()
	index, h := s.Hash()
	if h != want[index] {
		t.Errorf("%v: the state at %d is not that of the log", d, index)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	shown := uint64(0)
	if err := v.Query(t.Context(), Query{}, func(*columns.Row) error { shown++; return nil }); err == nil && shown != v.Count() {
		t.Errorf("%v: %d records are shown of %d", d, shown, v.Count())
	}
	switch found, err := v.Check(t.Context()); {
	case errors.Is(err, ErrCorrupt):
		return "opened, an error when it is read"
	case err != nil || len(found) > 0 && !strings.Contains(found[0], "does not read"):
		t.Errorf("%v: %v %v", d, found, err)
	case len(found) > 0:
		return "opened, an error when it is read"
	}
	return "opened, whole"
}

// pairsOf are the values of a table.
func pairsOf(t *testing.T, b *box, table byte) map[string][]byte {
	t.Helper()
	pairs := map[string][]byte{}
	if err := scanPrefix(b.s.disk.db, []byte{table}, func(key, value []byte) error {
		pairs[string(key)] = slices.Clone(value)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return pairs
}

func put0(t *testing.T, b *box, key string, value []byte) {
	t.Helper()
	err := b.s.disk.db.Set([]byte(key), value, nil)
	if value == nil {
		err = b.s.disk.db.Delete([]byte(key), nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// some is a store with something in every table that a start looks at.
func some(t *testing.T) *box {
	b := newBox(t)
	var ws []record.Write
	for i := range 1500 {
		r := sample(fmt.Sprint("j", i), i)
		if i%50 == 0 {
			r.Stop = record.None
		}
		ws = append(ws, put(r, 1))
	}
	b.ingest("head1", t0, ws...)
	b.ingest("head1", t0, put(sample("j1", 7), 2), put(sample("j2", 8), 2))
	b.post(t0, sample("p1", 1), sample("p2", 2))
	b.apply(&DeleteCommand{IDs: []string{"j3", "p2"}, By: "me", Now: t0})
	b.apply(&DocumentCommand{Sets: []Document{{Space: "s", Key: "k", Value: []byte("v")}}})
	return b
}

func TestOpen_SumsOfAnEarlierEntry_AreDamage(t *testing.T) {
	for _, s := range []*summed{nil, {index: 1}, {sums: sums{Floor: 1}}} {
		b := some(t)
		var earlier []byte
		if s != nil {
			if s.index == 0 { // with a floor, and none of the feed
				s.index, _ = b.s.Applied()
			}
			earlier = encodeValue(sumsFormat, s)
		}
		put0(t, b, string(sumsKey), earlier)
		if err := b.s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(b.o); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "the sums are of entry") {
			t.Errorf("%x: %v", earlier, err)
		}
	}
}

// Whatever single value is gone, the store does not open.
func TestAValueThatIsMissingKeepsTheStoreFromOpening(t *testing.T) {
	b := some(t)
	tables := []byte{tableBlock, tableZone, tableSum, tableWaiting, tableOpen, tableIndex, tableDict, tableCursor, tableCounter, tableDocument, tableState}
	rng := rand.New(rand.NewPCG(9, 9))
	for _, table := range tables {
		pairs := pairsOf(t, b, table)
		if len(pairs) == 0 {
			t.Fatalf("table %c is empty", table)
		}
		keys := sortedKeys(pairs)
		key := keys[rng.IntN(len(keys))]
		put0(t, b, key, nil)
		if err := b.s.Close(); err != nil {
			t.Fatal(err)
		}
		s, err := Open(b.o)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("table %c without %q: %v", table, key, err)
		}
		if err == nil {
			b.s = s
		} else {
			b = some(t)
		}
	}
}
