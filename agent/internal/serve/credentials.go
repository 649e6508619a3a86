package serve

import (
	"log/slog"
	"net"
	"sync"
	"time"

	grpccreds "google.golang.org/grpc/credentials"

	"github.com/bursar-accounting/bursar/proto/identity"
)

func tlsCredentials(keys *identity.Keys) grpccreds.TransportCredentials {
	return grpccreds.NewTLS(keys.Server(identity.Aggregator))
}

// credentials logs refused peers: each address at most once a minute.
type credentials struct {
	grpccreds.TransportCredentials
	log *slog.Logger

	mu   sync.Mutex
	seen map[string]time.Time
}

// logEvery is how often one peer's refusals are logged.
const logEvery = time.Minute

// ServerHandshake does the handshake and logs its failure.
func (c *credentials) ServerHandshake(conn net.Conn) (net.Conn, grpccreds.AuthInfo, error) {
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil && c.first(conn.RemoteAddr()) {
		c.log.Warn("refused a connection; only aggregators with a certificate of the same CA may pull", "peer", conn.RemoteAddr().String(), "error", err)
	}
	return secure, info, err
}

// first reports whether the peer was not logged within the last minute.
func (c *credentials) first(addr net.Addr) bool {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		host = addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.seen == nil || len(c.seen) > 10_000 {
		c.seen = map[string]time.Time{}
	}
	if now.Sub(c.seen[host]) < logEvery {
		return false
	}
	c.seen[host] = now
	return true
}
