// Package smtptest is a server of mail for tests, which answers as it is asked to.
package smtptest

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"sync"
)

// Answers that are none.
const (
	Hang = "hang" // nothing is said until the client goes away
	Drop = "drop" // the connection ends
)

// End is what [Server.Say] is asked at the end of a mail.
const End = "."

// Server takes mails. Its fields are set before Serve.
type Server struct {
	TLS      *tls.Config // nil: there is no STARTTLS
	Implicit bool        // TLS from the start
	// Say gives the answer to a command line, such as RCPT TO:<a@example.org>, to a
	// connection, of which the command is CONNECT, and to the [End] of a mail; "": that of
	// a server that takes all. It is asked one at a time, whatever the connections.
	Say func(command string, mail []byte) string
	// Take, when not nil, gives the answer to the [End] of a mail in the place of Say. It is
	// asked by several connections at once, and may wait.
	Take func(mail []byte) string

	saying sync.Mutex
	mu     sync.Mutex
	mails  [][]byte
	logins []string
}

// Mails are those that were taken.
func (s *Server) Mails() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte(nil), s.mails...)
}

// Logins are those that were tried: MECHANISM, then what the client sent, with blanks.
func (s *Server) Logins() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.logins...)
}

// Serve answers until the listener is closed.
func (s *Server) Serve(l net.Listener) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		all.Go(func() {
			defer c.Close()
			(&session{Server: s, conn: c}).serveCommands()
		})
	}
}

// session is a connection.
type session struct {
	*Server

	conn net.Conn
	text *textproto.Reader
	safe bool
	mail []byte
}

func (s *session) serveCommands() {
	if s.Implicit && !s.startTLS() {
		return
	}
	s.text = textproto.NewReader(bufio.NewReader(s.conn))
	for line, ok := "CONNECT", true; ok; {
		if !s.answerCommand(line) {
			return
		}
		var err error
		line, err = s.text.ReadLine()
		ok = err == nil
	}
}

func (s *session) startTLS() bool {
	c := tls.Server(s.conn, s.TLS)
	if c.Handshake() != nil {
		return false
	}
	s.conn, s.safe = c, true
	s.text = textproto.NewReader(bufio.NewReader(s.conn))
	return true
}

// answerCommand answers a command, and reports whether the connection goes on.
func (s *session) answerCommand(line string) bool {
	verb, rest, _ := strings.Cut(line, " ")
	switch said := s.scriptedAnswer(line); said {
	case "":
	case Hang:
		_, _ = io.Copy(io.Discard, s.conn) // until the client is gone
		return false
	case Drop:
		return false
	default:
		return s.writeAnswer(said)
	}
	switch strings.ToUpper(verb) {
	case "CONNECT":
		return s.writeAnswer("220 smtptest")
	case "EHLO":
		return s.writeAnswer(s.helloAnswer())
	case "STARTTLS":
		return s.writeAnswer("220 go ahead") && s.startTLS()
	case "AUTH":
		return s.acceptLogin(rest)
	case "DATA":
		return s.writeAnswer("354 go ahead") && s.receiveMail()
	case "QUIT":
		s.writeAnswer("221 bye")
		return false
	case End:
		s.mu.Lock()
		s.mails = append(s.mails, s.mail)
		defer s.mu.Unlock()
		return s.writeAnswer(fmt.Sprintf("250 OK queued as %d", len(s.mails)))
	}
	return s.writeAnswer("250 OK")
}

func (s *session) scriptedAnswer(command string) string {
	switch {
	case command == End && s.Take != nil:
		return s.Take(s.mail)
	case s.Say == nil:
		return ""
	}
	s.saying.Lock()
	defer s.saying.Unlock()
	return s.Say(command, s.mail)
}

func (s *session) helloAnswer() string {
	lines := []string{"250-smtptest"}
	if s.TLS != nil && !s.safe {
		lines = append(lines, "250-STARTTLS")
	} else {
		lines = append(lines, "250-AUTH PLAIN LOGIN XOAUTH2")
	}
	return strings.Join(append(lines, "250 8BITMIME"), "\r\n")
}

func (s *session) receiveMail() bool {
	var err error
	if s.mail, err = s.text.ReadDotBytes(); err != nil {
		return false
	}
	return s.answerCommand(End)
}

// acceptLogin accepts any account.
func (s *session) acceptLogin(rest string) bool {
	mechanism, first, _ := strings.Cut(rest, " ")
	sent := []string{mechanism}
	add := func(text string) {
		plain, _ := base64.StdEncoding.DecodeString(text) // a test sees what is not
		sent = append(sent, strings.Map(func(c rune) rune {
			if c < ' ' {
				return ' '
			}
			return c
		}, string(plain)))
	}
	if first != "" {
		add(first)
	}
	for _, prompt := range map[string][]string{"LOGIN": {"Username:", "Password:"}}[mechanism] {
		if !s.writeAnswer("334 " + base64.StdEncoding.EncodeToString([]byte(prompt))) {
			return false
		}
		line, err := s.text.ReadLine()
		if err != nil {
			return false
		}
		add(line)
	}
	s.mu.Lock()
	s.logins = append(s.logins, strings.Join(sent, " "))
	s.mu.Unlock()
	return s.writeAnswer("235 welcome")
}

func (s *session) writeAnswer(text string) bool {
	_, err := io.WriteString(s.conn, text+"\r\n")
	return err == nil
}
