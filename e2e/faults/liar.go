//go:build e2e

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// liarMark is the first argument of this program when it is to become another one
// whose syncs do nothing.
const liarMark = "-become-a-program-that-does-not-sync"

// Liar returns the command line before a program that makes all its syncs return
// at once with success and do nothing: a kernel filter answers them. So the very
// program of a release runs with fsync off.
func Liar() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return []string{self, liarMark}, nil
}

// IsLiar reports whether this process was started by [Liar]'s command line.
func IsLiar() bool { return len(os.Args) > 2 && os.Args[1] == liarMark }

// RunLiar becomes the program that the arguments name. It does not return.
func RunLiar() {
	runtime.LockOSThread() // the filter is one of the thread that executes
	err := installFilter()
	if err == nil {
		var path string
		if path, err = exec.LookPath(os.Args[2]); err == nil {
			err = syscall.Exec(path, os.Args[2:], os.Environ())
		}
	}
	fmt.Fprintln(os.Stderr, "become a program that does not sync:", err)
	os.Exit(1)
}

// installFilter installs the filter.
func installFilter() error {
	syncs := []uint32{unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_MSYNC, unix.SYS_SYNC, unix.SYS_SYNCFS, unix.SYS_SYNC_FILE_RANGE}
	const nr = 0 // offset of the number of the call in struct seccomp_data
	filter := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: nr}}
	for i, call := range syncs {
		filter = append(filter, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: call, Jt: uint8(len(syncs) - i)})
	}
	filter = append(filter,
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO}) // error number 0: success
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}
