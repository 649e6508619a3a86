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
		return nil, fmt.Errorf("uid %d is not permitted; add it to socket_users", uid)
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

// Listen makes the socket at path, in the place of one that no process listens on. Every
// process may connect to it; a [Local] says which ones may stay. Closing the listener
// removes the socket.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // other users have to get to the socket
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := local.Listen(path, 0o666)
	if errors.Is(err, local.ErrInUse) {
		return nil, fmt.Errorf("%w; give each source slurm-epilog a socket of its own", err)
	}
	return l, err
}
