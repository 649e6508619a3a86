package store

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/proto/ratelog"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// reportDamage is told by Pebble of each file that does not have its checksum.
func (o *Options) reportDamage(info pebble.DataCorruptionInfo) {
	if o.Fatal != nil {
		o.Fatal(fmt.Errorf("%w: %s: %w", ErrCorrupt, info.Path, info.Details))
	}
}

// markCorrupt marks an error that comes from a checksum.
func markCorrupt(err error) error {
	if pebble.IsCorruptionError(err) && !errors.Is(err, ErrCorrupt) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return err
}

// classifyOpenError marks an error of opening and loading a database. What the machine
// refuses has a number, such as that of no permission; everything else, a file that
// is missing among it, is said of what the files hold.
func classifyOpenError(err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, ErrCorrupt), errors.Is(err, ErrFormat), errors.Is(err, columns.ErrFormat):
		return err
	case strings.Contains(err.Error(), "unknown format major version"):
		return fmt.Errorf("%w: %w", ErrFormat, err)
	case errors.As(err, &errno) && errno != syscall.ENOENT:
		return err
	case strings.Contains(err.Error(), "lock held by current process"): // of another process it has a number
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// pebbleLogger hands Pebble's words to slog. Its information is of interest to
// developers only. An error is said once a minute: what cannot be written is tried again
// at once, hundreds of times a second while a disk is full.
type pebbleLogger struct {
	log     *slog.Logger
	fatal   func(error)
	loggers *errorLoggers
}

// errorLoggers are the loggers of kinds of errors, by their constant words.
type errorLoggers struct {
	mu     sync.Mutex
	errors map[string]*ratelog.Logger
}

func (s *errorLoggers) loggerFor(format string) *ratelog.Logger {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.errors[format] == nil {
		s.errors[format] = &ratelog.Logger{}
	}
	return s.errors[format]
}

func (l pebbleLogger) Infof(format string, args ...any) {
	l.log.Debug("pebble: " + fmt.Sprintf(format, args...))
}
func (l pebbleLogger) Errorf(format string, args ...any) {
	l.loggers.loggerFor(format).Tell(l.log, slog.LevelError, "pebble: "+fmt.Sprintf(format, args...))
}

// Fatalf must not return. Pebble calls it when the database cannot go on, for
// example when the WAL cannot be written.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := errors.New("store: pebble: " + fmt.Sprintf(format, args...))
	if l.fatal != nil {
		l.fatal(err)
	}
	panic(err)
}

// logFS tells Fatal when Pebble's log cannot be written. Pebble panics over it,
// partly with its locks in disorder, so that no one could recover.
type logFS struct {
	vfs.FS

	fatal func(error)
}

// Create implements vfs.FS.
func (l logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.Create(name, category)
	switch {
	case !isLog(name):
		return f, err
	case err != nil:
		return nil, reportError(l.fatal, err)
	}
	return logFile{f, l.fatal}, nil
}

// ReuseForWrite implements vfs.FS. When it fails, Pebble makes a new file.
func (l logFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := l.FS.ReuseForWrite(from, to, category)
	if err != nil || !isLog(to) {
		return f, err
	}
	return logFile{f, l.fatal}, nil
}

// Unwrap implements vfs.FS.
func (l logFS) Unwrap() vfs.FS { return l.FS }

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// reportError tells of an error, and returns it.
func reportError(fatal func(error), err error) error {
	if err != nil {
		fatal(fmt.Errorf("store: %w", err))
	}
	return err
}

// logFile is a file of Pebble's log.
type logFile struct {
	vfs.File

	fatal func(error)
}

// Write implements vfs.File.
func (l logFile) Write(p []byte) (int, error) {
	n, err := l.File.Write(p)
	return n, reportError(l.fatal, err)
}

// Sync implements vfs.File.
func (l logFile) Sync() error { return reportError(l.fatal, l.File.Sync()) }

// SyncData implements vfs.File.
func (l logFile) SyncData() error { return reportError(l.fatal, l.File.SyncData()) }

// SyncTo implements vfs.File.
func (l logFile) SyncTo(length int64) (bool, error) {
	full, err := l.File.SyncTo(length)
	return full, reportError(l.fatal, err)
}
