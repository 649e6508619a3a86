package client

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/proto/porttest"
)

// two is a client of a server that does not listen and of one that does.
func two(t *testing.T, h http.HandlerFunc) (c *Client, down string) {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	down = "http://" + porttest.Free(t)
	c, err := New(Options{Address: down + ", " + server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, down
}

func TestClient_ServerDoesNotListen_AsksTheNext(t *testing.T) {
	c, _ := two(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `{"got":%q}`, body)
	})
	path := filepath.Join(t.TempDir(), "body")
	if err := os.WriteFile(path, []byte("all of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, body := range []io.Reader{f, strings.NewReader("all of it"), bytes.NewReader([]byte("all of it"))} {
		c.at.Store(0)
		var answer struct{ Got string }
		if err := c.Upload(t.Context(), http.MethodPost, "/v1/x", nil, "text/plain", body, &answer); err != nil || answer.Got != "all of it" {
			t.Errorf("%T: %v, %v", body, answer, err)
		}
		if c.at.Load() != 1 {
			t.Error("the next request begins with the server that is down")
		}
	}
}

func TestClient_ServerRefuses_IsNotAskedElsewhere(t *testing.T) {
	asked := 0
	c, _ := two(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		http.Error(w, "no", http.StatusForbidden)
	})
	if err := c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, nil); err == nil || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestClient_NoServerListens_NamesEach(t *testing.T) {
	a, b := porttest.Free(t), porttest.Free(t)
	c, err := New(Options{Address: a + "," + b})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Call(t.Context(), http.MethodGet, "/v1/x", nil, nil, nil)
	if err == nil || !strings.Contains(err.Error(), a) || !strings.Contains(err.Error(), b) {
		t.Error(err)
	}
}
