package identity_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// authority is a new CA in a folder of its own.
func authority(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, name, identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAnAuthorityIsReplacedStepByStepAndPeersAgreeAtEveryStep(t *testing.T) {
	before, after, dir := authority(t, "ca"), authority(t, "ca"), t.TempDir()
	bundle := filepath.Join(dir, "ca.pem")
	write := func(from ...string) {
		t.Helper()
		if _, err := identity.WriteBundle(bundle, from...); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(before, "ca.pem"))
	load := func(role identity.Role, name string) (*identity.Keys, identity.Files) {
		t.Helper()
		files, err := identity.CreateCert(before, dir, identity.Request{Identity: identity.Identity{Role: role, Name: name}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		files.CA = bundle
		keys, err := identity.Load(files)
		if err != nil {
			t.Fatal(err)
		}
		return keys, files
	}
	agent, agentFiles := load(identity.Agent, "head1")
	agg, aggFiles := load(identity.Aggregator, "agg1")
	server, client := agent.Server(identity.Aggregator), agg.Client(identity.Agent, "head1")
	meet := func(when string) {
		t.Helper()
		for _, k := range []*identity.Keys{agent, agg} {
			if err := k.Reload(); err != nil {
				t.Fatal(when, err)
			}
		}
		if s, c := shake(t, server, client); s != nil || c != nil {
			t.Errorf("%s: %v, %v", when, s, c)
		}
	}
	renew := func(files identity.Files) {
		t.Helper()
		if _, err := identity.Renew(after, files, 0, time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	meet("before")
	write(filepath.Join(before, "ca.pem"), filepath.Join(after, "ca.pem"))
	meet("both authorities are trusted")
	renew(agentFiles)
	meet("the agent has a new certificate")
	renew(aggFiles)
	meet("both have one")
	write(filepath.Join(after, "ca.pem"))
	meet("the old authority is gone")

	old, err := identity.CreateCert(before, filepath.Join(dir, "late"), identity.Request{Identity: identity.Identity{Role: identity.Aggregator, Name: "agg1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	late, err := identity.Load(old)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := shake(t, server, late.Client(identity.Agent, "head1")); s == nil {
		t.Error("a certificate of the old authority is still let in")
	}
}

func TestRenewalKeepsNameRolesAndHosts(t *testing.T) {
	ca := authority(t, "ca")
	dir := t.TempDir()
	id := identity.Identity{Role: identity.Client, Name: "alice", Rights: identity.Read | identity.Operate}
	files, err := identity.CreateCert(ca, dir, identity.Request{Identity: id, Hosts: []string{"a.example.org", "127.0.0.1"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	got, err := identity.Renew(ca, files, 24*time.Hour, time.Now())
	if err != nil || got != id {
		t.Fatal(got, err)
	}
	list, err := identity.ReadBundle(files.Cert)
	if err != nil || len(list) != 1 || len(list[0].DNSNames) != 1 || len(list[0].IPAddresses) != 1 {
		t.Fatal(list, err)
	}
	after, err := os.ReadFile(files.Cert)
	if err != nil || string(after) == string(before) {
		t.Error("the certificate is the old one", err)
	}
	if _, err := identity.Load(files); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestFilesThatAreNotWholeOrAnothersAreRefusedAndTheOldOnesStay(t *testing.T) {
	ca := identitytest.New(t)
	files := ca.Files(identity.Agent, "head1")
	keys, err := identity.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	end := keys.Expires()
	whole, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	other := ca.Files(identity.Agent, "head2")
	for _, c := range []struct {
		name  string
		spoil func() error
	}{
		{"half an authority behind a whole one", func() error {
			return os.WriteFile(files.CA, slices.Concat(whole, whole[:len(whole)/2]), 0o600)
		}},
		{"another's certificate", func() error {
			for from, to := range map[string]string{other.Cert: files.Cert, other.Key: files.Key} {
				text, err := os.ReadFile(from)
				if err == nil {
					err = os.WriteFile(to, text, 0o600)
				}
				if err != nil {
					return err
				}
			}
			return os.WriteFile(files.CA, whole, 0o600)
		}},
	} {
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		if err := keys.Reload(); err == nil {
			t.Errorf("%s was taken", c.name)
		}
		if id, err := keys.Identity(); err != nil || id.Name != "head1" || keys.Expires() != end || keys.Problem() == nil {
			t.Errorf("%s: %s, %v, problem %v", c.name, id, err, keys.Problem())
		}
		if err := os.WriteFile(files.CA, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(keys.Problem().Error(), "head2") {
		t.Error(keys.Problem())
	}
}
