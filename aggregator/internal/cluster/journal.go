package cluster

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// A journal is made of two files, which are used by turns. Their size never changes, so
// that the sync of an entry writes no metadata of the file system.
const (
	journalSize = 1 << 20
	// journalMost is the size of the largest batch that goes through the journal; bbolt
	// writes larger ones as fast.
	journalMost = 64 << 10

	journalHead = 20 // magic, generation, CRC32C, reserved
	frameHead   = 28 // magic, generation, number, length, CRC32C
)

var (
	journalMagic = [4]byte{'B', 'J', 'F', 1}
	frameMagic   = [4]byte{'B', 'J', 'E', 1}
)

// journal is a raft.LogStore that has a batch of entries on disk by one write and one
// sync, where bbolt needs two syncs and a write for each page on the way to a leaf. It
// moves entries to bbolt by many at a time, while others come in.
//
// Formats (for ever): a file begins with a header: "BJF\x01" | generation u64 | CRC32C
// of both u32 | 4 reserved bytes. Frames follow it: "BJE\x01" | generation u64 | number
// u64, from 0 in each file | length u32 | CRC32C u32 of the 24 bytes before and of what
// follows. A frame is a batch: entries of index, term uvarint | type u8 | nanoseconds of
// AppendedAt varint, 0 for none | length and bytes of Extensions | length and bytes of
// Data. Frames of another generation than the header's are of the past. Numbers are
// big-endian.
type journal struct {
	under raft.LogStore
	files [2]*os.File
	sync  func(*os.File) error
	syncs atomic.Uint64 // of batches that were stored, those of bbolt included

	writing sync.Mutex // guards what follows, up to mu
	// Of the file that is written to.
	current    int
	generation uint64
	number     uint64
	at         int64
	moved      chan error // result of the move that runs; nil when none does

	mu      sync.RWMutex
	indexes [2][]uint64          // that each file holds and bbolt does not
	entries map[uint64]*raft.Log // the same, by index
}

func journalPath(dir string, i int) string {
	return filepath.Join(dir, []string{"journal-a", "journal-b"}[i])
}

// openJournal opens the journal in dir and moves what it holds to bbolt.
func openJournal(dir string, under raft.LogStore) (*journal, error) {
	j, err := readJournal(dir, under)
	if err != nil {
		return nil, err
	}
	j.sync = syncFileData
	for i := range j.files {
		if j.files[i], err = openJournalFile(journalPath(dir, i)); err != nil {
			return nil, errors.Join(err, j.closeFiles())
		}
	}
	if err := errors.Join(durable.SyncDir(dir), j.moveAll()); err != nil {
		return nil, errors.Join(err, j.closeFiles())
	}
	return j, nil
}

// openJournalFile opens a file of the journal, which it makes and fills when need be.
func openJournalFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != journalSize {
		_, err = f.WriteAt(make([]byte, journalSize-min(info.Size(), journalSize)), min(info.Size(), journalSize))
		err = errors.Join(err, f.Sync())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// readJournal reads the entries that a journal in dir holds; it writes nothing. The error
// wraps [ErrCorrupt] when a batch that was on disk is damaged. A last batch whose sync had
// not ended may be cut or missing: no one was told that it is stored.
func readJournal(dir string, under raft.LogStore) (*journal, error) {
	j := &journal{under: under, entries: map[uint64]*raft.Log{}}
	var files [2]journalFile
	for i := range files {
		data, err := os.ReadFile(journalPath(dir, i))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if files[i] = parseJournalFile(data); files[i].sound && len(data) != journalSize {
			return nil, fmt.Errorf("%w: raft log %s: it has %d bytes in place of %d", ErrCorrupt, journalPath(dir, i), len(data), journalSize)
		}
		j.generation = max(j.generation, files[i].generation, files[i].newest)
	}
	order := []int{0, 1}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(files[a].generation, files[b].generation) })
	for _, i := range order {
		f := &files[i]
		if f.lost || !f.sound && f.newest > 0 { // a header lies in one sector, which is written whole or not
			return nil, fmt.Errorf("%w: raft log %s: a stored batch of entries is damaged", ErrCorrupt, journalPath(dir, i))
		}
		for _, payload := range f.frames {
			if err := j.loadFrame(i, payload); err != nil {
				return nil, fmt.Errorf("%w: raft log %s: %w", ErrCorrupt, journalPath(dir, i), err)
			}
		}
	}
	return j, nil
}

// journalFile is what a file of a journal says.
type journalFile struct {
	sound      bool   // it has a header
	generation uint64 // of the header
	frames     [][]byte
	newest     uint64 // the greatest generation of any frame
	lost       bool   // a frame is missing before the last one
}

func parseJournalFile(data []byte) (f journalFile) {
	if f.sound = len(data) >= journalHead && [4]byte(data) == journalMagic &&
		binary.BigEndian.Uint32(data[12:]) == crc32.Checksum(data[:12], castagnoli); f.sound {
		f.generation = binary.BigEndian.Uint64(data[4:])
	}
	at := min(journalHead, len(data))
	for f.sound {
		generation, number, payload, ok := parseFrame(data[at:])
		if !ok || generation != f.generation || number != uint64(len(f.frames)) {
			break
		}
		f.newest = generation
		f.frames = append(f.frames, payload)
		at += frameHead + len(payload)
	}
	for rest := data[at:]; ; rest = rest[1:] { // is anything behind that end?
		i := bytes.Index(rest, frameMagic[:])
		if i < 0 {
			return f
		}
		rest = rest[i:]
		if generation, number, _, ok := parseFrame(rest); ok {
			f.newest = max(f.newest, generation)
			f.lost = f.lost || f.sound && generation == f.generation && number > uint64(len(f.frames))
		}
	}
}

func parseFrame(b []byte) (generation, number uint64, payload []byte, ok bool) {
	if len(b) < frameHead || [4]byte(b) != frameMagic {
		return 0, 0, nil, false
	}
	generation, number = binary.BigEndian.Uint64(b[4:]), binary.BigEndian.Uint64(b[12:])
	length := int64(binary.BigEndian.Uint32(b[20:]))
	if length > int64(len(b)-frameHead) {
		return 0, 0, nil, false
	}
	payload = b[frameHead : frameHead+length]
	return generation, number, payload, binary.BigEndian.Uint32(b[24:]) == frameSum(b[:24], payload)
}

func frameSum(head, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(head, castagnoli), castagnoli, payload)
}

// loadFrame takes the entries of a frame in.
func (j *journal) loadFrame(file int, payload []byte) error {
	for len(payload) > 0 {
		l := new(raft.Log)
		var err error
		if payload, err = parseEntry(payload, l); err != nil {
			return err
		}
		j.entries[l.Index] = l
		j.indexes[file] = append(j.indexes[file], l.Index)
	}
	return nil
}

func appendEntry(b []byte, l *raft.Log) []byte {
	b = binary.AppendUvarint(b, l.Index)
	b = binary.AppendUvarint(b, l.Term)
	b = append(b, byte(l.Type))
	var appended int64
	if !l.AppendedAt.IsZero() {
		appended = l.AppendedAt.UnixNano()
	}
	b = binary.AppendVarint(b, appended)
	for _, text := range [][]byte{l.Extensions, l.Data} {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

// parseEntry reads what appendEntry wrote; the entry has memory of its own.
func parseEntry(b []byte, l *raft.Log) (rest []byte, err error) {
	r := bytes.NewReader(b)
	index, err1 := binary.ReadUvarint(r)
	term, err2 := binary.ReadUvarint(r)
	kind, err3 := r.ReadByte()
	appended, err4 := binary.ReadVarint(r)
	l.Index, l.Term, l.Type = index, term, raft.LogType(kind)
	if appended != 0 {
		l.AppendedAt = time.Unix(0, appended)
	}
	errs := []error{err1, err2, err3, err4}
	for _, to := range []*[]byte{&l.Extensions, &l.Data} {
		n, err := binary.ReadUvarint(r)
		if err == nil && n > uint64(r.Len()) {
			err = io.ErrUnexpectedEOF
		}
		if err == nil && n > 0 {
			*to = make([]byte, n)
			_, err = io.ReadFull(r, *to)
		}
		errs = append(errs, err)
	}
	return b[len(b)-r.Len():], errors.Join(errs...)
}

// StoreLog stores one entry.
func (j *journal) StoreLog(l *raft.Log) error { return j.StoreLogs([]*raft.Log{l}) }

// StoreLogs stores a batch. The entries must not be changed afterwards.
func (j *journal) StoreLogs(logs []*raft.Log) error {
	frame := append(make([]byte, 0, 4096), frameMagic[:]...)
	frame = append(frame, make([]byte, frameHead-len(frameMagic))...)
	j.writing.Lock()
	defer j.writing.Unlock()
	for _, l := range logs {
		if len(frame)+len(l.Data) > journalMost {
			j.syncs.Add(2)
			return j.under.StoreLogs(logs)
		}
		frame = appendEntry(frame, l)
	}
	if j.at+int64(len(frame)) > journalSize {
		if err := j.turnFiles(); err != nil {
			return err
		}
	}
	binary.BigEndian.PutUint64(frame[4:], j.generation)
	binary.BigEndian.PutUint64(frame[12:], j.number)
	binary.BigEndian.PutUint32(frame[20:], uint32(min(len(frame)-frameHead, math.MaxUint32)))
	binary.BigEndian.PutUint32(frame[24:], frameSum(frame[:24], frame[frameHead:]))
	f := j.files[j.current]
	if _, err := f.WriteAt(frame, j.at); err != nil {
		return err
	}
	if err := j.sync(f); err != nil {
		return err
	}
	j.syncs.Add(1)
	j.at += int64(len(frame))
	j.number++
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range logs {
		j.entries[l.Index] = l
		j.indexes[j.current] = append(j.indexes[j.current], l.Index)
	}
	return nil
}

// turnFiles goes on in the other file, and has the entries of this one moved to bbolt
// meanwhile.
func (j *journal) turnFiles() error {
	if err := j.settleMove(); err != nil {
		return err
	}
	full := j.current
	j.current = 1 - full
	j.generation++ // the other file was prepared for it
	j.number, j.at = 0, journalHead
	moved := make(chan error, 1)
	j.moved = moved
	next := j.generation + 1
	go func() { moved <- errors.Join(j.moveEntries(full), j.prepareFile(full, next)) }()
	return nil
}

// settleMove waits for the move that runs. One that failed is tried again.
func (j *journal) settleMove() error {
	if j.moved == nil {
		return nil
	}
	err := <-j.moved
	j.moved = nil
	if err == nil {
		return nil
	}
	other := 1 - j.current
	if err := errors.Join(j.moveEntries(other), j.prepareFile(other, j.generation+1)); err != nil {
		j.moved = make(chan error, 1)
		j.moved <- err
		return fmt.Errorf("move entries from the journal: %w", err)
	}
	return nil
}

// moveEntries stores in bbolt what a file holds.
func (j *journal) moveEntries(file int) error {
	j.mu.RLock()
	logs := make([]*raft.Log, 0, len(j.indexes[file]))
	for _, index := range j.indexes[file] {
		logs = append(logs, j.entries[index])
	}
	j.mu.RUnlock()
	if len(logs) == 0 {
		return nil
	}
	if err := j.under.StoreLogs(logs); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range logs {
		delete(j.entries, l.Index)
	}
	j.indexes[file] = nil
	return nil
}

// prepareFile makes a file, of which all is in bbolt, ready for a generation.
func (j *journal) prepareFile(file int, generation uint64) error {
	head := append(make([]byte, 0, journalHead), journalMagic[:]...)
	head = binary.BigEndian.AppendUint64(head, generation)
	head = binary.BigEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := j.files[file].WriteAt(head, 0); err != nil {
		return err
	}
	return j.sync(j.files[file])
}

// moveAll moves everything to bbolt and begins anew: nothing that the files hold counts
// any more.
func (j *journal) moveAll() error {
	if err := j.settleMove(); err != nil {
		return err
	}
	for i := range j.files {
		if err := j.moveEntries(i); err != nil {
			return err
		}
	}
	if err := errors.Join(j.prepareFile(0, j.generation+1), j.prepareFile(1, j.generation+2)); err != nil {
		return err
	}
	j.generation++
	j.current, j.number, j.at = 0, 0, journalHead
	return nil
}

// DeleteRange removes the entries from min to max, both included. The journal is empty
// then, so that none of them comes back.
func (j *journal) DeleteRange(min, max uint64) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	if err := j.moveAll(); err != nil {
		return err
	}
	return j.under.DeleteRange(min, max)
}

// GetLog returns an entry, or raft.ErrLogNotFound.
func (j *journal) GetLog(index uint64, l *raft.Log) error {
	j.mu.RLock()
	own := j.entries[index]
	j.mu.RUnlock()
	if own == nil {
		return j.under.GetLog(index, l)
	}
	*l = *own
	return nil
}

// FirstIndex returns the index of the oldest entry, 0 for none.
func (j *journal) FirstIndex() (uint64, error) {
	own := j.heldIndexes()
	first, err := j.under.FirstIndex()
	if len(own) > 0 && (first == 0 || own[0] < first) {
		first = own[0]
	}
	return first, err
}

// LastIndex returns the index of the newest entry, 0 for none.
func (j *journal) LastIndex() (uint64, error) {
	own := j.heldIndexes()
	last, err := j.under.LastIndex()
	if len(own) > 0 {
		last = max(last, own[len(own)-1])
	}
	return last, err
}

// heldIndexes returns the indexes of the entries that bbolt may not have, ascending.
func (j *journal) heldIndexes() []uint64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return slices.Sorted(maps.Keys(j.entries))
}

// Close moves everything to bbolt and closes the files.
func (j *journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return errors.Join(j.moveAll(), j.closeFiles())
}

// syncFileData has the content of a file on disk, and its size where that has changed.
func syncFileData(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd())) //nolint:gosec // a descriptor is small
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func (j *journal) closeFiles() (err error) {
	for _, f := range j.files {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
