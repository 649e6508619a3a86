package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/local"
)

// socketPaths are where an aggregator of this machine has its unix socket: the one of the
// package, that one without systemd, and those of the user's own `bursar dev`, the newest
// first.
func (p *Program) socketPaths() []string {
	if p.Sockets != nil {
		return p.Sockets
	}
	return append(packagedSockets(), devSockets(p.Getenv)...)
}

// packagedSockets are those of the installed package.
func packagedSockets() []string { return []string{"/run/bursar/api.sock", "/var/lib/bursar/api.sock"} }

// nearby is an address of this machine, how it was found, and the sockets that are not for
// this user.
type nearby struct {
	address, origin string
	denied          []string
}

// nearestAddress is the address of the aggregator that commands without one speak with: the
// first socket that takes a connection, and otherwise a plain address.
func (p *Program) nearestAddress() nearby {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var n nearby
	var tried []string
	for i, path := range p.socketPaths() {
		conn, err := local.Dial(ctx, path)
		if err == nil {
			_ = conn.Close() // it was only to see
			n.address, n.origin = "unix:"+path, "the socket of this machine"
			if p.Sockets == nil && i >= len(packagedSockets()) {
				n.origin = "the socket of the newest bursar dev that runs"
			}
			return n
		}
		why := "no process listens on it"
		switch {
		case errors.Is(err, fs.ErrNotExist):
			why = "not found"
		case errors.Is(err, fs.ErrPermission):
			why = "permission denied"
			n.denied = append(n.denied, path)
		}
		tried = append(tried, path+" ("+why+")")
	}
	n.address, n.origin = cmp.Or(p.Address, defaultAddress), "the default"
	if len(tried) > 0 {
		n.origin += " after " + strings.Join(tried, ", ")
	}
	return n
}

// runtimeDir is systemd's RuntimeDirectory; "" without one.
func runtimeDir(getenv func(string) string) string {
	first, _, _ := strings.Cut(getenv("RUNTIME_DIRECTORY"), ":")
	if !filepath.IsAbs(first) {
		return ""
	}
	return first
}
