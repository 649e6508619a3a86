package local

import (
	"errors"
	"net"
	"syscall"
)

// Peer returns the user of the process that connected, as the kernel knows it.
func Peer(conn net.Conn) (uid int, err error) {
	unix, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("the connection is not one of a unix socket")
	}
	raw, err := unix.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *syscall.Ucred
	var asked error
	if err := raw.Control(func(fd uintptr) {
		cred, asked = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return 0, err
	}
	if asked != nil {
		return 0, asked
	}
	return int(cred.Uid), nil
}
