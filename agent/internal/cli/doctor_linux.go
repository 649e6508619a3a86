package cli

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// freeBytes is what a user may still write to the disk of dir.
func freeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("disk of %s: %w", dir, err)
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // its type differs between architectures
}

// clockSynchronised asks the kernel.
func clockSynchronised() (bool, error) {
	const unsynchronised = 0x40 // STA_UNSYNC
	var t unix.Timex
	if _, err := unix.Adjtimex(&t); err != nil {
		return false, err
	}
	return t.Status&unsynchronised == 0, nil
}
