package smime_test

import (
	"bytes"
	"crypto"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/plugins/action/apel/gridtest"
	"github.com/bursar-accounting/bursar/plugins/action/apel/internal/smime"
)

// site is an authority and the files of a host's certificate and key.
type site struct{ ca, cert, key string }

func newSite(t *testing.T, a *gridtest.Authority, key crypto.Signer) site {
	t.Helper()
	cert, file := a.Host(t, "ce1.example.org", key)
	return site{ca: a.File, cert: cert, key: file}
}

func newCurve(t *testing.T) site { return newSite(t, gridtest.New(t), gridtest.Curve(t)) }

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
		"RSA": newSite(t, gridtest.New(t), gridtest.RSA(t)), "elliptic curve": newCurve(t),
		"an intermediate authority": newSite(t, gridtest.New(t).Intermediate(t), gridtest.Curve(t)),
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
	s := newCurve(t)
	message, err := s.signer(t).Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.verify(t, bytes.Replace(message, []byte("NumberOfJobs: 1"), []byte("NumberOfJobs: 2"), 1)); err == nil {
		t.Error("a changed message was accepted")
	}
	if _, err := newCurve(t).verify(t, message); err == nil {
		t.Error("a message of another authority's host was accepted")
	}
}

// What the receiver of APEL itself does: it takes the certificate out, checks it, and
// verifies with -noverify.
func TestTheStepsOfTheReceiverFindTheHost(t *testing.T) {
	s := newCurve(t)
	message, err := s.signer(t).Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl here")
	}
	file := filepath.Join(t.TempDir(), "message")
	if err := os.WriteFile(file, append(message, "\n\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("sh", "-c", `openssl smime -pk7out <"$1" | openssl pkcs7 -print_certs | openssl x509 -noout -subject`, "sh", file).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "ce1.example.org") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestTheMessageIsMultipartSigned(t *testing.T) {
	message, err := newCurve(t).signer(t).Sign([]byte(text))
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
	a, b := newCurve(t), newCurve(t)
	if _, err := smime.Load(a.cert, b.key); err == nil || !strings.Contains(err.Error(), a.cert) {
		t.Error(err)
	}
	if _, err := smime.Load(filepath.Join(t.TempDir(), "none"), a.key); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestACertificateThatEndedIsSaidToBe(t *testing.T) {
	s := newCurve(t).signer(t)
	if err := s.Check(time.Now()); err != nil {
		t.Error(err)
	}
	if s.Check(s.Ends().Add(time.Second)) == nil || s.Check(time.Date(2019, 1, 1, 0, 0, 0, 0, time.UTC)) == nil {
		t.Error("a certificate out of its time is accepted")
	}
}

func FuzzTextOfAMessage(f *testing.F) {
	f.Add([]byte("This is an S/MIME signed message\n\n--a\nContent-Type: text/plain\n\nx\n--a\n"))
	f.Fuzz(func(_ *testing.T, message []byte) { _, _ = smime.Text(message) })
}
