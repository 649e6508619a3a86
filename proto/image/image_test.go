package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bursar-accounting/bursar/proto/image"
)

const meta = `{"format":1}`

var sample = map[string]string{"000007.sst": strings.Repeat("s", 70_000), "a/b": "", "a.c": "x", "CURRENT": "MANIFEST\n"}

// written is an image of sample, and its size as [image.Size] says before.
func written(t testing.TB, format tar.Format) (raw []byte, size int64) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sample {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	files, err := image.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := image.Write(&b, format, dir, []byte(meta), files); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), image.Size([]byte(meta), files)
}

func begin(size int64) func([]byte) (image.Content, error) {
	return func(raw []byte) (image.Content, error) {
		if string(raw) != meta {
			return image.Content{}, errors.New("other meta data")
		}
		return image.Content{Files: len(sample), Bytes: size}, nil
	}
}

func TestRead_EitherHeader_GivesBackTheFiles(t *testing.T) {
	for _, format := range []tar.Format{tar.FormatUSTAR, tar.FormatGNU} {
		raw, size := written(t, format)
		if int64(len(raw)) != size {
			t.Errorf("%v: %d bytes, foretold %d", format, len(raw), size)
		}
		dir, got := t.TempDir(), map[string]string{}
		if err := image.Read(bytes.NewReader(raw), begin(-1), image.Into(dir)); err != nil {
			t.Fatalf("%v: %v", format, err)
		}
		files, err := image.List(dir)
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(dir, f.Name))
			if err != nil {
				t.Error(err)
			}
			got[f.Name] = string(b)
		}
		if diff := cmp.Diff(sample, got); diff != "" || err != nil {
			t.Error(format, err, diff)
		}
		if b, err := image.ReadMeta(bytes.NewReader(raw)); string(b) != meta || err != nil {
			t.Errorf("%v: %q, %v", format, b, err)
		}
	}
}

func TestRead_FullDisk_IsTheCallersError(t *testing.T) {
	raw, _ := written(t, tar.FormatGNU)
	err := image.Read(bytes.NewReader(raw), begin(-1), func(string, int64, io.Reader) error { return syscall.ENOSPC })
	if _, ours := errors.AsType[image.Caller](err); !ours || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}

func TestRead_CutOrFlipped_IsRefusedThoughNothingIsKept(t *testing.T) {
	raw, _ := written(t, tar.FormatUSTAR)
	for i := 0; i < len(raw); i += 509 {
		if err := image.Read(bytes.NewReader(raw[:i]), begin(-1), nil); err == nil {
			t.Errorf("cut to %d of %d bytes went unnoticed", i, len(raw))
		}
	}
	for _, word := range []string{"format", "000007", "ssss", "  state/a/b"} {
		flipped := bytes.Clone(raw)
		flipped[bytes.Index(raw, []byte(word))] ^= 1
		if err := image.Read(bytes.NewReader(flipped), begin(-1), nil); err == nil {
			t.Errorf("a flipped bit in %q went unnoticed", word)
		}
	}
	for want, size := range map[string]int64{"larger than meta.json says": 70_000, "1 bytes less": 70_011} {
		if err := image.Read(bytes.NewReader(raw), begin(size), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d bytes announced: %v", size, err)
		}
	}
}
