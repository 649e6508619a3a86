package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Authority signs certificates for keys that others have made.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// LoadAuthority reads ca.pem and ca.key of a folder.
func LoadAuthority(dir string) (*Authority, error) {
	cert, key, err := readCA(dir)
	if err != nil {
		return nil, err
	}
	if public, ok := cert.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, fmt.Errorf("%s: it is not the key of ca.pem beside it", filepath.Join(dir, "ca.key"))
	}
	return &Authority{dir: dir, cert: cert, key: key}, nil
}

// Certificate returns the authority's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// Secret returns the authority's key in PEM, as ca.key has it.
func (a *Authority) Secret() ([]byte, error) { return os.ReadFile(filepath.Join(a.dir, "ca.key")) }

// Sign makes a certificate for the key of a certificate signing request. Of the request
// only the key counts: req says for whom the certificate is.
func (a *Authority) Sign(csr *x509.CertificateRequest, req Request, now time.Time) (certificate []byte, err error) {
	if err := req.checkRequest(); err != nil {
		return nil, err
	}
	der, err := signCertificate(leafTemplate(req, a.cert, now), a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return EncodeCertificates(&x509.Certificate{Raw: der}), nil
}

// EncodeCertificates writes certificates in PEM.
func EncodeCertificates(list ...*x509.Certificate) (text []byte) {
	for _, c := range list {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: c.Raw})...)
	}
	return text
}

// ParseCertificates reads certificates in PEM. A certificate that is not whole is an error.
func ParseCertificates(text []byte) ([]*x509.Certificate, error) { return parseBundle(text) }

// pemRequest is the type of a request's block in PEM.
const pemRequest = "CERTIFICATE REQUEST"

// NewRequest makes a certificate signing request, in PEM, that proves who has the key.
func NewRequest(key *ecdsa.PrivateKey, name string) ([]byte, error) {
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: name}}, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate signing request: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemRequest, Bytes: der}), nil
}

// ParseRequest reads what NewRequest wrote, and checks that who wrote it has the key. The
// key is an ECDSA key on P-256.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != pemRequest {
		return nil, errors.New("no " + pemRequest + " in PEM")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := csr.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key is not an ECDSA key on P-256")
	}
	return csr, csr.CheckSignature()
}

// Digest identifies a certificate or a key.
type Digest [sha256.Size]byte

// MarshalText implements encoding.TextMarshaler: 64 hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Digest) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))]); err != nil || n != len(d) || len(text) != 2*len(d) {
		return fmt.Errorf("invalid digest %q: want %d hexadecimal digits", text, 2*len(d))
	}
	return nil
}

// Fingerprint is the SHA-256 of a certificate.
func Fingerprint(c *x509.Certificate) Digest { return sha256.Sum256(c.Raw) }

// KeyDigest is the SHA-256 of the public key that a request is for.
func KeyDigest(csr *x509.CertificateRequest) Digest {
	return sha256.Sum256(csr.RawSubjectPublicKeyInfo)
}

// KeepKey returns the key in a file, and makes the file when it is not there. An
// interrupted exchange can so be repeated with the same key.
func KeepKey(path string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(path, pemKey)
	if errors.Is(err, os.ErrNotExist) {
		return newKey(path)
	}
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if key, ok := key.(*ecdsa.PrivateKey); ok {
		return key, nil
	}
	return nil, fmt.Errorf("%s: not an ECDSA key", path)
}

func newKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, durable.Replace(path, pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der}))
}
