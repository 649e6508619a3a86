package login

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed"
	"errors"
	"html/template"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/repeat"
)

// Path is where people log in, and LogoutPath where they log out.
const (
	Path       = "/ui/login"
	LogoutPath = "/ui/logout"
)

// Sessions keeps sessions, and knows the tokens of the API.
type Sessions interface {
	// Begin begins a session, and returns what its cookie holds.
	Begin(ctx context.Context, w enrol.NewSession) (string, error)
	// End ends the session of a cookie, and returns how it began; "" for one of this node's
	// machine.
	End(ctx context.Context, text string) (way string, err error)
	// Bearer returns the token of the API of that text, or why it is refused; from is the
	// address from which it came. No error holds the text.
	Bearer(ctx context.Context, text, from string) (*enrol.Bearer, error)
}

// Service is where people log in. Make one with [New].
type Service struct {
	conf     func() *access.OIDC
	sessions Sessions
	note     Note
	log      *slog.Logger
	provider provider
}

// Note takes down that someone logged in or out by a request, for the audit log.
type Note func(r *http.Request, who, result string)

// New makes a service. conf returns the provider of the configuration; nil: there is none.
func New(conf func() *access.OIDC, sessions Sessions, note Note, log *slog.Logger) *Service {
	return &Service{conf: conf, sessions: sessions, note: note, log: log, provider: provider{client: &http.Client{Timeout: patience}}}
}

// Run asks the provider from time to time, until ctx ends, so that [Service.Trouble] knows.
func (d *Service) Run(ctx context.Context) error {
	repeat.Every(ctx, askEvery, func() bool {
		if conf := d.conf(); conf != nil {
			_, _ = d.provider.getProvider(ctx, conf, time.Now()) // Trouble says what is wrong
		}
		return true
	})
	return nil
}

// Trouble says why the provider cannot be used; nil when all is well. It asks nothing.
func (d *Service) Trouble() error {
	if d.conf() == nil {
		return nil
	}
	return d.provider.troubleOf()
}

// Routes are the handlers beside [Service.Page], by pattern.
func (d *Service) Routes() map[string]http.Handler {
	return map[string]http.Handler{
		"POST " + Path:              guardAnswers(d.takeToken),
		"GET " + Path + "/oidc":     guardAnswers(d.beginLogin),
		"GET " + Path + "/callback": guardAnswers(d.takeCallback),
		"POST " + LogoutPath:        guardAnswers(d.endSession),
	}
}

// guardAnswers sets what every answer carries.
func guardAnswers(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h(w, r)
	})
}

//go:embed page.html
var pageText string

// page is what the page to log in shows.
type page struct {
	OIDC, Safe bool // Safe: what the browser sends here, others on the way cannot read
	Issuer, To string
	Problem    string
}

// Page writes the page to log in.
func (d *Service) Page(w http.ResponseWriter, r *http.Request) { d.showPage(w, r, http.StatusOK, "") }

func (d *Service) showPage(w http.ResponseWriter, r *http.Request, status int, problem string) {
	p := page{Safe: isSafe(r), To: localPath(r.FormValue("to")), Problem: problem}
	if conf := d.conf(); conf != nil {
		p.OIDC, p.Issuer = true, conf.Issuer
		if err := d.provider.troubleOf(); err != nil && problem == "" {
			p.Problem = "The provider could not be reached a moment ago: " + err.Error()
		}
	}
	d.writePage(w, status, pageText, p)
}

func (d *Service) writePage(w http.ResponseWriter, status int, text string, p page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	w.WriteHeader(status)
	t, err := template.New("login").Parse(text)
	if err == nil {
		err = t.Execute(w, p)
	}
	if err != nil {
		d.log.Error("the page to log in cannot be shown", "error", err)
	}
}

// localPath is a path of this server to which a login leads; "/" for anything else.
func localPath(to string) string {
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.Contains(to, "\\") {
		return "/"
	}
	return to
}

// beginLogin sends a browser to the provider.
func (d *Service) beginLogin(w http.ResponseWriter, r *http.Request) {
	if !isSafe(r) {
		d.showPage(w, r, http.StatusForbidden, "Logins are taken over TLS only: use the address of api.tls_listen.")
		return
	}
	conf := d.conf()
	if conf == nil {
		d.showPage(w, r, http.StatusNotFound, "No provider is configured: access.oidc of the configuration names one.")
		return
	}
	known, err := d.provider.getProvider(r.Context(), conf, time.Now())
	if err != nil {
		d.log.Warn("people cannot log in at the provider", "error", err)
		d.showPage(w, r, http.StatusServiceUnavailable, "Try again in a minute: "+err.Error())
		return
	}
	f := flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier(), localPath(r.FormValue("to"))}
	http.SetCookie(w, f.flowCookie(r))
	http.Redirect(w, r, oauthConfig(conf, known, r).AuthCodeURL(f.state, oidc.Nonce(f.nonce), oauth2.S256ChallengeOption(f.verifier)), http.StatusSeeOther)
}

// takeCallback takes a browser that comes back from the provider.
func (d *Service) takeCallback(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, (&flow{}).flowCookie(r)) // a login comes back once
	text, to, who, err := d.readArrival(r)
	if err != nil {
		d.log.Warn("a login at the provider failed", "from", r.RemoteAddr, "error", err)
		d.showPage(w, r, http.StatusBadRequest, "The login failed: "+err.Error())
		return
	}
	d.log.Info("audit", "who", "user/"+who.user, "from", r.RemoteAddr, "route", "GET "+Path+"/callback", "result", "logged in", "groups", who.groups)
	d.note(r, "user/"+who.user, "logged in by "+enrol.ByOIDC)
	d.openSession(w, r, text, to)
}

func (d *Service) readArrival(r *http.Request) (text, to string, who person, err error) {
	f, err := readFlow(r)
	if err != nil {
		return "", "", who, err
	}
	q := r.URL.Query()
	if subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(f.state)) != 1 {
		return "", "", who, errors.New("the answer is of another login: begin again")
	}
	if refused := q.Get("error"); refused != "" {
		return "", "", who, errors.New("the provider refused: " + briefText(refused) + " " + briefText(q.Get("error_description")))
	}
	conf := d.conf()
	if conf == nil {
		return "", "", who, errors.New("no provider is configured any more")
	}
	known, err := d.provider.getProvider(r.Context(), conf, time.Now())
	if err != nil {
		return "", "", who, err
	}
	if who, err = d.provider.redeemCode(r.Context(), conf, known, r, f); err != nil {
		return "", "", who, err
	}
	if why := conf.Denial(who.user, who.groups); why != "" {
		return "", "", who, errors.New(why) // no session for a user without a role
	}
	text, err = d.sessions.Begin(r.Context(), enrol.NewSession{User: who.user, Groups: who.groups})
	return text, f.to, who, err
}

func briefText(s string) string {
	const most = 200
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// openSession gives a browser its session. A session that it had ends.
func (d *Service) openSession(w http.ResponseWriter, r *http.Request, text, to string) {
	if old := access.SessionText(r); old != "" {
		_, _ = d.sessions.End(r.Context(), old) // it ends by itself otherwise
	}
	http.SetCookie(w, access.SessionCookie(r, text))
	http.Redirect(w, r, localPath(to), http.StatusSeeOther)
}

// takeToken takes a form with a token of the API.
func (d *Service) takeToken(w http.ResponseWriter, r *http.Request) {
	if !isSafe(r) {
		d.showPage(w, r, http.StatusForbidden, "Tokens are taken over TLS only: use the address of api.tls_listen.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
	given := strings.TrimSpace(r.PostFormValue("token"))
	if given == "" {
		d.showPage(w, r, http.StatusBadRequest, "Token missing: paste what bursar token create printed.")
		return
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	token, err := d.sessions.Bearer(r.Context(), given, from)
	if enrol.IsRefusal(err) {
		d.log.Warn("a login with a token failed", "from", r.RemoteAddr, "error", err)
		d.showPage(w, r, http.StatusUnauthorized, "Login failed: "+err.Error()+": "+access.AskForAnother+".")
		return
	}
	var text string
	if err == nil {
		text, err = d.sessions.Begin(r.Context(), enrol.NewSession{Token: token})
	}
	if err != nil {
		d.showPage(w, r, http.StatusServiceUnavailable, "The cluster cannot answer now; try again in a minute: "+err.Error())
		return
	}
	d.log.Info("audit", "who", token.Who(), "from", r.RemoteAddr, "route", "POST "+Path, "result", "logged in")
	d.note(r, token.Who(), "logged in by "+enrol.ByToken)
	d.openSession(w, r, text, r.PostFormValue("to"))
}

// isSafe reports whether others on the way cannot read what a browser sends: over TLS, over
// loopback and over the unix socket.
func isSafe(r *http.Request) bool {
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(from)
	return r.TLS != nil || ip != nil && ip.IsLoopback() || from == "" // the unix socket
}

//go:embed leave.html
var leaveText string

// endSession ends the session of a browser, and lets it go on to the provider to end the
// session there, where it began there and the provider has an address for that.
func (d *Service) endSession(w http.ResponseWriter, r *http.Request) {
	way := ""
	if text := access.SessionText(r); text != "" {
		var err error
		if way, err = d.sessions.End(r.Context(), text); err != nil && !errors.Is(err, enrol.ErrUnknown) {
			d.showPage(w, r, http.StatusServiceUnavailable, "The session could not be ended: "+err.Error())
			return
		}
	}
	if who := access.From(r.Context()).Name; way != "" {
		d.note(r, who, "logged out")
	}
	http.SetCookie(w, access.SessionCookie(r, ""))
	if conf := d.conf(); conf != nil && way == enrol.ByOIDC {
		_, _ = d.provider.getProvider(r.Context(), conf, time.Now()) // without it the browser is sent to no provider
		if to := d.provider.logoutAddress(conf); to != "" {
			// A redirect would be one of the form, which its page allows to this server only.
			d.writePage(w, http.StatusOK, leaveText, page{Issuer: conf.Issuer, To: to})
			return
		}
	}
	http.Redirect(w, r, Path, http.StatusSeeOther)
}

// Ask makes the next login ask a provider that did not answer, whenever that was.
func (d *Service) Ask() {
	d.provider.mu.Lock()
	defer d.provider.mu.Unlock()
	d.provider.asked = time.Time{}
}
