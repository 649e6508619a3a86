package archive_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/bursar-accounting/bursar/aggregator/internal/archive"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample is what the small archives of these tests hold.
func sample() (archive.Meta, map[string]string) {
	meta := archive.Meta{
		Cluster: "CLUSTER", Incarnation: "LIFE", ClusterVersion: 1, Index: 42, Term: 3, Hash: strings.Repeat("0f", 16),
		Records: 7, Changes: 9, Node: "agg1", Version: "v1", Made: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC),
	}
	return meta, map[string]string{"000005.sst": strings.Repeat("rows ", 1000), "MANIFEST-000001": "manifest", "a/b": "", "a.b": "sorted"}
}

func writeFiles(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func archived(t testing.TB) []byte {
	t.Helper()
	meta, files := sample()
	var b bytes.Buffer
	if err := archive.Write(&b, writeFiles(t, files), meta); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// contents reads an archive to its end.
func contents(r io.Reader) (archive.Meta, map[string]string, error) {
	files := map[string]string{}
	meta, err := archive.Read(r, nil, func(name string, size int64, content io.Reader) error {
		b, err := io.ReadAll(content)
		if err == nil && int64(len(b)) != size {
			return fmt.Errorf("%d bytes, announced were %d", len(b), size)
		}
		files[name] = string(b)
		return err
	})
	return meta, files, err
}

func TestAnArchiveGivesBackWhatWasWritten(t *testing.T) {
	want, wantFiles := sample()
	want.Format, want.Files, want.Bytes = 1, 4, 5000+8+6
	meta, files, err := contents(bytes.NewReader(archived(t)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, meta); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(wantFiles, files); diff != "" {
		t.Error(diff)
	}
	if meta, err := archive.ReadMeta(bytes.NewReader(archived(t))); err != nil || meta != want {
		t.Errorf("%+v, %v", meta, err)
	}
}

func TestUnpackedFilesAreThereOrTheDirectoryIsNot(t *testing.T) {
	whole := archived(t)
	dir := filepath.Join(t.TempDir(), "out")
	if _, err := archive.Unpack(bytes.NewReader(whole), dir, nil); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "a.b")); string(b) != "sorted" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	refuse := errors.New("no")
	for name, do := range map[string]func(dir string) error{
		"cut": func(dir string) error {
			_, err := archive.Unpack(bytes.NewReader(whole[:len(whole)-1]), dir, nil)
			return err
		},
		"refused": func(dir string) error {
			_, err := archive.Unpack(bytes.NewReader(whole), dir, func(archive.Meta) error { return refuse })
			if !errors.Is(err, refuse) || errors.Is(err, archive.ErrDamaged) {
				t.Errorf("the refusal became %v", err)
			}
			return err
		},
	} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := do(dir); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: something is left in %s: %v", name, dir, err)
		}
	}
}

func TestACutArchiveIsRefusedWhereverItIsCut(t *testing.T) {
	whole := archived(t)
	for n := range whole {
		if _, _, err := contents(bytes.NewReader(whole[:n])); !errors.Is(err, archive.ErrDamaged) {
			t.Fatalf("cut to %d of %d bytes: %v", n, len(whole), err)
		}
	}
}

// Some bits may be any: those that say how much memory is needed, and those that
// point to one of several equal places.
func TestNoFlippedBitChangesWhatIsRead(t *testing.T) {
	whole := archived(t)
	wantMeta, want, err := contents(bytes.NewReader(whole))
	if err != nil {
		t.Fatal(err)
	}
	for i := range len(whole) * 8 {
		b := bytes.Clone(whole)
		b[i/8] ^= 1 << (i % 8)
		meta, files, err := contents(bytes.NewReader(b))
		if err == nil && (meta != wantMeta || !cmp.Equal(files, want)) {
			t.Fatalf("bit %d of byte %d went unnoticed", i%8, i/8)
		}
		if err != nil && !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrFormat) {
			t.Fatalf("bit %d of byte %d: %v", i%8, i/8, err)
		}
	}
}

func TestWhatFollowsAnArchiveIsRefused(t *testing.T) {
	whole := archived(t)
	skipped := []byte{0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4}
	for name, tail := range map[string][]byte{"zeros": make([]byte, 3), "a frame to skip": skipped, "itself": whole} {
		_, _, err := contents(bytes.NewReader(append(bytes.Clone(whole), tail...)))
		if !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// member is one member of a forged archive.
type member struct {
	name string
	text string
	kind byte
}

// forge compresses members with checksums that are right.
func forge(t testing.TB, members ...member) []byte {
	t.Helper()
	var plain, packed, sums bytes.Buffer
	tw := tar.NewWriter(&plain)
	for _, m := range members {
		if m.name == "SHA256SUMS" && m.text == "" {
			m.text = sums.String()
		}
		h := &tar.Header{Name: m.name, Size: int64(len(m.text)), Mode: 0o600, Typeflag: tar.TypeReg}
		if m.kind != 0 {
			h.Typeflag, h.Linkname = m.kind, "/etc/passwd"
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(tw, m.text); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256([]byte(m.text)), m.name)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(plain.Bytes()); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return packed.Bytes()
}

func head(files int, size int) member {
	return member{name: "meta.json", text: fmt.Sprintf(`{"format":1,"files":%d,"bytes":%d}`, files, size)}
}

func TestAForgedArchiveIsRefusedWithWhatAndWhere(t *testing.T) {
	sums := member{name: "SHA256SUMS"}
	file := func(name string) member { return member{name: name, text: "x"} }
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"not compressed", []byte("meta.json and more"), "not compressed with zstd"},
		{"empty", nil, "ends too early"},
		{"no meta", forge(t, file("state/a"), sums), `where meta.json should be`},
		{"meta is no JSON", forge(t, member{name: "meta.json", text: "x"}, sums), `"meta.json": invalid character`},
		{"meta without a format", forge(t, member{name: "meta.json", text: "{}"}, sums), `meta.json has no format`},
		{"newer", forge(t, member{name: "meta.json", text: `{"format":2}`}), `unknown format version: 2, this program knows 1`},
		{"no files", forge(t, head(0, 0), sums), `0 files`},
		{"a great meta", forge(t, member{name: "meta.json", text: strings.Repeat(" ", 1<<17)}), `where meta.json should be`},
		{"up", forge(t, head(1, 1), file("state/../../evil"), sums), `"state/../../evil": invalid name`},
		{"absolute", forge(t, head(1, 1), file("/etc/passwd"), sums), `"/etc/passwd": invalid name`},
		{"absolute below", forge(t, head(1, 1), file("state//etc/passwd"), sums), `invalid name`},
		{"dot", forge(t, head(1, 1), file("state/./a"), sums), `invalid name`},
		{"a line feed", forge(t, head(1, 1), file("state/a\nb"), sums), `invalid name`},
		{"long", forge(t, head(1, 1), file("state/"+strings.Repeat("a", 95)), sums), `invalid name`},
		{"a link", forge(t, head(1, 0), member{name: "state/a", kind: tar.TypeSymlink}, sums), `not a plain file`},
		{"a hard link", forge(t, head(1, 0), member{name: "state/a", kind: tar.TypeLink}, sums), `not a plain file`},
		{"a directory", forge(t, head(1, 0), member{name: "state/a", kind: tar.TypeDir}, sums), `not a plain file`},
		{"twice", forge(t, head(2, 2), file("state/a"), file("state/a"), sums), `it comes after "state/a"`},
		{"unsorted", forge(t, head(2, 2), file("state/b"), file("state/a"), sums), `it comes after "state/b"`},
		{"more bytes", forge(t, head(1, 0), file("state/a"), sums), `the files are larger`},
		{"fewer bytes", forge(t, head(1, 2), file("state/a"), sums), `1 bytes less`},
		{"more files", forge(t, head(1, 1), file("state/a"), member{name: "state/b"}, sums), `where SHA256SUMS should be`},
		{"fewer files", forge(t, head(2, 1), file("state/a"), sums), `"SHA256SUMS": invalid name`},
		{"no sums", forge(t, head(1, 1), file("state/a")), `ends too early`},
		{"wrong sums", forge(t, head(1, 1), file("state/a"), member{name: "SHA256SUMS", text: "x"}), `the checksum of line 1 differs`},
		{"behind the sums", forge(t, head(1, 1), file("state/a"), sums, file("state/b")), `something follows`},
	} {
		_, _, err := contents(bytes.NewReader(c.raw))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.name, err, c.want)
		}
		if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrFormat) {
			t.Errorf("%s: %v is none of the package's errors", c.name, err)
		}
	}
}

func TestAnErrorOfTheSourceIsNoDamage(t *testing.T) {
	broken := errors.New("the connection broke")
	whole := archived(t)
	_, _, err := contents(io.MultiReader(bytes.NewReader(whole[:100]), failing{broken}))
	if !errors.Is(err, broken) || errors.Is(err, archive.ErrDamaged) {
		t.Errorf("%v", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestFormat1IsReadForEver(t *testing.T) {
	path := filepath.Join("testdata", "format1.bursar")
	if *update {
		if err := os.WriteFile(path, archived(t), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want, wantFiles := sample()
	want.Format, want.Files, want.Bytes = 1, 4, 5014
	meta, files, err := contents(bytes.NewReader(golden))
	if err != nil || meta != want || !cmp.Equal(files, wantFiles) {
		t.Errorf("%+v %v", meta, err)
	}
	if !bytes.Equal(plain(t, golden), plain(t, archived(t))) {
		t.Error("what is written is not what format 1 was")
	}
}

// plain decompresses: the compression may change, what is compressed may not.
func plain(t *testing.T, raw []byte) []byte {
	t.Helper()
	z, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	b, err := z.DecodeAll(raw, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzRead(f *testing.F) {
	f.Add(archived(f))
	f.Add(forge(f, head(1, 1), member{name: "state/a", text: "x"}, member{name: "SHA256SUMS"}))
	f.Add(forge(f, head(1, 1), member{name: "state/../a", text: "x"}, member{name: "SHA256SUMS"}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		meta, files, err := contents(bytes.NewReader(raw))
		if err != nil {
			if !errors.Is(err, archive.ErrDamaged) && !errors.Is(err, archive.ErrFormat) {
				t.Fatalf("%v is none of the package's errors", err)
			}
			return
		}
		var size int64
		for name, text := range files {
			size += int64(len(text))
			if !filepath.IsLocal(name) {
				t.Fatalf("the name %q", name)
			}
		}
		if meta.Files != len(files) || meta.Bytes != size {
			t.Fatalf("%d files with %d bytes, and it says %d and %d", len(files), size, meta.Files, meta.Bytes)
		}
	})
}
