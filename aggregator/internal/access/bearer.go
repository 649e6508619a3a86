package access

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
)

// Tokens are those of the API.
type Tokens interface {
	// Bearer returns the token of that text, or why it is refused; from is the address
	// from which it came. No error holds the text.
	Bearer(ctx context.Context, text, from string) (*enrol.Bearer, error)
	// Session returns the session of a cookie, and the token of the API whose it is, as it
	// is now; nil for one of a provider. from is the address from which the cookie came.
	Session(ctx context.Context, text, from string) (*enrol.Session, *enrol.Bearer, error)
}

// AskForAnother says what to do when a token is refused.
const AskForAnother = "ask an administrator of this cluster for another one (bursar token create -role read)" //nolint:gosec // no token is in it

// SessionText is what the cookie of a session holds that a browser sent; "" for none.
func SessionText(r *http.Request) string {
	cookie, err := r.Cookie(CookieName("session", r.Host))
	if err != nil {
		return ""
	}
	return cookie.Value
}

// SessionCookie is the cookie of a session; with an empty text it takes the cookie away.
func SessionCookie(r *http.Request, text string) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure where the listener has TLS
		Name: CookieName("session", r.Host), Value: text, Path: "/", MaxAge: int(enrol.SessionLife / time.Second),
		HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
	}
	if text == "" {
		c.MaxAge = -1
	}
	return c
}

// sessionOf returns who has logged in at the pages with the browser of a request; false when
// there is no session.
func (g *Gate) sessionOf(rules *Rules, r *http.Request) (Principal, bool) {
	text := SessionText(r)
	if text == "" || g.Tokens == nil {
		return Principal{}, false
	}
	from, _ := splitHost(r.RemoteAddr)
	s, token, err := g.Tokens.Session(r.Context(), text, from)
	switch {
	case err != nil:
		return Principal{}, false
	case s.Way == enrol.ByOIDC && rules.OIDC != nil:
		return g.limitToOwner(rules.OIDC.principalOf(Principal{Name: "user/" + s.User + " by " + rules.OIDC.Issuer}, s.User, s.Groups)), true
	case token != nil:
		return g.principalOf(token), true
	}
	return Principal{}, false
}

// bearerOf returns who makes a request with a token: it alone says what the request may do,
// whatever the connection would give.
func (g *Gate) bearerOf(rules *Rules, r *http.Request) Principal {
	if r.TLS == nil {
		if err := rules.Hosts.Check(r); err != nil {
			return misdirectedPrincipal(Principal{}, err)
		}
		if _, socket := localUser(r.Context()); !socket && !fromLoopback(r) {
			return Principal{Why: "tokens are taken over TLS only, since others on the way could read them: use the address of api.tls_listen"}
		}
	}
	kind, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(kind, "Bearer") {
		return Principal{Why: "the header Authorization is not of the form Bearer TOKEN"}
	}
	from, _ := splitHost(r.RemoteAddr)
	token, err := g.Tokens.Bearer(r.Context(), strings.TrimSpace(text), from)
	if err != nil {
		return Principal{Why: err.Error() + ": " + AskForAnother}
	}
	return g.principalOf(token)
}

// principalOf returns who brings a token, or has a session of it.
func (g *Gate) principalOf(token *enrol.Bearer) Principal {
	return g.limitToScope(Principal{Name: token.Who()}, token.Scope)
}

// limitToScope gives a principal what a scope says.
func (g *Gate) limitToScope(p Principal, s enrol.Scope) Principal {
	p.Rights, p.Person, p.Rows, p.Pseudonyms = s.Rights(), s.Person, AllRows(), s.Pseudonyms
	if len(s.Rows) > 0 {
		grants := make([]Grant, 0, len(s.Rows))
		for _, row := range s.Rows {
			grants = append(grants, row)
		}
		p.Rows = SomeRows(grants...)
	}
	return g.limitToOwner(p)
}

// fromLoopback reports whether a request came from this machine, over loopback.
func fromLoopback(r *http.Request) bool {
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
