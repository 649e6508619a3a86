package api

import (
	"net/http"
	"net/url"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// loginPath is where a browser brings its token.
const loginPath = "/ui/login"

// v1Session makes a link by which one browser, once, comes to the pages.
func (s *Server) v1Session(w http.ResponseWriter, r *http.Request) {
	if s.opt.Sessions == nil || s.opt.Pages == "" {
		answerProblem(w, http.StatusConflict, "no link can be made: this node has no plain address; open its tls_listen with a certificate in the browser")
		return
	}
	token, end := s.opt.Sessions.Token(access.From(r.Context()).Name)
	answerJSON(w, http.StatusCreated, v1.Session{
		URL: s.opt.Pages + loginPath + "?" + url.Values{"token": {token}}.Encode(), Expires: v1.Time{Time: end},
	})
}

// serveLogin opens a session for a browser that brings a token.
func (s *Server) serveLogin(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	if p := access.From(r.Context()); p.Rights == 0 || r.URL.Query().Has("token") {
		cookie, ok := s.opt.Sessions.Redeem(r.URL.Query().Get("token"), r.Host)
		if !ok && p.Rights == 0 && !r.URL.Query().Has("token") && s.opt.Login != nil {
			s.opt.Login.Page(w, r)
			return
		}
		if !ok && p.Rights == 0 {
			answerText(w, http.StatusGone, "This link was used already, or has expired: `bursar login` prints another one.")
			return
		}
		if ok {
			http.SetCookie(w, cookie)
		}
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}
