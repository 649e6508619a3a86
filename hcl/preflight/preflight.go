// Package preflight looks whether this machine has what a daemon will need, without
// changing anything.
package preflight

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/proto/local"
)

// IsRunning reports whether a daemon answers at a unix socket.
func IsRunning(ctx context.Context, socket string) bool {
	conn, err := local.Dial(ctx, socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Listen says when a TCP address cannot be listened on: an error when another process has
// it, otherwise a warning, since the daemon may run as another user.
func Listen(address string, at hcl.Range) hcl.Diagnostics {
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return hcl.Diagnostics{hcl.Errorf(at, "address in use", "another process listens on %s: stop it, or use another port; ss -ltnp shows which", address)}
	case err != nil:
		return hcl.Diagnostics{hcl.Warnf(at, "cannot listen", "%v", err)}
	}
	_ = l.Close() // nothing has come in
	return nil
}

// Socket says when a unix socket cannot be listened on: an error when another process
// does, otherwise what [Folder] says of its folder.
func Socket(path string, at hcl.Range) hcl.Diagnostics {
	if IsRunning(context.Background(), path) {
		return hcl.Diagnostics{hcl.Errorf(at, "socket in use", "another process listens on %s: stop it, or use another socket; ss -lxp shows which", path)}
	}
	return Folder(filepath.Dir(path), at)
}

// Folder says when a folder cannot be made or written to: an error when no user could, a
// warning when this user cannot.
func Folder(path string, at hcl.Range) hcl.Diagnostics {
	there, info, err := nearest(path)
	if err == nil && info.IsDir() {
		err = unix.Faccessat(unix.AT_FDCWD, there, unix.W_OK|unix.X_OK, unix.AT_EACCESS)
	} else if err == nil {
		err = errors.New("not a folder")
	}
	task := "write to"
	if there != path {
		task = "make " + path + " in"
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrPermission):
		return hcl.Diagnostics{hcl.Warnf(at, "folder not writable", "user %d cannot %s %s: change its owner or mode, or run this as the daemon's user", os.Geteuid(), task, there)}
	}
	return hcl.Diagnostics{hcl.Errorf(at, "folder not usable", "cannot %s %s: %v", task, there, err)}
}

// nearest returns what exists of a path: itself or the folder nearest to it.
func nearest(path string) (string, fs.FileInfo, error) {
	info, err := os.Stat(path)
	for (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	return path, info, err
}
