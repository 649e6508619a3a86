package serve

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	grpccreds "google.golang.org/grpc/credentials"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/text"
)

// maxPeerText bounds what is logged of a peer's certificate, in bytes.
const maxPeerText = 256

func newCredentials(keys *identity.Keys, log *slog.Logger) *credentials {
	return &credentials{TransportCredentials: grpccreds.NewTLS(keys.Server(identity.Aggregator)), keys: keys, log: log}
}

// credentials logs refused peers: each certificate from each address at most once
// a minute.
type credentials struct {
	grpccreds.TransportCredentials
	keys *identity.Keys
	log  *slog.Logger

	mu   sync.Mutex
	seen map[string]*refusals // by address
}

// refusals are what was logged of an address since a time.
type refusals struct {
	since time.Time
	what  map[string]bool
}

const (
	logEvery     = time.Minute // how often one peer's refusals are logged
	logMost      = 16          // refusals of different kinds of one address that are logged in that time
	logAddresses = 10_000      // addresses that are remembered
)

// ServerHandshake does the handshake and logs its failure. A connection ends when
// the certificate of the aggregator would not be let in any more. A connection that the
// agent has dialled has its handshake behind it.
func (c *credentials) ServerHandshake(conn net.Conn) (net.Conn, grpccreds.AuthInfo, error) {
	if d, ok := conn.(*dialled); ok {
		return d, grpccreds.TLSInfo{State: d.state, CommonAuthInfo: grpccreds.CommonAuthInfo{SecurityLevel: grpccreds.PrivacyAndIntegrity}}, nil
	}
	secure, info, err := c.TransportCredentials.ServerHandshake(conn)
	if err != nil {
		c.logRefusal(conn.RemoteAddr(), err)
		return nil, nil, err
	}
	if proved, ok := info.(grpccreds.TLSInfo); ok {
		secure = c.keys.Guard(secure, proved.State.PeerCertificates)
	}
	return secure, info, nil
}

func (c *credentials) logRefusal(addr net.Addr, err error) {
	attrs := []any{"peer", addr.String()}
	what := refusalKind(err)
	if cert := presentedCertificate(err); cert != nil {
		what = certificateHolder(cert)
		attrs = append(attrs, "certificate", what, "issuer", text.Cut(cert.Issuer.String(), maxPeerText))
	}
	if c.isNewRefusal(addr, what, time.Now()) {
		c.log.Warn("refused a connection; only aggregators with a certificate of the same CA may pull", append(attrs, "error", err)...)
	}
}

// refusalKind tells refusals apart that bear no certificate. Errors of the network name
// ports, which differ each time, so they are all one.
func refusalKind(err error) string {
	if _, network := errors.AsType[net.Error](err); network {
		return "network"
	}
	return text.Cut(err.Error(), maxPeerText)
}

// presentedCertificate is the certificate that the peer showed and that was not of the CA.
func presentedCertificate(err error) *x509.Certificate {
	v, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(v.UnverifiedCertificates) == 0 {
		return nil
	}
	return v.UnverifiedCertificates[0]
}

// certificateHolder is whom a certificate says that it is for. No one has vouched for that.
func certificateHolder(cert *x509.Certificate) string {
	var names []string
	for _, u := range cert.URIs {
		names = append(names, u.String())
	}
	if len(names) == 0 {
		names = []string{cert.Subject.String()}
	}
	return text.Cut(strings.Join(names, " "), maxPeerText)
}

// isNewRefusal reports whether no such refusal of the address was logged within the last
// minute.
func (c *credentials) isNewRefusal(addr net.Addr, what string, now time.Time) bool {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		host = addr.String()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil || len(c.seen) > logAddresses {
		c.seen = map[string]*refusals{}
	}
	r := c.seen[host]
	if r == nil || now.Sub(r.since) >= logEvery {
		r = &refusals{since: now, what: map[string]bool{}}
		c.seen[host] = r
	}
	if r.what[what] || len(r.what) >= logMost {
		return false
	}
	r.what[what] = true
	return true
}
