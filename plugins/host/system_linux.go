package host

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// pathOnly opens what may not be read, to look at it.
const pathOnly = unix.O_PATH

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
