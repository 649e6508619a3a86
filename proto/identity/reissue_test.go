package identity_test

import (
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// machine is a daemon's certificate that an authority of its own has signed.
func machine(t *testing.T, id identity.Identity, life time.Duration, made time.Time) (*identity.Authority, identity.Files) {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, "test", identity.LifetimeCA, made); err != nil {
		t.Fatal(err)
	}
	files, err := identity.CreateCert(dir, filepath.Join(dir, "own"), identity.Request{Identity: id, Hosts: []string{"agg1.example.org", "192.0.2.1"}, Lifetime: life}, made)
	if err != nil {
		t.Fatal(err)
	}
	a, err := identity.LoadAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a, files
}

func load(t *testing.T, files identity.Files) *identity.Keys {
	t.Helper()
	k, err := identity.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func node(name string) identity.Identity {
	return identity.Identity{Role: identity.Aggregator, Name: name}
}

func TestReissue_OwnCertificate_KeepsKeyNamesAndLife(t *testing.T) {
	now := time.Now()
	const life = 40 * time.Minute
	a, files := machine(t, node("agg1"), life, now.Add(-30*time.Minute))
	k := load(t, files)
	for round := range 5 {
		old := k.Leaf()
		if due := identity.RenewAt(old).Sub(identity.Issued(old)); due < life*2/3 || due > life*3/4 {
			t.Errorf("renewed after %s of %s", due, life)
		}
		next, err := a.Reissue(old, now.Add(time.Duration(round)*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Take(next.Raw); err != nil {
			t.Fatal(err)
		}
		leaf := k.Leaf()
		id, err := identity.Of(leaf)
		if err != nil || id != node("agg1") || leaf.DNSNames[0] != "agg1.example.org" || len(leaf.IPAddresses) != 1 || leaf.NotAfter.Sub(identity.Issued(leaf)) != life {
			t.Errorf("round %d: %v %v, %s", round, id, err, leaf.NotAfter.Sub(identity.Issued(leaf)))
		}
		if again := load(t, files).Leaf(); !again.Equal(leaf) {
			t.Error("the file has another certificate than the daemon uses")
		}
	}
}

func TestReissue_CertificateThatIsNotToBeRenewed_IsRefused(t *testing.T) {
	now := time.Now()
	a, files := machine(t, node("agg1"), time.Hour, now)
	own := load(t, files).Leaf()
	_, foreign := machine(t, node("agg1"), time.Hour, now)
	if _, err := a.Reissue(load(t, foreign).Leaf(), now); !errors.Is(err, identity.ErrForeign) {
		t.Error("foreign: ", err)
	}
	if _, err := a.Reissue(own, now.Add(2*time.Hour)); !errors.Is(err, identity.ErrIdentity) {
		t.Error("ended: ", err)
	}
	b, client := machine(t, identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Admin}, time.Hour, now)
	if _, err := b.Reissue(load(t, client).Leaf(), now); !errors.Is(err, identity.ErrIdentity) {
		t.Error("a client's: ", err)
	}
	c, last := machine(t, node("agg1"), identity.LifetimeCA, now)
	if _, err := c.Reissue(load(t, last).Leaf(), now.Add(time.Hour)); err == nil || !strings.Contains(err.Error(), "the authority itself ends") {
		t.Error("at the end of the authority: ", err)
	}
}

func TestTake_CertificateThatDoesNotFit_IsRefusedAndTheOldOneStays(t *testing.T) {
	now := time.Now()
	a, files := machine(t, node("agg1"), time.Hour, now)
	k := load(t, files)
	before, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(by *identity.Authority, of *x509.Certificate, at time.Time) []byte {
		t.Helper()
		next, err := by.Reissue(of, at)
		if err != nil {
			t.Fatal(err)
		}
		return next.Raw
	}
	other, err := identity.CreateCert(filepath.Dir(filepath.Dir(files.Cert)), t.TempDir(), identity.Request{Identity: node("agg1")}, now)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, foreign := machine(t, node("agg1"), time.Hour, now)
	csr := request(t, files.Key)
	renamed, err := a.Sign(csr, identity.Request{Identity: node("agg2")}, now)
	if err != nil {
		t.Fatal(err)
	}
	list, err := identity.ParseCertificates(renamed)
	if err != nil {
		t.Fatal(err)
	}
	for what, der := range map[string][]byte{
		"nothing":                 nil,
		"not a certificate":       []byte("certificate"),
		"of another key":          sign(a, load(t, other).Leaf(), now.Add(time.Minute)),
		"of another authority":    sign(elsewhere, load(t, foreign).Leaf(), now.Add(time.Minute)),
		"of another name":         list[0].Raw,
		"that ends no later":      k.Leaf().Raw,
		"that begins in a future": sign(a, k.Leaf(), now.Add(30*time.Minute)),
	} {
		if err := k.Take(der); err == nil {
			t.Error("a certificate was taken: ", what)
		}
	}
	if after, err := os.ReadFile(files.Cert); err != nil || string(after) != string(before) {
		t.Error("the file was changed: ", err)
	}
}

func request(t *testing.T, keyFile string) *x509.CertificateRequest {
	t.Helper()
	key, err := identity.KeepKey(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	text, err := identity.NewRequest(key, "agg2")
	if err != nil {
		t.Fatal(err)
	}
	csr, err := identity.ParseRequest(text)
	if err != nil {
		t.Fatal(err)
	}
	return csr
}

func TestTake_FileThatCannotBeWritten_SaysSoAndTheOldOneStays(t *testing.T) {
	a, files := machine(t, node("agg1"), time.Hour, time.Now())
	k := load(t, files)
	before := k.Leaf()
	next, err := a.Reissue(before, time.Now().Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(files.Cert+".new/in the way", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := k.Take(next.Raw); err == nil || !strings.Contains(err.Error(), "write the renewed certificate") || !k.Leaf().Equal(before) {
		t.Error(err)
	}
}

func TestNoteRenewal_RenewedCertificate_ForgetsIt(t *testing.T) {
	a, files := machine(t, node("agg1"), time.Hour, time.Now())
	k := load(t, files)
	if !k.NoteRenewal("no authority answers") || k.NoteRenewal("no authority answers") || k.Unrenewed() != "no authority answers" {
		t.Error(k.Unrenewed())
	}
	next, err := a.Reissue(k.Leaf(), time.Now().Add(2*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Take(next.Raw); err != nil || k.Unrenewed() != "" {
		t.Error(err, k.Unrenewed())
	}
}
