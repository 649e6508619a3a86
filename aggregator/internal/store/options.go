package store

import (
	"cmp"
	"errors"
	"io/fs"
	"log/slog"
	"path/filepath"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/bursar-accounting/bursar/proto/ratelog"
)

// Options say where a store is and what it may use. The zero value of everything
// but Dir is a working default.
type Options struct {
	// Dir is the store's directory, made when it is missing.
	Dir string
	// FS is the file system; nil is the machine's.
	FS vfs.FS
	// CacheBytes is the block cache, default 128 MiB. It is raised to four times
	// MemTableBytes, because Pebble takes its memtables out of it.
	CacheBytes int64
	// MemTableBytes is the size of a memtable, default 32 MiB.
	MemTableBytes uint64
	// SortBytes is the memory that one query may use to sort; beyond it spills
	// to SpillDir. Default 16 MiB.
	SortBytes int
	// SpillDir is where queries spill, on the machine's file system. It is the
	// store's own: Open empties it. Default a directory below Dir, and the system's
	// for temporary files where FS is not the machine's.
	SpillDir string
	// MaySpill says whether the disk has room for another SortBytes; nil: always. Its
	// error ends the query and is wrapped in [ErrSpill].
	MaySpill func() error
	// Logger gets what Pebble has to say; nil discards it.
	Logger *slog.Logger
	// Registerer gets the store's metrics; nil: none.
	Registerer prometheus.Registerer
	// Fatal is told why the store cannot go on: what is on disk is damaged, and
	// the error wraps [ErrCorrupt], or the disk does not take what is written. It
	// shall end the process. Nil: damage is only the error of who meets it, and a
	// write that fails panics.
	Fatal func(err error)

	readOnly bool // nothing is written: for images
	still    bool // nothing is compacted by itself: for tests
}

const (
	defaultCache    = 128 << 20
	defaultMemTable = 32 << 20
	defaultSort     = 16 << 20
)

func (o Options) withDefaults() Options {
	if o.FS == nil {
		o.FS = vfs.Default
		if o.SpillDir == "" {
			o.SpillDir = filepath.Join(o.Dir, spillDir)
		}
	}
	if o.MaySpill == nil {
		o.MaySpill = func() error { return nil }
	}
	o.MemTableBytes = cmp.Or(o.MemTableBytes, defaultMemTable)
	o.CacheBytes = max(cmp.Or(o.CacheBytes, defaultCache), 4*int64(o.MemTableBytes))
	o.SortBytes = cmp.Or(o.SortBytes, defaultSort)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// pebbleOptions returns the database's options; done gives back what only Open needs.
func (o *Options) pebbleOptions() (opts *pebble.Options, done func()) {
	cache := pebble.NewCache(o.CacheBytes)
	opts = &pebble.Options{
		FS:                          o.FS,
		Cache:                       cache,
		MemTableSize:                o.MemTableBytes,
		MemTableStopWritesThreshold: 4,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		FormatMajorVersion:          pebble.FormatNewest,
		Logger:                      pebbleLogger{o.Logger, o.Fatal, &errorLoggers{errors: map[string]*ratelog.Logger{}}},
		EventListener:               &pebble.EventListener{DataCorruption: o.reportDamage},
		ReadOnly:                    o.readOnly,
		Cleaner:                     cleaner{},
		DisableAutomaticCompactions: o.still,
	}
	if o.Fatal != nil {
		opts.FS = logFS{o.FS, o.Fatal}
	}
	opts.ApplyCompressionSettings(compressionSettings)
	return opts, cache.Unref
}

// compressionSettings spend CPU only where data stay: at the bottom.
func compressionSettings() pebble.DBCompressionSettings {
	c := pebble.DBCompressionFastest
	c.Name = "bursar"
	c.Levels[len(c.Levels)-1] = pebble.DBCompressionGood.Levels[len(c.Levels)-1]
	return c
}

func vfsNotExist(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// cleaner removes files. What is beside its embedded DeleteCleaner keeps Pebble from
// using an old log again, which would keep what is in it for as long.
type cleaner struct {
	pebble.DeleteCleaner
	unrecycled
}

type unrecycled struct{ pebble.ArchiveCleaner }
