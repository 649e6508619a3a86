package archive_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// bench is a store with a archiver.
type bench struct {
	*archive.Archiver

	store *store.Store
	index uint64
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	s, err := store.Open(store.Options{Dir: filepath.Join(dir, "store")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	b := &bench{store: s, Archiver: &archive.Archiver{Store: s, Scratch: filepath.Join(dir, "backup"), Node: "agg1", Version: "v1", Now: time.Now}}
	b.Applied = func() uint64 { return b.index }
	if err := b.Sweep(); err != nil {
		t.Fatal(err)
	}
	b.apply(t, &store.SetClusterCommand{ID: "CLUSTER"})
	return b
}

func (b *bench) apply(t *testing.T, c store.Command) {
	t.Helper()
	b.index++
	if _, err := b.store.Apply(b.index, 1, store.Encode(c)); err != nil {
		t.Fatal(err)
	}
}

// post adds a record.
func (b *bench) post(t *testing.T, id string) {
	t.Helper()
	rows := columns.NewBuilder()
	rows.Add(&columns.Row{Stop: record.None, Record: record.Record{
		ID: id, Start: 1, Stop: 2, Submit: record.None, Components: []record.Component{{Name: "Cores", Amount: 3}},
	}})
	b.apply(t, &store.PostCommand{Rows: rows.Bytes(), Now: 5})
}

func (b *bench) save(t *testing.T) []byte {
	t.Helper()
	image, err := b.Image()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := errors.Join(image.Write(&out), image.Close()); err != nil {
		t.Fatal(err)
	}
	b.empty(t)
	return out.Bytes()
}

// empty checks that nothing is left in the scratch directory.
func (b *bench) empty(t *testing.T) {
	t.Helper()
	if left, err := os.ReadDir(b.Scratch); err != nil || len(left) > 0 {
		t.Errorf("left in the scratch directory: %v, %v", left, err)
	}
}

func (b *bench) count(t *testing.T) uint64 {
	t.Helper()
	v, err := b.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	return v.Count()
}

func TestARestoredStoreIsWhatWasSavedInANewIncarnation(t *testing.T) {
	b := newBench(t)
	b.post(t, "one")
	saved := b.save(t)
	meta, err := archive.Verify(bytes.NewReader(saved))
	_, hash := b.store.Hash()
	if err != nil || meta.Cluster != "CLUSTER" || meta.Records != 1 || meta.Index != 2 || meta.Hash != hash.String() {
		t.Fatalf("%+v, %v", meta, err)
	}
	b.post(t, "two")
	taken, err := b.Take(t.Context(), bytes.NewReader(saved), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.store.Restore(taken.Dir), taken.Close()); err != nil {
		t.Fatal(err)
	}
	b.empty(t)
	if n := b.count(t); n != 1 {
		t.Errorf("%d records", n)
	}
	v, err := b.store.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	life, err := archive.ReadIncarnation(v)
	if err != nil || life != taken.Life || life.Restores != 1 || life.From != 2 || life.ID == "" {
		t.Errorf("%+v, %v", life, err)
	}
}

func TestEachRestoreBeginsAnotherIncarnation(t *testing.T) {
	b := newBench(t)
	lives := map[string]bool{}
	for n := range 3 {
		taken, err := b.Take(t.Context(), bytes.NewReader(b.save(t)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if taken.Life.Restores != n+1 || lives[taken.Life.ID] {
			t.Errorf("restore %d: %+v", n, taken.Life)
		}
		lives[taken.Life.ID] = true
		if err := errors.Join(b.store.Restore(taken.Dir), taken.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// unpacked is an archive's image, to be changed and archived again.
func unpacked(t *testing.T, saved []byte) (string, archive.Meta) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	meta, err := archive.Unpack(bytes.NewReader(saved), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return dir, meta
}

func TestAnArchiveThatLiesAboutItsStoreIsRefused(t *testing.T) {
	b := newBench(t)
	b.post(t, "one")
	saved := b.save(t)
	for name, lie := range map[string]func(*archive.Meta){
		"cluster":     func(m *archive.Meta) { m.Cluster = "OTHER" },
		"incarnation": func(m *archive.Meta) { m.Incarnation = "OTHER" },
		"version":     func(m *archive.Meta) { m.ClusterVersion++ },
		"index":       func(m *archive.Meta) { m.Index++ },
		"hash":        func(m *archive.Meta) { m.Hash = strings.Repeat("0", 32) },
		"records":     func(m *archive.Meta) { m.Records++ },
	} {
		dir, meta := unpacked(t, saved)
		lie(&meta)
		var forged bytes.Buffer
		if err := archive.Write(&forged, dir, meta); err != nil {
			t.Fatal(err)
		}
		if _, err := b.Take(t.Context(), &forged, nil); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.empty(t)
}

func TestAnArchiveOfADamagedStoreIsRefused(t *testing.T) {
	b := newBench(t)
	b.post(t, "one")
	dir, meta := unpacked(t, b.save(t))
	wals, err := filepath.Glob(filepath.Join(dir, "*.log"))
	if err != nil || len(wals) == 0 {
		t.Fatalf("no log in the image: %v", err)
	}
	for _, path := range wals {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(raw) > 0 {
			raw[len(raw)/2] ^= 1
		}
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var forged bytes.Buffer
	if err := archive.Write(&forged, dir, meta); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Take(t.Context(), &forged, nil); !errors.Is(err, archive.ErrDamaged) {
		t.Error(err)
	}
	b.empty(t)
}

func TestAnArchiveThatIsNoStoreIsRefused(t *testing.T) {
	b := newBench(t)
	if _, err := b.Take(t.Context(), bytes.NewReader(archived(t)), nil); !errors.Is(err, archive.ErrDamaged) {
		t.Error(err)
	}
	b.empty(t)
}

func TestAnArchiveThatDoesNotFitIsRefusedBeforeItIsUnpacked(t *testing.T) {
	b := newBench(t)
	saved := b.save(t)
	b.Free = func() (int64, error) { return 10, nil }
	if _, err := b.Take(t.Context(), bytes.NewReader(saved), nil); !errors.Is(err, archive.ErrNoSpace) {
		t.Error(err)
	}
	b.empty(t)
}

func TestTakingEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Take(ctx, bytes.NewReader(b.save(t)), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.empty(t)
}

type installer struct {
	*bench

	err error
}

func (i installer) Install(_ context.Context, dir string) error {
	if i.err != nil {
		return i.err
	}
	return i.store.Restore(dir)
}

func TestARestoreGoesIntoTheClusterThatWasSavedAndNoOther(t *testing.T) {
	b := newBench(t)
	saved := b.save(t)
	if done, err := b.Restore(t.Context(), bytes.NewReader(saved), "OTHER", installer{bench: b}); !errors.Is(err, archive.ErrForeign) || done != nil {
		t.Errorf("%+v, %v", done, err)
	}
	for _, cluster := range []string{"CLUSTER", ""} {
		if done, err := b.Restore(t.Context(), bytes.NewReader(saved), cluster, installer{bench: b}); err != nil || done.Meta.Index != 1 {
			t.Errorf("into %q: %+v, %v", cluster, done, err)
		}
	}
	b.empty(t)
}

func TestARestoreThatMayHaveHappenedSaysWhatItWas(t *testing.T) {
	b := newBench(t)
	unknown := errors.New("the outcome is not known")
	done, err := b.Restore(t.Context(), bytes.NewReader(b.save(t)), "", installer{b, unknown})
	if !errors.Is(err, unknown) || done == nil || done.Life.ID == "" {
		t.Errorf("%+v, %v", done, err)
	}
	b.empty(t)
}
