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
	"github.com/bursar-accounting/bursar/proto/auditor"
	"github.com/bursar-accounting/bursar/proto/identity"
	"github.com/bursar-accounting/bursar/proto/origin"
)

// anyRole are the rights of which any will do.
const anyRole = identity.Monitor | identity.Read | identity.Write | identity.Operate | identity.Admin

// admitRequest calls h when the principal of the request may use the route, which is its
// method and its pattern, and refuses it otherwise.
func (s *Server) admitRequest(w http.ResponseWriter, r *http.Request, route string, h http.HandlerFunc) {
	need, known := s.needs[route]
	p := access.From(r.Context())
	switch {
	case !known:
		s.opt.Log.Error("a route has no rule of access and is refused", "route", route)
		s.denyRequest(w, r, route, p, need, route+" is denied: no access rule is defined for it")
	case need.Open && origin.CheckSite(r) != nil:
		s.denyRequest(w, r, route, p, need, origin.ErrSite.Error()+": "+route)
	case need.Open && !(need.Private && p.Plain):
		h(w, r)
	case !p.May(need.Rights):
		s.denyRequest(w, r, route, p, need, p.Refusal(route, need.Rights))
	case need.Whole && !p.Rows.All():
		s.denyRequest(w, r, route, p, need, route+": "+access.ErrRows.Error())
	case p.Pseudonyms && !need.Pseudonyms:
		s.denyRequest(w, r, route, p, need, route+": "+access.ErrNames.Error())
	case need.Private && p.Plain:
		s.denyRequest(w, r, route, p, need, route+" is not answered at a plain address: use the unix socket or a certificate")
	case origin.CheckSite(r) != nil:
		s.denyRequest(w, r, route, p, need, origin.ErrSite.Error()+": "+route)
	case need.Audit:
		s.serveAudited(w, r, route, h)
	case need.Look:
		s.serveAuditedRead(w, r, route, h)
	default:
		h(w, r)
	}
}

// restOfBody is how long the rest of a body may take to come once the answer does not need it.
const restOfBody = 5 * time.Second

// denyRequest answers a caller without the right to it, in the form of the route.
// route is its pattern; "" when it was not looked for. The same is said once a minute.
func (s *Server) denyRequest(w http.ResponseWriter, r *http.Request, route string, p access.Principal, need access.Need, why string) {
	about := fmt.Sprint(truncateForLog(p.Name), " ", route, " ", p.Misdirected, p.Stale) // nothing that a client makes up
	if s.complaints.isDue(about) {
		s.opt.Log.Warn("a request was refused", "who", truncateForLog(p.Name), "from", r.RemoteAddr, "method", truncateForLog(r.Method), "path", truncateForLog(r.URL.Path), "reason", truncateForLog(why))
		if p.Name != "" && !p.Plain && s.opt.Audit != nil { // who is proven, so that no one else fills the log
			s.opt.Audit.Note(auditEntry(r, audit.Refusal, route, truncateForLog(enrol.Hide(why))))
		}
	}
	auditor.LimitBody(w, restOfBody)
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
		answerProblem(w, status, why)
	case need.Hold:
		breakOff()
	default:
		answerText(w, status, "Insufficient permissions: "+why)
	}
}

// denyWithoutRole refuses who has no role at all, whatever is asked for: it is not told
// what there is. True: it was refused.
func (s *Server) denyWithoutRole(w http.ResponseWriter, r *http.Request) bool {
	p := access.From(r.Context())
	if p.Rights != 0 || r.URL.Path == "/health_check" || (isLoginPath(r.URL.Path) || r.URL.Path == joinPath && !p.Plain) && !p.Misdirected {
		return false
	}
	if s.opt.Login != nil && !p.Misdirected && r.Method == http.MethodGet && (p.Name == "" || p.Plain) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		if widget := s.opt.Extra["GET "+access.Widget]; widget != nil && r.URL.Path == access.Widget {
			widget.ServeHTTP(w, r)
			return true
		}
		http.Redirect(w, r, loginPath+"?"+url.Values{"to": {r.URL.RequestURI()}}.Encode(), http.StatusSeeOther)
		return true
	}
	hold := r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasPrefix(r.URL.Path, "/ui/")
	s.denyRequest(w, r, "", p, access.Need{Hold: hold}, p.Refusal(r.Method+" "+r.URL.Path, anyRole))
	return true
}

// isLoginPath reports whether a path is one where people log in and out.
func isLoginPath(path string) bool {
	return path == loginPath || strings.HasPrefix(path, loginPath+"/") || path == "/ui/logout"
}

// truncateForLog cuts what a client made up to what a line of the log should have.
func truncateForLog(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// serveAudited calls h and notes who did it and what came of it.
func (s *Server) serveAudited(w http.ResponseWriter, r *http.Request, route string, h http.HandlerFunc) {
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
			"path", r.URL.Path, "result", result, "status", seen.status, "took", time.Since(begin).Round(time.Millisecond), "certificate", certificateSerial(r))
		s.noteAudited(r, route, seen.statusText())
		if cause != nil {
			panic(cause)
		}
	}()
	h(seen, r)
}

// certificateSerial is the number of the certificate by which a request came; "" without.
func certificateSerial(r *http.Request) string {
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

// statusText says what came of the request.
func (o *outcome) statusText() string {
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

func (c *complaints) isDue(what string) bool {
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
