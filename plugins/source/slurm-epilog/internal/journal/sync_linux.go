package journal

import (
	"os"
	"syscall"
)

// fdatasync brings the file's content to the disk, with as much about it as reading
// needs.
func fdatasync(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if err != syscall.EINTR { //nolint:errorlint // it is never wrapped
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
