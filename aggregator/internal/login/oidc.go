package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
)

const (
	// patience bounds each exchange with the provider.
	patience = 10 * time.Second
	// askEvery is how often a provider that does not answer is asked again, and lookEvery
	// how often one that does.
	askEvery  = 30 * time.Second
	lookEvery = 5 * time.Minute
)

// provider is the provider of the configuration, as far as it is known.
type provider struct {
	client *http.Client

	asking sync.Mutex // held while it is asked, which takes up to patience

	mu     sync.Mutex
	conf   *access.OIDC // what known is of
	known  *oidc.Provider
	logout string // where a session at the provider ends; "" where it does not say
	err    error
	asked  time.Time
}

// getProvider returns the provider. One that did not answer is asked again after a while; of one
// that does not answer any more, what it said before is used.
func (p *provider) getProvider(ctx context.Context, conf *access.OIDC, now time.Time) (*oidc.Provider, error) {
	if known, err, fresh := p.lastAnswer(conf, now); fresh {
		return known, err
	}
	p.asking.Lock()
	defer p.asking.Unlock()
	if known, err, fresh := p.lastAnswer(conf, now); fresh { // another login has asked
		return known, err
	}
	// The provider keeps the context for its keys, so it must not end with this request.
	known, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), conf.Issuer)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conf != nil && p.conf.Issuer != conf.Issuer { // the configuration names another one since
		return known, err
	}
	p.asked = now
	if err != nil {
		p.err = fmt.Errorf("the provider %s does not answer as OpenID Connect says: %w", conf.Issuer, err)
		return p.known, errorUnlessKnown(p.known, p.err)
	}
	var more struct {
		End string `json:"end_session_endpoint"`
	}
	_ = known.Claims(&more) // it may be left out
	p.known, p.err, p.logout = known, nil, more.End
	return known, nil
}

// lastAnswer returns what the provider said, or why it did not; false where it is to be asked.
func (p *provider) lastAnswer(conf *access.OIDC, now time.Time) (known *oidc.Provider, err error, fresh bool) { //nolint:revive // whether is last
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conf == nil || p.conf.Issuer != conf.Issuer {
		p.known, p.err, p.logout, p.asked = nil, nil, "", time.Time{}
	}
	p.conf = conf
	if p.known != nil && now.Sub(p.asked) < lookEvery {
		return p.known, nil, true
	}
	return p.known, errorUnlessKnown(p.known, p.err), p.err != nil && now.Sub(p.asked) < askEvery
}

// errorUnlessKnown is the error where nothing is known.
func errorUnlessKnown(known *oidc.Provider, err error) error {
	if known != nil {
		return nil
	}
	return err
}

// troubleOf says why the provider cannot be used; nil when it can, or has not been asked.
func (p *provider) troubleOf() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// logoutAddress is the address at which a browser ends its session at the provider; "" where there
// is none. The token that the provider gave is not kept, so the provider may ask whether
// to log out; and it shows a page of its own at the end, since it leads back only to
// addresses that are registered for that.
func (p *provider) logoutAddress(conf *access.OIDC) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, err := url.Parse(p.logout)
	if err != nil || p.conf == nil || p.conf.Issuer != conf.Issuer || to.Scheme != "https" && to.Scheme != "http" {
		return ""
	}
	query := to.Query()
	query.Set("client_id", conf.ClientID)
	to.RawQuery = query.Encode()
	return to.String()
}

// flow is what a browser that goes to the provider comes back with.
type flow struct{ state, nonce, verifier, to string }

func flowCookie(r *http.Request) string { return access.CookieName("oidc", r.Host) }

// flowCookie keeps a flow in the browser for as long as a login may take.
func (f *flow) flowCookie(r *http.Request) *http.Cookie {
	c := &http.Cookie{ //nolint:gosec // Secure where the listener has TLS
		Name: flowCookie(r), Path: Path, MaxAge: 600, HttpOnly: true, Secure: r.TLS != nil, SameSite: http.SameSiteLaxMode,
		Value: url.Values{"s": {f.state}, "n": {f.nonce}, "v": {f.verifier}, "t": {f.to}}.Encode(),
	}
	if f.state == "" {
		c.Value, c.MaxAge = "", -1
	}
	return c
}

func readFlow(r *http.Request) (flow, error) {
	cookie, err := r.Cookie(flowCookie(r))
	if err != nil {
		return flow{}, errors.New("this browser did not begin this login, or it took too long: begin again")
	}
	v, err := url.ParseQuery(cookie.Value)
	f := flow{v.Get("s"), v.Get("n"), v.Get("v"), v.Get("t")}
	if err != nil || f.state == "" || f.nonce == "" || f.verifier == "" {
		return flow{}, errors.New("the cookie of this login is damaged: begin again")
	}
	return f, nil
}

func oauthConfig(conf *access.OIDC, p *oidc.Provider, r *http.Request) *oauth2.Config {
	return &oauth2.Config{
		ClientID: conf.ClientID, ClientSecret: conf.Secret, Endpoint: p.Endpoint(), RedirectURL: ownAddress(r) + Path + "/callback",
		Scopes: append([]string{oidc.ScopeOpenID}, conf.Scopes...),
	}
}

// ownAddress is how the browser asks this server.
func ownAddress(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// person is whom a provider knows.
type person struct {
	user   string
	groups []string
}

// redeemCode exchanges the code of a callback for who has logged in.
func (p *provider) redeemCode(ctx context.Context, conf *access.OIDC, known *oidc.Provider, r *http.Request, f flow) (person, error) {
	ctx, cancel := context.WithTimeout(oidc.ClientContext(ctx, p.client), patience)
	defer cancel()
	token, err := oauthConfig(conf, known, r).Exchange(ctx, r.URL.Query().Get("code"), oauth2.VerifierOption(f.verifier))
	if err != nil {
		return person{}, fmt.Errorf("the provider gave no token: %w", withoutBody(err))
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := known.Verifier(&oidc.Config{ClientID: conf.ClientID}).Verify(ctx, raw)
	if err != nil {
		return person{}, fmt.Errorf("the token of the provider is not valid: %w", err)
	}
	if id.Nonce != f.nonce {
		return person{}, errors.New("the token of the provider is of another login: begin again")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return person{}, fmt.Errorf("the claims of the provider: %w", err)
	}
	if claims[conf.UserClaim] == nil || claims[conf.GroupsClaim] == nil {
		if err := p.addClaims(ctx, known, token, id.Subject, claims); err != nil {
			return person{}, err
		}
	}
	return readClaims(conf, claims)
}

// addClaims adds the claims that the provider does not put into its token.
func (p *provider) addClaims(ctx context.Context, known *oidc.Provider, token *oauth2.Token, subject string, claims map[string]any) error {
	if known.UserInfoEndpoint() == "" {
		return nil
	}
	info, err := known.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		return fmt.Errorf("the provider does not say who this is: %w", err)
	}
	if info.Subject != subject {
		return errors.New("the provider speaks of two persons")
	}
	more := map[string]any{}
	if err := info.Claims(&more); err != nil {
		return fmt.Errorf("the claims of the provider: %w", err)
	}
	for name, value := range more {
		if claims[name] == nil {
			claims[name] = value
		}
	}
	return nil
}

// readClaims finds the user and the groups in claims. A group may be a text or in a list.
func readClaims(conf *access.OIDC, claims map[string]any) (person, error) {
	user, _ := claims[conf.UserClaim].(string)
	if user = strings.TrimSpace(user); user == "" || len(user) > maxName {
		return person{}, fmt.Errorf("the provider names no user: the claim %q is missing or no text; set user_claim of access.oidc", conf.UserClaim)
	}
	who := person{user: user}
	switch groups := claims[conf.GroupsClaim].(type) {
	case string:
		who.groups = []string{groups}
	case []any:
		for _, g := range groups {
			if name, ok := g.(string); ok && len(name) <= maxName {
				who.groups = append(who.groups, name)
			}
		}
	}
	// Only groups of which the configuration says something are kept.
	who.groups = slices.DeleteFunc(who.groups, func(name string) bool {
		return !slices.ContainsFunc(conf.Groups, func(g access.GroupClient) bool { return g.Group == name })
	})
	return who, nil
}

const maxName = 200

// withoutBody takes the answer of the provider out of an error: it may hold what is secret.
func withoutBody(err error) error {
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return fmt.Errorf("it answers %s %s", refused.Response.Status, refused.ErrorCode)
	}
	return err
}
