package store

import (
	"strings"
	"testing"
)

func TestAnImageIsRestoredAsTheCommandAtAnIndex(t *testing.T) {
	b, other := newBox(t), newBox(t)
	for i := range 5 {
		b.post(t0, sample("x", i))
	}
	other.post(t0, sample("mine", 1))
	other.o.FS = b.o.FS
	other.o.Dir = "/other"
	other.s.Close()
	other.open()
	for _, dir := range []string{"/look", "/image"} {
		if err := b.s.Checkpoint(dir); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.s.CheckImage("/look"); err != nil {
		t.Fatal(err)
	}
	if err := other.s.RestoreAt("/image", 3, 7); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if index, term := other.s.Applied(); index != 3 || term != 7 {
			t.Fatalf("entry %d of term %d", index, term)
		}
		_, h := b.s.Hash()
		if _, g := other.s.Hash(); h != g {
			t.Fatal("not the same rows")
		}
		sound(t, other.s)
		other.restart()
	}
}

func TestAnImageThatIsNoneIsNotedBeforeItIsRestored(t *testing.T) {
	b := newBox(t)
	b.post(t0, sample("x", 1))
	if err := b.s.Checkpoint("/image"); err != nil {
		t.Fatal(err)
	}
	names, err := b.o.FS.List("/image")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasPrefix(name, "MANIFEST") {
			if err := b.o.FS.Remove("/image/" + name); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := b.s.CheckImage("/image"); err == nil {
		t.Fatal("no error")
	}
}
