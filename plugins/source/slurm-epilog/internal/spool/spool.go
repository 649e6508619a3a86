// Package spool keeps events that could not be handed over: a file each, in a folder,
// named by time and id. Many processes may write at once; one at a time drains.
//
// Root's files are in the folder itself, those of another user (slurmctld's) in a
// folder in it with the user's number as its name. Only files that belong to root or
// to that user are looked at: a file that anyone could write would be a forged run.
package spool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/proto/durable"
)

// Spool is a folder for files.
type Spool struct {
	Dir string
	UID int // whose processes write into it
}

const (
	suffix     = ".event"
	unfinished = ".new"
	maxListed  = 100_000 // files that are looked at at once
)

// Of returns the spool of a user below the folder that all share.
func Of(root string, uid int) Spool {
	if uid == 0 {
		return Spool{root, 0}
	}
	return Spool{filepath.Join(root, strconv.Itoa(uid)), uid}
}

// All returns the spools below root that a process of the user uid may drain: its
// own, and for root those of the others.
func All(root string, uid int) ([]Spool, error) {
	own := Of(root, uid)
	if uid != 0 {
		return []Spool{own}, nil
	}
	all := []Spool{own}
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n > 0 && e.IsDir() {
			all = append(all, Of(root, n))
		}
	}
	return all, nil
}

// Put writes an event and returns when it is on disk.
func (s Spool) Put(e *event.Event) error {
	line, err := e.Line()
	if err != nil {
		return err
	}
	if err := s.makeFolder(); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, fmt.Sprintf("%020d-%s", e.At, e.ID))
	if err := writeFile(path+unfinished, line); err != nil {
		return err
	}
	if err := os.Rename(path+unfinished, path+suffix); err != nil {
		return err
	}
	return durable.SyncDir(s.Dir)
}

// makeFolder makes the folder; others may pass the one of root on the way to theirs.
func (s Spool) makeFolder() error {
	if info, err := os.Stat(s.Dir); err == nil && info.IsDir() {
		return nil
	}
	if s.UID == 0 {
		return os.MkdirAll(s.Dir, 0o711) //nolint:gosec // see above
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; make it as root: install -d -o %d -m 0700 %s", err, s.UID, s.Dir)
	}
	return nil
}

func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // it may be half written
	}
	return err
}

// ErrBusy is the error of a spool that another process drains.
var ErrBusy = errors.New("another process drains the spool")

// Drain hands the files to give, at most so many, the oldest first, and removes each
// after give returned nil. An error of give ends it, unless it wraps ErrSkip.
func (s Spool) Drain(most int, give func(event.Event) error) (given int, err error) {
	d, err := os.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer d.Close() // and with it the lock
	if err := syscall.Flock(int(d.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return 0, ErrBusy
		}
		return 0, err
	}
	names, err := listFiles(d)
	if err != nil {
		return 0, err
	}
	var odd []error
	for _, name := range names[:min(len(names), most)] {
		err := s.giveFile(filepath.Join(s.Dir, name), give)
		switch {
		case errors.Is(err, ErrSkip):
			odd = append(odd, fmt.Errorf("%s: %w", name, err))
		case err != nil:
			return given, fmt.Errorf("%s: %w", name, err)
		default:
			given++
		}
	}
	return given, errors.Join(odd...)
}

// ErrSkip is wrapped by the error of a file that cannot be handed over and stays,
// while others may.
var ErrSkip = errors.New("left in the spool")

// listFiles are the names of the finished files, the oldest first.
func listFiles(d *os.File) ([]string, error) {
	names, err := d.Readdirnames(maxListed)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !strings.HasSuffix(n, suffix) })
	slices.Sort(names)
	return names, nil
}

func (s Spool) giveFile(path string, give func(event.Event) error) error {
	text, err := s.readFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // an operator took it
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSkip, err)
	}
	e, err := event.Parse(text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSkip, err)
	}
	if err := give(e); err != nil {
		return err
	}
	return os.Remove(path)
}

// readFile reads a file that is what Put wrote.
func (s Spool) readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 || owner.Nlink != 1 || (int(owner.Uid) != s.UID && owner.Uid != 0) {
		return nil, errors.New("it is no file that only the spool's owner can write")
	}
	return io.ReadAll(io.LimitReader(f, event.MaxLine+1))
}

// Waiting counts the files.
func (s Spool) Waiting() (int, error) {
	d, err := os.Open(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer d.Close()
	names, err := listFiles(d)
	return len(names), err
}

// Try says whether Put would work, by making a file and removing it.
func (s Spool) Try() error {
	if err := s.makeFolder(); err != nil {
		return err
	}
	path := filepath.Join(s.Dir, fmt.Sprintf("try-%d%s", os.Getpid(), unfinished))
	if err := writeFile(path, []byte("\n")); err != nil {
		return err
	}
	return os.Remove(path)
}
