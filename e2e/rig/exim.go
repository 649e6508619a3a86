//go:build e2e

package rig

import (
	"bytes"
	"fmt"
	"net"
	"net/mail"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// eximConfig is a server of mail that delivers into one folder. It offers STARTTLS, takes
// mail only after a login over TLS, and has no mailbox of the name nobody.
const eximConfig = `
primary_hostname = mail.example.org
exim_user = Debian-exim
exim_group = Debian-exim
spool_directory = %[1]s/spool
log_file_path = %[1]s/%%slog
pid_file_path = %[1]s/pid
local_interfaces = 127.0.0.1
daemon_smtp_ports = %[2]s
tls_advertise_hosts = *
tls_certificate = %[1]s/cert.pem
tls_privatekey = %[1]s/key.pem
auth_advertise_hosts = ${if eq{$tls_in_cipher}{}{}{*}}
acl_smtp_rcpt = recipients
rfc1413_hosts =
host_lookup =
dns_ipv4_lookup =
keep_environment =

begin acl
recipients:
  deny !authenticated = *
       message = log in first
  deny local_parts = nobody
       message = there is no mailbox of that name here
  accept

begin routers
all:
  driver = accept
  transport = folder

begin transports
folder:
  driver = appendfile
  directory = %[1]s/mail
  maildir_format
  envelope_to_add
  return_path_add
  user = Debian-exim
  group = Debian-exim

begin authenticators
plain:
  driver = plaintext
  public_name = PLAIN
  server_prompts = :
  server_condition = ${if and{{eq{$auth2}{%[3]s}}{eq{$auth3}{%[4]s}}}}
  server_set_id = $auth2
login:
  driver = plaintext
  public_name = LOGIN
  server_prompts = Username:: : Password::
  server_condition = ${if and{{eq{$auth1}{%[3]s}}{eq{$auth2}{%[4]s}}}}
  server_set_id = $auth1
`

// Exim is Debian's server of mail.
type Exim struct {
	t   testing.TB
	dir string
}

// NewExim starts an Exim on an address of 127.0.0.1, which ends with the test. User and
// password log in; cert and key are files in PEM.
func NewExim(t testing.TB, address, cert, key, account, password string) *Exim {
	t.Helper()
	const program = "/usr/sbin/exim4"
	requireInstalled(t, program)
	e := &Exim{t, tempDir(t, "exim")}
	u, err := user.Lookup("Debian-exim")
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid) // numbers, on Linux
	gid, _ := strconv.Atoi(u.Gid)
	own := func(path string, err error) {
		if err == nil {
			err = os.Chown(path, uid, gid)
		}
		if err != nil {
			t.Fatalf("rig: %v", err)
		}
	}
	own(e.dir, nil)
	for _, name := range []string{"spool", "mail"} {
		own(e.path(name), os.Mkdir(e.path(name), 0o750))
	}
	for name, from := range map[string]string{"cert.pem": cert, "key.pem": key} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatalf("rig: %v", err)
		}
		own(e.path(name), os.WriteFile(e.path(name), text, 0o600))
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatalf("rig: %v", err)
	}
	config := fmt.Sprintf(eximConfig, e.dir, port, account, password)
	if err := os.WriteFile(e.path("config"), []byte(config), 0o644); err != nil {
		t.Fatalf("rig: %v", err)
	}
	cmd := exec.Command(program, "-C", e.path("config"), "-bdf")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	srv, err := startTied(cmd)
	if err != nil {
		t.Fatalf("rig: start Exim: %v", err)
	}
	t.Cleanup(func() { srv.stop(syscall.SIGTERM, time.Minute) })
	waitFor(t, "Exim", time.Minute, func() error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return fmt.Errorf("%w %s", err, said.String())
		}
		return conn.Close()
	})
	return e
}

func (e *Exim) path(name string) string { return filepath.Join(e.dir, name) }

// Log is what the server wrote about its mails.
func (e *Exim) Log() string {
	text, _ := os.ReadFile(e.path("mainlog")) // "" until there is one
	return string(text)
}

// Mails are those that were delivered, in the order of their files.
func (e *Exim) Mails() (out []*mail.Message) {
	e.t.Helper()
	files, err := filepath.Glob(e.path("mail/new/*"))
	if err != nil {
		e.t.Fatalf("rig: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			e.t.Fatalf("rig: %v", err)
		}
		m, err := mail.ReadMessage(bytes.NewReader(text))
		if err != nil {
			e.t.Fatalf("rig: %s: %v", f, err)
		}
		out = append(out, m)
	}
	return out
}
