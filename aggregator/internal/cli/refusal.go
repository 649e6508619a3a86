package cli

import (
	"cmp"
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/bursar-accounting/bursar/proto/client"
	"github.com/bursar-accounting/bursar/proto/commandline"
)

// explainRefusal makes a refusal of what failed for the address, the files or the token.
func (c *connection) explainRefusal(p *Program, server string, err error) error {
	fault := client.FaultOf(err)
	if fault == client.OtherFault {
		return err
	}
	r := commandline.Refusal{Err: err, Tried: server + ", " + c.origin, Do: c.remedyCommand(server, fault, err)}
	switch fault {
	case client.UnknownAuthority:
		r.Tried += "; " + c.fileOrigin(p, "the authority", c.ca, "ca-cert", "BURSAR_CACERT")
	case client.WantsCertificate:
		r.Tried += "; " + c.fileOrigin(p, "a certificate", c.cert, "client-cert", "BURSAR_CLIENT_CERT")
	case client.Unauthorized, client.TokenExposed:
		r.Tried += "; " + c.credentialText(p)
	}
	return r
}

// fileOrigin says which file was used and where its name is from, or that none was. what has an article.
func (c *connection) fileOrigin(p *Program, what, file, flag, env string) string {
	if file == "" {
		return "without -" + flag
	}
	return what + " is " + file + ", " + c.valueOrigin(p, flag, env)
}

// credentialText says by what credential the aggregator may know who asks.
func (c *connection) credentialText(p *Program) string {
	switch {
	case c.token != "" && !c.flags.Changed("token-file"):
		return "with the token of BURSAR_TOKEN"
	case c.tokenFile != "":
		return c.fileOrigin(p, "the token", c.tokenFile, "token-file", "BURSAR_TOKEN_FILE")
	case c.cert != "":
		return c.fileOrigin(p, "the certificate", c.cert, "client-cert", "BURSAR_CLIENT_CERT")
	}
	return "without a token or a certificate"
}

// remedyCommand is what to type, with a comment.
func (c *connection) remedyCommand(server string, fault client.Fault, err error) string {
	_, host, _ := strings.Cut(server, "://")
	socket := strings.HasPrefix(server, "unix:")
	switch fault {
	case client.UnknownAuthority:
		return "{} -ca-cert FILE   # or BURSAR_CACERT: ca.pem of the aggregator that you mean"
	case client.OtherName:
		return "{} -address https://" + certifiedAddress(host, err) + "   # or BURSAR_ADDR; the certificate is for another name"
	case client.InvalidCertificate:
		return "date   # is the clock right? If so, the aggregator needs another certificate: bursar status, on its node"
	case client.NoTLS:
		return "{} -address http://" + host
	case client.NeedsTLS, client.TokenExposed:
		return "{} -address https://" + host + " -ca-cert FILE   # ca.pem of the aggregator"
	case client.WantsCertificate:
		return "{} -client-cert FILE -client-key FILE   # or BURSAR_CLIENT_CERT and BURSAR_CLIENT_KEY; bursar tls cert create -role client makes them"
	case client.NoPermission:
		return "sudo {}   # or join the group bursar"
	case client.Unauthorized:
		if socket || c.local && len(c.denied) > 0 {
			return "sudo {}   # or join the group bursar, or -token-file FILE"
		}
		return "{} -token-file FILE   # or BURSAR_TOKEN; on the aggregator's node, bursar token create -role read prints a token"
	case client.Foreign:
		return "{} -address https://HOST:8443   # or BURSAR_ADDR: where an aggregator listens"
	}
	switch {
	case c.local && len(c.denied) > 0:
		return "sudo {}   # or join the group bursar"
	case c.local:
		return "{} -address https://HOST:8443   # or BURSAR_ADDR: where an aggregator runs; bursar dev starts one here"
	case socket && c.inContext == c.origin:
		return "{} -address unix:PATH   # or bursar context use NAME: an aggregator that runs"
	case socket:
		return "env -u BURSAR_ADDR {}   # without -address: the aggregator of this machine that runs"
	}
	return "{} -address https://HOST:8443   # or BURSAR_ADDR: does the aggregator run at " + cmp.Or(host, server) + "?"
}

// certifiedAddress is the host and port of a server, by a name for which its certificate is.
func certifiedAddress(host string, err error) string {
	_, port, _ := net.SplitHostPort(host)
	name := "NAME"
	if wrong, _ := errors.AsType[x509.HostnameError](err); wrong.Certificate != nil {
		for _, ip := range wrong.Certificate.IPAddresses {
			name = ip.String()
		}
		for _, dns := range wrong.Certificate.DNSNames {
			name = dns
		}
	}
	return net.JoinHostPort(name, cmp.Or(port, "443"))
}

// wrongAddress says of an address or a file that cannot be used whence it is.
func (c *connection) wrongAddress(p *Program, err error) error {
	if client.FaultOf(err) != client.OtherFault {
		return c.explainRefusal(p, c.address, err)
	}
	return commandline.Refusal{Err: err, Tried: c.address + ", " + c.origin, Do: "{} -address https://HOST:8443   # or http://HOST:PORT, or unix:PATH; or BURSAR_ADDR"}
}

// valueOrigin says from where a value is: an option, a variable or the context.
func (c *connection) valueOrigin(p *Program, flag, env string) string {
	switch {
	case c.flags.Changed(flag):
		return "from -" + flag
	case p.Getenv(env) != "":
		return "from " + env
	}
	return c.inContext
}
