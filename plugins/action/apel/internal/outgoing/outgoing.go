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
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// granularity is how many seconds of elements share a folder.
const granularity = 60

// Add puts an element into the queue and returns its name. The time and the key
// decide the name: adding the same again while it is there changes nothing. It is on
// disk when Add returns, and a reader sees either all of it or nothing.
func Add(queue string, at time.Time, key string, data []byte) (string, error) {
	if info, err := os.Stat(queue); err != nil || !info.IsDir() {
		return "", fmt.Errorf("the outgoing directory %s is not there: %w", queue, errors.Join(err, fs.ErrNotExist))
	}
	name := nameOf(at, key)
	dir := filepath.Join(queue, filepath.Dir(name))
	if err := os.MkdirAll(dir, 0o777); err != nil { //nolint:gosec // SSM, another user, removes elements; the umask decides
		return "", err
	}
	if err := write(filepath.Join(queue, name), data); err != nil {
		return "", err
	}
	return name, errors.Join(durable.SyncDir(dir), durable.SyncDir(queue))
}

// nameOf is FOLDER/ELEMENT: the folder is the minute, the element the second, five
// digits that stand for a fraction of it, and a last one. The library draws the last
// six by clock and chance; here they are the key's.
func nameOf(at time.Time, key string) string {
	seconds := at.Unix()
	sum := sha256.Sum256([]byte(key))
	return filepath.Join(fmt.Sprintf("%08x", seconds-seconds%granularity), fmt.Sprintf("%08x%06x", seconds, sum[:3]))
}

// write makes a file whose name appears with all of its content. One of that name
// that is there stays.
func write(name string, data []byte) error {
	temporary, err := os.CreateTemp(filepath.Dir(name), "*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temporary.Name()) }()
	_, err = temporary.Write(data)
	err = errors.Join(err, temporary.Chmod(0o644), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if err := os.Link(temporary.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
