package web

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/health"
	"github.com/bursar-accounting/bursar/aggregator/internal/report"
	"github.com/bursar-accounting/bursar/aggregator/internal/usage"
	"github.com/bursar-accounting/bursar/proto/client"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

//go:embed templates
var templateFiles embed.FS

// Reader gives consistent pictures of the store as a principal sees them; the
// caller closes them. The principal is that of the request's context.
type Reader interface {
	Read(ctx context.Context, p access.Principal) (*access.View, error)
}

// Pages are the pages. All fields but Now, Derivation, Zone, Keys, Framers and Views are required.
type Pages struct {
	Reader Reader
	// V1 asks /v1 with the rights of the principal in ctx. What a page says that /v1 says
	// too is asked of it, so that the two cannot disagree; a refusal is a *client.Problem.
	// It must be there when the first request comes.
	V1 v1.API
	// Health judges the cluster; nil: no one does.
	Health  func(ctx context.Context) health.Report
	Node    string // this node's name
	Version string
	Log     *slog.Logger
	// Now is the clock; nil is the machine's.
	Now func() time.Time
	// Derivation has the keys and measures that the configuration adds; nil: none.
	Derivation func() *usage.Derivation
	// Zone is the time zone of the site; nil: UTC.
	Zone func() *time.Location
	// Keys are the meta keys of users and groups; nil: the usual ones.
	Keys func() report.Keys
	// Framers are the origins whose pages may show the widget in a frame; nil: none.
	Framers func() []string
	// Views are those that the pages Usage and Records name; nil: none.
	Views func() []access.SavedView

	files     assets
	calendars calendars
}

// ownKeys are the meta keys of users and groups.
func (p *Pages) ownKeys() report.Keys {
	if p.Keys == nil {
		return report.Keys{}.Whole()
	}
	return p.Keys().Whole()
}

// derivation is what the configuration adds.
func (p *Pages) derivation() *usage.Derivation {
	if p.Derivation == nil {
		return &usage.Derivation{}
	}
	return p.Derivation()
}

// contentPolicy lets a page load nothing but this server's own style sheet and script, and lets the
// pages of these origins show it in a frame.
func contentPolicy(ancestors []string) string {
	frames := "'none'"
	if len(ancestors) > 0 {
		frames = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors " + frames
}

// Routes returns the handlers by pattern of http.ServeMux.
func (p *Pages) Routes() map[string]http.Handler {
	p.files = readAssets()
	overview := p.pageHandler("overview", p.overviewContent)
	return map[string]http.Handler{
		"GET /{$}":              p.byRole(overview),
		"GET /ui/overview":      overview,
		"GET /ui/me":            p.boardHandler("me", p.chooseOwnUser),
		"GET " + access.Widget:  p.frameHandler("widget", p.fillWidget),
		"GET /ui/projects":      p.boardHandler("projects", chooseNothing),
		"GET /ui/centre":        p.boardHandler("centre", chooseNothing),
		"GET /ui/budgets":       p.boardHandler("budgets", chooseNothing),
		"GET /ui/prices":        p.boardHandler("prices", chooseNothing),
		"GET /ui/distributions": p.boardHandler("distributions", chooseNothing),
		"GET /ui/{$}":           http.RedirectHandler("/", http.StatusFound),
		"GET /ui/usage":         p.usageHandler(),
		"GET /ui/records":       p.pageHandler("records", p.recordsContent),
		"GET /ui/record":        p.pageHandler("record", p.recordContent),
		"GET /ui/agents":        p.pageHandler("agents", p.agentsContent),
		"GET /ui/quarantine":    p.pageHandler("quarantine", p.quarantineContent),
		"POST /ui/quarantine":   p.quarantineFormHandler(),
		"GET /ui/conflicts":     p.pageHandler("conflicts", p.conflictsContent),
		"GET /ui/reports":       redirectTidy(p.plainHandler("reports", p.reportsContent)),
		"GET /ui/actions":       p.plainHandler("actions", p.actionsContent),
		"GET " + actionRoute:    p.plainHandler("action", p.actionContent),
		"GET " + runRoute:       p.plainHandler("run", p.runContent),
		"GET " + effectRoute:    p.plainHandler("effect", p.effectContent),
		"POST " + planRoute:     p.planHandler(),
		"GET /ui/alerts":        p.plainHandler("alerts", p.alertsContent),
		"GET /ui/cluster":       p.frameHandler("cluster", p.fillCluster),
		"GET /ui/static/{file}": withHeaders(p.files, briefly),
		"GET /favicon.ico":      withHeaders(http.RedirectHandler("/ui/static/icon.svg", http.StatusFound), briefly),
		"GET /ui/{anything...}": p.pageHandler("missing", missingContent),
	}
}

// withHeaders sets what every answer carries.
func withHeaders(h http.Handler, cache string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", contentPolicy(nil))
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "same-origin")
		head.Set("Cache-Control", cache)
		h.ServeHTTP(w, r)
	})
}

// frame is what every page shows around its content.
type frame struct {
	Page    string
	Title   string
	Node    string
	Version string
	Now     time.Time
	Refresh bool // the page renews itself
	Session bool // the browser has logged in
	Nav     []navLink
	Content any
	Problem string // instead of the content
	Took    string // how long the page took, where that is long
}

// status is an error with the status of the answer.
type status struct {
	code int
	text string
}

func (s status) Error() string { return s.text }

// badRequest is a request that makes no sense.
func badRequest(format string, args ...any) error {
	return status{http.StatusBadRequest, fmt.Sprintf(format, args...)}
}

func missingContent(*http.Request, *access.View) (any, error) {
	return nil, status{http.StatusNotFound, "Page not found."}
}

// content makes what a page shows from a picture of the store. The content may
// come with an error, which is then shown above it.
type content func(r *http.Request, v *access.View) (any, error)

func (p *Pages) pageHandler(name string, make content) http.Handler {
	return p.frameHandler(name, func(r *http.Request, f *frame) int { return p.fillFromView(r, make, f) })
}

// plainHandler makes the handler of a page that needs no picture of the store, but asks /v1.
func (p *Pages) plainHandler(name string, make func(r *http.Request) (any, error)) http.Handler {
	return p.frameHandler(name, func(r *http.Request, f *frame) int {
		ctx, cancel := context.WithTimeout(r.Context(), readPatience)
		defer cancel()
		var err error
		r = r.WithContext(ctx)
		f.Content, err = make(r)
		return p.showFailure(r, f, err)
	})
}

// longPage is from when on a page says how long it took.
const longPage = 500 * time.Millisecond

// frameHandler makes the handler of a page from what fills its frame and returns the
// status.
func (p *Pages) frameHandler(name string, fill func(r *http.Request, f *frame) int) http.Handler {
	t := template.Must(template.New(layoutOf(name)).Funcs(p.templateFunctions()).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html", "templates/"+templateOf(name)))
	return withHeaders(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := frame{Page: name, Title: pageTitles()[name], Node: p.Node, Version: p.Version, Now: p.currentTime(), Refresh: isRefreshed(name), Session: access.SessionText(r) != ""}
		f.Nav = navLinks(access.From(r.Context()), p.ownKeys().User, name)
		if hasForm(name) {
			r = withFormToken(w, r)
		}
		if name == "widget" && p.Framers != nil {
			w.Header().Set("Content-Security-Policy", contentPolicy(p.Framers()))
		}
		begun := time.Now()
		code := fill(r, &f)
		if took := time.Since(begun); took >= longPage {
			f.Took = fmt.Sprintf("%.1f s", took.Seconds())
		}
		if named, ok := f.Content.(titled); ok {
			f.Title = named.pageTitle()
		}
		var out bytes.Buffer
		if err := t.Execute(&out, f); err != nil {
			p.Log.Error("a page cannot be made", "path", r.URL.Path, "error", err)
			http.Error(w, "this page cannot be made", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(code)
		_, _ = out.WriteTo(w) // a browser that is gone needs no answer
	}), "no-store")
}

// layoutOf is the file of what stands around a page.
func layoutOf(name string) string {
	if name == "widget" {
		return "widget.html"
	}
	return "layout.html"
}

// templateOf is the file of a page.
func templateOf(name string) string {
	switch name {
	case "me", "projects", "centre", "budgets", "prices", "distributions":
		return "board.html"
	}
	return name + ".html"
}

// hasForm reports whether a page has a form that asks for more than to be shown.
func hasForm(name string) bool { return name == "action" || name == "plan" || name == "quarantine" }

func pageTitles() map[string]string {
	return map[string]string{
		"me": "My usage", "projects": "Projects", "centre": "Centre", "budgets": "Budgets", "prices": "Prices", "distributions": "Distributions",
		"widget": "Usage this month", "overview": "Overview", "records": "Records", "record": "Record", "agents": "Agents",
		"usage": "Usage", "reports": "Reports", "actions": "Actions", "alerts": "Alerts",
		"action": "Action", "run": "Run", "effect": "Effect", "plan": "Plan",
		"quarantine": "Quarantine", "conflicts": "Conflicts", "cluster": "Cluster", "missing": "Not found",
	}
}

// readPatience is how long a page may take, its wait for a picture of the store included.
const readPatience = 10 * time.Second

// fillFromView makes the content of a page, or says why there is none.
func (p *Pages) fillFromView(r *http.Request, make content, f *frame) int {
	ctx, cancel := context.WithTimeout(r.Context(), readPatience)
	defer cancel()
	view, err := p.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		p.Log.Warn("a page was refused", "path", r.URL.Path, "error", err)
		f.Problem = "The " + strings.TrimPrefix(err.Error(), "the ")
		if f.Page == "overview" {
			p.fillOutage(r, f)
		}
		return http.StatusServiceUnavailable
	}
	r = r.WithContext(ctx)
	f.Content, err = make(r, view)
	if err := view.Close(); err != nil {
		p.Log.Error("close a view", "error", err)
	}
	return p.showFailure(r, f, err)
}

// showFailure shows what kept a page from being made, and returns the status. The context of r is
// that in which the page was made.
func (p *Pages) showFailure(r *http.Request, f *frame, err error) int {
	var s status
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &s):
		f.Problem = s.text
		return s.code
	}
	if problem, ok := errors.AsType[*client.Problem](err); ok && (problem.Status < http.StatusInternalServerError || problem.Status == http.StatusServiceUnavailable) {
		f.Problem = problem.Detail
		return problem.Status
	}
	if errors.Is(err, access.ErrDenied) || errors.Is(err, access.ErrRows) || errors.Is(err, access.ErrNames) {
		f.Content, f.Problem = nil, "This page is not for you: "+err.Error()+"."
		return http.StatusForbidden
	}
	if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		p.Log.Warn("a page took too long", "path", r.URL.Path, "error", err)
		f.Content, f.Problem = nil, fmt.Sprintf("This page was not made within %s. Reload it in a moment, or choose a shorter period.", readPatience)
		return http.StatusServiceUnavailable
	}
	p.Log.Error("a page failed", "path", r.URL.Path, "error", err)
	f.Content, f.Problem = nil, "This page cannot be shown: "+err.Error()
	return http.StatusInternalServerError
}

// siteZone is the time zone by which pages show times and days begin.
func (p *Pages) siteZone() *time.Location {
	if p.Zone == nil {
		return time.UTC
	}
	return p.Zone()
}

func (p *Pages) currentTime() time.Time {
	if p.Now != nil {
		return p.Now().UTC()
	}
	return time.Now().UTC()
}
