package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrUnsafe says that somebody else than root or the daemon's user could have
// changed a plugin's binary, or that it is no plain file.
var ErrUnsafe = errors.New("unsafe plugin binary")

// Check returns nil when path is a plugin's binary that only root and the
// daemon's user can have changed: a regular executable file, no symlink, not
// setuid or setgid, owned by one of the two, and writable, with every folder
// above it, by nobody else. Dev allows folders that others may write to when
// they have the sticky bit, such as /tmp. The error is ErrUnsafe and names what
// to change, or tells why the file cannot be looked at.
func Check(path string, dev bool) error {
	if !filepath.IsAbs(path) {
		return unsafe(path, "the path must be absolute")
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkFile(path, info); err != nil {
		return err
	}
	return (&walk{dev: dev, links: 16}).folders(filepath.Dir(filepath.Clean(path)))
}

func unsafe(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrUnsafe, path, fmt.Sprintf(format, args...))
}

func checkFile(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return unsafe(path, "it is a symbolic link; name the file itself")
	case !mode.IsRegular():
		return unsafe(path, "it is not a regular file")
	case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return unsafe(path, "it is setuid or setgid; chmod ug-s")
	case mode.Perm()&0o022 != 0:
		return unsafe(path, "its group or others may write to it (%s); chmod go-w", mode.Perm())
	case mode.Perm()&0o111 == 0:
		return unsafe(path, "it is not executable (%s)", mode.Perm())
	}
	return checkOwner(path, info)
}

func checkOwner(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return unsafe(path, "its owner is unknown")
	}
	if int(st.Uid) != 0 && int(st.Uid) != os.Geteuid() {
		return unsafe(path, "it belongs to the user %d, who is neither root nor the daemon's user", st.Uid)
	}
	return nil
}

// walk checks folders from the root down, through symbolic links.
type walk struct {
	dev   bool
	links int // how many symbolic links may still be followed
}

func (w *walk) folders(dir string) error {
	at := "/"
	if err := w.folder(at); err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.Trim(dir, "/"), "/") {
		at = filepath.Join(at, name)
		if err := w.folder(at); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) folder(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if err := checkOwner(path, info); err != nil {
		return err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		return w.link(path)
	case !info.IsDir():
		return unsafe(path, "it is not a folder")
	case info.Mode().Perm()&0o022 != 0 && !(w.dev && info.Mode()&fs.ModeSticky != 0):
		return unsafe(path, "group or others may write to this folder (%s); chmod go-w", info.Mode().Perm())
	}
	return nil
}

func (w *walk) link(path string) error {
	if w.links--; w.links < 0 {
		return unsafe(path, "too many symbolic links")
	}
	target, err := os.Readlink(path)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	return w.folders(target)
}
