package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// Files are where a peer's certificates are, in PEM. CA may hold several, so
// that an old and a new one are valid side by side.
type Files struct {
	CA   string
	Cert string
	Key  string
}

// Keys hold certificates that follow their files: a file that changed is read
// again at the next connection. While the new files are broken, do not fit each
// other or are someone else's the old content stays in use, and they are read
// again until they are whole. Keys are safe for use by many goroutines.
type Keys struct {
	files Files

	mu      sync.Mutex
	stamps  [3]stamp
	checked time.Time
	content
	generation uint64 // how often new content was taken
	problem    error  // why the newest files are not in use
	judged     map[[sha256.Size]byte]bool
	unrenewed  string // why the certificate is not renewed

	ties ties
}

// content is what the files hold.
type content struct {
	cert        *tls.Certificate
	pool        *x509.CertPool
	authorities []*x509.Certificate
}

type stamp struct {
	modified time.Time
	size     int64
	inode    any
}

// Load reads the files. The error names the file and what is wrong with it.
func Load(files Files) (*Keys, error) {
	k := &Keys{files: files}
	if err := k.readFiles(); err != nil {
		return nil, err
	}
	return k, nil
}

// Reload reads the files again now. On an error the old content stays in use.
func (k *Keys) Reload() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.readFiles()
}

// readFiles takes the content of the files when all is well with it.
func (k *Keys) readFiles() error {
	stamps := k.statFiles()
	next, err := readContent(k.files)
	if err == nil && k.cert != nil {
		err = k.checkSuccessor(&next)
	}
	if k.problem = err; err != nil {
		return err
	}
	k.content, k.stamps, k.judged, k.unrenewed = next, stamps, nil, ""
	k.generation++
	return nil
}

func readContent(files Files) (c content, err error) {
	cert, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		return c, fmt.Errorf("certificate %s with key %s: %w", files.Cert, files.Key, err)
	}
	if cert.Leaf == nil {
		return c, fmt.Errorf("certificate %s: nothing in it", files.Cert)
	}
	authorities, err := ReadBundle(files.CA)
	if err != nil {
		return c, fmt.Errorf("CA: %w", err)
	}
	pool := x509.NewCertPool()
	for _, a := range authorities {
		pool.AddCert(a)
	}
	return content{cert: &cert, pool: pool, authorities: authorities}, nil
}

// checkSuccessor returns an error when the daemon that runs should not change over to
// the new content.
func (k *Keys) checkSuccessor(next *content) error {
	was, err := Of(k.cert.Leaf)
	if err != nil {
		return nil //nolint:nilerr // whatever comes is no worse
	}
	is, err := Of(next.cert.Leaf)
	now := time.Now()
	switch {
	case err != nil:
		return fmt.Errorf("certificate %s: %w", k.files.Cert, err)
	case is.Role != was.Role || is.Name != was.Name:
		return fmt.Errorf("certificate %s: %w: it is that of %s, and this is %s", k.files.Cert, ErrIdentity, is, was)
	case now.Before(next.cert.Leaf.NotBefore):
		return fmt.Errorf("certificate %s: it begins on %s only", k.files.Cert, formatDay(next.cert.Leaf.NotBefore))
	case now.After(next.cert.Leaf.NotAfter) && now.Before(k.cert.Leaf.NotAfter):
		return fmt.Errorf("certificate %s: %w", k.files.Cert, endedError(next.cert.Leaf))
	case !next.cert.Leaf.Equal(k.cert.Leaf) && k.checkTrust() == nil && next.checkTrust() != nil:
		return fmt.Errorf("certificate %s: no authority in %s has signed it, so other daemons would most likely refuse it: put the authority there first, here and everywhere", k.files.Cert, k.files.CA)
	}
	return nil
}

// checkTrust returns an error when the own certificate is of none of the authorities.
func (c *content) checkTrust() error {
	chain := []*x509.Certificate{c.cert.Leaf}
	for _, der := range c.cert.Certificate[1:] {
		between, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		chain = append(chain, between)
	}
	_, err := verifyChain(chain, c.pool, x509.ExtKeyUsageAny)
	return err
}

func formatDay(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 MST") }

func endedError(c *x509.Certificate) error {
	return fmt.Errorf("%w: the certificate ended on %s", ErrIdentity, formatDay(c.NotAfter))
}

// ReadBundle reads a file with the certificates of authorities. One that is not
// whole is an error, so that half a bundle is not taken for a smaller one.
func ReadBundle(path string) ([]*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	list, err := parseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return list, nil
}

func parseBundle(text []byte) ([]*x509.Certificate, error) {
	var list []*x509.Certificate
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != pemCertificate {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d in it: %w", len(list)+1, err)
		}
		list = append(list, c)
	}
	switch {
	case len(list) == 0:
		return nil, errors.New("no certificate in it")
	case bytes.Contains(text, []byte("-----BEGIN")):
		return nil, errors.New("it ends within a certificate")
	}
	return list, nil
}

func (k *Keys) statFiles() (stamps [3]stamp) {
	for i, path := range []string{k.files.CA, k.files.Cert, k.files.Key} {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.ModTime(), info.Size(), inodeOf(info)}
		}
	}
	return stamps
}

// inodeOf tells a file from one that took its place with the same time and size.
func inodeOf(info os.FileInfo) any {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return nil
}

// ownerOf returns whose a file is.
func ownerOf(info os.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// checkEvery bounds how often the files are looked at.
const checkEvery = time.Second

// currentContent returns the content, read again when a file changed.
func (k *Keys) currentContent() content {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.followFiles()
}

func (k *Keys) followFiles() content {
	if now := time.Now(); now.Sub(k.checked) > checkEvery {
		k.checked = now
		if k.statFiles() != k.stamps {
			_ = k.readFiles() // Run says what is wrong, if it stays so
		}
	}
	return k.content
}

// Valid returns an error when the certificate of a peer, which comes first in its
// chain and was verified when the connection was made, would not be let in by now:
// it ended, or its authority is not trusted any more.
func (k *Keys) Valid(chain []*x509.Certificate) error {
	if time.Now().After(chain[0].NotAfter) {
		return endedError(chain[0])
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	pool, sum := k.followFiles().pool, sha256.Sum256(chain[0].Raw)
	if k.judged[sum] {
		return nil
	}
	if _, err := verifyChain(chain, pool, x509.ExtKeyUsageAny); err != nil {
		return fmt.Errorf("%w: %w", ErrIdentity, err)
	}
	if k.judged == nil || len(k.judged) > maxJudged {
		k.judged = map[[sha256.Size]byte]bool{}
	}
	k.judged[sum] = true
	return nil
}

// maxJudged bounds the certificates that are remembered as valid.
const maxJudged = 10_000

func verifyChain(chain []*x509.Certificate, pool *x509.CertPool, usage x509.ExtKeyUsage) ([][]*x509.Certificate, error) {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	return chain[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{usage}})
}

// Identity returns the identity in the own certificate.
func (k *Keys) Identity() (Identity, error) {
	return Of(k.currentContent().cert.Leaf)
}

// Expires returns when the own certificate ends.
func (k *Keys) Expires() time.Time { return k.currentContent().cert.Leaf.NotAfter }

// Begins returns when the own certificate was made.
func (k *Keys) Begins() time.Time { return Issued(k.currentContent().cert.Leaf) }

// Problem says why the newest files are not in use; nil when they are.
func (k *Keys) Problem() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.followFiles()
	return k.problem
}

// Server returns a configuration that accepts only peers of the roles, by mutual
// TLS 1.3.
func (k *Keys) Server(roles ...Role) *tls.Config {
	return k.serverConfig(tls.VersionTLS13, tls.RequireAndVerifyClientCert, requireRole("", roles...), "h2", "http/1.1")
}

// Public returns the configuration of a REST interface: mutual TLS from 1.2 on,
// for clients and aggregators. An agent's certificate does not open it: who has
// taken over a head node writes no records of other sites.
func (k *Keys) Public() *tls.Config {
	return k.serverConfig(tls.VersionTLS12, tls.RequireAndVerifyClientCert, requireRole("", Client, Aggregator), "h2", "http/1.1")
}

// Open is as Public, and lets in who shows no certificate too. Who shows a certificate
// must show a valid one. The server refuses requests without a certificate itself.
func (k *Keys) Open() *tls.Config {
	known := requireRole("", Client, Aggregator)
	return k.serverConfig(tls.VersionTLS12, tls.VerifyClientCertIfGiven, func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return nil
		}
		return known(state)
	}, "h2", "http/1.1")
}

// Authorities returns the certificates of the authorities that are trusted.
func (k *Keys) Authorities() []*x509.Certificate { return k.currentContent().authorities }

// Names returns the DNS names and addresses in the own certificate.
func (k *Keys) Names() []string { return hostsOf(k.currentContent().cert.Leaf) }

func (k *Keys) serverConfig(version uint16, auth tls.ClientAuthType, verify func(tls.ConnectionState) error, protocols ...string) *tls.Config {
	build := func() *tls.Config {
		c := k.currentContent()
		return &tls.Config{
			MinVersion:   version,
			Certificates: []tls.Certificate{*c.cert},
			ClientAuth:   auth,
			ClientCAs:    c.pool,
			// A session that is resumed brings along what was verified under
			// authorities of old.
			SessionTicketsDisabled: true,

			VerifyConnection: verify,
			NextProtos:       protocols,
		}
	}
	c := build()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return build(), nil }
	return c
}

// Client returns a configuration that connects only to the peer of that role
// and name; to any of the role when name is empty. The certificate is checked
// by its role and name; its host names do not count.
func (k *Keys) Client(role Role, name string) *tls.Config {
	check := requireRole(name, role)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return k.currentContent().cert, nil
		},
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it, by role and name instead of by host name
		VerifyConnection: func(state tls.ConnectionState) error {
			if err := k.verifyServer(&state); err != nil {
				return err
			}
			return check(state)
		},
	}
}

// verifyServer verifies the peer's chain against the CA and notes it in state.
func (k *Keys) verifyServer(state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the peer sent no certificate")
	}
	chains, err := verifyChain(state.PeerCertificates, k.currentContent().pool, x509.ExtKeyUsageServerAuth)
	state.VerifiedChains = chains
	return err
}
