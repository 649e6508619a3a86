package identity_test

import (
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/identity/identitytest"
)

// shake does a handshake and returns the error of each end.
func shake(t *testing.T, server, client *tls.Config) (serverErr, clientErr error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	done := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			done <- err
			return
		}
		defer c.Close()
		s := tls.Server(c, server)
		err = s.Handshake()
		if err == nil {
			_, err = s.Write([]byte{1})
		}
		done <- err
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), client)
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		c.Close()
	}
	return <-done, err
}

func TestPeersAcceptOnlyTheRolesAndNamesThatTheyShould(t *testing.T) {
	ca := identitytest.New(t)
	agg, agent, client := ca.Keys(identity.Aggregator, "agg1"), ca.Keys(identity.Agent, "head1"), ca.Keys(identity.Client, "alice")
	other := identitytest.New(t).Keys(identity.Aggregator, "agg1")
	cases := []struct {
		name   string
		server *tls.Config
		client *tls.Config
		want   string // "" for success
	}{
		{"an aggregator pulls from the agent", agent.Server(identity.Aggregator), agg.Client(identity.Agent, "head1"), ""},
		{"an agent cannot pull", agent.Server(identity.Aggregator), agent.Client(identity.Agent, "head1"), "accepts aggregator only"},
		{"a client cannot pull", agent.Server(identity.Aggregator), client.Client(identity.Agent, "head1"), "accepts aggregator only"},
		{"an agent of another name is refused", agent.Server(identity.Aggregator), agg.Client(identity.Agent, "head2"), "want head2"},
		{"an aggregator is no agent", agg.Server(identity.Aggregator), agg.Client(identity.Agent, ""), "accepts agent only"},
		{"another CA is refused", agent.Server(identity.Aggregator), other.Client(identity.Agent, "head1"), "unknown authority"},
		{"an agent does not open the REST interface", agg.Public(), agent.Client(identity.Aggregator, ""), "accepts client or aggregator only"},
		{"a client reads the REST interface", agg.Public(), client.Client(identity.Aggregator, ""), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			serverErr, clientErr := shake(t, c.server, c.client)
			err := errors.Join(serverErr, clientErr)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestARenewedCertificateIsUsedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	id := identity.Identity{Role: identity.Agent, Name: "head1"}
	if _, err := identity.CreateCA(dir, "test", identity.LifetimeCA, time.Now()); err != nil {
		t.Fatal(err)
	}
	make1 := func(lifetime time.Duration) identity.Files {
		for _, f := range []string{"head1.pem", "head1.key"} {
			if err := os.RemoveAll(filepath.Join(dir, f)); err != nil {
				t.Fatal(err)
			}
		}
		files, err := identity.CreateCert(dir, dir, identity.Request{Identity: id, Lifetime: lifetime}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	keys, err := identity.Load(make1(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	before := keys.Expires()
	files := make1(100 * time.Hour)
	if err := keys.Reload(); err != nil || !keys.Expires().After(before) {
		t.Fatalf("expires %s, %v", keys.Expires(), err)
	}
	if err := os.WriteFile(files.Cert, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keys.Reload(); err == nil || !keys.Expires().After(before) {
		t.Fatal("a broken file replaced the good one")
	}
}

func TestCertificatesDoNotReplaceFilesAndDoNotOutliveTheirCA(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	if _, err := identity.CreateCA(dir, "test", time.Hour, now); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.CreateCA(dir, "test", time.Hour, now); !errors.Is(err, os.ErrExist) {
		t.Errorf("a second CA: %v", err)
	}
	files, err := identity.CreateCert(dir, dir, identity.Request{Identity: identity.Identity{Role: identity.Agent, Name: "a"}}, now)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := identity.Load(files)
	if err != nil || keys.Expires().After(now.Add(time.Hour)) {
		t.Errorf("expires %v, %v", keys.Expires(), err)
	}
	if info, err := os.Stat(files.Key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's mode is %v, %v", info.Mode(), err)
	}
	for _, bad := range []string{"", "a/b", "..", "a b", strings.Repeat("x", 129)} {
		if _, err := identity.CreateCert(dir, dir, identity.Request{Identity: identity.Identity{Role: identity.Agent, Name: bad}}, now); err == nil {
			t.Errorf("name %q was accepted", bad)
		}
	}
}
