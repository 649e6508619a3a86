package cli

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"net"
	"strings"
	"time"
)

// probeTimeout bounds the probe of a daemon.
const probeTimeout = 10 * time.Second

// tlsProbe is what a daemon shows everyone who connects.
type tlsProbe struct {
	cert   *x509.Certificate
	trusts []string // names of authorities
}

// isAddress tells host:port from a file.
func isAddress(arg string) bool {
	host, port, err := net.SplitHostPort(arg)
	return err == nil && host != "" && port != "" && !strings.Contains(arg, "/")
}

// probeTLS connects to a daemon without a certificate and ends before it is let in.
func probeTLS(ctx context.Context, address string) (s tlsProbe, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	dialer := tls.Dialer{Config: &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // nothing is said to it; who it is is what is looked at
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			s.trusts = authorityNames(info.AcceptableCAs)
			return new(tls.Certificate), nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			s.cert = state.PeerCertificates[0]
			return nil
		},
	}}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		err = conn.Close()
	}
	if s.cert != nil {
		return s, nil // that it wants no more of someone without a certificate is right
	}
	return s, fmt.Errorf("look at %s: %w", address, err)
}

// authorityNames are the common names of authorities.
func authorityNames(raw [][]byte) (list []string) {
	for _, der := range raw {
		var name pkix.Name
		var rdn pkix.RDNSequence
		if _, err := asn1.Unmarshal(der, &rdn); err == nil {
			name.FillFromRDNSequence(&rdn)
			list = append(list, name.CommonName)
		}
	}
	return list
}

// String says it in a line.
func (s tlsProbe) String() string {
	return fmt.Sprintf("%s; it trusts %s", describeCert(s.cert), firstNonEmpty(strings.Join(s.trusts, ", "), "everyone"))
}
