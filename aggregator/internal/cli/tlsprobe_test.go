package cli_test

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
	"github.com/bursar-accounting/bursar/proto/porttest"
)

func TestTheCertificateThatADaemonUsesIsShownToWhoHasNone(t *testing.T) {
	keys := identitytest.New(t).Keys(identity.Agent, "head1")
	l, err := tls.Listen("tcp", "127.0.0.1:0", keys.Server(identity.Aggregator))
	if err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			err = conn.(*tls.Conn).HandshakeContext(t.Context())
			conn.Close()
		}
		refused <- err
	}()
	code, out, errs := (shell{}).bursar(t.Context(), "tls", "show", l.Addr().String())
	if code != 0 || !strings.Contains(out, l.Addr().String()+": agent/head1, by test, until ") || !strings.Contains(out, "it trusts test") {
		t.Errorf("%d %q %q", code, out, errs)
	}
	if err := <-refused; err == nil {
		t.Error("who has no certificate was let in")
	}
	l.Close()
	none := porttest.Free(t)
	if code, _, errs := (shell{}).bursar(t.Context(), "tls", "show", none); code != 1 || !strings.Contains(errs, none) {
		t.Errorf("nobody is there: %d %q", code, errs)
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	go func() {
		if conn, err := plain.Accept(); err == nil {
			conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			conn.Close()
		}
	}()
	if code, _, errs := (shell{}).bursar(t.Context(), "tls", "show", plain.Addr().String()); code != 1 || !strings.Contains(errs, "TLS") && !strings.Contains(errs, "tls") {
		t.Errorf("a port without TLS: %d %q", code, errs)
	}
}
