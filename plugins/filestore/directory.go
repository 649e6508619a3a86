package filestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Directory is a store in a folder that is there.
type Directory string

const (
	folderMode = 0o755 // others, such as a web server, read
	fileMode   = 0o644
	unfinished = ".new" // the end of the name of a hidden file that is being written
)

// String implements Store.
func (d Directory) String() string { return string(d) }

// pathOf is that of a file. A name never leaves the directory.
func (d Directory) pathOf(name string) (string, error) {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%q is not the name of a file in %s", name, d)
	}
	return filepath.Join(string(d), filepath.FromSlash(name)), nil
}

// checkThere refuses a directory that is not there: it is not mounted, perhaps.
func (d Directory) checkThere() error {
	if info, err := os.Stat(string(d)); err != nil || !info.IsDir() {
		return fmt.Errorf("the directory %s is not there; is it mounted?", d)
	}
	return nil
}

// Put implements Store. The file has a hidden name until it was synced and checked.
func (d Directory) Put(ctx context.Context, name string, write func(io.Writer) error, check func(*File) error) error {
	path, err := d.pathOf(name)
	if err == nil {
		err = errors.Join(d.checkThere(), d.makeFolder(filepath.Dir(path)))
	}
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*"+unfinished)
	if err != nil {
		return err
	}
	err = fillFile(ctx, file, write)
	if err == nil {
		err = leftOver(file.Name(), path)
	}
	if err == nil && check != nil {
		err = lookAtFile(file.Name(), name, check)
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return durable.SyncDir(filepath.Dir(path))
}

// fillFile writes a file, which is on the disk then, and closes it.
func fillFile(ctx context.Context, file *os.File, write func(io.Writer) error) error {
	err := write(while{ctx, file})
	if err == nil {
		err = file.Chmod(fileMode)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// while writes as long as its context lasts.
type while struct {
	ctx context.Context //nolint:containedctx // of the call that writes
	w   io.Writer
}

// Write implements io.Writer.
func (w while) Write(b []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.w.Write(b)
}

// leftOver removes what attempts at a file that were cut off have left. One that goes on
// fails then.
func leftOver(mine, path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return err
	}
	for _, e := range entries {
		other := filepath.Join(filepath.Dir(path), e.Name())
		if other == mine || !strings.HasPrefix(e.Name(), "."+filepath.Base(path)+".") || !strings.HasSuffix(e.Name(), unfinished) {
			continue
		}
		if err := os.Remove(other); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// lookAtFile has a file of the disk checked.
func lookAtFile(path, name string, check func(*File) error) error {
	f, err := openFile(path, name)
	if err != nil {
		return err
	}
	return errors.Join(check(f), f.Close())
}

func openFile(path, name string) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	return &File{ReaderAt: in, Closer: in, Name: name, Size: info.Size()}, nil
}

// makeFolder makes a folder of the directory, and those above it, on the disk.
func (d Directory) makeFolder(path string) error {
	if path == filepath.Clean(string(d)) {
		return nil
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if err := d.makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return errors.Join(os.Chmod(path, folderMode), durable.SyncDir(filepath.Dir(path)))
}

// Open implements Store.
func (d Directory) Open(_ context.Context, name string) (*File, error) {
	path, err := d.pathOf(name)
	if err == nil {
		err = d.checkThere()
	}
	if err != nil {
		return nil, err
	}
	return openFile(path, name)
}

// List implements Store.
func (d Directory) List(ctx context.Context, folder string) (names []string, err error) {
	if err := d.checkThere(); err != nil {
		return nil, err
	}
	root, err := d.pathOf(filepath.Join(".", filepath.FromSlash(folder)))
	if err != nil {
		return nil, err
	}
	err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // removed meanwhile, or nothing is there yet
			return nil
		case err != nil:
			return err
		case path != root && strings.HasPrefix(e.Name(), "."):
			if e.IsDir() {
				return fs.SkipDir
			}
			return nil
		case e.IsDir():
			return ctx.Err()
		}
		name, err := filepath.Rel(string(d), path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	slices.Sort(names)
	return names, err
}

// Remove implements Store.
func (d Directory) Remove(_ context.Context, name string) error {
	path, err := d.pathOf(name)
	if err != nil {
		return err
	}
	if err := os.Remove(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return durable.SyncDir(filepath.Dir(path))
}
