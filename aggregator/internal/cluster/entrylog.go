package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"runtime"
	"sync"

	"github.com/hashicorp/raft"
	bolterrors "go.etcd.io/bbolt/errors"
)

// The first byte of raft.Log.Extensions says what follows: the CRC32C of the
// entry, big-endian, and before it, for commands to this package instead of the
// State, their kind.
const (
	sealFormat    = 1
	sealLen       = 5
	ownSealFormat = 2
	ownSealLen    = 6
)

// entryInstall is the kind of a command that replaces the State by an image.
const entryInstall byte = 1

// unsealedCommand marks a new command to this package, until it is stored and sealed.
func unsealedCommand(kind byte) []byte { return []byte{ownSealFormat, kind} }

// ownEntry returns the kind of a command to this package.
func ownEntry(l *raft.Log) (kind byte, ok bool) {
	if l.Type != raft.LogCommand || len(l.Extensions) < 2 || l.Extensions[0] != ownSealFormat {
		return 0, false
	}
	return l.Extensions[1], true
}

// entryOverhead is what an entry costs beside its data, for counting bytes.
const entryOverhead = 512

// entryLog is a raft.LogStore that gives every entry a checksum when it is first
// stored, keeps it when the entry travels, and verifies it before the entry is
// used or stored again. bbolt has none for its data pages.
type entryLog struct {
	under raft.LogStore
	path  string
	// halt is told of every error after which this node must not go on.
	halt func(error)
	// end does not return when raft would panic over an error.
	end func()
	// writes knows of the writes under way; nil for no one.
	writes *logWrites

	// mark is the record of the newest entry, written before that is confirmed; nil for
	// none.
	mark *mark

	mu      sync.Mutex
	shape   shape
	history history
	orders  map[uint64]string // checksums of the images that entries name
}

// entrySum covers what makes the entry: not AppendedAt, which is only told.
func entrySum(l *raft.Log) uint32 {
	var head [17]byte
	binary.BigEndian.PutUint64(head[:], l.Index)
	binary.BigEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	return crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, l.Data)
}

func sealEntry(l *raft.Log) {
	ext := []byte{sealFormat}
	if kind, ok := ownEntry(l); ok {
		ext = unsealedCommand(kind)
	}
	l.Extensions = binary.BigEndian.AppendUint32(ext, sealSum(l, ext))
}

// sealSum covers the kind too.
func sealSum(l *raft.Log, head []byte) uint32 {
	return crc32.Update(entrySum(l), castagnoli, head[1:])
}

func verifyEntry(l *raft.Log) error {
	switch {
	case len(l.Extensions) == 0:
		return fmt.Errorf("%w: it has no checksum", ErrCorrupt)
	case l.Extensions[0] != sealFormat && l.Extensions[0] != ownSealFormat:
		return fmt.Errorf("%w: checksum format %d, this program knows %d and %d", ErrFormat, l.Extensions[0], sealFormat, ownSealFormat)
	case len(l.Extensions) != map[byte]int{sealFormat: sealLen, ownSealFormat: ownSealLen}[l.Extensions[0]]:
		return fmt.Errorf("%w: its checksum is cut", ErrCorrupt)
	}
	head, sum := l.Extensions[:len(l.Extensions)-4], l.Extensions[len(l.Extensions)-4:]
	if binary.BigEndian.Uint32(sum) != sealSum(l, head) {
		return fmt.Errorf("%w: its checksum does not match", ErrCorrupt)
	}
	if kind, ok := ownEntry(l); ok && kind != entryInstall {
		return fmt.Errorf("%w: a command of kind %d, which a newer program wrote", ErrFormat, kind)
	}
	return nil
}

// readEntry gets an entry and verifies it; it never halts.
func (e *entryLog) readEntry(index uint64, l *raft.Log) error {
	err := e.under.GetLog(index, l)
	if errors.Is(err, raft.ErrLogNotFound) {
		return err
	}
	if err != nil && !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		err = fmt.Errorf("%w: %w", ErrCorrupt, err) // it was read and cannot be decoded
	}
	if err == nil && l.Index != index {
		err = fmt.Errorf("%w: it says that it is entry %d", ErrCorrupt, l.Index)
	}
	if err == nil {
		err = verifyEntry(l)
	}
	if err != nil {
		return fmt.Errorf("cluster: raft log %s: entry %d: %w", e.path, index, err)
	}
	return nil
}

// GetLog returns a verified entry. Damage halts the node.
func (e *entryLog) GetLog(index uint64, l *raft.Log) error {
	err := e.readEntry(index, l)
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) && !errors.Is(err, bolterrors.ErrDatabaseNotOpen) {
		e.halt(err)
		e.end()
	}
	return err
}

// StoreLog stores one entry.
func (e *entryLog) StoreLog(l *raft.Log) error { return e.StoreLogs([]*raft.Log{l}) }

// StoreLogs seals the entries that are new and verifies those that come from
// the leader. A full disk on the leader is no reason to halt: raft steps down
// and tries again. On a follower it is, for raft then misremembers its last
// entry if it had to cut its log before.
func (e *entryLog) StoreLogs(logs []*raft.Log) error {
	foreign := false
	for _, l := range logs {
		if _, own := ownEntry(l); len(l.Extensions) == 0 || (own && len(l.Extensions) == 2) {
			sealEntry(l)
			continue
		}
		foreign = true
		if err := verifyEntry(l); err != nil {
			return e.noteFailure(fmt.Errorf("cluster: entry %d from the leader: %w", l.Index, err))
		}
	}
	if err := e.storeEntries(logs); err != nil {
		err = fmt.Errorf("cluster: raft log %s: store entries: %w", e.path, err)
		if foreign || !diskFull(err) {
			return e.noteFailure(err)
		}
		return err
	}
	e.noteEntries(logs)
	return nil
}

func (e *entryLog) storeEntries(logs []*raft.Log) error {
	defer e.writes.beginWrite()()
	return e.under.StoreLogs(logs)
}

func (e *entryLog) noteFailure(err error) error {
	e.halt(err)
	return err
}

func (e *entryLog) noteEntries(logs []*raft.Log) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, l := range logs {
		e.shape.addEntry(l.Index, len(l.Data)+entryOverhead, l.Type == raft.LogCommand)
		e.history.addEntry(l.Index, l.Term, l.AppendedAt)
		delete(e.orders, l.Index)
		if _, own := ownEntry(l); own {
			e.noteOrder(l)
		}
	}
	e.mark.setEntry(e.history.newestEntry())
}

func (e *entryLog) noteOrder(l *raft.Log) {
	o, err := readOrder(l.Data)
	if err != nil {
		return // Apply says so
	}
	if e.orders == nil {
		e.orders = map[uint64]string{}
	}
	e.orders[l.Index] = o.SHA256
}

// orderedImages returns the checksums of the images that entries name.
func (e *entryLog) orderedImages() map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := map[string]bool{}
	for _, sum := range e.orders {
		out[sum] = true
	}
	return out
}

// DeleteRange removes the entries from min to max, both included.
func (e *entryLog) DeleteRange(min, max uint64) error {
	tail := e.endsAt(max)
	if tail {
		e.mark.forgetEntry()
	}
	end := e.writes.beginWrite()
	err := e.under.DeleteRange(min, max)
	end()
	if err != nil {
		return e.noteFailure(fmt.Errorf("cluster: raft log %s: delete entries %d to %d: %w", e.path, min, max, err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shape.cutRange(min, max)
	if tail {
		e.history.cutFrom(min)
	}
	maps.DeleteFunc(e.orders, func(i uint64, _ string) bool { return min <= i && i <= max })
	return nil
}

// endsAt reports whether the entry is the newest.
func (e *entryLog) endsAt(index uint64) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return index >= e.history.end
}

// pastTerms returns what is known of the terms of all entries.
func (e *entryLog) pastTerms() history {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.copyUntil(e.history.end)
}

// newestEntry returns the newest entry and its term, also where only a snapshot has it;
// zero for none.
func (e *entryLog) newestEntry() (index, term uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.newestEntry()
}

// recordNewestIn has the newest entry recorded, this one and all that follow.
func (e *entryLog) recordNewestIn(m *mark) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mark = m
	m.setEntry(e.history.newestEntry())
}

// termsUpTo returns what is known of the terms of the entries up to index.
func (e *entryLog) termsUpTo(index uint64) []termStart {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.history.copyUntil(index).starts
}

// followSnapshot notes the terms of the entries that a snapshot covers.
func (e *entryLog) followSnapshot(s snapshotMeta) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.Index > e.history.end {
		e.history = history{}
	}
	e.history.prependEarlier(s.coveredHistory())
}

// FirstIndex returns the index of the oldest entry, 0 for none.
func (e *entryLog) FirstIndex() (uint64, error) { return e.under.FirstIndex() }

// LastIndex returns the index of the newest entry, 0 for none.
func (e *entryLog) LastIndex() (uint64, error) { return e.under.LastIndex() }

// verifyEntries reads the whole log. Every entry after snapshot must be there; of the
// older ones, which only help followers, some may be missing.
func (e *entryLog) verifyEntries(snapshot uint64) error {
	first, err := e.under.FirstIndex()
	if err != nil {
		return fmt.Errorf("cluster: raft log %s: %w", e.path, err)
	}
	last, err := e.under.LastIndex()
	if err != nil {
		return fmt.Errorf("cluster: raft log %s: %w", e.path, err)
	}
	if last > snapshot && first > snapshot+1 {
		return fmt.Errorf("%w: raft log %s: it begins at entry %d, but the newest snapshot ends at %d",
			ErrCorrupt, e.path, first, snapshot)
	}
	for i := first; i <= last && last > 0; i++ {
		if err := e.verifyOne(i, snapshot); err != nil {
			return err
		}
	}
	return nil
}

func (e *entryLog) verifyOne(index, snapshot uint64) error {
	l := new(raft.Log)
	err := e.readEntry(index, l)
	if errors.Is(err, raft.ErrLogNotFound) {
		if index <= snapshot {
			return nil
		}
		return fmt.Errorf("%w: raft log %s: entry %d is missing", ErrCorrupt, e.path, index)
	}
	if err != nil {
		return err
	}
	e.noteEntries([]*raft.Log{l})
	return nil
}

// bytesAfter returns the size of the entries after index.
func (e *entryLog) bytesAfter(index uint64) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shape.bytesAfter(index)
}

// newestWithin returns how many of the newest entries fit into budget bytes.
func (e *entryLog) newestWithin(budget int64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shape.newestWithin(budget)
}

// lastCommand returns the index of the last command at or before index, 0 when
// there is none in the log.
func (e *entryLog) lastCommand(index uint64) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.shape.lastCommand(index)
}

// endGoroutine ends the calling goroutine of raft, running its deferred calls.
// Where raft cannot read an entry or store its term it panics, which would
// hide the reason under a stack trace and skip an orderly end.
func endGoroutine() { runtime.Goexit() }
