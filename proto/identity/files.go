package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// Files are where a peer's certificates are, in PEM. CA may hold several, so
// that an old and a new one are valid side by side.
type Files struct {
	CA   string
	Cert string
	Key  string
}

// Keys hold certificates that follow their files: a file that changed is read
// again at the next connection. While a new file is broken the old content
// stays in use. Keys are safe for use by many goroutines.
type Keys struct {
	files Files

	mu      sync.Mutex
	stamps  [3]stamp
	checked time.Time
	cert    *tls.Certificate
	pool    *x509.CertPool
}

type stamp struct {
	modified time.Time
	size     int64
}

// Load reads the files. The error names the file and what is wrong with it.
func Load(files Files) (*Keys, error) {
	k := &Keys{files: files}
	if err := k.read(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the files again now. On an error the old content stays in use.
func (k *Keys) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.read()
}

func (k *Keys) read() error {
	stamps := k.look()
	cert, err := tls.LoadX509KeyPair(k.files.Cert, k.files.Key)
	if err != nil {
		return fmt.Errorf("certificate %s with key %s: %w", k.files.Cert, k.files.Key, err)
	}
	if cert.Leaf == nil {
		return fmt.Errorf("certificate %s: nothing in it", k.files.Cert)
	}
	pem, err := os.ReadFile(k.files.CA)
	if err != nil {
		return fmt.Errorf("CA: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("CA %s: no certificate in it", k.files.CA)
	}
	k.cert, k.pool, k.stamps = &cert, pool, stamps
	return nil
}

func (k *Keys) look() (stamps [3]stamp) {
	for i, path := range []string{k.files.CA, k.files.Cert, k.files.Key} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size()}
		}
	}
	return stamps
}

// checkEvery bounds how often the files are looked at.
const checkEvery = time.Second

// current returns the content, read again when a file changed.
func (k *Keys) current() (*tls.Certificate, *x509.CertPool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if now := time.Now(); now.Sub(k.checked) > checkEvery {
		k.checked = now
		if k.look() != k.stamps {
			_ = k.read() // a half-written file: the old content serves until it is whole
		}
	}
	return k.cert, k.pool
}

// Identity returns the identity in the own certificate.
func (k *Keys) Identity() (Identity, error) {
	cert, _ := k.current()
	return Of(cert.Leaf)
}

// Expires returns when the own certificate ends.
func (k *Keys) Expires() time.Time {
	cert, _ := k.current()
	return cert.Leaf.NotAfter
}

// Server returns a configuration that accepts only peers of the roles, by mutual
// TLS 1.3.
func (k *Keys) Server(roles ...Role) *tls.Config {
	return k.server(tls.VersionTLS13, require("", roles...))
}

// Public returns the configuration of the REST interface: mutual TLS from 1.2 on,
// for clients and aggregators. An agent's certificate does not open it: who has
// taken over a head node writes no records of other sites.
func (k *Keys) Public() *tls.Config {
	return k.server(tls.VersionTLS12, require("", Client, Aggregator))
}

func (k *Keys) server(version uint16, verify func(tls.ConnectionState) error) *tls.Config {
	build := func() *tls.Config {
		cert, pool := k.current()
		return &tls.Config{
			MinVersion:       version,
			Certificates:     []tls.Certificate{*cert},
			ClientAuth:       tls.RequireAndVerifyClientCert,
			ClientCAs:        pool,
			VerifyConnection: verify,
			NextProtos:       []string{"h2", "http/1.1"},
		}
	}
	c := build()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(), nil }
	return c
}

// Client returns a configuration that connects only to the peer of that role
// and name; to any of the role when name is empty. The certificate is checked
// by its role and name; its host names do not count.
func (k *Keys) Client(role Role, name string) *tls.Config {
	check := require(name, role)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			cert, _ := k.current()
			return cert, nil
		},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it, by role and name instead of by host name
		VerifyConnection: func(state tls.ConnectionState) error {
			if err := k.verifyServer(&state); err != nil {
				return err
			}
			return check(state)
		},
	}
}

// verifyServer verifies the peer's chain against the CA and notes it in state.
func (k *Keys) verifyServer(state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the peer sent no certificate")
	}
	_, pool := k.current()
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	chains, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	state.VerifiedChains = chains
	return err
}
