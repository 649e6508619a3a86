package mail

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/action/report/smtptest"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/identity"
)

const aMail = "From: Accounting <accounting@example.org>\r\nTo: \"A. Bell\" <bell@example.org>\r\nMessage-ID: <1@example.org>\r\n\r\n.line\r\n"

const secret = "a-pass=word"

// serve starts a server of mail, and returns how to reach it.
func serve(t *testing.T, fake *smtptest.Server, change func(*Settings)) *Server {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, "authority", time.Hour, time.Now()); err != nil {
		t.Fatal(err)
	}
	files, err := identity.CreateCert(dir, dir, identity.Request{Identity: identity.Identity{Role: identity.Aggregator, Name: "mail"}, Hosts: []string{"127.0.0.1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := Settings{Host: "127.0.0.1", TLS: "none", Timeout: time.Minute, Auth: "plain"}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // which was listened to
	m.Port, _ = strconv.Atoi(port)
	change(&m)
	if m.TLS != "none" {
		fake.TLS, fake.Implicit = &tls.Config{Certificates: []tls.Certificate{pair}}, m.TLS == "tls"
		if m.CA == "" {
			m.CA = hcl.Absolute(files.CA)
		}
	}
	if m.User != "" {
		file := filepath.Join(dir, "password")
		if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		m.Password = hcl.Absolute(file)
	}
	done := make(chan struct{})
	go func() { defer close(done); fake.Serve(l) }()
	t.Cleanup(func() { l.Close(); <-done })
	return &Server{Settings: m, accept: time.Minute}
}

func TestSend_EachWayToConnectAndLogIn_DeliversTheBytes(t *testing.T) {
	for _, mode := range []string{"none", "starttls", "tls"} {
		for auth, want := range map[string]string{
			"":      "",
			"plain": "PLAIN  bursar " + secret, "login": "LOGIN bursar " + secret, "xoauth2": "XOAUTH2 user=bursar auth=Bearer " + secret + "  ",
		} {
			fake := &smtptest.Server{}
			s := serve(t, fake, func(m *Settings) {
				m.TLS = mode
				if auth != "" {
					m.User, m.Auth = "bursar", auth
				}
			})
			r := s.Send(t.Context(), []byte(aMail))
			if r.Outcome != sdk.Done || r.Reference != "OK queued as 1" {
				t.Fatalf("%s, %s: %+v", mode, auth, r)
			}
			if got := strings.ReplaceAll(string(fake.Mails()[0]), "\n", "\r\n"); got != aMail {
				t.Errorf("%s, %s: %q", mode, auth, got)
			}
			if got := strings.Join(fake.Logins(), "\n"); got != want {
				t.Errorf("%s, %s: %q, want %q", mode, auth, got, want)
			}
		}
	}
}

// at has a server answer a command as said, and all others well.
func at(command, said string) func(string, []byte) string {
	return func(line string, _ []byte) string {
		if strings.HasPrefix(line, command) {
			return said
		}
		return ""
	}
}

func TestSend_WhatTheServerSays_DecidesTheOutcome(t *testing.T) {
	for _, c := range []struct {
		command, said string
		outcome       sdk.Outcome
		want          string
	}{
		{"CONNECT", "554 go away", sdk.Retry, "nothing was sent: 554"},
		{"CONNECT", smtptest.Drop, sdk.Retry, "nothing was sent: EOF"},
		{"AUTH", "535 wrong " + secret, sdk.Retry, "wrong ***"},
		{"MAIL", "550 not from there", sdk.Rejected, "the server refuses the sender accounting@example.org: 550 not from there"},
		{"MAIL", "451 later", sdk.Retry, "does not take the sender accounting@example.org now: 451 later"},
		{"RCPT", "550 5.1.1 no such user", sdk.Rejected, "the server refuses bell@example.org: 550 5.1.1 no such user"},
		{"RCPT", "450 greylisted", sdk.Retry, "does not take bell@example.org now: 450 greylisted"},
		{"RCPT", smtptest.Drop, sdk.Retry, "the connection broke before the mail was sent"},
		{"DATA", "552 too much", sdk.Rejected, "refuses the mail to bell@example.org: 552 too much"},
		{smtptest.End, "554 spam", sdk.Rejected, "refuses the mail to bell@example.org: 554 spam"},
		{smtptest.End, "452 no room", sdk.Retry, "does not take the mail to bell@example.org now: 452 no room"},
		{smtptest.End, smtptest.Drop, sdk.Unknown, "did not say whether it took the mail"},
		{"QUIT", "500 what", sdk.Done, "OK queued as 1"},
		{"QUIT", smtptest.Drop, sdk.Done, "OK queued as 1"},
	} {
		s := serve(t, &smtptest.Server{Say: at(c.command, c.said)}, func(m *Settings) { m.User = "bursar" })
		if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != c.outcome || !strings.Contains(r.Message, c.want) || strings.Contains(r.Message, secret) {
			t.Errorf("%s is answered %s: %+v, want %d %s", c.command, c.said, r, c.outcome, c.want)
		}
	}
}

func TestSend_ServerHangs_EndsInTime(t *testing.T) {
	for command, want := range map[string]sdk.Outcome{
		"CONNECT": sdk.Retry, "EHLO": sdk.Retry, "STARTTLS": sdk.Retry, "AUTH": sdk.Retry, "MAIL": sdk.Retry, "RCPT": sdk.Retry, "DATA": sdk.Retry,
		smtptest.End: sdk.Unknown, "QUIT": sdk.Done,
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &smtptest.Server{Say: at(command, smtptest.Hang)}, func(m *Settings) {
				m.TLS, m.User = "starttls", "bursar"
			})
			switch command {
			case smtptest.End:
				s.accept = 200 * time.Millisecond
			case "QUIT": // has a second
			default:
				s.Timeout = 200 * time.Millisecond
			}
			if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != want {
				t.Errorf("%+v, want %d", r, want)
			}
		})
	}
}

func TestSend_ServerSaysNothingOfSeveralMails_GetsNoMoreForAnHour(t *testing.T) {
	for _, answered := range []bool{false, true} {
		mails := 0
		s := serve(t, &smtptest.Server{Say: func(line string, _ []byte) string {
			if !strings.HasPrefix(line, smtptest.End) {
				return ""
			}
			if mails++; answered && mails == silentMails {
				return "250 taken"
			}
			return smtptest.Drop
		}}, func(*Settings) {})
		for range silentMails {
			s.Send(t.Context(), []byte(aMail))
		}
		want := sdk.Retry
		if answered {
			want = sdk.Unknown
		}
		if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != want || (want == sdk.Retry) != (r.RetryAfter > silentPause/2) || (want == sdk.Retry) != strings.Contains(r.Message, "nothing was sent: the server did not say of the last 3 mails") {
			t.Errorf("after an answer %v: %+v", answered, r)
		}
		if _, wait := s.pausedUntil(time.Now().Add(silentPause)); wait {
			t.Error("it waits for more than an hour")
		}
	}
}

func TestSend_CallsEnd_AreNoSilenceOfTheServer(t *testing.T) {
	whole := make(chan struct{})
	s := serve(t, &smtptest.Server{Say: func(line string, _ []byte) string {
		if strings.HasPrefix(line, smtptest.End) {
			whole <- struct{}{}
			return smtptest.Hang
		}
		return ""
	}}, func(*Settings) {})
	for range silentMails {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-whole; cancel() }()
		if r := s.Send(ctx, []byte(aMail)); r.Outcome != sdk.Unknown {
			t.Errorf("%+v", r)
		}
	}
	if until, wait := s.pausedUntil(time.Now()); wait {
		t.Errorf("nothing is sent before %s", until)
	}
}

func TestSend_CallEnds_EndsTheConnection(t *testing.T) {
	for _, command := range []string{"CONNECT", "RCPT", smtptest.End} {
		ctx, cancel := context.WithCancel(t.Context())
		say := func(line string, _ []byte) string {
			if strings.HasPrefix(line, command) {
				cancel()
				return smtptest.Hang
			}
			return ""
		}
		s := serve(t, &smtptest.Server{Say: say}, func(*Settings) {})
		want := sdk.Retry
		if command == smtptest.End {
			want = sdk.Unknown
		}
		if r := s.Send(ctx, []byte(aMail)); r.Outcome != want {
			t.Errorf("%s: %+v", command, r)
		}
	}
}

func TestSend_WithoutTheTLSThatIsAskedFor_SendsNothing(t *testing.T) {
	fake := &smtptest.Server{}
	s := serve(t, fake, func(m *Settings) { m.User = "bursar" })
	s.TLS = "starttls" // which the server does not offer
	if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != sdk.Retry || !strings.Contains(r.Message, "STARTTLS") {
		t.Errorf("%+v", r)
	}
	for _, mode := range []string{"starttls", "tls"} {
		s := serve(t, fake, func(m *Settings) { m.TLS, m.User = mode, "bursar" })
		s.CA = ""
		if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != sdk.Retry || !strings.Contains(r.Message, "ca in the mail block") {
			t.Errorf("%s: %+v", mode, r)
		}
	}
	if len(fake.Logins())+len(fake.Mails()) > 0 {
		t.Error(fake.Logins())
	}
}

func TestSend_PasswordFileIsReplaced_IsReadAnew(t *testing.T) {
	fake := &smtptest.Server{}
	s := serve(t, fake, func(m *Settings) { m.User = "bursar" })
	for i := range 3 {
		if err := os.WriteFile(string(s.Password), fmt.Append(nil, "token-", i, "\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != sdk.Done {
			t.Error(r)
		}
	}
	if got := strings.Join(fake.Logins(), ","); got != "PLAIN  bursar token-0,PLAIN  bursar token-1,PLAIN  bursar token-2" {
		t.Error(got)
	}
	if err := os.Remove(string(s.Password)); err != nil {
		t.Fatal(err)
	}
	if r := s.Send(t.Context(), []byte(aMail)); r.Outcome != sdk.Retry || !strings.HasPrefix(r.Message, "nothing was sent: ") {
		t.Error(r)
	}
}
