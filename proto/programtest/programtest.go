// Package programtest gives tests the programs of this module.
package programtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Build puts programs into the folder dir. The map gives the package of each file, both
// as paths: {"plugins/bursar-source-replay": "plugins/source/replay"}. A program is
// linked once for the tests of all packages, since Go's build cache keeps what go run
// runs. It is built without the race detector, and overwrites memory that it lent (see
// proto/poison).
func Build(dir string, programs map[string]string) error {
	for file, pkg := range programs {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return err
		}
		cmd := exec.Command("go", "run", "-trimpath", "-tags", "poison", "-exec", "cp", "github.com/bursar-accounting/bursar/"+pkg, path)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}

// WriteProgram writes an executable file that can be started at once. A plain write can fail
// later with "text file busy": a process that another goroutine starts meanwhile inherits
// the open file.
func WriteProgram[T string | []byte](path string, program T) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(program), 0o755) //nolint:gosec // it is a program
}
