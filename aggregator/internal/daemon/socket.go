package daemon

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"

	"github.com/bursar-accounting/bursar/proto/local"
)

// administrators is the group whose members administer a node over its unix socket,
// beside root and the user that it runs as.
const administrators = "bursar"

// openSocket opens the unix socket of local administration.
func (d *Daemon) openSocket() (net.Listener, error) {
	path := d.conf.Aggregator.SocketPath(d.RuntimeDir)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l, err := local.Listen(path, 0o600)
	if err != nil {
		return nil, err
	}
	if err := admitGroup(path); err != nil {
		return nil, errors.Join(fmt.Errorf("socket %s: %w", path, err), l.Close())
	}
	return l, nil
}

// admitGroup lets the group of administrators connect, where there is one and this
// process may give it files. Otherwise the socket stays with its user, and root.
func admitGroup(path string) error {
	group, err := user.LookupGroup(administrators)
	if err != nil {
		return nil //nolint:nilerr // there is no such group
	}
	gid, err := strconv.Atoi(group.Gid)
	if err != nil || os.Lchown(path, -1, gid) != nil {
		return nil //nolint:nilerr // this process is not of the group
	}
	return os.Chmod(path, 0o660) //nolint:gosec // its group administers
}

// socketUser names the user at the other end of the unix socket. The file system has let it
// in, so it is the user of this process, root, or a member of the group.
func (a *Aggregator) socketUser(c net.Conn) string {
	uid, err := local.Peer(c)
	if err != nil {
		a.set.Log.Warn("the user of a connection over the unix socket is unknown", "error", err)
		return "a local user"
	}
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return fmt.Sprintf("uid %d", uid)
}

// pagesAddress is how a browser on this machine asks the first plain listener; ""
// without one.
func pagesAddress(plain []net.Listener) string {
	for _, l := range plain {
		at, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			continue
		}
		if at.Addr().IsUnspecified() {
			at = netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), at.Port())
		}
		return "http://" + netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
	}
	return ""
}
