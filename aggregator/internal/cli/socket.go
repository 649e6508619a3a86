package cli

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/local"
)

// sockets are where an aggregator of this machine has its unix socket: the one of the
// package, that one without systemd, and those of the user's own `bursar dev`, the newest
// first.
func (p *Program) sockets() []string {
	if p.Sockets != nil {
		return p.Sockets
	}
	return append([]string{"/run/bursar/api.sock", "/var/lib/bursar/api.sock"}, devSockets(p.Getenv)...)
}

// nearest is the address of the aggregator that commands without one speak with: the
// first socket that takes a connection, and otherwise a plain address.
func (p *Program) nearest() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, path := range p.sockets() {
		if conn, err := local.Dial(ctx, path); err == nil {
			_ = conn.Close() // it was only to see
			return "unix:" + path
		}
	}
	return defaultAddress
}

// runtimeDir is systemd's RuntimeDirectory; "" without one.
func runtimeDir(getenv func(string) string) string {
	first, _, _ := strings.Cut(getenv("RUNTIME_DIRECTORY"), ":")
	if !filepath.IsAbs(first) {
		return ""
	}
	return first
}
