// Package mail is what the actions that send mails share: the settings of a mail block, a
// mail as it goes over the wire, and the delivery of one mail to one recipient, which says
// whether the server took it.
package mail

import (
	"bytes"
	"fmt"
	netmail "net/mail"
	"os"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"github.com/bursar-accounting/bursar/hcl"
	"github.com/bursar-accounting/bursar/plugins/sdk"
	"github.com/bursar-accounting/bursar/proto/local"
)

// Settings are those of a mail block.
type Settings struct {
	From       string        `hcl:"from" doc:"the sender, such as \"Accounting <accounting@example.org>\""`
	ReplyTo    string        `hcl:"reply_to,optional" unset:"the sender" doc:"where answers go"`
	Host       string        `hcl:"host" doc:"the server of the site that takes mail for delivery"`
	Port       int           `hcl:"port,optional" unset:"587, 465 with tls, 25 with none" min:"1" max:"65535" doc:"its port"`
	TLS        string        `hcl:"tls,optional" default:"starttls" allowed:"starttls tls none" doc:"how the connection is encrypted: after STARTTLS, which is then required, from its start, or not"`
	AllowPlain bool          `hcl:"allow_plain,optional" doc:"tls = \"none\" to other machines than this one: everyone on the way can read and change the mails"`
	CA         hcl.Absolute  `hcl:"ca,optional" unset:"those of the system" doc:"a PEM file of the authorities to trust; read anew for each mail"`
	User       string        `hcl:"user,optional" unset:"no login" doc:"the account"`
	Password   hcl.Absolute  `hcl:"password_file,optional" unset:"required with user" doc:"a file with its password, or with the access token of xoauth2; read anew for each mail"`
	Auth       string        `hcl:"auth,optional" default:"plain" allowed:"plain login xoauth2" doc:"how to log in. It needs TLS, except on this machine"`
	Hello      string        `hcl:"hello,optional" unset:"the name of the machine" doc:"the name in EHLO"`
	Timeout    time.Duration `hcl:"timeout,optional" default:"1m" min:"1s" max:"4m" doc:"for the connection, and for each answer before the mail is sent; the last answer has ten minutes"`
}

// Read checks the settings of a mail block and reports every problem. The files that it
// names are tried only where nothing else is wrong with the configuration, as sound says.
func (m *Settings) Read(b *sdk.Body, sound func() bool) *Server {
	s := &Server{accept: acceptTime}
	var err error
	if s.From, err = netmail.ParseAddress(m.From); err != nil && m.From != "" {
		b.Errorf("from", "invalid address %q: %v", m.From, err)
	}
	if _, err := netmail.ParseAddress(m.ReplyTo); err != nil && m.ReplyTo != "" {
		b.Errorf("reply_to", "invalid address %q: %v", m.ReplyTo, err)
	}
	if m.TLS == "none" && !m.AllowPlain && !local.IsLoopback(m.Host) {
		b.Errorf("tls", "without TLS everyone on the way can read the mails: use starttls or tls, or set allow_plain = true on a network of your own")
	}
	if (m.User == "") != (m.Password == "") {
		b.Errorf("user", "user and password_file are set together")
	}
	if m.Port == 0 {
		m.Port = map[string]int{"starttls": 587, "tls": 465, "none": 25}[m.TLS]
	}
	s.Settings = *m
	if !sound() {
		return s
	}
	if _, err := s.readPassword(); err != nil {
		b.Errorf("password_file", "%v", err)
	}
	if _, err := s.tlsConfig(); err != nil {
		b.Errorf("ca", "%v", err)
	}
	return s
}

// Message is a mail to one recipient.
type Message struct {
	To         *netmail.Address
	Subject    string
	ID         string // without the angle brackets
	Date       time.Time
	Text, HTML string // HTML "": text alone
	Files      []File
}

// File is attached to a mail.
type File struct {
	Name, Kind string // such as usage.csv and text/csv, whose text is UTF-8
	Data       []byte
}

// Compose writes a mail as it is sent, byte by byte.
func (s *Server) Compose(m *Message) ([]byte, error) {
	out := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	out.FromMailAddress(s.From)
	out.ToMailAddress(m.To)
	if s.ReplyTo != "" {
		if err := out.ReplyTo(s.ReplyTo); err != nil {
			return nil, err
		}
	}
	out.Subject(m.Subject)
	out.SetDateWithValue(m.Date)
	out.SetMessageIDWithValue(m.ID)
	out.SetGenHeader("Auto-Submitted", "auto-generated")
	out.SetBodyString(gomail.TypeTextPlain, m.Text)
	if m.HTML != "" {
		out.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	}
	for _, f := range m.Files {
		kind := f.Kind
		if strings.HasPrefix(kind, "text/") {
			kind += "; charset=utf-8"
		}
		if err := out.AttachReader(f.Name, bytes.NewReader(f.Data), gomail.WithFileContentType(gomail.ContentType(kind))); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	_, err := out.WriteTo(&b)
	return b.Bytes(), err
}

// Domain is that of the sender, for message ids.
func (s *Server) Domain() string {
	_, domain, _ := strings.Cut(s.From.Address, "@")
	return domain
}

// readPassword returns what the file of the password has; empty without one.
func (s *Server) readPassword() (string, error) {
	if s.Password == "" {
		return "", nil
	}
	text, err := os.ReadFile(string(s.Password))
	if err != nil {
		return "", err
	}
	word := strings.TrimSpace(string(text))
	if word == "" {
		return "", fmt.Errorf("%s is empty", s.Password)
	}
	return word, nil
}
