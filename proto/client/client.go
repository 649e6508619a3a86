package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/bursar-accounting/bursar/proto/local"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// DefaultTimeout is the Timeout of Options that have none.
const DefaultTimeout = 30 * time.Second

// ArchiveTimeout is the least Timeout of a question with archived=true: the server looks for the
// files of archives and reads them before it answers.
const ArchiveTimeout = 30 * time.Minute

// Options say which server is spoken to, and how. Only Address is needed.
type Options struct {
	// Address is http://host:port, https://host:port, host:port or unix:PATH. The
	// third is https when TLS is set and http when it is not; the last is a unix
	// socket. Several servers of one cluster, but no sockets, have commas between them:
	// a request goes to the one that answered last, and to the next where no connection
	// is made within three seconds.
	Address string
	// TLS is the client's side of TLS; nil takes the system's authorities and
	// shows no certificate. See [LoadTLS].
	TLS *tls.Config
	// Token is sent as a bearer token when it is not empty: by https, over loopback or a
	// unix socket.
	Token string
	// Timeout bounds an exchange, and in a stream each silence; where archives are read, see
	// [ArchiveTimeout]. Zero is [DefaultTimeout]; below zero there is none.
	Timeout time.Duration
	// UserAgent names the program; empty is "bursar-client".
	UserAgent string
	// Explain, if set, gets each error of an exchange that did not begin, or that the server
	// refused, and returns what the caller gets: the error with what to do about it, which
	// [FaultOf] says the kind of. server is its address, or those of several.
	Explain func(server string, err error) error
}

// Client speaks to a server, or to one of several: its methods are those of the routes below /v1, and of
// AUDITOR's. Make one with [New]. It is safe for concurrent use.
type Client struct {
	v1.API
	v1.Files

	bases   []string
	at      atomic.Int32 // the base that answered last
	token   string
	agent   string
	timeout time.Duration
	http    *http.Client
	tls     *tls.Config
	explain func(server string, err error) error
	socket  string // its address, unix:PATH
	zone    atomic.Pointer[time.Location]
}

// Zone returns the site's time zone, as the last answer of /v1 named it; nil before the
// first, and where it named none that this machine knows.
func (c *Client) Zone() *time.Location { return c.zone.Load() }

// New returns a client. It opens no connection; the error is about opts.
func New(opts Options) (*Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = opts.TLS.Clone()
	socket := ""
	if path, ok := socketPath(opts.Address); ok {
		socket, opts.Address = opts.Address, "http://localhost"
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return local.Dial(ctx, path) }
	}
	c := &Client{
		token: opts.Token, agent: opts.UserAgent, timeout: opts.Timeout, http: &http.Client{Transport: transport},
		tls: opts.TLS, explain: opts.Explain, socket: socket,
	}
	for address := range strings.SplitSeq(opts.Address, ",") {
		base, err := baseURL(strings.TrimSpace(address), opts.TLS != nil)
		if err != nil {
			return nil, err
		}
		if opts.Token != "" && !isPrivate(base) {
			return nil, fmt.Errorf("address %q: %w", base, ErrTokenExposed)
		}
		c.bases = append(c.bases, base)
	}
	if len(c.bases) > 1 {
		transport.DialContext = (&net.Dialer{Timeout: failover}).DialContext
	} else {
		transport.TLSHandshakeTimeout = 0 // of the only server: Timeout bounds it
	}
	c.API, c.Files = v1.API{Caller: c}, v1.Files{Carrier: c}
	if c.timeout == 0 {
		c.timeout = DefaultTimeout
	}
	if c.agent == "" {
		c.agent = "bursar-client"
	}
	return c, nil
}

// failover is how long one of several servers may take to accept a connection.
const failover = 3 * time.Second

// Close drops the connections that wait for the next call.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// socketPath is the path of unix:PATH or unix://PATH; false for other addresses.
func socketPath(address string) (string, bool) {
	path, ok := strings.CutPrefix(address, "unix:")
	if after, slashes := strings.CutPrefix(path, "//"); slashes {
		path = after
	}
	return path, ok && path != ""
}

// baseURL returns the address as a URL without a slash at the end.
func baseURL(address string, secure bool) (string, error) {
	if !strings.Contains(address, "://") {
		scheme := "http://"
		if secure {
			scheme = "https://"
		}
		address = scheme + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("address: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return "", fmt.Errorf("address %q: want for example https://bursar.example.org:8443", u.Redacted())
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// isPrivate reports whether what is sent to a base is read by its server alone.
func isPrivate(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// LoadTLS reads PEM files. An empty ca takes the system's authorities; cert and
// key are either both empty, and no certificate is shown, or both set.
func LoadTLS(ca, cert, key string) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("certificate authority: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("certificate authority: %s has no certificate in PEM", ca)
		}
	}
	if cert == "" && key == "" {
		return cfg, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("client certificate: %w", err)
	}
	cfg.Certificates = []tls.Certificate{pair}
	return cfg, nil
}

// request is one exchange.
type request struct {
	method string
	path   string // escaped, begins with a slash
	query  url.Values
	accept string
	kind   string // Content-Type of body
	body   io.Reader
}

// sendRequest does the exchange and returns the answer, whose body the caller closes.
// An answer that is not 2xx is an error.
func (c *Client) sendRequest(ctx context.Context, r request) (*http.Response, error) {
	path := r.path
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return c.sendTo(ctx, path, r)
}

// sendTo sends r to a path with its query, at the first server that takes a connection.
func (c *Client) sendTo(ctx context.Context, path string, r request) (*http.Response, error) {
	if body, ok := r.body.(io.ReadCloser); ok {
		r.body = io.NopCloser(body) // a connection that fails does not close what the next one sends
	}
	var errs []error
	for range c.bases {
		at := c.at.Load()
		resp, err := c.sendToOne(ctx, c.bases[at]+path, r)
		if !wasUnreached(err) || len(c.bases) == 1 || ctx.Err() != nil {
			return resp, c.explainToCaller(firstNonEmpty(c.socket, c.bases[at]), err)
		}
		errs = append(errs, fmt.Errorf("%s: %w", c.bases[at], err))
		c.at.CompareAndSwap(at, (at+1)%int32(len(c.bases)))
	}
	return nil, c.explainToCaller(strings.Join(c.bases, ", "), errors.Join(errs...))
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// wasUnreached reports whether no connection was made, so that nothing was sent.
func wasUnreached(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func (c *Client) sendToOne(ctx context.Context, target string, r request) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, target, r.body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	c.setHeader(req, r)
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, causeOf(ctx, fmt.Errorf("%s %s: %w", r.method, r.path, c.explainFailure(ctx, target, stripURL(err))))
	}
	foreign := whyStrange(resp, r.path)
	if resp.StatusCode/100 == 2 && foreign == nil {
		if name := resp.Header.Get(v1.ZoneHeader); name != "" {
			zone, _ := time.LoadLocation(name) // nil where this machine does not know it
			c.zone.Store(zone)
		}
		return resp, nil
	}
	defer resp.Body.Close()
	p := readRefusal(resp)
	switch {
	case isSecured(resp, p):
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, ErrNeedsTLS)
	case foreign != nil:
		return nil, fmt.Errorf("%s %s: %w: %w", r.method, r.path, foreign, p)
	}
	return nil, fmt.Errorf("%s %s: %w", r.method, r.path, p)
}

func (c *Client) setHeader(req *http.Request, r request) {
	req.Header.Set("User-Agent", c.agent)
	if r.accept != "" {
		req.Header.Set("Accept", r.accept)
	}
	if r.kind != "" {
		req.Header.Set("Content-Type", r.kind)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// stripURL takes away what url.Error says again: the method and the address.
func stripURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// ErrTimeout is wrapped by the error of an exchange that took longer than
// [Options].Timeout, and of a stream that was silent for longer.
var ErrTimeout = errors.New("no answer in time")

// causeOf puts the reason why ctx ended in place of "context canceled".
func causeOf(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil && errors.Is(why, ErrTimeout) {
		return fmt.Errorf("%w: %w", why, err)
	}
	return err
}

// withTimeout returns a context that ends after the timeout of a question.
func (c *Client) withTimeout(ctx context.Context, query url.Values) (context.Context, context.CancelFunc) {
	within := c.timeoutOf(query)
	if within < 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, within, ErrTimeout)
}

// timeoutOf is the timeout of a question; below zero there is none.
func (c *Client) timeoutOf(query url.Values) time.Duration {
	if c.timeout >= 0 && query.Get("archived") == "true" {
		return max(c.timeout, ArchiveTimeout)
	}
	return c.timeout
}
