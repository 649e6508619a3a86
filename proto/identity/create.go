package identity

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// Lifetimes of what [CreateCA] and [CreateCert] make when nothing is asked for.
const (
	LifetimeCA   = 5 * 365 * 24 * time.Hour
	LifetimeCert = 90 * 24 * time.Hour
)

// pemCertificate is the type of a certificate's block in PEM.
const pemCertificate = "CERTIFICATE"

// pemKey is that of a key's.
const pemKey = "PRIVATE KEY"

// backdate allows for clocks of peers that are behind.
const backdate = 5 * time.Minute

// CreateCA makes a new certificate authority and writes ca.pem and ca.key into
// dir. It does not replace files that are there.
func CreateCA(dir, name string, lifetime time.Duration, now time.Time) (Files, error) {
	files := Files{CA: filepath.Join(dir, "ca.pem"), Cert: filepath.Join(dir, "ca.pem"), Key: filepath.Join(dir, "ca.key")}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return files, createCertificate(template, nil, nil, files)
}

// Request says what certificate [CreateCert] makes.
type Request struct {
	Identity Identity
	// Hosts are the DNS names and IP addresses under which a server is reached.
	Hosts    []string
	Lifetime time.Duration // 0: LifetimeCert, and never longer than the CA's
}

// CreateCert makes a certificate signed by the CA whose ca.pem and ca.key are in
// caDir, and writes NAME.pem and NAME.key into dir. It does not replace files
// that are there.
func CreateCert(caDir, dir string, req Request, now time.Time) (Files, error) {
	files := Files{
		CA:   filepath.Join(caDir, "ca.pem"),
		Cert: filepath.Join(dir, req.Identity.Name+".pem"),
		Key:  filepath.Join(dir, req.Identity.Name+".key"),
	}
	if err := req.checkRequest(); err != nil {
		return files, err
	}
	ca, key, err := readCA(caDir)
	if err != nil {
		return files, err
	}
	return files, createCertificate(leafTemplate(req, ca, now), ca, key, files)
}

func (req *Request) checkRequest() error {
	if err := CheckName(req.Identity.Name); err != nil {
		return err
	}
	if req.Identity.Rights != 0 && req.Identity.Role != Client {
		return fmt.Errorf("%s: only clients have the roles %s", req.Identity, req.Identity.Rights)
	}
	return nil
}

func leafTemplate(req Request, ca *x509.Certificate, now time.Time) *x509.Certificate {
	end := now.Add(cmp.Or(req.Lifetime, LifetimeCert))
	if end.After(ca.NotAfter) {
		end = ca.NotAfter
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: req.Identity.Name},
		NotBefore:   now.Add(-backdate),
		NotAfter:    end,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		URIs:        []*url.URL{req.Identity.URI()},
	}
	if req.Identity.Role != Client {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range req.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	return template
}

func readCA(dir string) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	cert, err := readPEM(filepath.Join(dir, "ca.pem"), pemCertificate)
	if err != nil {
		return nil, nil, err
	}
	ca, err := x509.ParseCertificate(cert)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, "ca.pem"), err)
	}
	der, err := readPEM(filepath.Join(dir, "ca.key"), pemKey)
	if err != nil {
		return nil, nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", filepath.Join(dir, "ca.key"), err)
	}
	signer, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, nil, fmt.Errorf("%s: not an ECDSA key", filepath.Join(dir, "ca.key"))
	}
	return ca, signer, nil
}

func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: no %s in it", path, kind)
	}
	return block.Bytes, nil
}

// createCertificate makes a key and signs template with the parent, or with itself when
// there is none, and writes both.
func createCertificate(template, parent *x509.Certificate, signer *ecdsa.PrivateKey, files Files) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if parent == nil {
		parent, signer = template, key
	}
	cert, err := signCertificate(template, parent, key.Public(), signer)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(files.Cert), 0o750); err != nil {
		return err
	}
	if err := writePEM(files.Key, pemKey, der, 0o600); err != nil {
		return err
	}
	if err := writePEM(files.Cert, pemCertificate, cert, 0o644); err != nil {
		return errors.Join(err, os.Remove(files.Key))
	}
	return nil
}

// signCertificate makes the certificate of a public key.
func signCertificate(template, parent *x509.Certificate, public any, signer *ecdsa.PrivateKey) (der []byte, err error) {
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return nil, err
	}
	if der, err = x509.CreateCertificate(rand.Reader, template, parent, public, signer); err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	return der, nil
}

// writePEM makes a file that must not exist.
func writePEM(path, kind string, der []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Close())
}
