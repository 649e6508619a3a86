package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strings"
	"sync"
	"time"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// Deadline is above what all steps of one mail may take.
const Deadline = acceptTime + 20*time.Minute

// acceptTime is how long a server may take to say that it has a mail, as RFC 5321 has it
// (4.5.3.2.6). Until it says so the outcome is unknown, so it is worth waiting.
const acceptTime = 10 * time.Minute

// Server takes mails for delivery.
type Server struct {
	Settings

	From   *netmail.Address
	accept time.Duration
	silence
}

// silence is that of a server that takes mails without saying so. Each such mail is unknown
// for good, so after a few in a row no more are given to it for a while.
type silence struct {
	mu    sync.Mutex
	mails int       // in a row that it did not answer
	until time.Time // when the next one may be sent
}

const (
	silentMails = 3
	silentPause = time.Hour
)

// pausedUntil returns until when nothing is to be sent; false when something may be.
func (s *silence) pausedUntil(now time.Time) (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.until, now.Before(s.until)
}

// noteOutcome notes what became of a mail.
func (s *silence) noteOutcome(now time.Time, outcome sdk.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch outcome {
	case sdk.Done, sdk.Rejected:
		s.mails = 0
	case sdk.Unknown:
		if s.mails++; s.mails >= silentMails {
			s.until = now.Add(silentPause)
		}
	}
}

// Send hands a mail to the server and says how that ended. Before the end of the mail is
// sent the server cannot have taken it; after that, only its answer tells. The envelope is
// that of its header, From and To, which has one address.
func (s *Server) Send(ctx context.Context, text []byte) sdk.Result {
	if until, wait := s.pausedUntil(time.Now()); wait {
		return sdk.Result{Outcome: sdk.Retry, RetryAfter: time.Until(until), Message: fmt.Sprintf("nothing was sent: the server did not say of the last %d mails whether it took them; the next one is sent after %s UTC", silentMails, until.UTC().Format("15:04"))}
	}
	word, err := s.readPassword()
	if err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: "nothing was sent: " + err.Error()}
	}
	result := s.deliverMail(ctx, text, word)
	if ctx.Err() == nil { // else it is not the server that said nothing
		s.noteOutcome(time.Now(), result.Outcome)
	}
	if len(word) > 3 {
		result.Message = strings.ReplaceAll(result.Message, word, "***")
	}
	return result
}

func (s *Server) deliverMail(ctx context.Context, text []byte, word string) sdk.Result {
	from, to, err := parseEnvelope(text)
	if err != nil {
		return sdk.Result{Outcome: sdk.Rejected, Message: err.Error()}
	}
	client, end, err := s.connectSMTP(ctx, word)
	if err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: "nothing was sent: " + s.explainError(err)}
	}
	defer end()
	if err := s.withDeadline(client, func() error { return client.Mail(from.String()) }); err != nil {
		return refusalResult("the sender "+from.Address, err)
	}
	if err := s.withDeadline(client, func() error { return client.Rcpt(to.String()) }); err != nil {
		return refusalResult(to.Address, err)
	}
	var body interface {
		Write([]byte) (int, error)
		Close() error
	}
	if err := s.withDeadline(client, func() error { body, err = client.Data(); return err }); err != nil {
		return refusalResult("the mail to "+to.Address, err)
	}
	if err := client.UpdateDeadline(s.accept); err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: "nothing was sent: " + err.Error()}
	}
	if _, err := body.Write(text); err != nil {
		return sdk.Result{Outcome: sdk.Retry, Message: "the connection broke before the end of the mail: " + err.Error()}
	}
	err = errors.Join(client.UpdateDeadline(s.accept), body.Close())
	if _, answered := errors.AsType[*textproto.Error](err); answered {
		return refusalResult("the mail to "+to.Address, err)
	}
	if err != nil {
		return sdk.Result{Outcome: sdk.Unknown, Message: "the server did not say whether it took the mail: " + err.Error()}
	}
	said := ""
	if d, ok := body.(*smtp.DataCloser); ok {
		said = d.ServerResponse()
	}
	_ = client.UpdateDeadline(time.Second)
	_ = client.Quit() // the mail is taken, whatever follows
	return sdk.Result{Outcome: sdk.Done, Message: said, Reference: said}
}

// parseEnvelope returns from whom and to whom a mail goes, as its header says.
func parseEnvelope(text []byte) (from, to *netmail.Address, err error) {
	m, err := netmail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return nil, nil, fmt.Errorf("the effect is not a mail: %w", err)
	}
	sender, err := netmail.ParseAddress(m.Header.Get("From"))
	if err != nil {
		return nil, nil, fmt.Errorf("the mail's From: %w", err)
	}
	receiver, err := netmail.ParseAddress(m.Header.Get("To"))
	if err != nil {
		return nil, nil, fmt.Errorf("the mail's To: %w", err)
	}
	sender.Name, receiver.Name = "", ""
	return sender, receiver, nil
}

// refusalResult is what an error before the end of a mail means: 4yz is for now, 5yz for good.
func refusalResult(what string, err error) sdk.Result {
	answer, ok := errors.AsType[*textproto.Error](err)
	words := func() string { return fmt.Sprintf("%d %s", answer.Code, answer.Msg) }
	switch {
	case !ok:
		return sdk.Result{Outcome: sdk.Retry, Message: "the connection broke before the mail was sent: " + err.Error()}
	case answer.Code >= 500:
		return sdk.Result{Outcome: sdk.Rejected, Message: fmt.Sprintf("the server refuses %s: %s", what, words())}
	}
	return sdk.Result{Outcome: sdk.Retry, Message: fmt.Sprintf("the server does not take %s now: %s", what, words())}
}

// withDeadline has the server answer in time.
func (s *Server) withDeadline(client *smtp.Client, do func() error) error {
	if err := client.UpdateDeadline(s.Timeout); err != nil {
		return err
	}
	return do()
}

// connectSMTP connects and logs in. The connection ends with the context, and with end.
func (s *Server) connectSMTP(ctx context.Context, word string) (_ *smtp.Client, end func(), err error) {
	conf, err := s.tlsConfig()
	if err != nil {
		return nil, nil, err
	}
	var conn net.Conn
	stop := func() bool { return true }
	end = func() {
		stop()
		if conn != nil {
			_ = conn.Close()
		}
	}
	dial := func(ctx2 context.Context, network, address string) (net.Conn, error) {
		dialer := interface {
			DialContext(ctx context.Context, network, address string) (net.Conn, error)
		}(&net.Dialer{})
		if s.TLS == "tls" {
			dialer = &tls.Dialer{Config: conf}
		}
		c, err := dialer.DialContext(ctx2, network, address)
		if err == nil {
			conn = c
			stop = context.AfterFunc(ctx, func() { _ = c.Close() })
		}
		return c, err
	}
	options := []gomail.Option{
		gomail.WithPort(s.Port), gomail.WithTimeout(s.Timeout), gomail.WithTLSConfig(conf), gomail.WithDialContextFunc(dial), gomail.WithoutSMTPUTF8(),
	}
	policy := gomail.NoTLS
	if s.TLS == "starttls" {
		policy = gomail.TLSMandatory
	}
	options = append(options, gomail.WithTLSPolicy(policy))
	if s.User != "" {
		auth := map[string]gomail.SMTPAuthType{"plain": gomail.SMTPAuthPlain, "login": gomail.SMTPAuthLogin, "xoauth2": gomail.SMTPAuthXOAUTH2}[s.Auth]
		options = append(options, gomail.WithSMTPAuth(auth), gomail.WithUsername(s.User), gomail.WithPassword(word))
	}
	if s.Hello != "" {
		options = append(options, gomail.WithHELO(s.Hello))
	}
	c, err := gomail.NewClient(s.Host, options...)
	if err != nil {
		return nil, nil, err
	}
	client, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		end()
		return nil, nil, err
	}
	return client, end, nil
}

func (s *Server) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.Host}
	if s.CA == "" {
		return conf, nil
	}
	authorities, err := identity.ReadBundle(string(s.CA))
	if err != nil {
		return nil, err
	}
	conf.RootCAs = x509.NewCertPool()
	for _, c := range authorities {
		conf.RootCAs.AddCert(c)
	}
	return conf, nil
}

// explainError says what to do about a connection that cannot be used.
func (s *Server) explainError(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("%v; ca in the mail block names the authority of the server's certificate", err)
	}
	return err.Error()
}
