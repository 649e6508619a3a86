// Package gridtest makes certificate authorities and host certificates for tests, as
// PEM files of a test's own folder.
package gridtest

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority gives out certificates.
type Authority struct {
	File  string // its own certificate, or that of the root above it
	cert  *x509.Certificate
	key   *ecdsa.PrivateKey
	chain [][]byte // between a host's certificate and the root
}

// New makes a root authority.
func New(t testing.TB) *Authority {
	t.Helper()
	key := Curve(t)
	cert := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{Organization: []string{"Grid"}, CommonName: "Grid CA"}, IsCA: true}, &key.PublicKey, nil, key)
	a := &Authority{File: filepath.Join(t.TempDir(), "ca.pem"), cert: cert, key: key}
	savePEM(t, a.File, "CERTIFICATE", cert.Raw)
	return a
}

// Intermediate makes an authority below a, with a's root.
func (a *Authority) Intermediate(t testing.TB) *Authority {
	t.Helper()
	key := Curve(t)
	cert := issueCertificate(t, &x509.Certificate{Subject: pkix.Name{Organization: []string{"Grid"}, CommonName: "Grid CA 2"}, IsCA: true}, &key.PublicKey, a.cert, a.key)
	return &Authority{File: a.File, cert: cert, key: key, chain: append([][]byte{cert.Raw}, a.chain...)}
}

// Pool trusts the authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Ends is when certificates end. They begin in 2020, so that tests can be at any time
// between.
func Ends() time.Time { return time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC) }

// Host gives a host a certificate for that key and returns the files of certificate
// and key.
func (a *Authority) Host(t testing.TB, name string, key crypto.Signer) (certFile, keyFile string) {
	t.Helper()
	cert := issueCertificate(t, &x509.Certificate{
		Subject:  pkix.Name{Organization: []string{"Grid"}, CommonName: name},
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageEmailProtection},
	}, key.Public(), a.cert, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "hostcert.pem"), filepath.Join(dir, "hostkey.pem")
	savePEM(t, certFile, "CERTIFICATE", append([][]byte{cert.Raw}, a.chain...)...)
	savePEM(t, keyFile, "PRIVATE KEY", der)
	return certFile, keyFile
}

// Server is a certificate of 127.0.0.1 for a server.
func (a *Authority) Server(t testing.TB) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Host(t, "localhost", Curve(t)))
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// Curve makes a key on an elliptic curve, which is quick.
func Curve(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// RSA makes a key as most hosts have one.
func RSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issueCertificate(t testing.TB, c *x509.Certificate, public crypto.PublicKey, issuer *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = serial, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), Ends()
	c.BasicConstraintsValid, c.KeyUsage = true, x509.KeyUsageDigitalSignature
	if c.IsCA {
		c.KeyUsage |= x509.KeyUsageCertSign
	}
	if issuer == nil {
		issuer = c
	}
	der, err := x509.CreateCertificate(rand.Reader, c, issuer, public, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func savePEM(t testing.TB, name, kind string, ders ...[]byte) {
	t.Helper()
	var b bytes.Buffer
	for _, der := range ders {
		if err := pem.Encode(&b, &pem.Block{Type: kind, Bytes: der}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(name, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}
