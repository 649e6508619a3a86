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
	"strings"
	"syscall"
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
	name, err := queue(dir).Add(at, "k", []byte("text"))
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
		name, err := queue(dir).Add(at, key, []byte(key))
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
	if _, err := queue(dir).Add(at, "k", nil); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func queue(dir string) outgoing.Queue { return outgoing.Queue{Path: dir, Mode: 0o770} }

// ssm is a user and group of this machine that are not ours.
const ssm = 65534

// The library itself takes what was written, where it is installed, as another user who
// shares only a group, and whatever the umask is.
func TestTheLibraryOfSSMTakesTheElements(t *testing.T) {
	python := ""
	for _, one := range []string{"python3", "/usr/bin/python3"} { // the one of the packages may not be the first
		if exec.Command(one, "-c", "import dirq.QueueSimple").Run() == nil {
			python = one
		}
	}
	if python == "" {
		t.Skip("python3-dirq is not installed")
	}
	const script = `
import sys
from dirq.QueueSimple import QueueSimple
q = QueueSimple(sys.argv[1])
for name in q:
    assert q.lock(name)
    sys.stdout.write(q.get(name) if isinstance(q.get(name), str) else q.get(name).decode())
    q.remove(name)
q.purge(30)
assert q.count() == 0`
	for _, umask := range []int{0o022, 0o077} {
		dir, err := os.MkdirTemp("/tmp", "queue") // which others may enter
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		cmd := exec.Command(python, "-c", script, dir)
		if os.Geteuid() == 0 {
			if err := errors.Join(os.Chown(dir, 0, ssm), os.Chmod(dir, 0o770|fs.ModeSetgid)); err != nil {
				t.Fatal(err)
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ssm, Gid: ssm}}
		}
		before := syscall.Umask(umask)
		_, err = queue(dir).Add(at, "k", []byte("APEL\n"))
		if now := syscall.Umask(before); err != nil || now != umask {
			t.Fatalf("%v, the umask is %03o", err, now)
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "APEL\n" {
			t.Errorf("umask %03o: %v: %s", umask, err, out)
		}
	}
}

// Each way in which SSM is kept out is said, and what it says is what happens.
func TestCheck_SaysWhatSSMCannotDo(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make folders of other users")
	}
	for name, c := range map[string]struct {
		uid, gid int
		mode     fs.FileMode
		queue    outgoing.Queue
		want     string
	}{
		"the group of the queue":            {ssm, ssm, 0o770 | fs.ModeSetgid, outgoing.Queue{Mode: 0o770}, ""},
		"a group that is named":             {ssm, 0, 0o770, outgoing.Queue{Mode: 0o770, Group: fmt.Sprint(ssm), User: "nobody"}, ""},
		"all may":                           {ssm, 0, 0o777 | fs.ModeSetgid, outgoing.Queue{Mode: 0o777, User: "nobody"}, ""},
		"folders of another group":          {ssm, 0, 0o770 | fs.ModeSetgid, outgoing.Queue{Mode: 0o770, User: "nobody"}, "cannot take messages: new folders are 0770 root:root"},
		"folders for the owner alone":       {ssm, ssm, 0o770 | fs.ModeSetgid, outgoing.Queue{Mode: 0o700, User: "nobody"}, "cannot take messages: new folders are 0700"},
		"folders to look at":                {ssm, ssm, 0o770 | fs.ModeSetgid, outgoing.Queue{Mode: 0o750, User: "nobody"}, "cannot take messages: new folders are 0750"},
		"a queue that it may not change":    {0, ssm, 0o750 | fs.ModeSetgid, outgoing.Queue{Mode: 0o770, User: "nobody"}, "SSM user nobody cannot write to "},
		"folders for us, of an unknown SSM": {0, 0, 0o770, outgoing.Queue{Mode: 0o700}, "only user root can take messages"},
		"an unknown SSM":                    {0, 0, 0o770, outgoing.Queue{Mode: 0o770}, ""},
		"a group that is not there":         {ssm, ssm, 0o770, outgoing.Queue{Mode: 0o770, Group: "no-such-group"}, "unknown group no-such-group"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("/tmp", "queue")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := errors.Join(os.Chown(dir, c.uid, c.gid), os.Chmod(dir, c.mode)); err != nil {
				t.Fatal(err)
			}
			q := c.queue
			q.Path = dir
			err = q.Check()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, want %q", err, c.want)
			}
			element, err := q.Add(at, "k", []byte("APEL\n"))
			if err != nil || q.User != "nobody" {
				return
			}
			take := exec.Command("sh", "-c", `ln "$1" "$1.lck" && cat "$1" >/dev/null && rm "$1" "$1.lck" && rmdir "${1%/*}"`, "sh", filepath.Join(dir, element))
			take.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ssm, Gid: ssm}}
			if out, err := take.CombinedOutput(); (err == nil) != (c.want == "") {
				t.Errorf("SSM takes a message: %v, %s", err, out)
			}
		})
	}
	// A folder of the same minute that was made by other rules is not written into.
	dir := t.TempDir()
	if _, err := (outgoing.Queue{Path: dir, Mode: 0o750}).Add(at, "a", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := queue(dir).Add(at, "b", nil); err == nil || !strings.Contains(err.Error(), "exists with another mode: run chmod 0770") {
		t.Error(err)
	}
	q := queue(filepath.Join(t.TempDir(), "none"))
	if err := q.Check(); !errors.Is(err, outgoing.ErrNotFound) {
		t.Error(err)
	}
}
