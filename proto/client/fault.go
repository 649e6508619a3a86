package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// Why an exchange failed, as far as another address, file or token mends it.
var (
	// ErrNeedsTLS: a server with TLS was asked without.
	ErrNeedsTLS = errors.New("the server takes TLS only")
	// ErrForeign: what answers does not speak bursar's API.
	ErrForeign = errors.New("the server is not bursar")
	// ErrTokenExposed is wrapped by the error of [New] when a token would be sent in the clear.
	ErrTokenExposed = errors.New("a token is sent by https, over loopback or a unix socket only, since others on the way could read it")
	errNoTLS        = errors.New("the server does not use TLS")

	errNoCertificate = errors.New("the server wants a client certificate")
)

// Fault is the kind of what failed.
type Fault int

// The kinds. Others are of what was asked, and not of how.
const (
	OtherFault         Fault = iota
	Unreached                // nothing listens, or answers, at the address
	NoPermission             // the unix socket is not for this user
	UnknownAuthority         // the server's certificate has an authority that is not trusted
	OtherName                // the server's certificate is for another name
	InvalidCertificate       // the server's certificate has expired, or is not of a server
	NoTLS                    // https was asked of a server without TLS
	NeedsTLS                 // http was asked of a server with TLS
	WantsCertificate         // the server refuses the client's certificate, or its absence
	Unauthorized             // 401 or 403
	Foreign                  // not bursar at all
	TokenExposed             // the token would be sent in the clear
)

// FaultOf returns the kind of an error of a [Client], or of [New].
func FaultOf(err error) Fault {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return UnknownAuthority
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return OtherName
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return InvalidCertificate
	}
	switch {
	case errors.Is(err, ErrTokenExposed):
		return TokenExposed
	case errors.Is(err, ErrForeign):
		return Foreign
	case errors.Is(err, ErrNeedsTLS):
		return NeedsTLS
	case errors.Is(err, errNoTLS):
		return NoTLS
	case errors.Is(err, ErrForbidden):
		return Unauthorized
	case wasUnreached(err) && errors.Is(err, os.ErrPermission):
		return NoPermission
	case wasUnreached(err), errors.Is(err, ErrTimeout):
		return Unreached
	case err != nil && wasAlerted(err), errors.Is(err, errNoCertificate):
		return WantsCertificate
	}
	return OtherFault
}

// wasAlerted reports whether the server refused the handshake for the client's certificate.
// crypto/tls has no type for what the other side says.
func wasAlerted(err error) bool {
	_, alert, ok := strings.Cut(err.Error(), "remote error: tls: ")
	return ok && strings.Contains(alert, "certificate")
}

// explainFailure puts what happened in place of what the connection says of it.
func (c *Client) explainFailure(ctx context.Context, target string, err error) error {
	text, secure := err.Error(), strings.HasPrefix(target, "https://")
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	switch {
	case ctx.Err() != nil || wasUnreached(err):
	case errors.Is(err, http.ErrSchemeMismatch):
		return errNoTLS
	case secure && notTLS:
		return fmt.Errorf("%w, and %w: %w", errNoTLS, ErrForeign, err)
	case !secure && strings.Contains(text, `malformed HTTP response "\x15\x03`): // an alert
		return ErrNeedsTLS
	case strings.Contains(text, "readLoopPeekFailLocked: %!w(<nil>)"): // net/http, of a server that speaks before it is asked
		return ErrForeign
	case strings.Contains(text, "malformed HTTP"):
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case secure && (!strings.Contains(text, "tls: ") || strings.Contains(text, "tls: handshake failure")):
		if alert := c.fetchAlert(ctx, target); alert != nil {
			return alert
		}
	}
	return err
}

// fetchAlert asks a server that broke a connection whether it was for the certificate: by TLS 1.3
// it says so after the handshake, and a client that writes by then sees a broken pipe. nil
// when it does not say so.
func (c *Client) fetchAlert(ctx context.Context, target string) error {
	u, err := url.Parse(target)
	if err != nil {
		return nil
	}
	host := u.Host
	if u.Port() == "" {
		host = net.JoinHostPort(u.Hostname(), "443")
	}
	ctx, cancel := context.WithTimeout(ctx, alertWithin)
	defer cancel()
	config, wanted := c.tls.Clone(), false
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if len(config.Certificates) == 0 && config.GetClientCertificate == nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			wanted = true
			return new(tls.Certificate), nil
		}
	}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", host)
	if err == nil {
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(alertWithin)) // of a connection that is open
		_, err = conn.Read(make([]byte, 1))
	}
	switch {
	case err == nil:
		return nil
	case wanted && strings.Contains(err.Error(), "remote error: tls: "): // 1.2 has no alert of its own
		return fmt.Errorf("%w: %w", errNoCertificate, err)
	case wasAlerted(err):
		return err
	}
	return nil
}

// alertWithin is how long a server may take to say why it breaks connections.
const alertWithin = time.Second

// whyStrange is why an answer is not one of bursar; nil when it may be. Its refusals below /v1
// are problem+json, and a page is for browsers.
func whyStrange(resp *http.Response, path string) error {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	api := strings.HasPrefix(path, "/v1/")
	status := resp.StatusCode
	switch {
	case !api || kind == "application/problem+json" || status == http.StatusUnauthorized || status == http.StatusForbidden:
		return nil
	case status/100 == 4 || status == http.StatusNotImplemented:
		return ErrForeign
	case status/100 == 2 && kind == "text/html" && !strings.Contains(resp.Request.Header.Get("Accept"), kind):
		return fmt.Errorf("%w: it answers with a page", ErrForeign)
	}
	return nil
}

// isSecured reports whether an answer is that of a server which takes TLS only.
func isSecured(resp *http.Response, p *Problem) bool {
	return resp.StatusCode == http.StatusBadRequest && resp.Request.URL.Scheme == "http" &&
		(strings.Contains(p.Detail, "HTTPS server") || strings.Contains(p.Detail, "HTTPS port")) // Go's words, and nginx's
}

// explainToCaller gives the caller's account of an error.
func (c *Client) explainToCaller(server string, err error) error {
	if err == nil || c.explain == nil {
		return err
	}
	return c.explain(server, err)
}
