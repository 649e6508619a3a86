//go:build e2e

package rig

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// OIDC is a provider of OpenID Connect: the example of zitadel/oidc, which has a form for
// name and password, demands PKCE where it was begun with, and has no claim for groups.
type OIDC struct {
	Issuer string
	// Client and Secret are those of the program that lets people log in; Other is another
	// program's client, with the same secret.
	Client, Secret, Other string
}

// OIDCUser is a person whom the provider knows. Group becomes the claim family_name.
type OIDCUser struct{ Name, Password, Group string }

// NewOIDC starts a provider on an address of 127.0.0.1, which ends with the test. It sends
// browsers back to these addresses only.
func NewOIDC(t testing.TB, address string, users []OIDCUser, callbacks ...string) *OIDC {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]map[string]any{}
	for _, u := range users {
		id := "id-" + u.Name
		known[id] = map[string]any{"ID": id, "Username": u.Name, "Password": u.Password, "FirstName": u.Name, "LastName": u.Group}
	}
	text, err := json.Marshal(known)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(tempDir(t, "oidc"), "users.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &OIDC{Issuer: "http://localhost:" + port + "/", Client: "web", Secret: "secret", Other: "api"}
	cmd := exec.Command(requireInstalled(t, filepath.Join(Cache(), "oidc-3.51.17/server")))
	cmd.Env = append(os.Environ(), "PORT="+port, "USERS_FILE="+file, "REDIRECT_URI="+strings.Join(callbacks, ","))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	s, err := startTied(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.stop(syscall.SIGKILL, time.Minute)
		if t.Failed() {
			t.Logf("the provider: %s", out.String())
		}
	})
	client := &http.Client{Timeout: 10 * time.Second}
	waitFor(t, "the provider", 2*time.Minute, func() error {
		resp, err := client.Get(p.Issuer + ".well-known/openid-configuration")
		if err == nil {
			resp.Body.Close()
		}
		return err
	})
	return p
}
