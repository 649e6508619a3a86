package programtest

import (
	"os"
	"syscall"
)

// WriteScript writes an executable file that can be started at once. A plain write can fail
// later with "text file busy": a process that another goroutine starts meanwhile inherits
// the open file.
func WriteScript(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700) //nolint:gosec // it is a program
}
