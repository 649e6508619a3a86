package archive

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Schedule makes archives of this node by a plan, verifies each, and removes old
// ones after that. The node's own clock counts.
type Schedule struct {
	Archiver *Archiver
	// Cluster returns the id of the cluster whose state this node has; "" while it
	// has none.
	Cluster func() string
	// Current waits until this node has all that was acknowledged before the call.
	// The error says why no backup can be made now.
	Current func(ctx context.Context) error
	// Room returns how many bytes may be written to a directory; nil: any number.
	Room func(dir string) (int64, error)
	Log  *slog.Logger

	mu      sync.Mutex
	status  Status
	looked  bool          // status knows what is in the directory
	waits   time.Time     // since when the node is not ready for a backup; zero: it is
	retry   time.Time     // not before; zero: nothing has failed
	changed chan struct{} // closed and replaced when the plan changes
}

// Status says how the backups of a node are doing.
type Status struct {
	Plan Plan
	// Began is since when the plan holds.
	Began time.Time
	// Last is when the newest good archive was made; zero for none. Path and Bytes
	// are its file's, Took how long it took, zero when another process made it.
	Last  time.Time
	Path  string
	Bytes int64
	Took  time.Duration
	// Err says why the last one failed, nil when it did not, Remedy what to do
	// first, and Failing since when.
	Err     error
	Remedy  string
	Failing time.Time
	// Failures counts since the start.
	Failures uint64
}

const (
	// lookEvery bounds a pause, since clocks jump and machines sleep.
	lookEvery = time.Minute
	// beginEvery is the pause while the node has no cluster yet.
	beginEvery = 200 * time.Millisecond
	// retryAfter is the longest pause after a failure.
	retryAfter = 10 * time.Minute
	// readyEvery is the pause while the node is not ready, and readyMost how long
	// that is no failure: after a start the nodes have to find each other.
	readyEvery = time.Second
	readyMost  = 2 * time.Minute
)

// Set makes p the plan from now on. It may be called at any time.
func (s *Schedule) Set(p Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Plan == p {
		return
	}
	s.status = Status{Plan: p, Began: s.Archiver.Now(), Failures: s.status.Failures}
	s.looked, s.retry = false, time.Time{}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Status returns how the backups are doing.
func (s *Schedule) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Run makes backups until ctx ends. A failure is logged, shown by
// [Schedule.Status], and tried again.
func (s *Schedule) Run(ctx context.Context) error {
	for {
		pause, changed := s.nextBackup()
		if pause == 0 {
			s.makeBackup(ctx)
		}
		if pause < 0 { // there is no plan
			pause = lookEvery
		}
		timer := time.NewTimer(min(pause, lookEvery))
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// nextBackup returns how long to wait, 0 when a backup is due, and what is closed when
// the plan changes.
func (s *Schedule) nextBackup() (time.Duration, <-chan struct{}) {
	cluster := s.Cluster()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	if s.status.Plan.None() {
		return -1, s.changed
	}
	if cluster == "" {
		return beginEvery, s.changed
	}
	if !s.looked {
		s.looked = true
		s.findNewest(cluster)
	}
	now := s.Archiver.Now()
	due := s.retry
	if due.IsZero() && !s.status.Last.IsZero() && !s.status.Last.After(now) {
		due = s.status.Last.Add(s.status.Plan.Every)
	}
	return max(0, due.Sub(now)), s.changed
}

// findNewest looks for the newest archive that an earlier process has made. s.mu is
// held.
func (s *Schedule) findNewest(cluster string) {
	list, err := listKept(s.status.Plan.Dir, archiveFamily(s.Archiver.Node, cluster))
	if err != nil {
		return // the backup that is due then says so
	}
	for _, k := range list {
		meta, size, err := peekMeta(k.path)
		if err != nil || meta.Cluster != cluster {
			s.Log.Warn("an archive does not read and does not count as a backup", "file", k.path, "error", err)
			continue
		}
		s.status.Last, s.status.Path, s.status.Bytes = meta.Made, k.path, size
		return
	}
}

// peekMeta reads what an archive says of itself.
func peekMeta(path string) (meta Meta, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return meta, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return meta, 0, err
	}
	meta, err = ReadMeta(f)
	return meta, info.Size(), err
}

// makeBackup makes a backup and notes how it went.
func (s *Schedule) makeBackup(ctx context.Context) {
	plan, began := s.Status().Plan, time.Now()
	meta, path, size, err := s.writeArchive(ctx, plan)
	took := time.Since(began)
	if ctx.Err() != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.status.Plan != plan {
		return
	}
	if path != "" {
		s.status.Last, s.status.Path, s.status.Bytes, s.status.Took = meta.Made, path, size, took
		s.Log.Info("backup made and verified", "file", path, "bytes", size, "records", meta.Records, "index", meta.Index, "took", took.Round(time.Millisecond))
	}
	now := s.Archiver.Now()
	if s.isPatient(now, err) {
		return
	}
	if err == nil {
		s.status.Err, s.status.Remedy, s.status.Failing, s.retry = nil, "", time.Time{}, time.Time{}
		return
	}
	s.status.Err, s.status.Remedy = err, remedyForFailure(plan, err)
	if s.status.Failures++; s.status.Failing.IsZero() {
		s.status.Failing = now
	}
	s.retry = now.Add(min(plan.Every, retryAfter))
	s.Log.Error("the backup failed; it is tried again", "error", err, "do", s.status.Remedy, "next", s.retry)
}

// notReady says that this node may have less than what was acknowledged.
type notReady struct{ error }

// Unwrap returns the reason.
func (n notReady) Unwrap() error { return n.error }

// isPatient reports whether err is one that passes by itself and is young. s.mu is
// held.
func (s *Schedule) isPatient(now time.Time, err error) bool {
	if _, ok := errors.AsType[notReady](err); !ok {
		s.waits = time.Time{}
		return false
	}
	if s.waits.IsZero() {
		s.waits = now
	}
	if now.Sub(s.waits) > readyMost {
		return false
	}
	s.retry = now.Add(readyEvery)
	return true
}

// writeArchive makes an archive, verifies it, and removes old ones. The path is "" when
// there is no new one.
func (s *Schedule) writeArchive(ctx context.Context, p Plan) (meta Meta, path string, size int64, err error) {
	if err := sweepTemporary(p.Dir, s.Archiver.Node); err != nil {
		return meta, "", 0, fmt.Errorf("the directory of the backups: %w", err)
	}
	if err := s.Current(ctx); err != nil {
		return meta, "", 0, notReady{err}
	}
	image, err := s.Archiver.Image()
	if err != nil {
		return meta, "", 0, err
	}
	meta = image.Meta
	path = filepath.Join(p.Dir, nameOf(s.Archiver.Node, meta.Cluster, meta.Made))
	size, err = s.putArchive(ctx, image, path)
	if err = errors.Join(err, image.Close()); err != nil {
		return meta, "", 0, err
	}
	if err := removeOlder(p.Dir, archiveFamily(s.Archiver.Node, meta.Cluster), path, p.Keep); err != nil {
		return meta, path, size, fmt.Errorf("remove old backups: %w", err)
	}
	return meta, path, size, nil
}

// putArchive writes the archive beside its name, verifies it, and puts it in its place.
func (s *Schedule) putArchive(ctx context.Context, image *Image, path string) (size int64, err error) {
	if err := s.checkRoom(image, filepath.Dir(path)); err != nil {
		return 0, err
	}
	tmp := path + temporary
	size, err = writeImage(ctx, image, tmp)
	if err == nil {
		err = s.verifyArchive(ctx, image, tmp)
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		if gone := os.Remove(tmp); !errors.Is(gone, os.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return 0, err
	}
	return size, durable.SyncDir(filepath.Dir(path))
}

// checkRoom refuses an archive that may not fit; it is never larger than the image.
func (s *Schedule) checkRoom(image *Image, dir string) error {
	if s.Room == nil {
		return nil
	}
	need, err := image.filesSize()
	if err != nil {
		return err
	}
	free, err := s.Room(dir)
	if err == nil && need > free {
		err = fmt.Errorf("%w: the backup needs up to %d bytes in %s, and %d may be used", ErrNoSpace, need, dir, max(free, 0))
	}
	return err
}

// writeImage writes the archive to path and syncs it.
func writeImage(ctx context.Context, image *Image, path string) (size int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(writing{ctx, f}, 1<<20)
	err = image.Write(out)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Sync()
	}
	info, statErr := f.Stat()
	if err = errors.Join(err, statErr, f.Close()); err != nil {
		return 0, fmt.Errorf("write the backup: %w", err)
	}
	return info.Size(), nil
}

// writing ends with its context.
type writing struct {
	ctx context.Context
	w   io.Writer
}

// Write implements io.Writer.
func (w writing) Write(p []byte) (int, error) {
	if err := context.Cause(w.ctx); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// verifyArchive reads the archive back to its last byte, and derives everything again that
// can be derived from the image that it was made of.
func (s *Schedule) verifyArchive(ctx context.Context, image *Image, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	meta, err := Verify(reading{ctx, f})
	if err != nil {
		return fmt.Errorf("the backup that was just written does not read back: %s: %w", path, err)
	}
	if what := image.Meta.differenceTo(&meta); what != "" {
		return fmt.Errorf("the backup that was just written is another one: %w: %s is not in %s", ErrDamaged, what, path)
	}
	if _, err := CheckImage(ctx, filepath.Join(image.dir, "state"), image.Meta); err != nil {
		if errors.Is(err, ErrDamaged) {
			err = fmt.Errorf("%w: %w", ErrState, err)
		}
		return fmt.Errorf("check what was backed up: %w", err)
	}
	return nil
}
