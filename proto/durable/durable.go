// Package durable puts files on the disk so that a loss of power leaves the old
// file or the new one, whole.
package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// suffix is that of a file which is being written.
const suffix = ".new"

// Replace puts a file with the content in the place of path, or makes it, as
// [ReplaceWith] does. It can be read by its owner only.
func Replace(path string, content []byte) error {
	return ReplaceWith(path, 0o600, func(f *os.File) error {
		_, err := f.Write(content)
		return err
	})
}

// ReplaceWith puts what write writes in the place of path, with the mode, and returns
// when it is on the disk. Before it returns, and after an error, path is what it was or
// what it is to be; a crash may leave path.new over, which the next call writes again.
// Two calls for one path must not overlap.
func ReplaceWith(path string, mode fs.FileMode, write func(*os.File) error) error {
	next := path + suffix
	file, err := os.OpenFile(next, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err = file.Chmod(mode); err == nil {
		err = write(file)
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(next))
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
