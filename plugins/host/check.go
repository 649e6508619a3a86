package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/plugins/internal/process"
)

// ErrUnsafe says that someone else than root or the daemon's user could have
// changed a program, or that it is no plain file.
var ErrUnsafe = errors.New("unsafe program")

// CheckCommand returns the path of the file that is executed for the words of a command,
// or why it cannot be trusted. The file, without links, and the script that an
// interpreter among the words is given, must be such that only root and the daemon's
// user can have changed them: plain files, owned by one of the two, and writable, with
// every folder on the way to them, by no one else. Symbolic links and .. are followed as
// the system follows them, folder by folder, each opened from the one before. Dev allows
// folders that others may write to when they have the sticky bit, such as /tmp. The error
// wraps [ErrUnsafe] and names what to change, or says why a file cannot be read.
func CheckCommand(words []string, dev bool) (string, error) {
	if len(words) == 0 {
		return "", unsafePath("", "there is no program")
	}
	if script := process.Script(words); script != "" {
		if _, err := checkPath(script, &walk{dev: dev, script: true}); err != nil {
			return "", err
		}
	}
	return checkPath(words[0], &walk{dev: dev})
}

// CheckAllowed is CheckCommand for words as [Compile] takes them, of which some stand for
// values: it says why no command that they allow could be trusted. A program or script that
// is known only with the values is not looked at.
func CheckAllowed(words []string, dev bool) error {
	known := func(path string) bool { return path != "" && path != rest && !strings.Contains(path, "*") }
	if script := process.Script(words); known(script) {
		if _, err := checkPath(script, &walk{dev: dev, script: true}); err != nil {
			return err
		}
	}
	if len(words) == 0 || !known(words[0]) {
		return nil
	}
	_, err := checkPath(words[0], &walk{dev: dev})
	return err
}

func checkPath(path string, w *walk) (string, error) {
	if !filepath.IsAbs(path) {
		return "", unsafePath(path, "the path must be absolute")
	}
	w.path, w.links = path, maxLinks
	defer w.closeFolders()
	return w.followPath(path)
}

func unsafePath(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrUnsafe, path, fmt.Sprintf(format, args...))
}

// maxLinks is how many symbolic links the system follows.
const maxLinks = 40

// walk goes to a file from the root on, through symbolic links.
type walk struct {
	dev    bool
	plugin bool // it may be no link and not be setuid
	script bool // it may be not executable
	path   string
	links  int // how many symbolic links may still be followed

	at   int      // the folder that was reached; 0: none is open
	name []string // of the folder, without links
}

func (w *walk) closeFolders() {
	if w.at > 0 {
		_ = unix.Close(w.at)
	}
	w.at = 0
}

// pathOf is the path of what has that name in the folder that was reached.
func (w *walk) pathOf(name string) string {
	return "/" + filepath.Join(append(append([]string{}, w.name...), name)...)
}

// enterFolder opens a folder and checks it.
func (w *walk) enterFolder(from int, name, path string) error {
	fd, err := unix.Openat(from, name, pathOnly|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	w.closeFolders()
	w.at = fd
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := checkOwner(path, st.Uid); err != nil {
		return err
	}
	if st.Mode&0o022 != 0 && !(w.dev && st.Mode&unix.S_ISVTX != 0) {
		return unsafePath(path, "group or others may write to this folder (%s); chmod go-w", os.FileMode(st.Mode&0o777))
	}
	return nil
}

// followPath goes to the file and returns its path without links.
func (w *walk) followPath(path string) (string, error) {
	rest := []string{"/"}
	rest = append(rest, strings.Split(path, "/")...)
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		var err error
		switch name {
		case "", ".":
		case "/":
			w.name = nil
			err = w.enterFolder(unix.AT_FDCWD, "/", "/")
		case "..":
			w.name = w.name[:max(0, len(w.name)-1)]
			err = w.enterFolder(w.at, "..", w.pathOf(""))
		default:
			file, more, e := w.stepInto(name, rest)
			if e != nil || file != "" {
				return file, e
			}
			rest = more
		}
		if err != nil {
			return "", err
		}
	}
	return "", unsafePath(w.path, "it is not a regular file")
}

// stepInto goes on by one name. It returns the path of the file when that is reached, and
// otherwise the names that are left.
func (w *walk) stepInto(name string, rest []string) (file string, left []string, err error) {
	path := w.pathOf(name)
	var st unix.Stat_t
	if err := unix.Fstatat(w.at, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", nil, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	last := strings.Join(rest, "") == ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		if err := w.enterFolder(w.at, name, path); err != nil {
			return "", nil, err
		}
		w.name = append(w.name, name)
		return "", rest, nil
	case unix.S_IFLNK:
		if last && w.plugin {
			return "", nil, unsafePath(w.path, "it is a symbolic link; name the file itself")
		}
		target, err := w.followLink(name, path, &st)
		return "", append(target, rest...), err
	}
	if !last {
		return "", nil, unsafePath(path, "it is not a folder")
	}
	return path, nil, w.checkOpenedFile(name, path)
}

// followLink returns the names to which a symbolic link leads.
func (w *walk) followLink(name, path string, st *unix.Stat_t) ([]string, error) {
	if w.links--; w.links < 0 {
		return nil, unsafePath(w.path, "too many levels of symbolic links")
	}
	if err := checkOwner(path, st.Uid); err != nil {
		return nil, err
	}
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(w.at, name, buf)
	if err != nil {
		return nil, &os.PathError{Op: "readlink", Path: path, Err: err}
	}
	names := strings.Split(string(buf[:n]), "/")
	if names[0] == "" {
		names[0] = "/"
	}
	return names, nil
}

// checkOpenedFile checks the file, as it is opened from its folder.
func (w *walk) checkOpenedFile(name, path string) error {
	fd, err := unix.Openat(w.at, name, pathOnly|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // nothing was written
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	return w.checkFile(path, &st)
}

func (w *walk) checkFile(path string, st *syscall.Stat_t) error {
	mode := os.FileMode(st.Mode & 0o777)
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return unsafePath(path, "it is not a regular file")
	case w.plugin && st.Mode&(unix.S_ISUID|unix.S_ISGID) != 0:
		return unsafePath(path, "it is setuid or setgid; chmod ug-s")
	case mode&0o022 != 0:
		return unsafePath(path, "its group or others may write to it (%s); chmod go-w", mode)
	case mode&0o111 == 0 && !w.script:
		return unsafePath(path, "it is not executable (%s)", mode)
	}
	return checkOwner(path, st.Uid)
}

func checkOwner(path string, owner uint32) error {
	if int(owner) != 0 && int(owner) != os.Geteuid() {
		return unsafePath(path, "it belongs to the user %d, who is neither root nor the daemon's user", owner)
	}
	return nil
}
