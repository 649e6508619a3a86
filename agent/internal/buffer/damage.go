package buffer

import (
	"errors"
	"fmt"

	"github.com/bursar-accounting/bursar/proto/boltfile"
	"github.com/bursar-accounting/bursar/proto/frame"
)

// DamageError says that frames are there and cannot be read. It wraps
// [ErrDamaged]. No cluster gets beyond them.
type DamageError struct {
	// Path is the buffer's file.
	Path string
	// After is the last frame before the damage.
	After uint64
	// Cause is what is wrong with the chunk.
	Cause error
}

// Error implements error.
func (e *DamageError) Error() string {
	return fmt.Sprintf("%v: the frames behind %d in %s cannot be read: %v", ErrDamaged, e.After, e.Path, e.Cause)
}

// Unwrap implements errors.Unwrap.
func (e *DamageError) Unwrap() []error { return []error{ErrDamaged, e.Cause} }

// Remedy is the command that mends it.
func (e *DamageError) Remedy() string { return Remedy(e.Path) }

// Remedy is the command by which a damaged file is given up: the agent makes a new
// one and collects again from where the clusters have come to.
func Remedy(path string) string {
	return fmt.Sprintf("systemctl stop bursar-agent && mv %s %s.damaged && systemctl start bursar-agent", path, path)
}

// unreadableFile says what to do about a file that cannot be opened.
func unreadableFile(path string, err error) error {
	if !errors.Is(err, boltfile.ErrDamaged) {
		return fmt.Errorf("buffer %s: %w", path, err)
	}
	return fmt.Errorf(`%w: %w
Move the file away: %s
The agent then collects again from where the aggregators are; only records that were pushed to it and not pulled yet are lost`,
		ErrDamaged, err, Remedy(path))
}

// noteDamage makes a [DamageError] of an error that says so, and remembers it.
func (b *Buffer) noteDamage(after uint64, err error) error {
	found, ok := errors.AsType[*DamageError](b.damagedAt(after, err))
	if !ok {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.damaged = found
	return found
}

// damagedAt makes a [DamageError] of an error that says so.
func (b *Buffer) damagedAt(after uint64, err error) error {
	if !errors.Is(err, frame.ErrCorrupt) && !errors.Is(err, frame.ErrVersion) && !errors.Is(err, frame.ErrChain) && !errors.Is(err, frame.ErrRange) {
		return err
	}
	return &DamageError{Path: b.db.Path(), After: after, Cause: err}
}

// damageNow returns the damage that was found, unless it has been dropped with
// what is no longer kept.
func (b *Buffer) damageNow(s *state) *DamageError {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.damaged == nil || s.first > b.damaged.After+1 {
		return nil
	}
	return b.damaged
}
