package join_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/commandline"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/join"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// serve answers as an aggregator whose certificate is valid from then till then, and returns
// its address and the fingerprint of its authority.
func serve(t *testing.T, from, till time.Time, usage ...x509.ExtKeyUsage) (address string, authority identity.Digest) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(template, parent *x509.Certificate) *x509.Certificate {
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return cert
	}
	now := time.Now()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.AddDate(-1, 0, 0), NotAfter: now.AddDate(1, 0, 0), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	ca = sign(ca, ca)
	leaf := sign(&x509.Certificate{SerialNumber: big.NewInt(2), NotBefore: from, NotAfter: till, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: usage}, ca)
	offer := v1.JoinOffer{Authorities: string(identity.EncodeCertificates(ca))}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(offer); err != nil {
			t.Error(err)
		}
	}))
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{leaf.Raw, ca.Raw}, PrivateKey: key}}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), identity.Fingerprint(ca)
}

func TestExplain_CertificateOfAnotherTime_SaysThatTheClocksDiffer(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for name, c := range map[string]struct {
		from, till time.Time
		usage      x509.ExtKeyUsage
		do         string
	}{
		"not yet valid":   {now.Add(time.Hour), now.Add(2 * time.Hour), x509.ExtKeyUsageServerAuth, "date   # does the clock of this machine differ from that of the aggregator?"},
		"expired":         {now.Add(-2 * time.Hour), now.Add(-time.Hour), x509.ExtKeyUsageServerAuth, "date   # does the clock of this machine differ from that of the aggregator?"},
		"not of a server": {now.Add(-time.Hour), now.Add(time.Hour), x509.ExtKeyUsageClientAuth, "bursar status   # on the aggregator's node"},
	} {
		t.Run(name, func(t *testing.T) {
			address, authority := serve(t, c.from, c.till, c.usage)
			_, err := join.Join(t.Context(), address, join.New(authority), join.Request{Role: identity.Agent, Name: "head1", Key: key})
			r, ok := errors.AsType[commandline.Refusal](join.Explain(err, address, "{} HOST:PORT TOKEN", "agent"))
			if !ok || !strings.HasPrefix(r.Do, c.do) || strings.Contains(r.Do, "HOST:PORT") || !strings.Contains(r.Tried, address) {
				t.Errorf("%v: %+v", err, r)
			}
		})
	}
}
