package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
)

// ErrInUse is wrapped by the error of [Listen] when another process listens there.
var ErrInUse = errors.New("another process listens on it")

// Listen makes a socket at path, in place of one that no process listens on. Who may
// write to the file may connect, from the first moment on. Closing the listener
// removes the file.
func Listen(path string, mode fs.FileMode) (net.Listener, error) {
	if conn, err := Dial(context.Background(), path); err == nil {
		conn.Close()
		return nil, fmt.Errorf("socket %s: %w", path, ErrInUse)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket: %w", err)
	}
	near, done, err := shortPath(path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer done()
	// The kernel gives the file the mode of the descriptor, less the umask.
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), uint32(mode.Perm())) }), err)
	}}
	l, err := config.Listen(context.Background(), "unix", near)
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, mode.Perm()); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return &listener{l, path}, nil
}

// listener removes its socket when it is closed.
type listener struct {
	net.Listener

	path string
}

// Close closes the listener and removes the socket.
func (l *listener) Close() error {
	err := l.Listener.Close()
	if errors.Is(err, net.ErrClosed) {
		return err // the file may be another one's by now
	}
	if gone := os.Remove(l.path); !errors.Is(gone, os.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// Addr returns the path as it was given.
func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Dial connects to the socket at path.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	near, done, err := shortPath(path)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: "unix", Err: err}
	}
	defer done()
	return new(net.Dialer).DialContext(ctx, "unix", near)
}

// longest is how long the path of a socket may be.
const longest = 104

// shortPath gives a path of the socket that the system takes: a long one goes
// through the open folder. The caller calls done after the path is used.
func shortPath(path string) (near string, done func(), err error) {
	if len(path) < longest {
		return path, func() {}, nil
	}
	return throughFolder(path)
}

// IsLoopback reports whether a host, a name or an address without a port, is reached by this
// machine alone: localhost or an address of loopback.
func IsLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
