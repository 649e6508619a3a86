// Package ams publishes messages to an ARGO Messaging Service (AMS), by HTTP: a
// client certificate is exchanged for a token, and a message is posted to a topic.
//
// What may be tried again follows the table of the client library of AMS: a failed
// connection and the statuses 408, 500, 502, 503 and 504. 401, 403 and all others
// are refusals, which trying again does not change. A message that is published
// again after a broken connection may be there twice; who sends here must bear it.
package ams

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// Config says where to publish, and as whom.
type Config struct {
	Host      string // of the service
	Port      int    // of its interface; 443 when 0
	AuthnPort int    // of what gives out tokens; 8443 when 0
	Project   string
	Topic     string
	Cert, Key string        // PEM files of the client certificate
	CA        string        // PEM file of whom to trust; "": the system's
	Timeout   time.Duration // of one request; 30 s when 0
}

// Client publishes. New makes it. It is for one goroutine at a time.
type Client struct {
	config Config
	http   *http.Client
	token  string
}

// Error is an answer that is no success, or none at all.
type Error struct {
	What   string // was done: "token" or "publish"
	Status int    // of HTTP; 0: there was no answer
	Reason string
	Err    error // why there was no answer

	// Sent is whether the request may have arrived though there was no answer.
	Sent bool
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("AMS %s: %v", e.What, e.Err)
	}
	return fmt.Sprintf("AMS %s: %d %s", e.What, e.Status, e.Reason)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Again reports whether trying again is of use.
func (e *Error) Again() bool {
	return e.Status == 0 || slices.Contains([]int{408, 500, 502, 503, 504}, e.Status)
}

// InDoubt reports whether the message may have been published all the same.
func (e *Error) InDoubt() bool { return e.What == publish && e.Status == 0 && e.Sent }

// TooLarge reports whether the message must be split.
func (e *Error) TooLarge() bool {
	return e.What == publish && e.Status == http.StatusRequestEntityTooLarge
}

const (
	token   = "token"
	publish = "publish"
)

// New returns a client. The certificate and the authorities are read now.
func New(c Config) (*Client, error) {
	if c.Port == 0 {
		c.Port = 443
	}
	if c.AuthnPort == 0 {
		c.AuthnPort = 8443
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s with key %s: %w", c.Cert, c.Key, err)
	}
	conf := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.CA != "" {
		if conf.RootCAs, err = loadAuthorities(c.CA); err != nil {
			return nil, err
		}
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: conf, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: c.Timeout, ResponseHeaderTimeout: c.Timeout, IdleConnTimeout: time.Minute,
	}
	return &Client{config: c, http: &http.Client{
		Transport: transport, Timeout: c.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func loadAuthorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", file)
	}
	return pool, nil
}

// Close lets the connections go.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Publish posts a message with attributes to the topic and returns the id that the
// service gave it. It asks for a token when it has none, and once more when the one
// that it has is not accepted. The error is an *[Error].
func (c *Client) Publish(ctx context.Context, data []byte, attributes map[string]string) (string, error) {
	fresh := c.token == ""
	if fresh {
		if err := c.fetchToken(ctx); err != nil {
			return "", err
		}
	}
	id, err := c.publishData(ctx, data, attributes)
	if e, ok := errors.AsType[*Error](err); ok && e.Status == http.StatusUnauthorized {
		c.token = ""
		if !fresh {
			return c.Publish(ctx, data, attributes)
		}
	}
	return id, err
}

// fetchToken exchanges the certificate for a token.
func (c *Client) fetchToken(ctx context.Context) error {
	target := fmt.Sprintf("https://%s/v1/service-types/ams/hosts/%s:authx509", c.hostAddress(c.config.AuthnPort), url.PathEscape(c.config.Host))
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return &Error{What: token, Err: err}
	}
	var answer struct {
		Token string `json:"token"`
	}
	if err := c.sendRequest(token, r, &answer); err != nil {
		return err
	}
	if answer.Token == "" {
		return &Error{What: token, Status: http.StatusBadGateway, Reason: "the answer has no token"}
	}
	c.token = answer.Token
	return nil
}

func (c *Client) hostAddress(port int) string {
	return net.JoinHostPort(strings.Trim(c.config.Host, "[]"), fmt.Sprint(port))
}

// posted is a message as it is posted.
type posted struct {
	Attributes map[string]string `json:"attributes"`
	Data       string            `json:"data"`
}

func (c *Client) publishData(ctx context.Context, data []byte, attributes map[string]string) (string, error) {
	body, err := json.Marshal(map[string][]posted{"messages": {{Attributes: attributes, Data: base64.StdEncoding.EncodeToString(data)}}})
	if err != nil {
		return "", &Error{What: publish, Err: err}
	}
	target := fmt.Sprintf("https://%s/v1/projects/%s/topics/%s:publish", c.hostAddress(c.config.Port), url.PathEscape(c.config.Project), url.PathEscape(c.config.Topic))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return "", &Error{What: publish, Err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", c.token)
	var answer struct {
		IDs []string `json:"messageIds"`
	}
	if err := c.sendRequest(publish, r, &answer); err != nil {
		return "", err
	}
	return strings.Join(answer.IDs, " "), nil
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

// sendRequest sends a request and reads the JSON of the answer.
func (c *Client) sendRequest(what string, r *http.Request, answer any) error {
	response, err := c.http.Do(r)
	if err != nil {
		return &Error{What: what, Err: withoutAddress(err), Sent: !isUnsent(err)}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return &Error{What: what, Err: err, Sent: true}
	}
	if response.StatusCode != http.StatusOK {
		return &Error{What: what, Status: response.StatusCode, Reason: failureReason(text, response.StatusCode)}
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return &Error{What: what, Err: fmt.Errorf("the answer is no JSON: %w", err), Sent: true}
	}
	return nil
}

// withoutAddress takes the address off, which is in the configuration.
func withoutAddress(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// isUnsent reports whether a failure was before anything could arrive.
func isUnsent(err error) bool {
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return true
	}
	_, unknown := errors.AsType[*tls.CertificateVerificationError](err)
	return unknown
}

// failureReason is what the service says: {"error": {"message": "…", "status": "…"}}.
func failureReason(body []byte, code int) string {
	var problem struct {
		Error struct{ Message, Status string }
	}
	if json.Unmarshal(body, &problem) == nil && problem.Error.Message != "" {
		return strings.TrimSpace(problem.Error.Status + ": " + problem.Error.Message)
	}
	text := strings.ToValidUTF8(strings.TrimSpace(string(body)), "\uFFFD")
	if len(text) > 200 {
		text = text[:200] + " …"
	}
	if text == "" {
		return http.StatusText(code)
	}
	return text
}
