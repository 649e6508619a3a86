package intake

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// Remote lets in clients with certificates of some names.
type Remote struct {
	Keys  *identity.Keys
	Names []string // of clients
}

// Admit does the handshake.
func (d Remote) Admit(ctx context.Context, conn net.Conn) (net.Conn, error) {
	secure := tls.Server(conn, d.Keys.Server(identity.Client))
	if err := secure.HandshakeContext(ctx); err != nil {
		return nil, fmt.Errorf("only clients with a certificate of the same CA may tell of jobs: %w", err)
	}
	id, err := identity.Peer(secure.ConnectionState())
	if err != nil {
		return nil, err
	}
	if !slices.Contains(d.Names, id.Name) {
		return nil, fmt.Errorf("the certificate of %s does not tell of jobs; whose do is in listen_clients", id)
	}
	return secure, nil
}
