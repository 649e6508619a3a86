// Package outgoing puts messages into the outgoing directory of a site's own SSM,
// which signs and sends them. The directory is a queue of the dirq library, kind
// "simple": PATH/xxxxxxxx/yyyyyyyyyyyyyy, where x and y are hexadecimal digits of a
// time, and readers look at names of exactly these lengths only.
package outgoing

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Queue is the outgoing directory of an SSM, with the permissions of new elements.
type Queue struct {
	Path string
	// Group is the group of folders and elements, by name or number. Empty: the group
	// that the system gives them, which is that of Path if Path has the setgid bit.
	Group string
	// Mode is that of folders, whatever the process's umask is. Elements have the same
	// without the right to enter.
	Mode fs.FileMode
	// User is who SSM runs as, for Check. Empty: the owner of Path.
	User string
}

// granularity is how many seconds of elements share a folder.
const granularity = 60

// Add puts an element into the queue and returns its name. The time and the key
// decide the name: adding the same again while it is there changes nothing. It is on
// disk when Add returns, and a reader sees either all of it or nothing. The process's
// umask is another one meanwhile.
func (q Queue) Add(at time.Time, key string, data []byte) (string, error) {
	if info, err := os.Stat(q.Path); err != nil || !info.IsDir() {
		return "", fmt.Errorf("outgoing directory %s not found: %w", q.Path, errors.Join(err, fs.ErrNotExist))
	}
	name := nameOf(at, key)
	dir := filepath.Join(q.Path, filepath.Dir(name))
	// Not by chmod, which takes the setgid bit off that the folder has by its parent.
	defer syscall.Umask(syscall.Umask(0))
	if err := os.Mkdir(dir, q.Mode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != q.Mode {
		return "", errors.Join(err, fmt.Errorf("folder %s exists with another mode: run chmod %04o %s, or remove it when it is empty", dir, q.Mode, dir))
	}
	if err := q.setGroup(dir); err != nil {
		return "", err
	}
	if err := q.writeElement(filepath.Join(q.Path, name), data); err != nil {
		return "", err
	}
	return name, errors.Join(durable.SyncDir(dir), durable.SyncDir(q.Path))
}

// nameOf is FOLDER/ELEMENT: the folder is the minute, the element the second, five
// digits that stand for a fraction of it, and a last one. The library draws the last
// six by clock and chance; here they are the key's.
func nameOf(at time.Time, key string) string {
	seconds := at.Unix()
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(fmt.Sprintf("%08x", seconds-seconds%granularity), fmt.Sprintf("%08x%06x", seconds, sum[:3]))
}

// fileMode is the mode of elements.
func (q Queue) fileMode() fs.FileMode { return q.Mode &^ 0o111 }

// writeElement makes a file whose name appears with all of its content. One of that name
// that is there stays.
func (q Queue) writeElement(name string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), "*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(q.fileMode()), q.setGroup(temporary.Name()), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// setGroup gives a file that was made to the group, unless it has it.
func (q Queue) setGroup(path string) error {
	if q.Group == "" {
		return nil
	}
	gid, err := groupID(q.Group)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); st.Gid == gid {
		return nil
	}
	if err := os.Chown(path, -1, int(gid)); err != nil {
		return fmt.Errorf("%w; let what is made in the queue have its group instead: chgrp %s %s; chmod g+s %s", err, q.Group, q.Path, q.Path)
	}
	return nil
}
