package intake

import (
	"errors"
	"net"
	"syscall"
)

// peer returns the user of the process at the other end, as the kernel knows it.
func peer(conn net.Conn) (uid int, err error) {
	local, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("this is no unix socket")
	}
	raw, err := local.SyscallConn()
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
