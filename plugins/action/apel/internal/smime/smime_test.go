package smime_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
)

// site is a CA and a host certificate of it, in files.
type site struct{ dir, ca, cert, key string }

func newSite(t *testing.T, key crypto.Signer, intermediate bool) site {
	t.Helper()
	dir := t.TempDir()
	s := site{dir: dir, ca: filepath.Join(dir, "ca.pem"), cert: filepath.Join(dir, "host.pem"), key: filepath.Join(dir, "host.key")}
	rootKey := newCurve(t)
	root := issue(t, "Grid CA", true, &rootKey.PublicKey, nil, rootKey)
	issuer, issuerKey, chain := root, rootKey, [][]byte{}
	if intermediate {
		issuerKey = newCurve(t)
		issuer = issue(t, "Grid CA 2", true, &issuerKey.PublicKey, root, rootKey)
		chain = [][]byte{issuer.Raw}
	}
	host := issue(t, "ce1.example.org", false, key.Public(), issuer, issuerKey)
	save(t, s.ca, "CERTIFICATE", root.Raw)
	save(t, s.cert, "CERTIFICATE", append([][]byte{host.Raw}, chain...)...)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	save(t, s.key, "PRIVATE KEY", der)
	return s
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newCurve(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func issue(t *testing.T, name string, ca bool, public crypto.PublicKey, issuer *x509.Certificate, key *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{Organization: []string{"Grid"}, CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: ca, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	if ca {
		template.KeyUsage |= x509.KeyUsageCertSign
	} else {
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageEmailProtection}
	}
	if issuer == nil {
		issuer = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, public, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func save(t *testing.T, name, kind string, ders ...[]byte) {
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

func (s site) signer(t *testing.T) *smime.Signer {
	t.Helper()
	signer, err := smime.Load(s.cert, s.key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// verify gives what openssl makes of a message.
func (s site) verify(t *testing.T, message []byte) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl here")
	}
	command := exec.Command("openssl", "smime", "-verify", "-CAfile", s.ca)
	command.Stdin = bytes.NewReader(message)
	var errs bytes.Buffer
	command.Stderr = &errs
	out, err := command.Output()
	if err != nil {
		t.Logf("openssl: %s", errs.String())
	}
	return string(out), err
}

const text = "APEL-sync-message: v0.1\nSite: A\nNumberOfJobs: 1\nMonth: 8\nYear: 2026\n%%\n"

func TestOpensslAcceptsTheSignature(t *testing.T) {
	for name, s := range map[string]site{
		"RSA": newSite(t, newKey(t), false), "elliptic curve": newSite(t, newCurve(t), false), "an intermediate authority": newSite(t, newKey(t), true),
	} {
		t.Run(name, func(t *testing.T) {
			for what, body := range map[string]string{
				"a message": text, "no text": "", "no newline at the end": "a: b", "CR LF": strings.ReplaceAll(text, "\n", "\r\n"),
				"dashes": "--\n------\n-- a\n", "empty lines": "\n\na\n\n", "long": strings.Repeat(text, 5000),
			} {
				message, err := s.signer(t).Sign([]byte(body))
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.verify(t, message)
				want := "Content-Type: text/plain\n\n" + strings.ReplaceAll(body, "\r\n", "\n")
				if err != nil || strings.ReplaceAll(got, "\r\n", "\n") != want {
					t.Errorf("%s: %v, openssl read %d bytes, want %d", what, err, len(got), len(want))
				}
			}
		})
	}
}

func TestAChangedMessageIsRefusedByOpenssl(t *testing.T) {
	s := newSite(t, newCurve(t), false)
	message, err := s.signer(t).Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.verify(t, bytes.Replace(message, []byte("NumberOfJobs: 1"), []byte("NumberOfJobs: 2"), 1)); err == nil {
		t.Error("a changed message was accepted")
	}
	if _, err := newSite(t, newCurve(t), false).verify(t, message); err == nil {
		t.Error("a message of another authority's host was accepted")
	}
}

// What the receiver of APEL itself does: it takes the certificate out, checks it, and
// verifies with -noverify.
func TestTheStepsOfTheReceiverFindTheHost(t *testing.T) {
	s := newSite(t, newCurve(t), false)
	message, err := s.signer(t).Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl here")
	}
	file := filepath.Join(s.dir, "message")
	if err := os.WriteFile(file, append(message, "\n\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `openssl smime -pk7out <"$1" | openssl pkcs7 -print_certs | openssl x509 -noout -subject`, "sh", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ce1.example.org") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheMessageIsMultipartSigned(t *testing.T) {
	message, err := newSite(t, newCurve(t), false).signer(t).Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	m, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		t.Fatal(err)
	}
	if kind := m.Header.Get("Content-Type"); !strings.HasPrefix(kind, "multipart/signed") || !strings.Contains(kind, "sha-256") {
		t.Error(kind)
	}
	if got, err := smime.Text(message); err != nil || string(got) != text {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := smime.Text([]byte("hello")); err == nil {
		t.Error("text was found in what was not signed")
	}
}

func TestAKeyOfAnotherCertificateIsRefused(t *testing.T) {
	a, b := newSite(t, newCurve(t), false), newSite(t, newCurve(t), false)
	if _, err := smime.Load(a.cert, b.key); err == nil || !strings.Contains(err.Error(), a.cert) {
		t.Error(err)
	}
	if _, err := smime.Load(filepath.Join(a.dir, "none"), a.key); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestACertificateThatEndedIsSaidToBe(t *testing.T) {
	s := newSite(t, newCurve(t), false).signer(t)
	if err := s.Check(time.Now()); err != nil {
		t.Error(err)
	}
	if s.Check(s.Ends().Add(time.Second)) == nil || s.Check(time.Now().Add(-2*time.Hour)) == nil {
		t.Error("a certificate out of its time is accepted")
	}
}

func FuzzTextOfAMessage(f *testing.F) {
	f.Add([]byte("This is an S/MIME signed message\n\n--a\nContent-Type: text/plain\n\nx\n--a\n"))
	f.Fuzz(func(_ *testing.T, message []byte) { _, _ = smime.Text(message) })
}
