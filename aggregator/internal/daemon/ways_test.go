package daemon

import (
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
)

// way is how a client says who it is: by its certificate, or without one by a header.
type way struct {
	name, header string
	client       *http.Client
}

// wayNames are the kinds of login.
func wayNames() []string {
	return []string{"certificate", "token", "session of a token", "session by OpenID Connect"}
}

// oidcGroup lets members of the group of that name in at the provider, which is never asked.
func oidcGroup(r *access.Rules, group string, c access.GroupClient) {
	if r.OIDC == nil {
		r.OIDC = &access.OIDC{Issuer: "http://127.0.0.1:1", ClientID: "bursar"}
	}
	c.Group = group
	r.OIDC.Groups = append(r.OIDC.Groups, c)
}

// ways are all ways to log in as a client of that name, of which the rules say the same by its
// certificate and by the group of its name. The scope says it again for a token.
func (g *guarded) ways(name string, rights identity.Rights, scope enrol.Scope) []way {
	g.t.Helper()
	scope.Roles = rights.String()
	header, id := g.bearer(scope, time.Hour, time.Now())
	view, err := g.agg.replica.Read(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}
	defer view.Close()
	list, err := enrol.Bearers(view)
	if err != nil {
		g.t.Fatal(err)
	}
	token := list[slices.IndexFunc(list, func(b enrol.Bearer) bool { return b.ID == id })]
	at, err := url.Parse(g.tls)
	if err != nil {
		g.t.Fatal(err)
	}
	session := func(w enrol.NewSession) string {
		text, err := enrol.Begin(g.t.Context(), view, g.agg.replica.Write, w, time.Now())
		if err != nil {
			g.t.Fatal(err)
		}
		return "Cookie: " + access.CookieName("session", at.Host) + "=" + text
	}
	stranger := g.stranger()
	stranger.Transport.(*http.Transport).DisableKeepAlives = false
	certified := g.client(identity.Identity{Role: identity.Client, Name: name, Rights: rights})
	certified.Transport.(*http.Transport).DisableKeepAlives = false
	names := wayNames()
	return []way{
		{names[0], "", certified}, {names[1], header, stranger}, {names[2], session(enrol.NewSession{Token: &token}), stranger},
		{names[3], session(enrol.NewSession{User: name, Groups: []string{name}}), stranger},
	}
}

// anyWay logs in in one of the ways, drawn anew for each request.
type anyWay struct {
	ways []way

	mu   sync.Mutex
	draw *rand.Rand
	last string
}

// RoundTrip implements http.RoundTripper.
func (a *anyWay) RoundTrip(r *http.Request) (*http.Response, error) {
	a.mu.Lock()
	w := a.ways[a.draw.IntN(len(a.ways))]
	a.last = w.name
	a.mu.Unlock()
	r = r.Clone(r.Context())
	if name, value, ok := strings.Cut(w.header, ": "); ok {
		r.Header.Set(name, value)
	}
	return w.client.Transport.RoundTrip(r)
}

// anyClient is a client that logs in in any of the ways.
func anyClient(ways []way, seed uint64) *http.Client {
	return &http.Client{
		Transport:     &anyWay{ways: ways, draw: rand.New(rand.NewPCG(seed, 0))}, //nolint:gosec // cases of a test
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// lastWay says how a client logged in last.
func lastWay(c *http.Client) string {
	if a, ok := c.Transport.(*anyWay); ok {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.last
	}
	return ""
}
