package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bursar-accounting/bursar/proto/record"
)

func TestAFileWithoutItsChecksumIsDamageAndWhoRunsTheStoreIsTold(t *testing.T) {
	b := &box{t: t, o: Options{Dir: t.TempDir(), MemTableBytes: 1 << 20}, agent: map[string]*Cursor{}}
	b.open()
	var rs []record.Record
	for i := range 500 {
		rs = append(rs, sample(fmt.Sprint("r", i), i))
	}
	b.post(1, rs...)
	if err := errors.Join(b.s.Compact(), b.s.Close()); err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob(filepath.Join(b.o.Dir, "db-*", "*.sst"))
	if err != nil || len(tables) == 0 {
		t.Fatal(tables, err)
	}
	for _, name := range tables {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range raw[:len(raw)/2] {
			raw[i] ^= 1
		}
		if err := os.WriteFile(name, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Open(b.o); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the store opens with %v", err)
	}
	var told error
	b.o.Fatal = func(err error) { told = errors.Join(told, err) }
	if _, err := Open(b.o); !errors.Is(err, ErrCorrupt) || !errors.Is(told, ErrCorrupt) {
		t.Errorf("the store opens with %v, told is %v", err, told)
	}
}

// fullFS is a disk without room.
type fullFS struct{ vfs.FS }

func (f fullFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if filepath.Base(name) == "000001.log" {
		return nil, syscall.ENOSPC
	}
	file, err := f.FS.Create(name, category)
	return fullFile{file}, err
}

type fullFile struct{ vfs.File }

func (fullFile) Write([]byte) (int, error)         { return 0, syscall.ENOSPC }
func (fullFile) Sync() error                       { return syscall.ENOSPC }
func (fullFile) SyncData() error                   { return syscall.ENOSPC }
func (fullFile) SyncTo(length int64) (bool, error) { return false, syscall.ENOSPC }

func TestALogThatTakesNothingEndsTheProcessAndATableDoesNot(t *testing.T) {
	told := 0
	fs := logFS{fullFS{vfs.NewMem()}, func(err error) {
		if !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
		told++
	}}
	log, err := fs.Create("000002.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	table, err := fs.Create("000003.sst", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	reused, err := fs.ReuseForWrite("000002.log", "000004.log", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	for name, write := range map[string]func(f vfs.File) error{
		"write":     func(f vfs.File) error { _, err := f.Write([]byte("x")); return err },
		"sync":      func(f vfs.File) error { return f.Sync() },
		"sync data": func(f vfs.File) error { return f.SyncData() },
		"sync to":   func(f vfs.File) error { _, err := f.SyncTo(1); return err },
	} {
		told = 0
		if err := write(log); !errors.Is(err, syscall.ENOSPC) || told != 1 {
			t.Errorf("%s: %v, told %d times", name, err, told)
		}
		if err := write(table); !errors.Is(err, syscall.ENOSPC) || told != 1 {
			t.Errorf("%s of a table: %v, told %d times", name, err, told)
		}
	}
	if _, err := fs.Create("000001.log", vfs.WriteCategoryUnspecified); !errors.Is(err, syscall.ENOSPC) || told != 2 {
		t.Errorf("a log that cannot be made: %v, told %d times", err, told)
	}
	if _, ok := reused.(logFile); !ok {
		t.Errorf("a log that is used again is a %T", reused)
	}
}

// fullTables is a disk on which no table can be made while it is full.
type fullTables struct {
	vfs.FS

	full  atomic.Bool
	tries atomic.Int64
}

func (f *fullTables) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if strings.HasSuffix(name, ".sst") && f.full.Load() {
		f.tries.Add(1)
		return nil, syscall.ENOSPC
	}
	return f.FS.Create(name, category)
}

// Pebble tries a table that cannot be written again at once, and says so each time.
func TestAFullDiskIsSaidOnceAMinute(t *testing.T) {
	var lines atomic.Int64
	fs := &fullTables{FS: vfs.NewMem()}
	b := &box{t: t, o: Options{Dir: "/store", FS: fs, MemTableBytes: 64 << 10, Fatal: func(err error) { t.Error(err) }}, agent: map[string]*Cursor{}}
	b.o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("ERROR")) {
			lines.Add(1)
		}
		return len(line), nil
	}), nil))
	b.open()
	fs.full.Store(true)
	var ws []record.Write
	for i := range 1200 {
		ws = append(ws, put(sample(fmt.Sprint("j", i), i), 1))
	}
	b.ingest("head1", t0, ws...)
	for end := time.Now().Add(time.Minute); fs.tries.Load() < 300; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("a table was tried %d times within a minute: the test proves nothing", fs.tries.Load())
		}
	}
	if n := lines.Load(); n < 1 || n > 5 {
		t.Errorf("%d lines for %d tries", n, fs.tries.Load())
	}
	fs.full.Store(false)
	b.restart()
	sound(t, b.s)
	if err := b.s.Close(); err != nil {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
