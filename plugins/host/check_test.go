package host

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func checkPlugin(path string, dev bool) error {
	_, err := checkPath(path, &walk{dev: dev, plugin: true})
	return err
}

func TestCheckNamesWhatMakesABinaryUnsafe(t *testing.T) {
	cases := []struct {
		name string
		make func(t *testing.T, dir string) string
		want string
	}{
		{"safe", func(t *testing.T, dir string) string { return binary(t, dir, 0o755) }, ""},
		{"relative", func(*testing.T, string) string { return "bin/x" }, "must be absolute"},
		{"symlink", func(t *testing.T, dir string) string { return link(t, binary(t, dir, 0o755), filepath.Join(dir, "l")) }, "symbolic link"},
		{"folder", func(_ *testing.T, dir string) string { return dir }, "not a regular file"},
		{"writable by group", func(t *testing.T, dir string) string { return binary(t, dir, 0o775) }, "chmod go-w"},
		{"writable by others", func(t *testing.T, dir string) string { return binary(t, dir, 0o757) }, "chmod go-w"},
		{"setuid", func(t *testing.T, dir string) string { return binary(t, dir, 0o755|os.ModeSetuid) }, "setuid"},
		{"not executable", func(t *testing.T, dir string) string { return binary(t, dir, 0o644) }, "not executable"},
		{"open folder", func(t *testing.T, dir string) string { return binary(t, folder(t, dir, 0o777), 0o755) }, "write to this folder"},
		{"open folder above", func(t *testing.T, dir string) string {
			return binary(t, folder(t, folder(t, dir, 0o777), 0o755), 0o755)
		}, "write to this folder"},
		{"open folder behind a link", func(t *testing.T, dir string) string {
			path := binary(t, folder(t, dir, 0o777), 0o755)
			return filepath.Join(link(t, filepath.Dir(path), filepath.Join(dir, "l")), "x")
		}, "write to this folder"},
		{".. behind a link", func(t *testing.T, dir string) string {
			open := folder(t, dir, 0o777) // dir/sub, with its binary and a folder of its own
			binary(t, open, 0o755)
			link(t, folder(t, open, 0o755), filepath.Join(dir, "l"))
			binary(t, dir, 0o755) // where .. leads for who joins words
			return dir + "/l/../x"
		}, "write to this folder"},
		{".. and links", func(t *testing.T, dir string) string {
			sub := folder(t, dir, 0o755)
			binary(t, dir, 0o755)
			link(t, "./sub/../", filepath.Join(dir, "l"))
			return sub + "/..//./l/l/sub/../x"
		}, ""},
		{"a file for a folder", func(t *testing.T, dir string) string { return binary(t, dir, 0o755) + "/x" }, "not a folder"},
		{"links in a circle", func(t *testing.T, dir string) string {
			return filepath.Join(link(t, filepath.Join(dir, "l"), filepath.Join(dir, "l")), "x")
		}, "too many levels"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := checkPlugin(c.make(t, t.TempDir()), true)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestStickyFoldersAreSafeForDevelopmentOnly(t *testing.T) {
	path := binary(t, folder(t, t.TempDir(), 0o777|os.ModeSticky), 0o755)
	if err := checkPlugin(path, true); err != nil {
		t.Error(err)
	}
	if err := checkPlugin(path, false); !errors.Is(err, ErrUnsafe) {
		t.Errorf("error: %v", err)
	}
}

func TestForeignOwnerIsUnsafe(t *testing.T) {
	path := binary(t, t.TempDir(), 0o755)
	if err := os.Chown(path, 12345, -1); err != nil {
		t.Logf("only root can give a file away: %v", err)
		return
	}
	if err := checkPlugin(path, true); !errors.Is(err, ErrUnsafe) || !strings.Contains(err.Error(), "user 12345") {
		t.Errorf("error: %v", err)
	}
}

func TestFindTakesTheFirstFolderAndNamesWhatIsThere(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	named := func(dir, name string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	want := named(first, "bursar-source-slurm")
	named(second, "bursar-source-slurm")
	nomad := named(second, "bursar-source-nomad")
	dirs := []string{filepath.Join(first, "absent"), first, second}
	if got, err := Find(dirs, "source", "slurm"); got != want || err != nil {
		t.Errorf("slurm: %s, %v", got, err)
	}
	if got, err := Find(dirs, "source", "nomad"); got != nomad || err != nil {
		t.Errorf("nomad: %s, %v", got, err)
	}
	_, err := Find(dirs, "source", "slrm")
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), `did you mean "slurm"?`) {
		t.Errorf("error: %v", err)
	}
	for _, name := range []string{"../x", "", "A", "a/b", ".."} {
		if _, err := Find(dirs, "source", name); err == nil || errors.Is(err, ErrNotFound) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func binary(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, "x")
	if err := os.WriteFile(path, []byte("\x7fELF"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func folder(t *testing.T, dir string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, "sub")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// What runs is what was checked: the path that is executed has no link and no .. in it,
// and is the file that the system opens by the path that was given.
func TestCheckProgram_PathIsThatOfTheFile(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		dir := t.TempDir()
		folders := []string{dir}
		for i := range 8 { // folders and links to folders, absolute and relative
			at, name := folders[r.IntN(len(folders))], fmt.Sprint("f", i)
			target := folders[r.IntN(len(folders))]
			switch r.IntN(3) {
			case 0:
				if err := os.Mkdir(filepath.Join(at, name), 0o755); err != nil {
					t.Fatal(err)
				}
			case 1:
				link(t, target, filepath.Join(at, name))
			default:
				real, err := filepath.EvalSymlinks(at)
				if err != nil {
					t.Fatal(err)
				}
				relative, err := filepath.Rel(real, target)
				if err != nil {
					t.Fatal(err)
				}
				link(t, relative, filepath.Join(at, name))
			}
			folders = append(folders, filepath.Join(at, name))
		}
		path := folders[r.IntN(len(folders))]
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			continue // a relative link through a link leads elsewhere
		}
		for range r.IntN(4) {
			path += "/" + []string{".", "..", "", "../" + filepath.Base(real)}[r.IntN(4)]
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() || !strings.HasPrefix(realPath(t, path), dir) {
			continue
		}
		given := path + "/x"
		if err := os.WriteFile(given, []byte("\x7fELF"), 0o755); err != nil {
			t.Fatal(err)
		}
		got, err := CheckCommand([]string{given}, true)
		if want := realPath(t, path) + "/x"; err != nil || got != want {
			t.Fatalf("seed %d: %s gave %s, %v; want %s", seed, given, got, err, want)
		}
		if err := os.Chmod(realPath(t, path), 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := CheckCommand([]string{given}, true); !errors.Is(err, ErrUnsafe) {
			t.Fatalf("seed %d: %s in a folder of mode 0777: %v", seed, given, err)
		}
	}
}

// realPath is where the system is when it has followed a path.
func realPath(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return real
}
