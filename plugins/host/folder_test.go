package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// startDaemon starts a process that has launched a plugin, with its folder in dir.
func startDaemon(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	self := exec.Command(os.Args[0])
	self.Env = append(os.Environ(), "TMPDIR="+dir, "HOST_TEST_DAEMON="+filepath.Join(programs, "bursar-source-hostile"))
	out, err := self.StdoutPipe()
	if err == nil {
		err = self.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { self.Process.Kill(); self.Wait() })
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	return self
}

func namesIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range entries {
		names[e.Name()] = true
	}
	return names
}

// age makes all folders of plugins look as if they had been made long ago.
func age(t *testing.T, dir string) {
	t.Helper()
	for name := range namesIn(t, dir) {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue
		}
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFoldersOfAKilledDaemonsPluginsAreRemovedAndNoOthers(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "h")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	outside := t.TempDir()
	killed, alive := startDaemon(t, dir), map[string]bool{}
	before := namesIn(t, dir)
	startDaemon(t, dir)
	for name := range namesIn(t, dir) {
		alive[name] = !before[name]
	}
	killed.Process.Kill()
	killed.Wait()
	if len(before) != 1 || len(alive) != 2 {
		t.Fatalf("the folders are %v and then %v: the test proves nothing", before, alive)
	}
	write := func(path ...string) {
		if err := os.WriteFile(filepath.Join(path...), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mkdir := func(name string, mode os.FileMode) {
		if err := errors.Join(os.Mkdir(filepath.Join(dir, name), 0o700), os.Chmod(filepath.Join(dir, name), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(outside, "kept")
	stay := []string{"bursar-plugin-link", "bursar-plugin-file", "plugin-dir1", "bursar-plugin-new"}
	link(t, outside, filepath.Join(dir, "bursar-plugin-link"))
	write(dir, "bursar-plugin-file")
	mkdir("plugin-dir1", 0o700)
	for name := range before { // what is linked in it is not in it
		link(t, outside, filepath.Join(dir, name, "link"))
		link(t, filepath.Join(outside, "kept"), filepath.Join(dir, name, "file"))
	}
	if os.Geteuid() == 0 {
		stay = append(stay, "bursar-plugin-others")
		mkdir("bursar-plugin-others", 0o777)
		if err := os.Chown(filepath.Join(dir, "bursar-plugin-others"), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	age(t, dir)
	mkdir("bursar-plugin-new", 0o700)

	p, err := newFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	now := namesIn(t, dir)
	for name, lives := range alive {
		if now[name] != lives {
			t.Errorf("%s is there: %v, and its daemon lives: %v", name, now[name], lives)
		}
	}
	for _, name := range stay {
		if !now[name] {
			t.Errorf("%s is gone", name)
		}
	}
	if !namesIn(t, outside)["kept"] {
		t.Error("a file behind a symbolic link is gone")
	}
	if err := p.removeFolder(); err != nil || namesIn(t, dir)[filepath.Base(p.path)] {
		t.Error("the folder is there after it was removed", err)
	}
}

func TestPlugin_NameOfTheTemporaryFolderIsLong_Starts(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	for _, n := range []int{maxTempDir - 1, maxTempDir, maxTempDir + 1, 60, 61, 92, 93, 107, 108, 250} {
		long := filepath.Join(base, strings.Repeat("x", max(1, n-len(base)-1)))
		if err := os.Mkdir(long, 0o700); err != nil {
			t.Fatal(err)
		}
		spec := hostile(t, "")
		spec.TempDir = long
		p := launch(t, spec)
		folder := p.folder.path
		if inLong := filepath.Dir(folder) == long; inLong != (len(long) <= maxTempDir) {
			t.Errorf("%d bytes: the socket is in %s", len(long), folder)
		}
		p.Close()
		if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) || len(namesIn(t, long)) > 0 {
			t.Errorf("left behind: %s, %v", folder, namesIn(t, long))
		}
		if err := os.Remove(long); err != nil {
			t.Error(err)
		}
	}
}

func TestNewFolder_NoFolderHasRoom_SaysEachWithItsReason(t *testing.T) {
	t.Parallel()
	long, missing := "/"+strings.Repeat("x", maxTempDir), "/bursar-is-not-there"
	_, err := newFolder(long, missing)
	if err == nil {
		t.Fatal("a folder was made")
	}
	for _, want := range []string{long + " has 45 bytes", missing, "set TMPDIR"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
