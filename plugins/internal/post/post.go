package post

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const (
	maxAnswer  = 64 << 10 // of an answer are read
	maxHeaders = 64 << 10
	maxShown   = 500 // characters of an answer are shown
)

// Post sends an effect and says how it ended. Each post has a connection of its own,
// and reads the certificates again.
func (r *Receiver) Post(ctx context.Context, a sdk.Attempt) sdk.Result {
	client, err := r.newClient()
	if err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: r.cleanText(err.Error())}
	}
	defer client.CloseIdleConnections()
	var begun atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaderField: func(string, []string) { begun.Store(true) }})
	request, err := r.newRequest(ctx, a, time.Now())
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: r.cleanText("the request cannot be made: " + withoutURL(err).Error())}
	}
	answer, err := client.Do(request)
	switch {
	case err != nil && begun.Load():
		return sdk.Result{Outcome: sdk.Unknown, Message: r.cleanText("there was no answer: " + r.explainError(withoutURL(err)))}
	case err != nil:
		return sdk.Result{Outcome: sdk.Retry, Message: r.cleanText("nothing was sent: " + r.explainError(withoutURL(err)))}
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer)) // the status counts; the text is for people
	return r.Judge(answer, text, time.Now())
}

// newRequest is what is sent of an effect.
func (r *Receiver) newRequest(ctx context.Context, a sdk.Attempt, now time.Time) (*http.Request, error) {
	q, err := http.NewRequestWithContext(ctx, r.method, r.url.String(), bytes.NewReader(a.Effect.Payload))
	if err != nil {
		return nil, err
	}
	q.Header.Set("User-Agent", r.Agent)
	for name, value := range r.headers {
		q.Header.Set(name, value)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Idempotency-Key", a.Key)
	q.Header.Set("Bursar-Fence", strconv.FormatUint(a.Fence, 10))
	q.Header.Set("Bursar-Attempt", strconv.Itoa(a.Number))
	if len(r.Secrets) > 0 {
		q.Header.Set("Bursar-Signature", Signature(r.Secrets, now, a.Effect.Payload))
	}
	return q, nil
}

// Signature is that of a body at a time: t=SECONDS and v1=HEX for each secret.
func Signature(secrets []string, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	var text strings.Builder
	text.WriteString("t=" + at)
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		mac.Write([]byte(at + ".")) // a hash takes all
		mac.Write(body)
		fmt.Fprintf(&text, ",v1=%x", mac.Sum(nil))
	}
	return text.String()
}

// newClient connects to the receiver alone: not by a proxy of the environment, and not
// to where it redirects.
func (r *Receiver) newClient() (*http.Client, error) {
	conf, err := r.tlsConfig()
	if err != nil {
		return nil, err
	}
	dialer := &net.Dialer{Timeout: r.Timeout}
	if r.url.Scheme == "http" && !r.plain {
		dialer.Control = OnlyLoopback
	}
	transport := &http.Transport{
		DialContext: dialer.DialContext, TLSClientConfig: conf, ForceAttemptHTTP2: true, DisableCompression: true,
		TLSHandshakeTimeout: r.Timeout, MaxResponseHeaderBytes: maxHeaders,
	}
	if r.proxy != nil {
		transport.Proxy = http.ProxyURL(r.proxy)
	}
	return &http.Client{
		Transport: transport, Timeout: r.Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// OnlyLoopback is the Control of a dialer that refuses connections to other machines, whatever a name stands for.
func OnlyLoopback(_, address string, _ syscall.RawConn) error {
	if host, _, err := net.SplitHostPort(address); err != nil || !IsLoopback(host) {
		return errors.New("http is for this machine only, and the name stands for another one")
	}
	return nil
}

func (r *Receiver) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if r.ca != "" {
		authorities, err := identity.ReadBundle(r.ca)
		if err != nil {
			return nil, err
		}
		conf.RootCAs = x509.NewCertPool()
		for _, c := range authorities {
			conf.RootCAs.AddCert(c)
		}
	}
	if r.Cert != "" {
		pair, err := tls.LoadX509KeyPair(r.Cert, r.key)
		if err != nil {
			return nil, fmt.Errorf("client certificate %s with key %s: %w", r.Cert, r.key, err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}

// withoutURL takes off the URL, of which a part may be a secret.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// explainError says what to do about an error of a connection.
func (r *Receiver) explainError(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("%v; tls { ca = … } names the authority of the receiver's certificate", err)
	}
	if refusesUs(err) {
		return fmt.Sprintf("%v; the receiver ended the connection: where it asks for a client's certificate, tls { cert = … key = … } has to be one that it accepts", err)
	}
	return err.Error()
}

// refusesUs reports whether a receiver may have refused the client's certificate: with
// TLS 1.3 it does so when the handshake is over on this side.
func refusesUs(err error) bool {
	_, alert := errors.AsType[tls.AlertError](err)
	return alert || strings.Contains(err.Error(), "tls: ") || strings.Contains(err.Error(), "http2: client conn") ||
		errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// cleanText makes a text fit for people, and for being kept.
func (r *Receiver) cleanText(text string) string {
	text = r.hide.Replace(text)
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(c rune) bool {
		return c <= ' ' || c >= 0x7f && c <= 0x9f || c == '\u2028' || c == '\u2029'
	}), " ")
	for i := range text {
		if i > maxShown {
			return text[:i] + " …"
		}
	}
	return text
}
