// Package smime signs text as `openssl smime -sign -text` does: a message of type
// multipart/signed whose second part is a detached PKCS #7 signature with SHA-256.
// It is what the receivers of APEL verify, with `openssl smime -verify`.
//
// The signature is over the first part in its canonical form: a Content-Type, a blank
// line and the text, with every line ended by CR LF. The message itself is written
// with LF, as openssl writes it; who verifies makes it canonical again.
package smime

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/smallstep/pkcs7"
)

// Signer signs with a certificate and its key. Load makes it.
type Signer struct {
	cert  *x509.Certificate
	chain []*x509.Certificate
	key   crypto.PrivateKey
}

// Load reads a signer from PEM files: the certificate first, intermediate
// certificates behind it, and the key, which must be the certificate's.
func Load(certFile, keyFile string) (*Signer, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, err)
	}
	s := &Signer{key: pair.PrivateKey}
	for i, der := range pair.Certificate {
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, fmt.Errorf("certificate %d of %s: %w", i+1, certFile, err)
		}
		if i == 0 {
			s.cert = cert
		} else {
			s.chain = append(s.chain, cert)
		}
	}
	return s, nil
}

// Subject is the certificate's subject.
func (s *Signer) Subject() string { return s.cert.Subject.String() }

// Check says why a signature of that time would not be accepted.
func (s *Signer) Check(now time.Time) error {
	switch {
	case now.Before(s.cert.NotBefore):
		return fmt.Errorf("the certificate of %s is not valid before %s", s.Subject(), s.cert.NotBefore.UTC().Format(time.RFC3339))
	case now.After(s.cert.NotAfter):
		return fmt.Errorf("the certificate of %s ended at %s", s.Subject(), s.cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Ends is when the certificate ends.
func (s *Signer) Ends() time.Time { return s.cert.NotAfter }

// partHeader is what openssl puts before the text with -text.
const partHeader = "Content-Type: text/plain\r\n\r\n"

// Sign returns the text as a signed message. The text's lines may end in LF or CR LF;
// the message has LF.
func (s *Signer) Sign(text []byte) ([]byte, error) {
	content := append([]byte(partHeader), canonicalText(text)...)
	signature, err := s.signDetached(content)
	if err != nil {
		return nil, fmt.Errorf("signing as %s: %w", s.Subject(), err)
	}
	return assembleParts(content, signature), nil
}

// signDetached makes the PKCS #7 structure without the content, in DER.
func (s *Signer) signDetached(content []byte) ([]byte, error) {
	data, err := pkcs7.NewSignedData(content)
	if err != nil {
		return nil, err
	}
	data.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	if err := data.AddSigner(s.cert, s.key, pkcs7.SignerInfoConfig{}); err != nil {
		return nil, err
	}
	for _, c := range s.chain {
		data.AddCertificate(c)
	}
	data.Detach()
	return data.Finish()
}

// canonicalText ends every line in CR LF.
func canonicalText(text []byte) []byte {
	return bytes.ReplaceAll(withLF(text), []byte("\n"), []byte("\r\n"))
}

func withLF(text []byte) []byte { return bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n")) }

// assembleParts writes the message of the two parts.
func assembleParts(content, signature []byte) []byte {
	mark := boundaryOf(content)
	var b bytes.Buffer
	fmt.Fprintf(&b, "MIME-Version: 1.0\nContent-Type: multipart/signed; protocol=\"application/x-pkcs7-signature\"; micalg=\"sha-256\"; boundary=\"%s\"\n\n", mark)
	fmt.Fprintf(&b, "%s\n--%s\n%s\n--%s\n", preamble, mark, withLF(content), mark)
	b.WriteString("Content-Type: application/x-pkcs7-signature; name=\"smime.p7s\"\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename=\"smime.p7s\"\n\n")
	text := base64.StdEncoding.EncodeToString(signature)
	for len(text) > 0 {
		n := min(len(text), 64)
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	fmt.Fprintf(&b, "\n--%s--\n\n", mark)
	return b.Bytes()
}

const preamble = "This is an S/MIME signed message\n"

// boundaryOf is a boundary that no line of the content begins with, and the same whenever the
// same is signed.
func boundaryOf(content []byte) string {
	for n := byte(0); ; n++ {
		sum := sha256.Sum256(append([]byte{n}, content...))
		mark := "----" + strings.ToUpper(hex.EncodeToString(sum[:16]))
		if !bytes.Contains(content, []byte(mark)) {
			return mark
		}
	}
}

// Text returns the text of a message that Sign made, without looking at the
// signature.
func Text(message []byte) ([]byte, error) {
	_, rest, ok := bytes.Cut(message, []byte(preamble+"\n--"))
	mark, rest, ok2 := bytes.Cut(rest, []byte("\n"))
	part, _, ok3 := bytes.Cut(rest, []byte("\n--"+string(mark)+"\n"))
	text, ok4 := bytes.CutPrefix(part, withLF([]byte(partHeader)))
	if !ok || !ok2 || !ok3 || !ok4 {
		return nil, errors.New("this is no message that was signed here")
	}
	return text, nil
}
