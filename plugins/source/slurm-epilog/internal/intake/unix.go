package intake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/proto/local"
)

// Local lets in processes of some users of this machine.
type Local struct{ UIDs []int }

// Admit asks the kernel who is at the other end.
func (d Local) Admit(_ context.Context, conn net.Conn) (net.Conn, error) {
	uid, err := local.Peer(conn)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(d.UIDs, uid) {
		return nil, fmt.Errorf("a process of user %d may not tell of jobs; who may is in socket_users", uid)
	}
	return conn, nil
}

// LookupUIDs returns the numbers of users, which are given by name or number, and
// which of them this machine does not know.
func LookupUIDs(users []string) (uids []int, unknown []string) {
	for _, name := range users {
		text := name
		if u, err := user.Lookup(name); err == nil {
			text = u.Uid
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 0 {
			uids = append(uids, n)
		} else {
			unknown = append(unknown, name)
		}
	}
	return uids, unknown
}

// Listen makes the socket at path, in the place of one on which nobody listens any
// more. Everybody may connect to it; a [Local] says who may stay.
func Listen(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // other users have to get to the socket
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	if conn, err := net.DialTimeout("unix", path, time.Second); err == nil {
		conn.Close()
		return nil, fmt.Errorf("socket %s: another process listens there; give each source slurm-epilog a socket of its own", path)
	}
	// Made under another name, so that it is never there half done.
	next := filepath.Join(dir, fmt.Sprintf(".%d", os.Getpid()))
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: next, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false)
	if err := errors.Join(os.Chmod(next, 0o666), os.Rename(next, path)); err != nil { //nolint:gosec // see Local
		_ = l.Close()
		_ = os.Remove(next)
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	return l, nil
}
