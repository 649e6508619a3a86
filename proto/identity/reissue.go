package identity

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bursar-accounting/bursar/proto/durable"
)

// ErrForeign is wrapped by the error about a certificate that another authority has signed.
var ErrForeign = errors.New("another authority has signed the certificate")

// Reissue signs the certificate of an aggregator or an agent anew, for the same key, name,
// hosts and lifetime. It refuses a certificate that has ended, one of another authority,
// and one that would end no later than the old one.
func (a *Authority) Reissue(old *x509.Certificate, now time.Time) (*x509.Certificate, error) {
	if err := old.CheckSignatureFrom(a.cert); err != nil {
		return nil, ErrForeign
	}
	id, err := Of(old)
	switch {
	case err != nil:
		return nil, err
	case id.Role == Client:
		return nil, fmt.Errorf("%w: %s is a client, and only daemons' certificates are renewed", ErrIdentity, id)
	case now.After(old.NotAfter):
		return nil, endedError(old)
	}
	req := Request{Identity: id, Hosts: hostsOf(old), Lifetime: old.NotAfter.Sub(Issued(old))}
	template := leafTemplate(req, a.cert, now)
	if !template.NotAfter.Truncate(time.Second).After(old.NotAfter) {
		return nil, fmt.Errorf("the authority itself ends on %s", formatDay(a.cert.NotAfter))
	}
	der, err := signCertificate(template, a.cert, old.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Issued is when an authority of this package made a certificate, which begins a little
// earlier than that.
func Issued(c *x509.Certificate) time.Time {
	if c.NotAfter.Sub(c.NotBefore) > backdate {
		return c.NotBefore.Add(backdate)
	}
	return c.NotBefore
}

// RenewAt is when a certificate is to be renewed: after two thirds of its life and up to a
// twentieth more, which its serial number chooses, so that many machines do not come at once.
func RenewAt(c *x509.Certificate) time.Time {
	life := c.NotAfter.Sub(Issued(c))
	jitter := time.Duration(0)
	if c.SerialNumber != nil {
		if b := c.SerialNumber.Bytes(); len(b) > 0 {
			jitter = life / 20 * time.Duration(b[len(b)-1]) / 256
		}
	}
	return Issued(c).Add(life*2/3 + jitter)
}

// RenewPause is how long to wait between two looks whether a certificate is to be renewed.
func RenewPause(c *x509.Certificate) time.Duration {
	return min(max(c.NotAfter.Sub(Issued(c))/360, time.Second), 10*time.Minute)
}

// Leaf returns the own certificate.
func (k *Keys) Leaf() *x509.Certificate { return k.currentContent().cert.Leaf }

// Take puts a renewed certificate of the own key, in DER, in the place of the present one,
// on disk and in use. It refuses one of another key or identity, one that does not end
// later, and one of an authority that is not trusted. A crash leaves the old or the new one.
func (k *Keys) Take(der []byte) error {
	next, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.checked = time.Time{}
	k.followFiles() // an operator may have replaced the files just now
	was := k.cert.Leaf
	key, ok := was.PublicKey.(interface {
		Equal(other crypto.PublicKey) bool
	})
	content := content{cert: &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: k.cert.PrivateKey, Leaf: next}, pool: k.pool}
	switch err := content.checkTrust(); {
	case !ok || !key.Equal(next.PublicKey):
		return fmt.Errorf("%w: the certificate is for another key", ErrIdentity)
	case err != nil:
		return fmt.Errorf("%w: %w", ErrIdentity, err)
	case !next.NotAfter.After(was.NotAfter):
		return fmt.Errorf("%w: the certificate ends on %s, no later than the present one", ErrIdentity, formatDay(next.NotAfter))
	}
	if err := k.checkSuccessor(&content); err != nil {
		return err
	}
	err = durable.ReplaceWith(k.files.Cert, 0o644, func(f *os.File) error { // certificates are public
		_, err := f.Write(EncodeCertificates(next))
		return err
	})
	if err != nil {
		return fmt.Errorf("write the renewed certificate: %w", err)
	}
	return k.readFiles()
}

// NoteRenewal keeps why the certificate is not renewed, for people; "" when nothing hinders
// it. It reports whether that is new.
func (k *Keys) NoteRenewal(why string) (isNew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	isNew, k.unrenewed = k.unrenewed != why, why
	return isNew
}

// Unrenewed is what NoteRenewal has kept since the certificate was last replaced.
func (k *Keys) Unrenewed() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.unrenewed
}
