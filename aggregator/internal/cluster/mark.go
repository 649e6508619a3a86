package cluster

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// markLen is the size of a mark: index, term, and the CRC32C of both, big-endian. It is
// written in place and not synced: it survives the process, and a machine's end only by
// chance.
const markLen = 20

// mark is the record of the newest entry that this node has stored.
type mark struct {
	mu     sync.Mutex
	file   *os.File // nil: nothing is recorded
	failed error
}

// openRecord reads the record; it returns zero for a missing or damaged record, as a power cut may
// leave it.
func (m *mark) openRecord(path string) (index, term uint64, err error) {
	if m.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return 0, 0, err
	}
	var b [markLen]byte
	if _, err := m.file.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, 0, err
	}
	if binary.BigEndian.Uint32(b[16:]) != crc32.Checksum(b[:16], castagnoli) {
		return 0, 0, nil
	}
	return binary.BigEndian.Uint64(b[:]), binary.BigEndian.Uint64(b[8:]), nil
}

// setEntry records an entry.
func (m *mark) setEntry(index, term uint64) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return
	}
	var b [markLen]byte
	binary.BigEndian.PutUint64(b[:], index)
	binary.BigEndian.PutUint64(b[8:], term)
	binary.BigEndian.PutUint32(b[16:], crc32.Checksum(b[:16], castagnoli))
	_, m.failed = m.file.WriteAt(b[:], 0)
}

// forgetEntry is called before the log loses its end: until the next entry is stored an older
// copy is not told from it.
func (m *mark) forgetEntry() { m.setEntry(0, 0) }

func (m *mark) lastFailure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.failed
}

func (m *mark) closeRecord() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		return nil
	}
	err := m.file.Close()
	m.file = nil
	return err
}
