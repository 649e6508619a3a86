package sums

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// targetBytes is how much memory an index takes after room was made: it then has place for
// the days of some more months.
func (x *Index) targetBytes() int { return x.MaxBytes / 4 * 3 }

// isNearlyFull reports whether it is time to make room, before those who follow must.
func (x *Index) isNearlyFull() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.Dir != "" && x.bytes > x.MaxBytes/8*7
}

// makeRoom drops days when memory is full. The error wraps [ErrTooLarge] when there can be
// none. The caller has the lock.
func (x *Index) makeRoom() error {
	if x.bytes <= x.MaxBytes {
		return nil
	}
	if err := x.spillOldest(); err != nil {
		return err
	}
	if x.bytes <= x.targetBytes() {
		return nil
	}
	return fmt.Errorf("%w: %d series of %d tuples need more than %d MiB; "+
		"name fewer dimensions, keys with fewer values, or a larger usage_memory",
		ErrTooLarge, len(x.slots), len(x.tuples), x.MaxBytes>>20)
}

// spillOldest drops the oldest days, after they were written to files that no head names
// yet, until there is room. It does not wait until they are on the disk: should they get lost,
// the index is made anew.
func (x *Index) spillOldest() error {
	dir := x.sumsFolder()
	if dir == "" {
		return nil
	}
	ctx := context.Background() // an index with half of it is none
	_, err := withDiskTimeout(ctx, func() (bool, error) { return true, os.MkdirAll(dir, 0o700) })
	if err == nil && x.MaySave != nil {
		err = x.MaySave()
	}
	if err != nil {
		return fmt.Errorf("%w, and the disk does not take a part of it: %w", ErrTooLarge, err)
	}
	alone := x.saving.TryLock()
	if alone {
		defer x.saving.Unlock()
	}
	for n := int32(0); int(n) < len(x.held) && x.bytes > x.targetBytes(); n++ {
		if !x.held[n] {
			continue
		}
		if err := x.spillMonth(ctx, dir, n, alone); err != nil {
			return err
		}
	}
	return nil
}

// spillMonth drops the days of a chunk. alone says that no one stores the index meanwhile,
// so that the files which it has are whole, and those that it needs no more can go.
func (x *Index) spillMonth(ctx context.Context, dir string, n int32, alone bool) (err error) {
	if m, stored := x.months[n]; alone && stored && !x.changed[n] {
		x.evictMonth(n, m)
		return nil
	}
	before, away := x.away[n]
	var base *storedReader
	if away {
		if base, err = before.readFile(ctx, dir); err != nil {
			return asDamaged(err)
		}
	}
	m, content, err := x.encodeMonth(n, base)
	if err != nil {
		return err
	}
	_, err = withDiskTimeout(ctx, func() (bool, error) { return true, os.WriteFile(filepath.Join(dir, m.name), content, 0o600) })
	if err != nil {
		return fmt.Errorf("%w, and the disk does not take a part of it: %w", ErrTooLarge, err)
	}
	x.evictMonth(n, m)
	if away && alone && before != x.months[n] {
		_ = os.Remove(filepath.Join(dir, before.name)) // what is left over goes with the next storing
	}
	return nil
}

// evictMonth drops the days of a chunk, which a file has.
func (s *sums) evictMonth(n int32, m month) {
	if s.held[n] {
		_, before := s.away[n]
		for _, se := range s.series {
			if se != nil {
				s.bytes -= se.bytes
				se.dropDays(n, !before)
				s.bytes += se.bytes
			}
		}
		if l := s.lasting[n]; l != nil {
			s.bytes -= l.memoryBytes()
		}
	}
	delete(s.lasting, n)
	delete(s.removed, n)
	s.held[n], s.away[n] = false, m
}

// evictOldest drops the oldest days that files have, until the sums take no more bytes than
// that.
func (s *sums) evictOldest(bytes int) {
	for n := int32(0); int(n) < len(s.held) && s.bytes > bytes; n++ {
		if m, stored := s.months[n]; stored && s.held[n] && !s.changed[n] {
			s.evictMonth(n, m)
		}
	}
}

// awayBytes is how much the files take whose days are not in memory.
func (s *sums) awayBytes() (size int64) {
	for _, m := range s.away {
		size += m.size
	}
	return size
}
