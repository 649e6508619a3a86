// Package identitytest makes the certificates of tests.
package identitytest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// CA is a certificate authority whose files go away with the test. What goes
// wrong ends the test.
type CA struct {
	t   testing.TB
	dir string
}

// New makes an authority.
func New(t testing.TB) *CA {
	t.Helper()
	ca := &CA{t: t, dir: t.TempDir()}
	if _, err := identity.CreateCA(ca.dir, "test", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	return ca
}

// Files makes the certificate of a peer that is reached as 127.0.0.1 and
// localhost. Each role and name can be had once.
func (ca *CA) Files(role identity.Role, name string) identity.Files {
	ca.t.Helper()
	return ca.Issue(identity.Identity{Role: role, Name: name})
}

// Issue is Files with an identity that may have roles of a client.
func (ca *CA) Issue(id identity.Identity) identity.Files {
	ca.t.Helper()
	files, err := identity.CreateCert(ca.dir, filepath.Join(ca.dir, string(id.Role)), identity.Request{
		Identity: id, Hosts: []string{"127.0.0.1", "localhost"},
	}, time.Now())
	if err != nil {
		ca.t.Fatal(err)
	}
	return files
}

// Keys makes a certificate as Files does, and loads it.
func (ca *CA) Keys(role identity.Role, name string) *identity.Keys {
	ca.t.Helper()
	keys, err := identity.Load(ca.Files(role, name))
	if err != nil {
		ca.t.Fatal(err)
	}
	return keys
}

// Client makes an HTTP client that shows the certificate of the files, and trusts
// this authority.
func (ca *CA) Client(files identity.Files) *http.Client {
	ca.t.Helper()
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		ca.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: ca.Pool(), Certificates: []tls.Certificate{cert}}}
	ca.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// Authority signs as this authority does.
func (ca *CA) Authority() *identity.Authority {
	ca.t.Helper()
	a, err := identity.LoadAuthority(ca.dir)
	if err != nil {
		ca.t.Fatal(err)
	}
	return a
}

// Pool trusts the authority.
func (ca *CA) Pool() *x509.CertPool {
	ca.t.Helper()
	pem, err := os.ReadFile(filepath.Join(ca.dir, "ca.pem"))
	pool := x509.NewCertPool()
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		ca.t.Fatal("the certificate of the authority cannot be read: ", err)
	}
	return pool
}
