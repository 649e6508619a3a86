//go:build !linux

package process

import "syscall"

// Attributes of a new process: a process group of its own, so that all its children can
// be killed.
func Attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func awaitExit(int) {}
