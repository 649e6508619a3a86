package store_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
)

// checkpoint makes an image of a store with a few records.
func checkpoint(t *testing.T) (*store.Store, string) {
	t.Helper()
	s, err := store.Open(store.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	for i, c := range []store.Command{
		&store.SetClusterCommand{ID: "cluster"},
		&store.DocumentCommand{Sets: []store.Document{{Space: "a", Key: "b", Value: []byte("c")}}},
	} {
		if _, err := s.Apply(uint64(i+1), 3, store.Encode(c)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "image")
	if err := s.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func files(t *testing.T, dir string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e.Name()+" "+info.ModTime().String())
	}
	return list
}

func TestAnImageSaysWhatItHoldsAndStaysUntouched(t *testing.T) {
	s, dir := checkpoint(t)
	before := files(t, dir)
	m, err := store.OpenImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, hash := s.Hash()
	want := store.Summary{Cluster: "cluster", Index: 2, Term: 3, Hash: hash}
	if got := m.Summary(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if b, ok, err := m.Document("a", "b"); string(b) != "c" || !ok || err != nil {
		t.Errorf("document: %q %v %v", b, ok, err)
	}
	if wrong, err := m.Check(t.Context()); len(wrong) > 0 || err != nil {
		t.Errorf("check: %v %v", wrong, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if after := files(t, dir); !slices.Equal(before, after) {
		t.Errorf("the image has changed: %v, was %v", after, before)
	}
}

func TestAChangedImageHoldsTheChangeAndChecks(t *testing.T) {
	s, dir := checkpoint(t)
	if _, err := store.ChangeImage(dir, &store.DocumentCommand{Sets: []store.Document{{Space: "a", Key: "b", Value: []byte("new")}}}); err != nil {
		t.Fatal(err)
	}
	m, err := store.OpenImage(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Summary(); got.Index != 3 || got.Term != 3 {
		t.Errorf("the change is no command of its own: %+v", got)
	}
	if wrong, err := m.Check(t.Context()); len(wrong) > 0 || err != nil {
		t.Errorf("check: %v %v", wrong, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(dir); err != nil {
		t.Fatal(err)
	}
	v, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if b, _, err := v.Document("a", "b"); string(b) != "new" || err != nil {
		t.Errorf("document: %q %v", b, err)
	}
}

func TestWhatIsNoImageIsRefused(t *testing.T) {
	empty := t.TempDir()
	if m, err := store.OpenImage(empty); err == nil {
		m.Close()
		t.Error("an empty directory was taken for an image")
	}
	if left := files(t, empty); len(left) > 0 {
		t.Errorf("files were made: %v", left)
	}
	if _, err := store.OpenImage(filepath.Join(empty, "none")); err == nil {
		t.Error("a directory that is not there was taken for an image")
	}
}
