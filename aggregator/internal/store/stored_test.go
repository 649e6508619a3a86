package store

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/google/go-cmp/cmp"
)

// A whole store as format 1 has it, and its state hash. Both are written with
// -update; once released they stay.
const (
	storedDir  = "testdata/store-1.tar.gz"
	storedHash = "testdata/store-1.hash"
)

// everyTable has all tables with something in them.
const everyTable = "byporhmdexcwaqgkstnvz"

func TestAStoreThatWasReleasedOpensWithAllThatIsInIt(t *testing.T) {
	if *update {
		writeStored(t)
	}
	dir := t.TempDir()
	unpack(t, dir)
	want, err := os.ReadFile(storedHash)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	sound(t, s)
	if _, h := s.Hash(); h.String() != string(want) {
		t.Errorf("state hash %s, want %s", h, want)
	}
	b := &box{t: t, s: s}
	row, ok := b.get("j7")
	if diff := cmp.Diff(sample("j7", 7), row.Record); !ok || diff != "" {
		t.Error(diff)
	}
	b.view(func(v *View) { tablesOf(t, v) })
}

func tablesOf(t *testing.T, v *View) {
	t.Helper()
	for _, table := range []byte(everyTable) {
		n := 0
		err := scanPrefix(v.snap, []byte{table}, func(_, _ []byte) error { n++; return nil })
		if n == 0 || err != nil {
			t.Errorf("nothing under %q, %v", table, err)
		}
	}
}

// writeStored makes the store and packs it.
func writeStored(t *testing.T) {
	t.Helper()
	b := newBox(t)
	b.o.FS = nil
	b.o.Dir = t.TempDir()
	if err := b.s.Close(); err != nil {
		t.Fatal(err)
	}
	b.open()
	fillEveryTable(b)
	_, h := b.s.Hash()
	if err := b.s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(storedHash, []byte(h.String()), 0o600), pack(b.o.Dir)); err != nil {
		t.Fatal(err)
	}
	b.open()
}

func fillEveryTable(b *box) {
	var bulk []record.Write
	for i := range 1100 {
		bulk = append(bulk, put(sample(fmt.Sprint("j", i), i), int64(i+1)))
	}
	b.ingest("head1", t0, bulk...)
	if err := b.s.Compact(); err != nil { // this much lies in tables, the rest in the log
		b.t.Fatal(err)
	}
	open := sample("open", 1)
	open.Stop = record.None
	b.ingest("head1", t0, put(open, 1), put(sample("late", 3), 1), put(sample("j3", 4), 2000))
	other := put(sample("j5", 50), 1)
	other.Origin = record.Origin{Agent: "head1", Type: "epilog", Label: "e"}
	b.ingest("head1", t0, other, record.Write{ID: "waits", Op: record.OpStop, Origin: record.Pushed, Rank: record.RankPush,
		Version: record.Version{Ended: true, Observed: 1}, Stop: t0})
	b.apply(&IngestCommand{Agent: "head2", Epoch: Epoch{2}, From: 1, To: 3, Begin: &Begin{}, Now: t0,
		Quarantine: []Quarantined{{Source: slurm, ID: "q", Reason: "mapping", Raw: []byte("{}")}}, Gaps: []Gap{goldenGap}, Facts: []Fact{*goldenFact()},
		Watermarks: []Watermark{{slurm, t0}}, Checkpoints: []Checkpoint{{slurm, []byte("c")}}})
	b.apply(&StageCommand{Upload: Upload{1}, Part: 0, Rows: postRows(sample("staged", 1)), Now: t0})
	b.apply(&DeleteCommand{IDs: []string{"j9"}, By: "me", Now: t0})
	b.apply(&DocumentCommand{Sets: []Document{{"space", "key", []byte("value")}}})
	b.apply(&SetClusterCommand{ID: "c"})
}

func pack(dir string) error {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	err := archive.AddFS(os.DirFS(dir))
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		return err
	}
	return os.WriteFile(storedDir, out.Bytes(), 0o600)
}

func unpack(t *testing.T, dir string) {
	t.Helper()
	packed, err := os.ReadFile(storedDir)
	if err != nil {
		t.Fatal(err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(zip)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err == nil {
			err = unpackFile(filepath.Join(dir, filepath.FromSlash(h.Name)), h.Typeflag == tar.TypeDir, archive)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func unpackFile(path string, dir bool, content io.Reader) error {
	if dir {
		return os.MkdirAll(path, 0o700)
	}
	b, err := io.ReadAll(content)
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, b, 0o600))
}
