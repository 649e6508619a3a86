package programtest

import (
	"os"
	"syscall"
)

// WriteProgram writes an executable file that can be started at once. A plain write can fail
// later with "text file busy": a process that another goroutine starts meanwhile inherits
// the open file.
func WriteProgram[T string | []byte](path string, program T) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(program), 0o755) //nolint:gosec // it is a program
}
