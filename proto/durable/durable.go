// Package durable puts files on the disk so that a loss of power leaves the old
// file or the new one, whole.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// suffix is that of a file which is being written.
const suffix = ".new"

// Replace puts a file with the content in the place of path, or makes it, and returns
// when it is on the disk. It can be read by its owner only. Before it returns, and
// after an error, path is what it was or what it is to be; path.new may be left over
// and is written again by the next call. Two calls for one path must not overlap.
func Replace(path string, content []byte) error {
	next := path + suffix
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	if err := os.Rename(next, path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir returns when what was made, renamed and removed in a folder is on the disk.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
