package hcl

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"regexp"
)

// TLS is the shared block tls { ca cert key }: PEM files of the authority that
// peers are verified against, and of this program's certificate chain and key.
// Decoding does not look at the files, so that a configuration can be read on
// another machine; a program that will use them calls Check.
type TLS struct {
	// CA holds the certificates of the authorities that are trusted.
	CA Path `hcl:"ca"`
	// Cert holds the certificate and its intermediates.
	Cert Path `hcl:"cert"`
	// Key holds the private key.
	Key Path `hcl:"key"`
	// Range is the header of the block.
	Range Range `hcl:",def_range"`
}

// IsComplete reports whether all three files are named; a nil block names none.
func (t *TLS) IsComplete() bool {
	return t != nil && t.CA.Path != "" && t.Cert.Path != "" && t.Key.Path != ""
}

// Check reports, at the attribute that names it, each file that cannot be read or
// does not hold what it should, and a key that does not belong to the
// certificate. A nil block is fine.
func (t *TLS) Check() Diagnostics {
	if t == nil {
		return nil
	}
	var diags Diagnostics
	ca := readPEM("ca", t.CA, &diags)
	cert := readPEM("cert", t.Cert, &diags)
	key := readPEM("key", t.Key, &diags)
	if ca != nil && !x509.NewCertPool().AppendCertsFromPEM(ca) {
		diags.Add(Errorf(t.CA.Range, "invalid value for \"ca\"", "%s holds no PEM certificate", t.CA))
	}
	if cert == nil || key == nil {
		return diags
	}
	if _, err := tls.X509KeyPair(cert, key); err != nil {
		diags.Add(Errorf(t.Cert.Range, "certificate and key do not fit", "%s and %s: %v", t.Cert, t.Key, err))
	}
	return diags
}

// readPEM reads a file of the block, or reports why it cannot be read.
func readPEM(name string, p Path, diags *Diagnostics) []byte {
	if p.Path == "" {
		return nil // decoding has reported it
	}
	b, err := readFile(p.Path, maxValueFile)
	if err != nil {
		diags.Add(Errorf(p.Range, fmt.Sprintf("invalid value for %q", name), "%v", err))
		return nil
	}
	return b
}

// Plugin is the shared block plugin "<type>" "<name>" { … }: where a plugin is
// and what it gets. Everything in it is optional.
type Plugin struct {
	// Type is "source" or "action".
	Type String `hcl:"type,label" allowed:"source action"`
	// Name is the plugin's name, the first label of the blocks that use it.
	Name String `hcl:"name,label"`
	// Path is the program; nil means the usual plugin directory.
	Path *Path `hcl:"path"`
	// SHA256 is the digest that the program must have, 64 hexadecimal digits;
	// empty means any.
	SHA256 String `hcl:"sha256,optional" match:"([0-9a-fA-F]{64})?" want:"64 hexadecimal digits, as sha256sum prints them"`
	// Env is the environment of the plugin's process, beyond a minimal one.
	Env map[string]String `hcl:"env,optional"`
	// Range is the header of the block.
	Range Range `hcl:",def_range"`
}

// ValidateHCL implements Validator.
func (p *Plugin) ValidateHCL() Diagnostics {
	var diags Diagnostics
	for name, v := range p.Env {
		if !envName.MatchString(name) {
			diags.Add(Errorf(v.Range, "invalid value for \"env\"", "%q cannot be the name of an environment variable", clipText(name)))
		}
	}
	return diags
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Log is the shared block log { level format }.
type Log struct {
	// Level is "debug", "info" (default), "warn" or "error".
	Level String `hcl:"level,optional" allowed:"debug info warn error"`
	// Format is "text" (default) or "json".
	Format String `hcl:"format,optional" allowed:"text json"`
	// Range is the header of the block.
	Range Range `hcl:",def_range"`
}

// SlogLevel is the level for log/slog; info when none is set.
func (l Log) SlogLevel() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level.Value)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// Handler writes to w in the configured format. The level may be changed while
// the program runs when it is a *slog.LevelVar.
func (l Log) Handler(w io.Writer, level slog.Leveler) slog.Handler {
	options := &slog.HandlerOptions{Level: level}
	if l.Format.Value == "json" {
		return slog.NewJSONHandler(w, options)
	}
	return slog.NewTextHandler(w, options)
}

// Metrics is the shared block metrics { listen path }: where Prometheus reads.
type Metrics struct {
	// Listen is the address of the listener.
	Listen Address `hcl:"listen"`
	// Path is the path of the page; empty means /metrics.
	Path String `hcl:"path,optional" match:"(/.*)?" want:"a path that begins with a slash"`
	// Range is the header of the block.
	Range Range `hcl:",def_range"`
}
