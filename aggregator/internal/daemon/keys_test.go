package daemon

import (
	"crypto/tls"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/identity"
)

func TestAClientMakesItsConnectionAnewAfterTheNodeHasRenewedItsCertificateAndNoRequestFails(t *testing.T) {
	g := newGuarded(t, access.Rules{})
	files := g.ca.Issue(identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read})
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: g.ca.Pool(), Certificates: []tls.Certificate{cert}}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	ask := func() (serial string, last bool) {
		t.Helper()
		resp, err := client.Get(g.tls + "/records")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatal(resp.Status, err)
		}
		return resp.TLS.PeerCertificates[0].SerialNumber.String(), resp.Close
	}
	first, last := ask()
	if second, _ := ask(); last || second != first {
		t.Fatalf("the connection is not kept: %t", last)
	}
	dir := filepath.Dir(files.CA)
	own := identity.Files{CA: files.CA, Cert: filepath.Join(dir, "aggregator", "agg1.pem"), Key: filepath.Join(dir, "aggregator", "agg1.key")}
	if _, err := identity.Renew(dir, own, 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := g.agg.set.Keys.Reload(); err != nil {
		t.Fatal(err)
	}
	if serial, last := ask(); serial != first || !last {
		t.Errorf("the next answer is not the last of its connection")
	}
	if serial, last := ask(); serial == first || last {
		t.Error("the connection after it shows the certificate of before")
	}
}
