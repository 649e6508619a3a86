package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// pathOnly opens what may not be read, to look at it.
const pathOnly = unix.O_PATH

// newMemoryFile makes a file that has no name and can be sealed.
func newMemoryFile(path string) (*os.File, error) {
	name := filepath.Base(path)
	fd, err := unix.MemfdCreate(name[:min(len(name), 200)], unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), path), nil
}

// sealMemoryFile makes the file unchangeable, and checks that it can be executed.
func sealMemoryFile(f *os.File) error {
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("seal the file in memory: %w", err)
	}
	if err := unix.Access(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), unix.X_OK); err != nil {
		return fmt.Errorf("execute a file in memory: %w", err)
	}
	return nil
}

// restrainProcess limits a process that has just been started: no core files, not too
// many open files, and the first to be killed when memory runs out. What the
// system does not let us do is left.
func restrainProcess(pid int) {
	none := &unix.Rlimit{}
	_ = unix.Prlimit(pid, unix.RLIMIT_CORE, none, nil)
	files := &unix.Rlimit{Cur: maxFiles, Max: maxFiles}
	var now unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &now) == nil && now.Max > maxFiles {
		_ = unix.Prlimit(pid, unix.RLIMIT_NOFILE, files, nil)
	}
	_ = os.WriteFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", []byte("500"), 0)
}
