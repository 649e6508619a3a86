package host

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	// folderPrefix begins the names of the folders that hold a plugin's socket.
	folderPrefix = "bursar-plugin-"
	// folderAge is how old a folder must be to be looked at: a new one is not locked yet.
	folderAge = time.Minute
	// maxTempDir bounds the folder in which a plugin's folder is made: the path of a socket
	// has at most 107 bytes, of which go-plugin and the folder take 63.
	maxTempDir = 44
)

// socketFolder is the folder of a plugin's socket. This process holds a lock on it for as long
// as it lives, however it ends.
type socketFolder struct {
	path string
	lock *os.File
}

// newFolder makes a folder in the first of dirs whose name leaves room for a socket and in
// which one can be made.
func newFolder(dirs ...string) (*socketFolder, error) {
	var failed []error
	for _, dir := range dirs {
		if len(dir) > maxTempDir {
			failed = append(failed, fmt.Errorf("%s has %d bytes, and the path of a socket leaves %d", dir, len(dir), maxTempDir))
			continue
		}
		f, err := newFolderIn(dir)
		if err == nil {
			return f, nil
		}
		failed = append(failed, err)
	}
	return nil, fmt.Errorf("%w; set TMPDIR to a folder with a shorter name that this user can write", errors.Join(failed...))
}

// newFolderIn makes a folder in dir, after those are removed that processes left which
// were killed.
func newFolderIn(dir string) (*socketFolder, error) {
	if err := sweepFolders(dir, time.Now().Add(-folderAge)); err != nil {
		return nil, err
	}
	path, err := os.MkdirTemp(dir, folderPrefix)
	if err != nil {
		return nil, err
	}
	f := &socketFolder{path: path}
	if f.lock, err = os.Open(path); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := lockFile(f.lock); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.removeFolder())
	}
	return f, nil
}

// removeFolder removes the folder with all that is in it.
func (f *socketFolder) removeFolder() error {
	return errors.Join(os.RemoveAll(f.path), f.lock.Close())
}

// sweepFolders removes folders of this user that were made before a time and that no process
// holds. What cannot be removed stays: it hinders no plugin.
func sweepFolders(dir string, before time.Time) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written
	list, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer list.Close()
	names, err := list.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if strings.HasPrefix(name, folderPrefix) && isLeftFolder(root, name, before) {
			_ = root.RemoveAll(name)
		}
	}
	return nil
}

// isLeftFolder reports whether a file of that name is a folder of this user, of an earlier time,
// that no process holds. A symbolic link is none.
func isLeftFolder(root *os.Root, name string, before time.Time) bool {
	info, err := root.Lstat(name)
	if err != nil || !info.IsDir() || !info.ModTime().Before(before) {
		return false
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != uint32(os.Geteuid()) {
		return false
	}
	f, err := root.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	opened, err := f.Stat()
	return err == nil && os.SameFile(info, opened) && lockFile(f) == nil
}

func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
