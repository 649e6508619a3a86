package identity

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// Renew makes a new key and a certificate for whom files.Cert is, with the same
// roles and host names, signed by the CA in caDir, and puts them in the place of
// files.Cert and files.Key. A daemon that uses them takes them over by itself.
func Renew(caDir string, files Files, lifetime time.Duration, now time.Time) (Identity, error) {
	der, err := readPEM(files.Cert, pemCertificate)
	if err != nil {
		return Identity{}, err
	}
	old, err := x509.ParseCertificate(der)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w", files.Cert, err)
	}
	id, err := Of(old)
	if err != nil {
		return id, fmt.Errorf("%s: %w", files.Cert, err)
	}
	req := Request{Identity: id, Hosts: hostsOf(old), Lifetime: lifetime}
	dir, err := os.MkdirTemp(filepath.Dir(files.Cert), ".renew-")
	if err != nil {
		return id, err
	}
	next, err := CreateCert(caDir, dir, req, now)
	if err == nil {
		err = replaceFiles(next, files)
	}
	return id, errors.Join(err, os.RemoveAll(dir))
}

// hostsOf lists the DNS names and addresses in a certificate.
func hostsOf(c *x509.Certificate) []string {
	list := slices.Clone(c.DNSNames)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	return list
}

// replaceFiles puts new files in the place of old ones, with their mode and owner where
// that is allowed.
func replaceFiles(next, old Files) error {
	for _, f := range [][2]string{{next.Key, old.Key}, {next.Cert, old.Cert}} {
		if info, err := os.Stat(f[1]); err == nil {
			if err := os.Chmod(f[0], info.Mode().Perm()); err != nil {
				return err
			}
			if uid, gid, ok := ownerOf(info); ok {
				_ = os.Chown(f[0], uid, gid) // only root may; then the caller owns both
			}
		}
	}
	if err := os.Rename(next.Key, old.Key); err != nil {
		return err
	}
	return os.Rename(next.Cert, old.Cert)
}

// WriteBundle writes the certificates of the authorities in the files, each once,
// into path, in one step.
func WriteBundle(path string, from ...string) ([]*x509.Certificate, error) {
	var out bytes.Buffer
	var list []*x509.Certificate
	for _, file := range from {
		some, err := ReadBundle(file)
		if err != nil {
			return nil, err
		}
		for _, c := range some {
			if !c.IsCA {
				return nil, fmt.Errorf("%s: %s is no authority", file, c.Subject.CommonName)
			}
			if containsCertificate(list, c) {
				continue
			}
			list = append(list, c)
			if err := pem.Encode(&out, &pem.Block{Type: pemCertificate, Bytes: c.Raw}); err != nil {
				return nil, err
			}
		}
	}
	err := durable.ReplaceWith(path, 0o644, func(f *os.File) error { // certificates are public
		_, err := out.WriteTo(f)
		return err
	})
	return list, err
}

func containsCertificate(list []*x509.Certificate, c *x509.Certificate) bool {
	for _, other := range list {
		if other.Equal(c) {
			return true
		}
	}
	return false
}
