package cluster

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"time"
)

// voteFormat is the first byte of a value in the stable store; the value and
// the CRC32C of key and value follow.
const voteFormat = 1

// retryFull is how often a write is tried again while the disk is full.
const retryFull = time.Second

// votes is a raft.StableStore, for term and vote, that notices damage. Raft
// panics when it cannot store its term, so a full disk is waited for here.
type votes struct {
	under interface {
		Set(key, value []byte) error
		Get(key []byte) ([]byte, error)
	}
	path string
	halt func(error)
	end  func()
	// voted is called once, after the first value that a member stores is on
	// disk: all but the terms 0 and 1 of a node that is being bootstrapped.
	voted    func() error
	once     sync.Once
	progress *progress // gets each term before it is used; nil: none
	writes   *logWrites
	closed   <-chan struct{}
	logger   *slog.Logger
}

func voteSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

func sealVote(key, value []byte) []byte {
	out := make([]byte, 0, len(value)+5)
	out = append(out, voteFormat)
	out = append(out, value...)
	return binary.BigEndian.AppendUint32(out, voteSum(key, value))
}

func openVote(key, stored []byte) ([]byte, error) {
	if len(stored) < 5 {
		return nil, fmt.Errorf("%w: it is cut", ErrCorrupt)
	}
	if stored[0] != voteFormat {
		return nil, fmt.Errorf("%w: format %d, this program knows %d", ErrFormat, stored[0], voteFormat)
	}
	value, sum := stored[1:len(stored)-4], stored[len(stored)-4:]
	if binary.BigEndian.Uint32(sum) != voteSum(key, value) {
		return nil, fmt.Errorf("%w: its checksum does not match", ErrCorrupt)
	}
	return value, nil
}

// Set stores a value durably.
func (v *votes) Set(key, value []byte) error {
	err := v.keepVote(key, sealVote(key, value))
	if err == nil {
		if lost := v.progress.noteStoredTerm(key, value); lost != nil {
			v.logger.Warn("the term was not recorded outside of the data directory", "error", lost)
		}
	}
	if err == nil && !isFoundingValue(key, value) {
		v.once.Do(func() { err = v.voted() })
	}
	if err != nil {
		v.halt(fmt.Errorf("cluster: raft log %s: store %s: %w", v.path, key, err))
		v.end()
	}
	return err
}

// isFoundingValue reports whether a value is that of a node without history.
func isFoundingValue(key, value []byte) bool {
	return string(key) == termKey && len(value) == 8 && binary.BigEndian.Uint64(value) <= 1
}

// keepVote writes, and waits while the disk is full.
func (v *votes) keepVote(key, sealed []byte) error {
	for told := false; ; told = true {
		end := v.writes.beginWrite()
		err := v.under.Set(key, sealed)
		end()
		if err == nil || !diskFull(err) {
			return err
		}
		if !told {
			v.logger.Error("the disk is full: waiting for space to store the raft term", "file", v.path)
		}
		select {
		case <-time.After(retryFull):
		case <-v.closed:
			return err
		}
	}
}

// Get returns a verified value; the error's text is "not found" when there is
// none, as raft expects.
func (v *votes) Get(key []byte) ([]byte, error) {
	stored, err := v.under.Get(key)
	if err != nil {
		return nil, err
	}
	value, err := openVote(key, stored)
	if err != nil {
		err = fmt.Errorf("cluster: raft log %s: %s: %w", v.path, key, err)
		v.halt(err)
	}
	return value, err
}

// SetUint64 stores a number durably.
func (v *votes) SetUint64(key []byte, n uint64) error {
	return v.Set(key, binary.BigEndian.AppendUint64(nil, n))
}

// GetUint64 returns a verified number.
func (v *votes) GetUint64(key []byte) (uint64, error) {
	value, err := v.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		err := fmt.Errorf("%w: raft log %s: %s has %d bytes", ErrCorrupt, v.path, key, len(value))
		v.halt(err)
		return 0, err
	}
	return binary.BigEndian.Uint64(value), nil
}

// diskFull reports whether err says that there is no space. bbolt flattens some
// errors to text.
func diskFull(err error) bool {
	for _, no := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT} {
		if errors.Is(err, no) || strings.Contains(err.Error(), no.Error()) {
			return true
		}
	}
	return false
}
