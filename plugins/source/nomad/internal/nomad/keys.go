package nomad

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
)

// Files are the files of a client. They are read again when they change.
type Files struct {
	Token      string // the file with the token; "" for none
	CA         string // authorities that the server is trusted by; "" for the machine's
	Cert, Key  string // of this client; "" for none
	ServerName string // that the server's certificate must have; "" for the address's
}

// keys are what was read from the files.
type keys struct {
	stamps map[string]stamp
	tls    *tls.Config
	token  string
}

// stamp tells whether a file has changed.
type stamp struct {
	at   time.Time
	size int64
}

// refreshFiles reads the files that have changed, and says whether the certificates have.
// What cannot be read now leaves what was read before.
func (k *keys) refreshFiles(f Files) (changed bool, err error) {
	if f.Token != "" {
		if now, isNew := k.statFile(f.Token); isNew {
			text, err := os.ReadFile(f.Token)
			if err != nil {
				return false, fmt.Errorf("token: %w", err)
			}
			k.token = strings.TrimSpace(string(text))
			k.stamps[f.Token] = now
		}
	}
	next := map[string]stamp{}
	for _, path := range []string{f.CA, f.Cert, f.Key} {
		if now, isNew := k.statFile(path); path != "" && isNew {
			next[path] = now
		}
	}
	if k.tls != nil && len(next) == 0 {
		return false, nil
	}
	conf, err := f.tlsConfig()
	if err != nil {
		return false, err
	}
	k.tls = conf
	maps.Copy(k.stamps, next)
	return true, nil
}

func (k *keys) statFile(path string) (stamp, bool) {
	if k.stamps == nil {
		k.stamps = map[string]stamp{}
	}
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}, true
	}
	now := stamp{info.ModTime(), info.Size()}
	return now, k.stamps[path] != now
}

// tlsConfig reads the certificates.
func (f Files) tlsConfig() (*tls.Config, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, fmt.Errorf("authority: %w", err)
		}
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("authority: %s has no certificate in PEM", f.CA)
		}
	}
	if f.Cert != "" {
		pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate: %w", err)
		}
		conf.Certificates = []tls.Certificate{pair}
	}
	return conf, nil
}
