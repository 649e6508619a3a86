package daemon

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
)

// logins implements login.Sessions by the replicated state.
type logins struct{ a *Aggregator }

// Begin implements login.Sessions.
func (l logins) Begin(ctx context.Context, w enrol.NewSession) (string, error) {
	view, err := l.a.replica.Read(ctx)
	if err != nil {
		return "", err
	}
	text, err := enrol.Begin(ctx, view, l.a.replica.Write, w, time.Now())
	return text, errors.Join(err, view.Close())
}

// End implements login.Sessions.
func (l logins) End(ctx context.Context, text string) (string, error) {
	if l.a.gate.Sessions.End(text) {
		return "", nil
	}
	s, err := l.a.bearers.findSession(text, time.Now())
	if err != nil {
		return "", err
	}
	return s.Way, enrol.End(ctx, l.a.replica.Write, s)
}

// Bearer implements login.Sessions.
func (l logins) Bearer(ctx context.Context, text, from string) (*enrol.Bearer, error) {
	return l.a.bearers.Bearer(ctx, text, from)
}

// noteLogin implements login.Note.
func (a *Aggregator) noteLogin(r *http.Request, who, result string) {
	a.trail.Note(audit.Entry{Kind: audit.Login, Who: who, From: r.RemoteAddr, Route: r.Method + " " + r.URL.Path, Result: result})
}

// withLogin adds the routes of the door to those of the pages.
func (a *Aggregator) withLogin(pages map[string]http.Handler) map[string]http.Handler {
	maps.Copy(pages, a.login.Routes())
	return pages
}

// addLoginTrouble says when the provider of logins cannot be used.
func (d *healthMonitor) addLoginTrouble(_ context.Context, f *health.Facts) {
	if err := d.agg.login.Trouble(); err != nil {
		f.Others = append(f.Others, health.Finding{
			Severity: health.Warning, ID: "login-provider", About: d.agg.set.Name, What: "people cannot log in: " + err.Error(),
			Do: "look at the provider, and at issuer in access.oidc; bursar login, tokens and certificates work meanwhile",
		})
	}
}
