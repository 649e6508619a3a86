//go:build e2e

package faults

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// socketOwner returns the name of the process, out of those given by id, that has the
// socket bound to addr; "" when none has.
func socketOwner(addr *net.TCPAddr, pids map[int]string) string {
	inode := inodeOf(addr)
	if inode == "" {
		return ""
	}
	link := "socket:[" + inode + "]"
	for pid, name := range pids {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if target, err := os.Readlink(fd); err == nil && target == link {
				return name
			}
		}
	}
	return ""
}

// inodeOf finds the socket bound to a loopback address in the kernel's table.
func inodeOf(addr *net.TCPAddr) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	ip := addr.IP.To4()
	want := fmt.Sprintf("%02X%02X%02X%02X:%04X", ip[3], ip[2], ip[1], ip[0], addr.Port)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		const local, inode = 1, 9
		if len(fields) > inode && fields[local] == want && fields[inode] != "0" {
			return fields[inode]
		}
	}
	return ""
}
