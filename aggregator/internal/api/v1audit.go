package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/audit"
	"github.com/bursar-accounting/bursar/aggregator/internal/calendar"
	"github.com/bursar-accounting/bursar/aggregator/internal/enrol"
	"github.com/bursar-accounting/bursar/aggregator/internal/erasure"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Audit is the audit log of the cluster.
type Audit interface {
	// Note takes an entry, and does not wait.
	Note(e audit.Entry)
	// Commit takes an entry, and waits until it is committed.
	Commit(ctx context.Context, e audit.Entry) error
	// Flush waits until all entries of before are committed.
	Flush(ctx context.Context) error
}

const (
	// auditTime is how long an answer waits for its entry.
	auditTime = 5 * time.Second
	// auditBefore is how many days before now are told where no window is asked for.
	auditBefore = 7
	// auditDays is how long a window of the audit log may be.
	auditDays = 3700
	// auditEntries is how many entries are told where no limit is given.
	auditEntries = 1000
)

func (s *Server) auditRoutes() []route {
	return []route{
		{http.MethodGet, "/v1/audit", s.withTable("entries", s.flushAuditBefore(s.withView(s.v1Audit)))},
		{http.MethodPost, "/v1/audit:erase", s.flushAuditBefore(s.withView(s.v1AuditErase))},
	}
}

// auditEntry is that of a request.
func auditEntry(r *http.Request, kind audit.Kind, route, result string) audit.Entry {
	p := access.From(r.Context())
	return audit.Entry{
		Kind: kind, Who: truncateForLog(p.Name), Roles: p.Rights.String(), From: r.RemoteAddr, Route: route, About: truncateForLog(enrol.Hide(auditSubject(r, route))), Result: result,
	}
}

// auditSubject is the path of a request, where it is not its route, and what its query asks for.
// How much of it, in which form and of which time is left out, or dashboards would ask
// something else each minute, and so is what may be a secret.
func auditSubject(r *http.Request, route string) string {
	var parts []string
	if strings.Contains(route, "{") {
		parts = append(parts, r.URL.Path)
	}
	query := r.URL.Query()
	for field := range query {
		if name, _, _ := strings.Cut(field, "["); slices.Contains(unauditedFields(), name) {
			query.Del(field)
		}
	}
	if text, err := url.QueryUnescape(query.Encode()); err == nil && text != "" {
		parts = append(parts, text)
	}
	return strings.Join(parts, "?")
}

// unauditedFields are the fields of queries that the audit log leaves out.
func unauditedFields() []string {
	return []string{
		"token", "code", "state", "session_state", "format", "limit", "after", "order", "page", "step", "max_age", "consistency", "top", "measure", "unit", "zone", "bucket",
		"from", "to", "at", "until", "ran_since", "start_time", "stop_time", "runtime", "sort_by",
	}
}

// serveAuditedRead calls h and notes that someone looked. What a page or a report asks for within the
// process is noted as that page or report.
func (s *Server) serveAuditedRead(w http.ResponseWriter, r *http.Request, route string, h http.HandlerFunc) {
	if s.opt.Audit == nil || isInside(r.Context()) {
		h(w, r)
		return
	}
	seen := &outcome{ResponseWriter: w}
	defer func() { s.opt.Audit.Note(auditEntry(r, audit.Look, route, seen.statusText())) }()
	h(seen, r)
}

// noteAudited notes a change, and who looked at what only few may see.
func (s *Server) noteAudited(r *http.Request, route, result string) {
	switch {
	case s.opt.Audit == nil, r.Method == http.MethodGet && isInside(r.Context()):
	case r.Method == http.MethodGet:
		s.opt.Audit.Note(auditEntry(r, audit.Look, route, result))
	default:
		s.commitAudit(r, auditEntry(r, audit.Change, route, result))
	}
}

// commitAudit waits until an entry is committed, so that who has the answer of a change finds
// it in the audit log. Where the cluster takes too long, it is committed later.
func (s *Server) commitAudit(r *http.Request, e audit.Entry) {
	if s.opt.Audit == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), auditTime)
	defer cancel()
	if err := s.opt.Audit.Commit(ctx, e); err != nil {
		s.opt.Log.Warn("an entry of the audit log waits", "who", e.Who, "route", e.Route, "error", err)
	}
}

// flushAuditBefore calls h when the entries of this node are committed, or take too long.
func (s *Server) flushAuditBefore(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.opt.Audit != nil {
			ctx, cancel := context.WithTimeout(r.Context(), auditTime)
			defer cancel()
			if err := s.opt.Audit.Flush(ctx); err != nil {
				s.opt.Log.Warn("the last entries of the audit log are not in an answer", "error", err)
			}
		}
		h(w, r)
	}
}

// auditQuery is what GET /v1/audit is asked for.
type auditQuery struct {
	v1.AuditQuery

	window calendar.Window
}

func (s *Server) parseAuditQuery(r *http.Request) (q auditQuery, err error) {
	if q.AuditQuery, err = decodeQuery[v1.AuditQuery](r); err != nil {
		return q, err
	}
	now := s.currentTime()
	window, err := parseWindow(q.Window, q.From, q.To, now, s.siteZone())
	if err != nil {
		return q, err
	}
	if window == nil {
		window = &calendar.Window{From: now - auditBefore*aDay, To: now + aDay}
	}
	q.window, q.Limit = *window, cmp.Or(q.Limit, auditEntries)
	q.window.To = min(q.window.To, now+aDay)
	if q.window.To-q.window.From > auditDays*aDay {
		return q, newRefusal(http.StatusBadRequest, "the window has more than %d days", auditDays)
	}
	return q, nil
}

// matches reports whether an entry is asked for.
func (q *auditQuery) matches(e *audit.Entry) bool {
	return (q.Who == "" || e.Who == q.Who) && (q.Kind == "" || string(e.Kind) == q.Kind) && (q.About == "" || strings.Contains(e.About, q.About))
}

// v1Audit is GET /v1/audit: who did what, the newest first.
func (s *Server) v1Audit(w http.ResponseWriter, r *http.Request, view *access.View) error {
	if err := view.Whole(); err != nil {
		return err
	}
	q, err := s.parseAuditQuery(r)
	if err != nil {
		return err
	}
	out := v1.Audit{
		Window: v1.Window{From: v1.Stamp(q.window.From), To: v1.Stamp(q.window.To)}, Entries: []v1.AuditEntry{}, KeptMonths: int64(s.retentionPolicy().KeptAudit()),
	}
	err = audit.Read(view, q.window.From.Std(), q.window.To.Std(), func(e *audit.Entry) bool {
		switch {
		case !q.matches(e):
		case len(out.Entries) == q.Limit:
			out.More = true
		default:
			out.Entries = append(out.Entries, v1.AuditEntry{
				Time: v1.Stamp(record.FromStd(e.At)), Kind: string(e.Kind), Who: e.Who, Roles: e.Roles, From: e.From, Route: e.Route, About: e.About, Result: e.Result, Node: e.Node,
			})
		}
		return !out.More
	})
	if err == nil {
		answerJSON(w, http.StatusOK, out)
	}
	return err
}

// v1AuditErase is POST /v1/audit:erase: a name becomes another one in all entries.
func (s *Server) v1AuditErase(w http.ResponseWriter, r *http.Request, view *access.View) error {
	var body v1.AuditErasure
	if err := decodeBody(w, r, &body); err != nil {
		return err
	}
	if body.Name == "" || body.As == "" || erasure.HasWord(body.As, body.Name) {
		return newRefusal(http.StatusBadRequest, `the body must be like {"name": "erika", "as": "erased-x"}, and the name not in what replaces it`)
	}
	write := func(c store.Command) error { return s.commitCommand(r.Context(), c) }
	n, err := audit.Replace(view, write, func(text string) string { return erasure.ReplaceWord(text, body.Name, body.As) })
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, v1.AuditErased{Entries: int64(n)})
	return nil
}
