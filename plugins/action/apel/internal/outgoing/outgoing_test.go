package outgoing_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/outgoing"
)

var (
	at      = time.Unix(1795339261, 500)
	element = regexp.MustCompile(`^[0-9a-f]{8}/[0-9a-f]{14}$`)
)

// files are the names below a folder.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			out = append(out, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAnElementHasTheNameThatReadersLookFor(t *testing.T) {
	dir := t.TempDir()
	name, err := outgoing.Add(dir, at, "k", []byte("text"))
	if err != nil || !element.MatchString(name) || name[:8] != fmt.Sprintf("%08x", 1795339260) || name[9:17] != fmt.Sprintf("%08x", 1795339261) {
		t.Fatal(name, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != "text" || err != nil {
		t.Error(string(got), err)
	}
	if left := files(t, dir); !slices.Equal(left, []string{name}) {
		t.Errorf("%v are there", left)
	}
}

func TestTheSameAgainChangesNothingAndOthersAreAdded(t *testing.T) {
	dir := t.TempDir()
	seen := map[string]bool{}
	for _, key := range []string{"a", "b", "a", "c"} {
		name, err := outgoing.Add(dir, at, key, []byte(key))
		if err != nil {
			t.Fatal(err)
		}
		seen[name] = true
	}
	if len(seen) != 3 || len(files(t, dir)) != 3 {
		t.Errorf("%v", files(t, dir))
	}
}

func TestADirectoryThatIsNotThereIsNotMade(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "none")
	if _, err := outgoing.Add(dir, at, "k", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// The library itself reads what was written, where it is installed.
func TestTheLibraryOfSSMReadsTheElements(t *testing.T) {
	python := ""
	for _, one := range []string{"python3", "/usr/bin/python3"} { // the one of the packages may not be the first
		if exec.Command(one, "-c", "import dirq.QueueSimple").Run() == nil {
			python = one
		}
	}
	if python == "" {
		t.Skip("python3-dirq is not installed")
	}
	dir := t.TempDir()
	if _, err := outgoing.Add(dir, at, "k", []byte("APEL\n")); err != nil {
		t.Fatal(err)
	}
	const script = `
import sys
from dirq.QueueSimple import QueueSimple
q = QueueSimple(sys.argv[1])
for name in q:
    assert q.lock(name)
    sys.stdout.write(q.get(name) if isinstance(q.get(name), str) else q.get(name).decode())
    q.remove(name)
assert q.count() == 0`
	out, err := exec.Command(python, "-c", script, dir).CombinedOutput()
	if err != nil || string(out) != "APEL\n" {
		t.Errorf("%v: %s", err, out)
	}
}
