package join

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/identity"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// DefaultPort is where aggregators listen with TLS when nothing else is said.
const DefaultPort = "8443"

// ErrAuthority says that the server has another authority than the token names.
var ErrAuthority = errors.New("the server does not have the authority that the token names")

// patience bounds each exchange.
const patience = 30 * time.Second

// Address adds the usual port to a host without one.
func Address(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), DefaultPort)
}

// Pin connects to a server without trust, fetches its authorities, and returns the client
// side of TLS that trusts only the authority with the fingerprint, and only aggregators.
// Nothing secret is sent. The error wraps [ErrAuthority] when the server has another one.
func Pin(ctx context.Context, address string, fingerprint identity.Digest) (*tls.Config, error) {
	offer, err := fetchOffer(ctx, address)
	if err != nil {
		return nil, err
	}
	list, err := identity.ParseCertificates([]byte(offer.Authorities))
	if err != nil {
		return nil, fmt.Errorf("the authorities of %s: %w", address, err)
	}
	at := slices.IndexFunc(list, func(c *x509.Certificate) bool { return identity.Fingerprint(c) == fingerprint })
	if at < 0 {
		return nil, fmt.Errorf("%w: another machine answers as %s, or the token is of another cluster; nothing secret was sent", ErrAuthority, address)
	}
	pool := x509.NewCertPool()
	pool.AddCert(list[at])
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, VerifyConnection: onlyAggregator}, nil
}

func fetchOffer(ctx context.Context, address string) (offer v1.JoinOffer, err error) {
	c, err := client.New(client.Options{Address: "https://" + address, Timeout: patience, TLS: &tls.Config{
		MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, //nolint:gosec // the fingerprint decides what is trusted of the answer
	}})
	if err != nil {
		return offer, err
	}
	defer c.Close()
	return c.JoinOffer(ctx)
}

func onlyAggregator(state tls.ConnectionState) error {
	id, err := identity.Peer(state)
	if err == nil && id.Role != identity.Aggregator {
		err = fmt.Errorf("%w: %s answers, which is no aggregator", identity.ErrIdentity, id)
	}
	return err
}

// Request is what a machine wants to be.
type Request struct {
	Role    identity.Role
	Name    string
	Address string   // where the cluster reaches it, as host:port
	Hosts   []string // names in the certificate of an aggregator
	Key     *ecdsa.PrivateKey
}

// Join exchanges the token for a certificate. It can be repeated with the same key.
func Join(ctx context.Context, address string, t Token, r Request) (v1.Joined, error) {
	config, err := Pin(ctx, address, t.Authority)
	if err != nil {
		return v1.Joined{}, err
	}
	csr, err := identity.NewRequest(r.Key, r.Name)
	if err != nil {
		return v1.Joined{}, err
	}
	c, err := client.New(client.Options{Address: "https://" + address, Timeout: patience, TLS: config})
	if err != nil {
		return v1.Joined{}, err
	}
	defer c.Close()
	return c.Join(ctx, v1.JoinRequest{
		Token: t.String(), Role: string(r.Role), Name: r.Name, Address: r.Address, Hosts: r.Hosts, Request: string(csr),
	})
}

// Way returns the address of this machine from which it reaches the server.
func Way(ctx context.Context, address string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	return host, err
}
