//go:build e2e

package site

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/porttest"
	"github.com/bursar-accounting/bursar/proto/programtest"
)

// Site is the temporary directory with its certificates.
type Site struct {
	t   testing.TB
	Dir string
	Bin string
}

// New makes a site that goes away with the test. It has a file system of its own, in
// memory: an aggregator takes no jobs where a tenth of the disk is not free, and how full
// the machine's is shall not matter. It needs root.
func New(t testing.TB) *Site {
	t.Helper()
	s := &Site{t: t, Dir: t.TempDir()}
	s.SmallDisk(s.Dir, "4g")
	return NewIn(t, s.Dir)
}

// NewIn makes a site in a directory that is the caller's to remove.
func NewIn(t testing.TB, dir string) *Site {
	t.Helper()
	s := &Site{t: t, Dir: dir, Bin: binDir(t)}
	if _, err := identity.CreateCA(s.path("tls"), "test", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	return s
}

// Top is the top of the repository.
func Top() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

func binDir(t testing.TB) string {
	if dir := os.Getenv("BURSAR_BIN"); dir != "" {
		return dir
	}
	dir := filepath.Join(Top(), "bin")
	if _, err := os.Stat(filepath.Join(dir, "bursar")); err != nil {
		t.Fatalf("%v: run make build first", err)
	}
	return dir
}

func (s *Site) path(elem ...string) string { return filepath.Join(append([]string{s.Dir}, elem...)...) }

// Write writes a file below the site's directory and returns its path.
func (s *Site) Write(name, text string) string {
	s.t.Helper()
	return s.writeBelow(name, func(path string) error { return os.WriteFile(path, []byte(text), 0o644) })
}

// Program writes a program below the site's directory, which can be started at once, and
// returns its path.
func (s *Site) Program(name, text string) string {
	s.t.Helper()
	return s.writeBelow(name, func(path string) error { return programtest.WriteProgram(path, text) })
}

// writeBelow has a file below the site's directory written and returns its path.
func (s *Site) writeBelow(name string, write func(path string) error) string {
	s.t.Helper()
	path := s.path(name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = write(path)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return path
}

// Append adds text to a file that there is.
func (s *Site) Append(path, text string) {
	s.t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Cert makes a certificate and returns its files.
func (s *Site) Cert(role identity.Role, name string) identity.Files {
	s.t.Helper()
	return s.Issue(identity.Identity{Role: role, Name: name})
}

// Issue makes a certificate of an identity, which may have roles of a client, and
// returns its files.
func (s *Site) Issue(id identity.Identity) identity.Files {
	s.t.Helper()
	files, err := identity.CreateCert(s.path("tls"), s.path("tls", string(id.Role)), identity.Request{
		Identity: id, Hosts: []string{"127.0.0.1", "localhost"},
	}, time.Now())
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// Address returns a loopback address on which nothing listens, and that no other site on
// this machine gets while the test runs, see [porttest.Free].
func (s *Site) Address() string {
	s.t.Helper()
	return porttest.Free(s.t)
}

// Patience is how long what must come may take. The tests of all packages share a
// machine, which may do much else.
const Patience = 10 * time.Minute

// Eventually waits until ok, and fails the test with what it last said when that takes
// longer than [Patience].
func Eventually(t testing.TB, what string, ok func() (bool, string)) {
	t.Helper()
	last := ""
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		done, state := ok()
		if done {
			return
		}
		last = state
	}
	t.Fatalf("%s: not within %s; last: %s", what, Patience, last)
}

// Eventually is [Eventually] for the test of the site.
func (s *Site) Eventually(what string, ok func() (bool, string)) {
	s.t.Helper()
	Eventually(s.t, what, ok)
}
