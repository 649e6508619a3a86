package identity

import (
	"bytes"
	"crypto/x509"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// place is a folder with a daemon's certificate and the authorities it trusts.
type place struct {
	t     *testing.T
	cas   map[string]string // folder of each authority
	files Files
	keys  *Keys
}

func newPlace(t *testing.T, authorities ...string) *place {
	t.Helper()
	dir := t.TempDir()
	p := &place{t: t, cas: map[string]string{}}
	for _, name := range authorities {
		p.cas[name] = filepath.Join(dir, name)
		if _, err := CreateCA(p.cas[name], name, LifetimeCA, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	files, err := CreateCert(p.cas[authorities[0]], dir, Request{Identity: Identity{Role: Agent, Name: "head1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files.CA = filepath.Join(dir, "bundle.pem")
	p.files = files
	p.trust(authorities[0])
	if p.keys, err = Load(files); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) trust(authorities ...string) {
	p.t.Helper()
	var from []string
	for _, name := range authorities {
		from = append(from, filepath.Join(p.cas[name], "ca.pem"))
	}
	if _, err := WriteBundle(p.files.CA, from...); err != nil {
		p.t.Fatal(err)
	}
}

// peer is the chain of an aggregator's certificate.
func (p *place) peer(authority string) []*x509.Certificate {
	p.t.Helper()
	files, err := CreateCert(p.cas[authority], p.t.TempDir(), Request{Identity: Identity{Role: Aggregator, Name: "agg1"}}, time.Now())
	if err != nil {
		p.t.Fatal(err)
	}
	list, err := ReadBundle(files.Cert)
	if err != nil {
		p.t.Fatal(err)
	}
	return list
}

func (p *place) reload() {
	p.t.Helper()
	if err := p.keys.Reload(); err != nil {
		p.t.Fatal(err)
	}
}

func TestAnOpenConnectionEndsSoonAfterItsAuthorityIsGoneAndOthersGoOn(t *testing.T) {
	p := newPlace(t, "old", "new")
	p.trust("old", "new")
	p.reload()
	ends := make(chan string, 10)
	p.keys.Follow(p.peer("old"), func() { ends <- "old" })
	p.keys.Follow(p.peer("new"), func() { ends <- "new" })
	p.keys.Follow(p.peer("old"), func() { ends <- "released" })()
	var told bytes.Buffer
	w := watch{keys: p.keys, log: slog.New(slog.NewTextHandler(&told, nil)), generation: p.keys.seenGeneration()}
	now := time.Now()
	look := func(after time.Duration, want int) {
		t.Helper()
		w.checkKeys(now.Add(after))
		if n := strings.Count(told.String(), "a connection was ended"); n != want {
			t.Fatalf("after %s: %d have ended:\n%s", after, n, &told)
		}
	}
	look(0, 0)
	look(time.Hour, 0)
	p.trust("new")
	p.reload()
	look(2*time.Hour, 0) // it is seen, and has its grace
	look(2*time.Hour+Grace-time.Second, 0)
	p.trust("old", "new")
	p.reload()
	look(3*time.Hour, 0) // it was a mistake
	p.trust("new")
	p.reload()
	look(4*time.Hour, 0)
	look(4*time.Hour+Grace, 1)
	look(5*time.Hour, 1)
	if who := <-ends; who != "old" || len(ends) > 0 || !strings.Contains(told.String(), "aggregator/agg1") {
		t.Errorf("%s and %d more:\n%s", who, len(ends), &told)
	}
}

func TestAGuardedConnectionIsClosedAndAClosedOneIsForgotten(t *testing.T) {
	p := newPlace(t, "old", "new")
	near, far := net.Pipe()
	defer far.Close()
	p.keys.Guard(near, p.peer("new")) // of an authority that is not trusted
	one, other := net.Pipe()
	defer other.Close()
	if err := p.keys.Guard(one, p.peer("new")).Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(p.keys.ties.listTies()); n != 1 {
		t.Errorf("%d connections are followed", n)
	}
	now := time.Now()
	for _, at := range []time.Time{now, now.Add(Grace)} {
		p.keys.sweepConnections(at, func(*x509.Certificate, error) {})
	}
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("the connection lives on")
	}
}

func TestACertificateOfAnAuthorityThatIsNotTrustedYetIsRefusedUntilItIs(t *testing.T) {
	p := newPlace(t, "old", "new")
	begun := p.keys.Generation()
	if _, err := Renew(p.cas["new"], p.files, 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := p.keys.Reload(); err == nil || !strings.Contains(err.Error(), p.files.CA) {
		t.Fatal(err)
	}
	if issuer := p.keys.currentContent().cert.Leaf.Issuer.CommonName; issuer != "old" || p.keys.Generation() != begun {
		t.Errorf("the certificate of %s is in use, generation %d", issuer, p.keys.Generation())
	}
	p.trust("old", "new")
	p.reload()
	if issuer := p.keys.currentContent().cert.Leaf.Issuer.CommonName; issuer != "new" || p.keys.Generation() != begun+1 {
		t.Errorf("the certificate of %s is in use, generation %d", issuer, p.keys.Generation())
	}
}

func TestAnAuthorityThatIsTakenAwayIsNotTrustedAnyMoreEvenIfTheOwnCertificateIsOfIt(t *testing.T) {
	p := newPlace(t, "old", "new")
	chain := p.peer("old")
	if err := p.keys.Valid(chain); err != nil {
		t.Fatal(err)
	}
	p.trust("new")
	p.reload()
	if err := p.keys.Valid(chain); err == nil {
		t.Error("the old authority is still trusted")
	}
}

func TestADaemonWhoseCertificateAndAuthorityHaveEndedTakesNewOnesWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-400 * 24 * time.Hour)
	before, after := filepath.Join(dir, "before"), filepath.Join(dir, "after")
	if _, err := CreateCA(before, "before", 24*time.Hour, long); err != nil {
		t.Fatal(err)
	}
	if _, err := CreateCA(after, "after", LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	files, err := CreateCert(before, dir, Request{Identity: Identity{Role: Agent, Name: "head1"}}, long)
	if err != nil {
		t.Fatal(err)
	}
	files.CA = filepath.Join(dir, "ca.pem")
	p := &place{t: t, cas: map[string]string{"before": before, "after": after}, files: files}
	p.trust("before")
	if p.keys, err = Load(files); err != nil {
		t.Fatal(err)
	}
	if _, err := Renew(after, files, 0, time.Now()); err != nil {
		t.Fatal(err)
	}
	p.trust("after")
	p.reload()
	if issuer := p.keys.currentContent().cert.Leaf.Issuer.CommonName; issuer != "after" || time.Now().After(p.keys.Expires()) {
		t.Errorf("the certificate of %s is in use", issuer)
	}
}
