package nomad

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bursar-accounting/bursar/proto/identity"
)

// authority makes certificates of an authority of its own for both ends.
func authority(t *testing.T, name string) (server *tls.Config, client identity.Files) {
	t.Helper()
	dir := t.TempDir()
	if _, err := identity.CreateCA(dir, name, time.Hour, time.Now()); err != nil {
		t.Fatal(err)
	}
	issue := func(role identity.Role) identity.Files {
		files, err := identity.CreateCert(dir, filepath.Join(dir, string(role)),
			identity.Request{Identity: identity.Identity{Role: role, Name: "x"}, Hosts: []string{"127.0.0.1", "server.global.nomad"}}, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	files := issue(identity.Aggregator)
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files.CA)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}, issue(identity.Agent)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreReadAgainWhenTheyChange(t *testing.T) {
	var now atomic.Pointer[tls.Config]
	first, firstFiles := authority(t, "first")
	now.Store(first)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"ID":"a"}`)) }))
	server.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil }}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	install := func(f identity.Files) {
		copyFile(t, f.CA, filepath.Join(dir, "ca"))
		copyFile(t, f.Cert, filepath.Join(dir, "cert"))
		copyFile(t, f.Key, filepath.Join(dir, "key"))
	}
	install(firstFiles)
	c := NewClient(Config{Address: server.URL, Timeout: time.Minute,
		Files: Files{CA: filepath.Join(dir, "ca"), Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), ServerName: "server.global.nomad"}})
	ask := func() error {
		_, err := c.Allocation(context.Background(), "default", "a")
		return err
	}
	if err := ask(); err != nil {
		t.Fatal(err)
	}
	second, secondFiles := authority(t, "second")
	now.Store(second)
	server.CloseClientConnections()
	if err := ask(); err == nil {
		t.Error("a server of another authority was trusted")
	}
	install(secondFiles)
	if err := ask(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cert"), []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("with a certificate that is being written, the old one: %v", err)
	}
}

func TestErrorsOfNomadSayWhatToDo(t *testing.T) {
	status := http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "Permission denied", status) }))
	defer server.Close()
	c := NewClient(Config{Address: server.URL, Timeout: time.Minute})
	_, err := c.Nodes(context.Background())
	if _, denied := errors.AsType[*Denied](err); !denied || !strings.Contains(err.Error(), `policy = "read"`) {
		t.Error(err)
	}
	status = http.StatusNotFound
	if _, err := c.Job(context.Background(), "default", "a/b"); !errors.Is(err, ErrGone) {
		t.Error(err)
	}
	status = http.StatusInternalServerError
	if _, err := c.Job(context.Background(), "default", "a/b"); err == nil || !strings.Contains(err.Error(), "500: Permission denied") {
		t.Error(err)
	}
	if err := NewClient(Config{Address: server.URL, Files: Files{Token: "/nowhere/token"}}).Ready(); err == nil || !strings.Contains(err.Error(), "/nowhere/token") {
		t.Error(err)
	}
}
