package seen

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// desk opens files of ids for a test.
type desk struct {
	t   testing.TB
	now time.Time
}

func (d *desk) open(path string) *IDs {
	d.t.Helper()
	k, err := Open(path, Options{Remember: 60 * 24 * time.Hour, Now: func() time.Time { return d.now }, Log: slog.New(slog.DiscardHandler), NoSync: true})
	if err != nil {
		d.t.Fatal(err)
	}
	return k
}

func newDesk(t testing.TB) (*desk, string) {
	return &desk{t: t, now: time.Date(2026, 3, 15, 0, 0, 0, 0, time.UTC)}, filepath.Join(t.TempDir(), "known.db")
}

func (d *desk) put(k *IDs, ids ...string) []byte {
	d.t.Helper()
	c, err := k.Put(ids)
	if err != nil {
		d.t.Fatal(err)
	}
	return c.Bytes()
}

func (d *desk) resume(k *IDs, checkpoint []byte) bool {
	d.t.Helper()
	whole, err := k.Resume(checkpoint)
	if err != nil {
		d.t.Fatal(err)
	}
	return whole
}

// want checks which of the ids are known.
func (d *desk) want(k *IDs, asked []string, known ...string) {
	d.t.Helper()
	got, err := k.Known(asked)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, id := range asked {
		if got[id] != slices.Contains(known, id) {
			d.t.Errorf("known %v, want %v of %v", got, known, asked)
			return
		}
	}
}

func TestWhatTheBufferHasIsKnownAndNothingElse(t *testing.T) {
	all := []string{"a", "b", "c"}
	for name, c := range map[string]struct {
		checkpoint func(first, second []byte) []byte
		whole      bool
		known      []string
	}{
		"the buffer has all":            {func(_, second []byte) []byte { return second }, true, []string{"a", "b"}},
		"died before the buffer had it": {func(first, _ []byte) []byte { return first }, false, []string{"a"}},
		"the buffer is lost":            {func(_, _ []byte) []byte { return nil }, false, nil},
		"the buffer is of another file": {func(_, _ []byte) []byte { return Checkpoint{File: FileID{1}, Batch: 2}.Bytes() }, false, nil},
		"the checkpoint is odd":         {func(_, _ []byte) []byte { return []byte("odd") }, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, path := newDesk(t)
			k := d.open(path)
			d.resume(k, nil)
			first, second := d.put(k, "a"), d.put(k, "b")
			for range 3 { // it stays so, however often it starts
				if err := k.Close(); err != nil {
					t.Fatal(err)
				}
				k = d.open(path)
				if whole := d.resume(k, c.checkpoint(first, second)); whole != c.whole {
					t.Errorf("whole is %v", whole)
				}
				d.want(k, all, c.known...)
			}
			third := d.put(k, all...)
			d.resume(k, third)
			d.want(k, all, all...)
			k.Close()
		})
	}
}

func TestAFileThatWasLostKnowsNothingAndGoesOnBehindTheBuffer(t *testing.T) {
	d, path := newDesk(t)
	k := d.open(path)
	d.put(k, "a")
	copied := filepath.Join(t.TempDir(), "old.db")
	k.Close()
	text, err := os.ReadFile(path)
	if err != nil || os.WriteFile(copied, text, 0o600) != nil {
		t.Fatal(err)
	}
	k = d.open(path)
	d.put(k, "b")
	ahead := d.put(k, "c")
	k.Close()
	old := d.open(copied) // an old copy of the file, and the buffer of today
	defer old.Close()
	if !d.resume(old, ahead) {
		t.Error("the agent is told again where it is")
	}
	d.want(old, []string{"a", "b", "c"}, "a")
	if c, _ := ParseCheckpoint(d.put(old, "d")); c.Batch != 4 {
		t.Errorf("the next batch has the number %d", c.Batch)
	}
}

func TestMonthsAreForgottenWhole(t *testing.T) {
	d, path := newDesk(t)
	k := d.open(path)
	defer k.Close()
	d.put(k, "march")
	d.now = d.now.AddDate(0, 1, 0)
	d.put(k, "april")
	d.now = time.Date(2026, 5, 30, 23, 59, 0, 0, time.UTC) // 60 days behind the end of March
	d.put(k, "may")
	d.want(k, []string{"march", "april", "may"}, "march", "april", "may")
	d.now = time.Date(2026, 5, 31, 0, 1, 0, 0, time.UTC)
	d.put(k, "late")
	d.want(k, []string{"march", "april", "may"}, "april", "may")
}

func TestAFileThatCannotBeReadIsPutAside(t *testing.T) {
	d, path := newDesk(t)
	if err := os.WriteFile(path, []byte("this is no file of ids, and long enough to be looked at as one"), 0o600); err != nil {
		t.Fatal(err)
	}
	k := d.open(path)
	defer k.Close()
	d.put(k, "a")
	d.want(k, []string{"a"}, "a")
	if _, err := os.Stat(path + ".damaged"); err != nil {
		t.Error(err)
	}
}

// TestIdsAreKnownAsAPlainListWouldKnowThem compares with the obvious way over random
// crashes, losses and old copies of the buffer.
func TestIdsAreKnownAsAPlainListWouldKnowThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, path := newDesk(t)
		k := d.open(filepath.Join(filepath.Dir(path), fmt.Sprint(rapid.Uint64().Draw(rt, "file"))))
		defer k.Close()
		type state struct {
			checkpoint []byte
			ids        []string
		}
		history := []state{{}} // of the buffer
		for range rapid.IntRange(1, 30).Draw(rt, "steps") {
			now := history[len(history)-1]
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0, 1:
				id := fmt.Sprint(rapid.IntRange(0, 9).Draw(rt, "id"))
				if slices.Contains(now.ids, id) {
					continue // no one puts what is known
				}
				checkpoint := d.put(k, id)
				if rapid.Bool().Draw(rt, "it gets there") {
					history = append(history, state{checkpoint, append(slices.Clone(now.ids), id)})
					continue
				}
				d.resume(k, now.checkpoint)
			case 2:
				d.resume(k, now.checkpoint)
			case 3: // an old copy
				history = history[:1+rapid.IntRange(0, len(history)-1).Draw(rt, "copy")]
				d.resume(k, history[len(history)-1].checkpoint)
			}
			now = history[len(history)-1]
			for i := range 10 {
				d.want(k, []string{fmt.Sprint(i)}, now.ids...)
			}
		}
	})
}

func TestACheckpointOfTheFirstReleaseIsRead(t *testing.T) {
	c := Checkpoint{File: FileID{0xab, 15: 0xcd}, Batch: 258}
	const golden = "\x01\xab\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xcd\x00\x00\x00\x00\x00\x00\x01\x02"
	if got := string(c.Bytes()); got != golden {
		t.Errorf("%q", got)
	}
	if got, ok := ParseCheckpoint([]byte(golden)); !ok || got != c {
		t.Errorf("%+v %v", got, ok)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add(Checkpoint{Batch: 1}.Bytes())
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, ok := ParseCheckpoint(b)
		if ok && string(c.Bytes()) != string(b) {
			t.Errorf("%x becomes %x", b, c.Bytes())
		}
	})
}

func FuzzParseSpans(f *testing.F) {
	f.Add(spansBytes([]span{{1, 2}, {4, 4}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if dead, ok := parseSpans(b); ok && string(spansBytes(dead)) != string(b) {
			t.Errorf("%x becomes %v", b, dead)
		}
	})
}
