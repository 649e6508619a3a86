package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// preserveOwner calls do, which may write below a node's data folder, and then gives what
// root has made there to whom the folder belongs: the daemon, which is another
// user, could not read it.
func preserveOwner(dir string, do func() error) error {
	uid, gid, ok := ownerOf(dir)
	err := do()
	if !ok || uid == 0 || os.Geteuid() != 0 {
		return err
	}
	if failed := chownTree(dir, uid, gid); failed != nil {
		return errors.Join(err, fmt.Errorf("give %s to its owner again: %w", dir, failed))
	}
	return err
}

// ownerOf returns to whom a folder belongs; false when there is none.
func ownerOf(dir string) (uid, gid int, ok bool) {
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

// chownTree gives what belongs to root below a folder to another user. A file with a
// second name stays root's: no one knows where that one is.
func chownTree(dir string, uid, gid int) (err error) {
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
