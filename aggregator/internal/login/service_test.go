package login

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
)

func TestLocal_AddressOfAnotherSite_IsThisServersFirstPage(t *testing.T) {
	for to, want := range map[string]string{
		"/ui/usage?in=2026": "/ui/usage?in=2026", "": "/", "//evil.example": "/", "https://evil.example/": "/", "/\\evil.example": "/", "javascript:x": "/", "ui": "/",
	} {
		if got := localPath(to); got != want {
			t.Errorf("%q: %q", to, got)
		}
	}
}

// known has one token, whose text is good.
type known struct {
	t    *testing.T
	err  error
	from []string
}

// Begin implements Sessions.
func (k *known) Begin(_ context.Context, w enrol.NewSession) (string, error) {
	if w.Token == nil || w.Token.ID != "id" {
		k.t.Errorf("a session of %+v", w)
	}
	return "bs1_x", nil
}

// End implements Sessions.
func (k *known) End(context.Context, string) (string, error) { return "", nil }

// Bearer implements Sessions.
func (k *known) Bearer(_ context.Context, text, from string) (*enrol.Bearer, error) {
	k.from = append(k.from, from)
	if text == "good" {
		return &enrol.Bearer{ID: "id"}, k.err
	}
	return nil, enrol.ErrUnknown
}

func TestToken_TypedAtThePage_IsTakenWhereOthersCannotReadIt(t *testing.T) {
	for _, c := range []struct {
		at, from, token string
		err             error
		status          int
		says            string
	}{
		{"https://agg1:8443", "192.0.2.7:4711", " good\n", nil, http.StatusSeeOther, ""},
		{"http://agg1:8000", "127.0.0.1:4711", "good", nil, http.StatusSeeOther, ""},
		{"http://agg1:8000", "[::1]:4711", "good", nil, http.StatusSeeOther, ""},
		{"http://agg1:8000", "@", "good", nil, http.StatusSeeOther, ""},
		{"http://agg1:8000", "192.0.2.7:4711", "good", nil, http.StatusForbidden, "api.tls_listen"},
		{"https://agg1:8443", "192.0.2.7:4711", "", nil, http.StatusBadRequest, "Token missing"},
		{"https://agg1:8443", "192.0.2.7:4711", strings.Repeat("x", 20_000), nil, http.StatusBadRequest, "Token missing"},
		{"https://agg1:8443", "192.0.2.7:4711", "wrong", nil, http.StatusUnauthorized, "Login failed: token not found: " + access.AskForAnother + "."},
		{"https://agg1:8443", "192.0.2.7:4711", "good", errors.New("no leader"), http.StatusServiceUnavailable, "no leader"},
	} {
		sessions := &known{t: t, err: c.err}
		noted := 0
		note := func(*http.Request, string, string) { noted++ }
		d := New(func() *access.OIDC { return nil }, sessions, note, slog.New(slog.DiscardHandler))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.at+Path, strings.NewReader(url.Values{"token": {c.token}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = c.from
		w := httptest.NewRecorder()
		d.Routes()["POST "+Path].ServeHTTP(w, r)
		text, _ := io.ReadAll(w.Body)
		if noted != 0 != (c.status == http.StatusSeeOther) {
			t.Errorf("%s: %d logins were noted", c.says, noted)
		}
		if w.Code != c.status || !strings.Contains(string(text), c.says) || c.status == http.StatusSeeOther == (len(w.Result().Cookies()) == 0) {
			t.Errorf("%+v: %d %s", c, w.Code, text)
		}
		if c.status == http.StatusForbidden && (len(sessions.from) > 0 || strings.Contains(string(text), "<input")) {
			t.Errorf("%+v: it is looked at, or asked for again: %s", c, text)
		}
	}
}
