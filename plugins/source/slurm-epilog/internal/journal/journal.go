package journal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/plugins/source/slurm-epilog/internal/event"
	"github.com/bursar-accounting/bursar/proto/durable"
)

// ErrClosed is the error of a journal that was closed.
var ErrClosed = errors.New("the journal is closed")

// ErrFull is the error of a journal that holds as much as it may of what is not
// settled.
var ErrFull = errors.New("the journal is full")

// Options of Open.
type Options struct {
	Dir string
	Log *slog.Logger

	// Keep is how long an entry stays after it was settled.
	Keep time.Duration
	// MaxSize bounds the segments together, in bytes; 0: 1 GiB.
	MaxSize int64
	// Segment is the size beyond which another segment is begun; 0: 4 MiB.
	Segment int64

	// Committed is called with entries that have come to the disk, in their order,
	// before those who brought them are told. It must not call the journal.
	Committed func([]Entry)
}

// Journal is open in one process at a time. Its methods are safe for many goroutines.
type Journal struct {
	opt   Options
	lock  *os.File
	queue chan *write

	closing   chan struct{}
	closeOnce sync.Once
	wrote     sync.WaitGroup

	mu       sync.Mutex // guards what follows; the writer holds it while it writes
	file     *os.File   // nil: begin a segment
	size     int64      // of file
	total    int64      // of all segments
	last     int64      // the last stamp
	segments []segment  // the last one is file's, where that is open
	recent   recent
}

type write struct {
	event event.Event
	done  chan error
}

// Open opens the journal in a folder, which it makes. While another process has it
// open it waits, until ctx ends.
func Open(ctx context.Context, opt Options) (*Journal, error) {
	if opt.MaxSize == 0 {
		opt.MaxSize = 1 << 30
	}
	if opt.Segment == 0 {
		opt.Segment = 4 << 20
	}
	if err := os.MkdirAll(opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	lock, err := acquire(ctx, filepath.Join(opt.Dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{opt: opt, lock: lock, queue: make(chan *write), closing: make(chan struct{})}
	if err := j.load(); err != nil {
		lock.Close()
		return nil, fmt.Errorf("journal: %w", err)
	}
	j.wrote.Go(j.run)
	return j, nil
}

// acquire takes a lock that ends with the process.
func acquire(ctx context.Context, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock %s: another process has it: %w", path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// load finds the last stamp and what came last.
func (j *Journal) load() error {
	var err error
	if j.segments, err = list(j.opt.Dir); err != nil {
		return err
	}
	for i, s := range j.segments {
		info, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		j.total += info.Size()
		j.last = max(j.last, s.after)
		if i < len(j.segments)-2 {
			continue
		}
		whole, err := s.read(func(e Entry) error {
			j.last = max(j.last, e.Stamp)
			j.recent.add(e.ID)
			return nil
		}, j.odd)
		if err != nil {
			return err
		}
		if err := j.cut(s, info.Size()-whole); err != nil {
			return err
		}
	}
	return nil
}

// cut takes away the rest of a write that a crash cut off.
func (j *Journal) cut(s segment, rest int64) error {
	if rest <= 0 {
		return nil
	}
	info, err := os.Stat(s.path)
	if err == nil {
		err = os.Truncate(s.path, info.Size()-rest)
	}
	j.total -= rest
	return err
}

func (j *Journal) odd(err error) {
	j.opt.Log.Warn("skipping corrupt entry of the journal; after a crash this is the rest of an entry that was not acknowledged", "error", err)
}

// Append returns after the event is on disk. An event that came before is taken for
// the same.
func (j *Journal) Append(e event.Event) error {
	w := &write{e, make(chan error, 1)}
	select {
	case j.queue <- w:
		return <-w.done
	case <-j.closing:
		return ErrClosed
	}
}

// AppendAll is Append for many, which share syncs.
func (j *Journal) AppendAll(events []event.Event) error {
	done := make(chan error, 1)
	for _, e := range events {
		go func() { done <- j.Append(e) }()
	}
	var err error
	for range events {
		err = errors.Join(err, <-done)
	}
	return err
}

// maxGroup is how many events share one sync.
const maxGroup = 512

func (j *Journal) run() {
	for {
		select {
		case w := <-j.queue:
			j.commit(j.gather(w))
		case <-j.closing:
			return
		}
	}
}

// gather takes what waits beside w.
func (j *Journal) gather(w *write) []*write {
	group := []*write{w}
	for len(group) < maxGroup {
		select {
		case w := <-j.queue:
			group = append(group, w)
		default:
			return group
		}
	}
	return group
}

// commit writes a group and tells those who wait.
func (j *Journal) commit(group []*write) {
	entries, err := j.write(group)
	if err == nil && len(entries) > 0 && j.opt.Committed != nil {
		j.opt.Committed(entries)
	}
	for _, w := range group {
		w.done <- err
	}
}

func (j *Journal) write(group []*write) ([]Entry, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var entries []Entry
	var text []byte
	var err error
	fresh := map[string]bool{}
	for _, w := range group {
		if j.recent.has(w.event.ID) || fresh[w.event.ID] {
			continue
		}
		fresh[w.event.ID] = true
		j.last = max(j.last+1, time.Now().UnixMicro())
		entries = append(entries, Entry{j.last, w.event})
		if text, err = appendEntry(text, &entries[len(entries)-1]); err != nil {
			return nil, err
		}
	}
	if len(text) == 0 {
		return nil, nil
	}
	if err := j.put(text, entries[0].Stamp-1); err != nil {
		return nil, err
	}
	for id := range fresh {
		j.recent.add(id)
	}
	return entries, nil
}

// put appends text to the last segment and syncs it. After an error the segment is
// done with: what of it is on disk nobody knows, and what may be there was true.
func (j *Journal) put(text []byte, after int64) error {
	if j.total+int64(len(text)) > j.opt.MaxSize {
		return fmt.Errorf("%w: %d bytes in %s wait for what slurmdbd says, or are kept for looking again", ErrFull, j.total, j.opt.Dir)
	}
	if j.file == nil || j.size+int64(len(text)) > j.opt.Segment {
		if err := j.begin(after); err != nil {
			return err
		}
	}
	n, err := j.file.Write(text)
	j.size += int64(n)
	j.total += int64(n)
	if err == nil {
		err = fdatasync(j.file)
	}
	if err != nil {
		j.file.Close()
		j.file = nil
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// begin makes another segment.
func (j *Journal) begin(after int64) error {
	path := segmentPath(j.opt.Dir, after)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600)
	if err == nil {
		if _, err = f.WriteString(header); err == nil {
			err = errors.Join(f.Sync(), durable.SyncDir(j.opt.Dir))
		}
		if err != nil {
			f.Close()
			_ = os.Remove(path) // the next attempt has another name anyway
		}
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.size = f, int64(len(header))
	j.total += j.size
	j.segments = append(j.segments, segment{path, after})
	return nil
}

// After calls yield with the entries behind a stamp, in their order. Those that are
// appended meanwhile may be among them.
func (j *Journal) After(stamp int64, yield func(Entry) error) error {
	j.mu.Lock()
	segments := append([]segment(nil), j.segments...)
	growing := j.file != nil
	j.mu.Unlock()
	for i, s := range segments {
		if i+1 < len(segments) && segments[i+1].after <= stamp {
			continue
		}
		odd := j.odd
		if growing && i == len(segments)-1 {
			odd = func(error) {} // a line is being written
		}
		_, err := s.read(func(e Entry) error {
			if e.Stamp <= stamp {
				return nil
			}
			return yield(e)
		}, odd)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was settled and went meanwhile
		}
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	return nil
}

// Raise makes all later stamps greater than one that was seen elsewhere.
func (j *Journal) Raise(stamp int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = max(j.last, stamp)
}

// Last is the stamp of the last entry, or a greater one.
func (j *Journal) Last() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Settled says that nobody needs the entries up to a stamp but to look at them
// again. Segments of them go when they are older than what is kept, and early when
// the journal has used half of its size.
func (j *Journal) Settled(stamp int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	old := time.Now().Add(-j.opt.Keep).UnixMicro()
	for len(j.segments) > 1 { // the last one keeps the last stamp
		end := j.segments[1].after // no stamp of the first one is greater
		if end > stamp || end > old && j.total < j.opt.MaxSize/2 {
			return
		}
		info, err := os.Stat(j.segments[0].path)
		if err == nil {
			err = os.Remove(j.segments[0].path)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			j.opt.Log.Warn("an old segment of the journal of epilogs cannot be removed", "error", err)
			return
		}
		if info != nil {
			j.total -= info.Size()
		}
		j.segments = j.segments[1:]
	}
}

// Close closes the journal. What is being appended is finished or refused.
func (j *Journal) Close() error {
	j.closeOnce.Do(func() { close(j.closing) })
	j.wrote.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	var err error
	if j.file != nil {
		err = j.file.Close()
		j.file = nil
	}
	return errors.Join(err, j.lock.Close())
}
