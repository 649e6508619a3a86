package filestore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/filestore/s3test"
	"github.com/bursar-accounting/bursar/plugins/plugintest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
)

// serve returns a bucket of a server.
func serve(t *testing.T, s *s3test.Server, change func(*Bucket)) Store {
	t.Helper()
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	b := &Bucket{Endpoint: h.URL, Bucket: "archive", Prefix: "bursar/a", Region: "us-east-1", AccessKey: "k", SecretKey: "s", Timeout: time.Minute}
	if change != nil {
		change(b)
	}
	out, _, err := b.openStore()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// both runs a test with a directory and with a bucket.
func both(t *testing.T, run func(t *testing.T, s Store)) {
	t.Run("directory", func(t *testing.T) { run(t, Directory(t.TempDir())) })
	t.Run("bucket", func(t *testing.T) { run(t, serve(t, &s3test.Server{}, nil)) })
}

func names(t *testing.T, s Store, folder string) string {
	t.Helper()
	list, err := s.List(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestStore_FilesThatArePut_AreReadListedAndRemoved(t *testing.T) {
	both(t, func(t *testing.T, s Store) {
		if got := names(t, s, ""); got != "" {
			t.Error(got)
		}
		want := make([]byte, 3<<20)
		for i := range want {
			want[i] = byte(rand.IntN(256))
		}
		checked := false
		err := s.Put(t.Context(), "year=2024/month=03/a b.parquet", func(w io.Writer) error { _, err := w.Write(want); return err }, func(f *File) error {
			got, err := io.ReadAll(f.Reader())
			checked = bytes.Equal(got, want)
			return err
		})
		if err != nil || !checked {
			t.Fatal(err, checked)
		}
		for _, name := range []string{"year=2024/month=03/_a.json", "b.json", "year=2024/c"} {
			if err := WriteFile(t.Context(), s, name, []byte(name)); err != nil {
				t.Fatal(err)
			}
		}
		if got := names(t, s, ""); got != "b.json year=2024/c year=2024/month=03/_a.json year=2024/month=03/a b.parquet" {
			t.Error(got)
		}
		if got := names(t, s, "year=2024/month=03/"); got != "year=2024/month=03/_a.json year=2024/month=03/a b.parquet" {
			t.Error(got)
		}
		f, err := s.Open(t.Context(), "year=2024/month=03/a b.parquet")
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			at, n := rand.IntN(len(want)), 1+rand.IntN(1000)
			part := make([]byte, n)
			got, err := f.ReadAt(part, int64(at))
			end := min(at+n, len(want))
			if got != end-at || !bytes.Equal(part[:got], want[at:end]) || errors.Is(err, io.EOF) != (got < n) {
				t.Errorf("%d bytes at %d: %d, %v", n, at, got, err)
			}
		}
		f.Close()
		if _, err := ReadFile(t.Context(), s, "b.json", 3); err == nil || !strings.Contains(err.Error(), "has 6 bytes, and at most 3") {
			t.Error(err)
		}
		for range 2 {
			if err := s.Remove(t.Context(), "b.json"); err != nil {
				t.Error(err)
			}
		}
		if _, err := s.Open(t.Context(), "b.json"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	})
}

func TestPut_FailsAnywhere_ShowsNothing(t *testing.T) {
	broken := errors.New("broken")
	both(t, func(t *testing.T, s Store) {
		if err := WriteFile(t.Context(), s, "old", []byte("old")); err != nil {
			t.Fatal(err)
		}
		for name, do := range map[string]func(name string) error{
			"write": func(name string) error {
				return s.Put(t.Context(), name, func(w io.Writer) error { io.WriteString(w, "half"); return broken }, nil)
			},
			"check": func(name string) error {
				return s.Put(t.Context(), name, func(w io.Writer) error { _, err := io.WriteString(w, "all"); return err }, func(*File) error { return broken })
			},
		} {
			if err := do(name); !errors.Is(err, broken) {
				t.Errorf("%s: %v", name, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Put(ctx, "canceled", func(w io.Writer) error { cancel(); _, err := io.WriteString(w, "all"); return err }, nil)
		if err == nil {
			t.Error("a call that has ended put a file")
		}
		if got := names(t, s, ""); got != "old" {
			t.Error(got)
		}
	})
}

func TestDirectory_AttemptsThatWereCutOff_AreRemovedByTheNext(t *testing.T) {
	d := Directory(t.TempDir())
	left := filepath.Join(string(d), ".a.parquet.123.new")
	other := filepath.Join(string(d), ".b.parquet.123.new")
	for _, path := range []string{left, other} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, d, ""); got != "" {
		t.Error(got)
	}
	if err := WriteFile(t.Context(), d, "a.parquet", []byte("whole")); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

func TestDirectory_OneThatIsGoneOrNamesOutside_AreRefused(t *testing.T) {
	d := Directory(filepath.Join(t.TempDir(), "gone"))
	_, listed := d.List(t.Context(), "")
	for _, err := range []error{listed, WriteFile(t.Context(), d, "a", nil)} {
		if err == nil || !strings.Contains(err.Error(), "is not there; is it mounted?") {
			t.Error(err)
		}
	}
	d = Directory(t.TempDir())
	for _, name := range []string{"../a", "/a", "a/../../b"} {
		if err := WriteFile(t.Context(), d, name, nil); err == nil || !strings.Contains(err.Error(), "is not the name of a file") {
			t.Error(name, err)
		}
	}
}

func TestBucket_ServerRefuses_SaysWhatToDo(t *testing.T) {
	for code, want := range map[string]string{
		"NoSuchBucket": "the bucket archive is not there; make it", "SignatureDoesNotMatch": "the server refuses the credentials (SignatureDoesNotMatch: no)",
		"AccessDenied": "mend access_key, secret_key or the rights",
	} {
		s := serve(t, &s3test.Server{Refuse: func(*http.Request) (int, string) {
			return map[bool]int{true: 404, false: 403}[code == "NoSuchBucket"], code
		}}, nil)
		_, listed := s.List(t.Context(), "")
		for _, err := range []error{listed, WriteFile(t.Context(), s, "a", []byte("a"))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
}

func TestBucket_ServerHangs_EndsInTime(t *testing.T) {
	ended := make(chan struct{})
	l := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-ended }))
	defer l.Close()
	defer close(ended)
	b := &Bucket{Endpoint: l.URL, Bucket: "archive", Region: "us-east-1", AccessKey: "k", SecretKey: "s", Timeout: 50 * time.Millisecond}
	s, _, err := b.openStore()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(t.Context(), s, "a", []byte("a")); err == nil || !strings.Contains(err.Error(), "timeout") {
		t.Error(err)
	}
}

func TestBucket_BadSettings_NameTheirPlace(t *testing.T) {
	for setting, b := range map[string]Bucket{
		"endpoint": {Endpoint: "s3.example.org", Bucket: "archive"}, "prefix": {Endpoint: "https://s3.example.org", Bucket: "archive", Prefix: "/a"},
		"ca": {Endpoint: "https://s3.example.org", Bucket: "archive", CA: "/gone"},
	} {
		if _, got, err := b.openStore(); err == nil || got != setting {
			t.Errorf("%s: %s, %v", setting, got, err)
		}
	}
}

func TestCheckDirectory_SaysWhatCannotHoldFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]struct {
		text    string
		warning bool
	}{
		dir: {}, file: {text: "cannot be a directory"}, file + "/below": {text: "cannot be a directory"},
		dir + "/missing": {text: "mount it, or make it with install -d", warning: true},
	} {
		cfg := plugintest.Config(t, "x", fmt.Sprintf("directory = %q", path))
		var s struct {
			Directory hcl.Absolute `hcl:"directory"`
		}
		_ = cfg.Decode(&s)
		CheckDirectory(cfg.Body, s.Directory)
		err := cfg.Err()
		found, _ := errors.AsType[sdk.Diagnostics](err)
		if (err != nil) != (want.text != "") || err != nil && (!strings.Contains(err.Error(), want.text) || found.HasErrors() == want.warning) {
			t.Errorf("%s: %v", path, err)
		}
	}
}
