package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner calls do, which may write below a node's data folder, and gives what
// root has made there to whom the folder belongs: the daemon, which is another
// user, could not read it.
func keepOwner(dir string, do func() error) error {
	uid, gid, ok := owner(dir)
	err := do()
	if !ok || uid == 0 || os.Geteuid() != 0 {
		return err
	}
	if failed := give(dir, uid, gid); failed != nil {
		return errors.Join(err, fmt.Errorf("give %s to its owner again: %w", dir, failed))
	}
	return err
}

// owner returns to whom a folder belongs; false when there is none.
func owner(dir string) (uid, gid int, ok bool) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// give gives what belongs to root below a folder to another user. A file with a
// second name stays: no one knows where that one is.
func give(dir string, uid, gid int) (err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fs.WalkDir(root.FS(), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := root.Lstat(name)
		if err != nil {
			return err
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || st.Uid != 0 || info.Mode().IsRegular() && st.Nlink > 1 {
			return nil
		}
		return root.Lchown(name, uid, gid)
	})
}
