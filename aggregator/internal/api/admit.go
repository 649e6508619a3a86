package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/origin"
)

// someone is any role.
const somebody = identity.Monitor | identity.Read | identity.Write | identity.Operate | identity.Admin

// admit calls h when the principal of the request may use the route, which is its
// method and its pattern, and refuses it otherwise.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, route string, h http.HandlerFunc) {
	need, known := s.needs[route]
	p := access.From(r.Context())
	switch {
	case !known:
		s.opt.Log.Error("a route has no rule of access and is refused", "route", route)
		s.refuse(w, r, route, p, need, route+" is denied: no access rule is defined for it")
	case need.Open && origin.CheckSite(r) != nil:
		s.refuse(w, r, route, p, need, origin.ErrSite.Error()+": "+route)
	case need.Open && !(need.Private && p.Plain):
		h(w, r)
	case !p.May(need.Rights):
		s.refuse(w, r, route, p, need, p.Refusal(route, need.Rights))
	case need.Whole && !p.Rows.All():
		s.refuse(w, r, route, p, need, route+": "+access.ErrRows.Error())
	case p.Pseudonyms && !need.Pseudonyms:
		s.refuse(w, r, route, p, need, route+": "+access.ErrNames.Error())
	case need.Private && p.Plain:
		s.refuse(w, r, route, p, need, route+" is not answered at a plain address: use the unix socket or a certificate")
	case origin.CheckSite(r) != nil:
		s.refuse(w, r, route, p, need, origin.ErrSite.Error()+": "+route)
	case need.Audit:
		s.audited(w, r, route, h)
	case need.Look:
		s.looked(w, r, route, h)
	default:
		h(w, r)
	}
}

// refuse answers who may not do what it asks, in the form of the route.
// route is its pattern; "" when it was not looked for. The same is said once a minute.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, route string, p access.Principal, need access.Need, why string) {
	about := fmt.Sprint(brief(p.Name), " ", route, " ", p.Misdirected, p.Stale) // nothing that a client makes up
	if s.complaints.due(about) {
		s.opt.Log.Warn("a request was refused", "who", brief(p.Name), "from", r.RemoteAddr, "method", brief(r.Method), "path", brief(r.URL.Path), "reason", brief(why))
		if p.Name != "" && !p.Plain && s.opt.Audit != nil { // who is proven, so that no one else fills the log
			s.opt.Audit.Note(auditEntry(r, audit.Refusal, route, brief(enrol.Hide(why))))
		}
	}
	status := http.StatusForbidden
	if p.Misdirected {
		status = http.StatusMisdirectedRequest
	} else if p.Rights == 0 && p.Name == "" || p.Stale || r.TLS == nil && p.Rights == 0 {
		status = http.StatusUnauthorized
	}
	if p.Stale {
		w.Header().Set("Connection", "close") // the next one proves anew who is there
	}
	problem := strings.HasPrefix(r.URL.Path, "/v1/") || strings.Contains(r.Header.Get("Accept"), "application/problem+json")
	switch {
	case problem:
		fail(w, status, why)
	case need.Hold:
		breakOff()
	default:
		text(w, status, "Insufficient permissions: "+why)
	}
}

// no one refuses who has no role at all, whatever is asked for: it is not told
// what there is. True: it was refused.
func (s *Server) nobody(w http.ResponseWriter, r *http.Request) bool {
	p := access.From(r.Context())
	if p.Rights != 0 || r.URL.Path == "/health_check" || (entrance(r.URL.Path) || r.URL.Path == joinPath && !p.Plain) && !p.Misdirected {
		return false
	}
	if s.opt.Door != nil && !p.Misdirected && r.Method == http.MethodGet && (p.Name == "" || p.Plain) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		if widget := s.opt.Extra["GET "+access.Widget]; widget != nil && r.URL.Path == access.Widget {
			widget.ServeHTTP(w, r)
			return true
		}
		http.Redirect(w, r, loginPath+"?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return true
	}
	hold := r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasPrefix(r.URL.Path, "/ui/")
	s.refuse(w, r, "", p, access.Need{Hold: hold}, p.Refusal(r.Method+" "+r.URL.Path, somebody))
	return true
}

// entrance reports whether a path is one where people log in and out.
func entrance(path string) bool {
	return path == loginPath || strings.HasPrefix(path, loginPath+"/") || path == "/ui/logout"
}

// brief cuts what a client made up to what a line of the log should have.
func brief(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// audited calls h and notes who did it and what came of it.
func (s *Server) audited(w http.ResponseWriter, r *http.Request, route string, h http.HandlerFunc) {
	seen := &outcome{ResponseWriter: w}
	begin := time.Now()
	defer func() {
		cause := recover()
		result := "answered"
		if cause != nil {
			result = brokenOff
		}
		p := access.From(r.Context())
		s.opt.Log.Info("audit", "who", p.Name, "roles", p.Rights.String(), "from", r.RemoteAddr, "route", route,
			"path", r.URL.Path, "result", result, "status", seen.status, "took", time.Since(begin).Round(time.Millisecond), "certificate", serial(r))
		s.noteAudited(r, route, seen.result())
		if cause != nil {
			panic(cause)
		}
	}()
	h(seen, r)
}

// serial is the number of the certificate by which a request came; "" without.
func serial(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	return fmt.Sprintf("%x", r.TLS.PeerCertificates[0].SerialNumber)
}

const brokenOff = "broken off"

// outcome notes the status of an answer.
type outcome struct {
	http.ResponseWriter

	status int
}

// WriteHeader implements http.ResponseWriter.
func (o *outcome) WriteHeader(status int) {
	if o.status == 0 || o.status < http.StatusOK {
		o.status = status
	}
	o.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (o *outcome) Write(p []byte) (int, error) {
	if o.status == 0 {
		o.status = http.StatusOK
	}
	return o.ResponseWriter.Write(p)
}

// result says what came of the request.
func (o *outcome) result() string {
	if o.status == 0 {
		return brokenOff
	}
	return strconv.Itoa(o.status)
}

// Unwrap is for http.ResponseController.
func (o *outcome) Unwrap() http.ResponseWriter { return o.ResponseWriter }

// complaints say whether something is worth a line in the log again.
type complaints struct {
	mu   sync.Mutex
	last map[string]time.Time
}

const (
	complainEvery = time.Minute
	maxComplaints = 1000
)

func (c *complaints) due(what string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.last == nil || len(c.last) >= maxComplaints {
		c.last = map[string]time.Time{}
	}
	if now.Sub(c.last[what]) < complainEvery {
		return false
	}
	c.last[what] = now
	return true
}

// Served lists the routes that the server has, each as its method and pattern.
func (s *Server) Served() []string {
	list := rootRoutes()
	for i := range s.routes {
		list = append(list, s.routes[i].method+" "+s.routes[i].pattern)
	}
	for pattern := range s.opt.Extra {
		list = append(list, pattern)
	}
	slices.Sort(list)
	return list
}
