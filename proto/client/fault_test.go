package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
)

// A server that wants a certificate and gets none says so after the handshake, when the
// client is in the midst of a long body: the error names the certificate, not a broken pipe.
func TestFaultOf_MissingCertificate_IsNotABrokenPipe(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.EnableHTTP2 = http2
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.TLS = &tls.Config{MinVersion: version, MaxVersion: version, ClientAuth: tls.RequireAnyClientCert}
			server.StartTLS()
			pool := x509.NewCertPool()
			pool.AddCert(server.Certificate())
			explained := 0
			c, err := New(Options{Address: server.URL, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, Explain: func(at string, err error) error {
				if at == server.URL && FaultOf(err) == WantsCertificate {
					explained++
				}
				return err
			}})
			if err != nil {
				t.Fatal(err)
			}
			for range 20 {
				err := c.Upload(t.Context(), http.MethodPost, "/v1/x", nil, "text/plain", io.LimitReader(zeros{}, 8<<20), nil)
				if FaultOf(err) != WantsCertificate || strings.Contains(err.Error(), "pipe") {
					t.Errorf("HTTP/2 %v, TLS %x: %v", http2, version, err)
				}
			}
			if explained != 20 {
				t.Errorf("%d of 20 errors were explained", explained)
			}
			c.Close()
			server.Close()
		}
	}
}

// What net/http says of a connection that ended, or spoke, before the request was written.
func TestReason_ConnectionEndedBeforeTheRequest_IsWhatEndedIt(t *testing.T) {
	for text, want := range map[string]Fault{
		"readLoopPeekFailLocked: remote error: tls: certificate required":        WantsCertificate,
		"readLoopPeekFailLocked: read tcp 127.0.0.1:1: connection reset by peer": OtherFault,
		"readLoopPeekFailLocked: %!w(<nil>)":                                     Foreign,
	} {
		for _, target := range []string{"http://127.0.0.1:1", "https://127.0.0.1:1"} {
			if got := FaultOf(new(Client).explainFailure(t.Context(), target, errors.New(text))); got != want {
				t.Errorf("%s, %s: %v, want %v", target, text, got, want)
			}
		}
	}
}

// What a socket of another user says, for root can open each.
func TestFaultOf_SocketOfAnotherUser_IsNoPermission(t *testing.T) {
	for errno, want := range map[syscall.Errno]Fault{syscall.EACCES: NoPermission, syscall.EPERM: NoPermission, syscall.ECONNREFUSED: Unreached, syscall.ENOENT: Unreached} {
		err := &url.Error{Op: "Get", URL: "http://unix/v1/status", Err: &net.OpError{Op: "dial", Net: "unix", Err: os.NewSyscallError("connect", errno)}}
		if got := FaultOf(err); got != want {
			t.Errorf("%v: %v, want %v", err, got, want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// A server that goes away in the midst of an exchange is not said to want a certificate.
func TestFaultOf_BrokenConnection_IsOfNoKind(t *testing.T) {
	for _, secure := range []bool{false, true} {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		pool := x509.NewCertPool()
		if secure {
			server.StartTLS()
			pool.AddCert(server.Certificate())
		} else {
			server.Start()
		}
		c, err := New(Options{Address: server.URL, TLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}})
		if err != nil {
			t.Fatal(err)
		}
		err = c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, nil)
		if err == nil || FaultOf(err) != OtherFault || errors.Is(err, ErrForeign) {
			t.Errorf("TLS %v: %v", secure, err)
		}
		c.Close()
		server.Close()
	}
}
