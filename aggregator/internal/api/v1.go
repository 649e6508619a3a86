package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	v1 "github.com/bursar-accounting/bursar/proto/v1"
)

// Agents are what the server needs of the agents that this node pulls from.
type Agents interface {
	// Agents says how the pulls of the leader are doing. The error says that it
	// cannot be asked.
	Agents(ctx context.Context) ([]AgentStatus, error)
	// Retry has an agent map a quarantined job again. The error says why it
	// fails again or that the agent cannot be asked.
	Retry(ctx context.Context, q *store.Quarantined) error
}

// AgentStatus says how the pull from an agent is doing.
type AgentStatus struct {
	Name        string
	Address     string
	Connected   bool
	Error       string    // of the last pull; "" when it was well
	Remedy      string    // the command that mends it, where waiting does not
	LastContact time.Time // zero: never
	Behind      uint64    // frames that the agent has and the cluster has not
	// States are those of all its sources, by type/label, as the agent said last.
	States map[string]string
	// Failing are its sources that do not collect, by type/label, with why.
	Failing map[string]string
}

// problem is an error of /v1, as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func answerProblem(w http.ResponseWriter, status int, detail string) {
	answerTypedProblem(w, problem{Type: "about:blank", Status: status, Detail: detail})
}

// answerTypedProblem answers a problem of a type that programs know.
func answerTypedProblem(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	p.Title = http.StatusText(p.Status)
	answerJSON(w, p.Status, p)
}

// answerJSON sends v as JSON.
func answerJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the answer cannot be written as JSON"}`)
		w.Header().Set("Content-Type", "application/problem+json")
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	answerBytes(w, status, append(body, '\n'))
}

// v1Routes returns what there is below /v1.
func (s *Server) v1Routes() []route {
	const quarantined = "/v1/quarantine/{agent}/{type}/{label}/{id...}"
	parts := slices.Concat(s.snapshotRoutes(), s.memberRoutes(), s.importRoutes(), s.actionRoutes(), s.alertRoutes(), s.reportRoutes(),
		s.joinRoutes(), s.archiveRoutes(), s.auditRoutes())
	return append(parts, []route{
		{http.MethodGet, "/v1/records", s.withView(s.v1Records)},
		{http.MethodGet, "/v1/records/{id...}", s.withView(withoutQuery(s.v1Record))},
		{http.MethodDelete, "/v1/records/{id...}", s.withView(s.v1Delete)},
		{http.MethodPost, "/v1/records/{id...}:undelete", s.withView(s.v1Undelete)},
		{http.MethodGet, "/v1/jobs", s.withView(s.v1Jobs)},
		{http.MethodGet, "/v1/usage", s.withView(s.v1Usage)},
		{http.MethodGet, "/v1/distributions", s.withView(s.v1Distributions)},
		{http.MethodGet, "/v1/directory", s.withView(s.v1Directory)},
		{http.MethodGet, "/v1/subscription", s.withView(s.v1Subscription)},
		{http.MethodGet, "/v1/capacity", s.withView(s.v1Capacity)},
		{http.MethodGet, "/v1/budgets", s.withView(s.v1Budgets)},
		{http.MethodGet, "/v1/prices", s.withView(s.v1Prices)},
		{http.MethodGet, "/v1/changes", s.withView(s.v1Changes)},
		{http.MethodGet, "/v1/changes/digest", s.withView(withoutQuery(s.v1ChangesDigest))},
		{http.MethodGet, "/v1/changes/open", s.withView(s.v1OpenRuns)},
		{http.MethodGet, "/v1/agents", s.withTable("agents", s.withView(withoutQuery(s.v1Agents)))},
		{http.MethodGet, "/v1/counters", s.withTable("counters", s.withView(withoutQuery(s.v1Counters)))},
		{http.MethodGet, "/v1/quarantine", s.withTable("quarantine", s.withView(withoutQuery(s.v1Quarantine)))},
		{http.MethodGet, quarantined, s.withView(s.v1Quarantined)},
		{http.MethodDelete, quarantined, s.withView(s.v1QuarantineDrop)},
		{http.MethodPost, quarantined + ":retry", s.withView(s.v1QuarantineRetry)},
		{http.MethodGet, "/v1/conflicts", s.withTable("conflicts", s.withView(withoutQuery(s.v1Conflicts)))},
		{http.MethodGet, "/v1/holdings", s.withView(s.v1Holdings)},
		{http.MethodGet, "/v1/waiting", s.withTable("waiting", s.withView(withoutQuery(s.v1Waiting)))},
		{http.MethodDelete, "/v1/waiting/{id...}", s.withView(s.v1Dismiss)},
		{http.MethodGet, "/v1/retention", s.withView(s.v1Retention)},
		{http.MethodGet, "/v1/kinds", s.withTable("kinds", s.withView(withoutQuery(s.v1Kinds)))},
		{http.MethodPost, "/v1/kinds:repair", s.withView(s.v1KindsRepair)},
		{http.MethodGet, "/v1/gaps", s.withTable("gaps", s.withView(s.v1Gaps))},
		{http.MethodGet, "/v1/completeness", s.withTable("days", s.withView(s.v1Completeness))},
		{http.MethodPost, "/v1/check", s.v1Check},
		{http.MethodPost, "/v1/sessions", s.v1Session},
		{http.MethodGet, "/v1/status", s.v1Status},
		{http.MethodGet, "/v1/cluster", s.withTable("nodes", s.v1Cluster)},
		{http.MethodGet, "/v1/config", s.withView(withoutQuery(s.v1Config))},
		{http.MethodPut, "/v1/config", s.withView(s.v1ConfigCommit)},
		{http.MethodGet, "/v1/openapi.yaml", openAPI},
	}...)
}

// refusal is an error that is the client's, with its status.
type refusal struct {
	status int
	detail string
	kind   string // the type of the problem; "": none of its own
	after  string // the seconds after which it may be tried again; "": nothing changes by itself
}

func (e *refusal) Error() string { return e.detail }

func newRefusal(status int, format string, args ...any) error {
	return &refusal{status: status, detail: fmt.Sprintf(format, args...)}
}

// withView gives a handler a picture of the store, and answers its error; a
// handler that returns one has sent nothing.
func (s *Server) withView(h func(http.ResponseWriter, *http.Request, *access.View) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, stale, err := extractConsistency(r)
		if err != nil {
			s.answerError(w, r, err)
			return
		}
		err = s.withLease(w, r, func(r *http.Request) error {
			view, err := s.opt.Reader.Read(r.Context(), access.From(r.Context()))
			if err != nil {
				s.opt.Log.Warn("a read was refused", "path", r.URL.Path, "error", err)
				return err
			}
			defer s.closeView(view)
			index, _ := view.Applied()
			w.Header().Set("X-Bursar-Index", strconv.FormatUint(index, 10))
			stale.setHeaders(w.Header(), index)
			return h(w, r, view)
		})
		if err != nil {
			s.answerError(w, r, err)
		}
	}
}

// withoutQuery refuses all fields of a query that are not about how old the answer may be.
func withoutQuery(h func(http.ResponseWriter, *http.Request, *access.View) error) func(http.ResponseWriter, *http.Request, *access.View) error {
	return func(w http.ResponseWriter, r *http.Request, view *access.View) error {
		if _, err := decodeQuery[v1.Reading](r); err != nil {
			return err
		}
		return h(w, r, view)
	}
}

// answerError answers the error of a handler.
func (s *Server) answerError(w http.ResponseWriter, r *http.Request, err error) {
	var known *refusal
	after := retryAfter(err)
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	switch {
	case errors.As(err, &known):
		answerTypedProblem(w, problem{Type: cmp.Or(known.kind, "about:blank"), Status: known.status, Detail: known.detail})
	case errors.Is(err, access.ErrDenied), errors.Is(err, access.ErrRows), errors.Is(err, access.ErrNames):
		answerProblem(w, http.StatusForbidden, err.Error())
	case errors.Is(err, store.ErrDetails):
		answerTypedProblem(w, problem{Type: v1.TypeArchive, Status: http.StatusServiceUnavailable, Detail: err.Error()})
	case errors.Is(err, store.ErrCompacted):
		answerProblem(w, http.StatusGone, "the ledger cannot be continued: "+err.Error()+"; "+beginAnew)
	case errors.Is(err, store.ErrArchived):
		answerProblem(w, http.StatusUnprocessableEntity, err.Error())
	case errors.Is(err, store.ErrQuery):
		answerProblem(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, store.ErrTooMuch):
		answerProblem(w, http.StatusUnprocessableEntity, err.Error()+"; ask for less at a time: a shorter window, longer buckets, fewer keys, smaller pages")
	case errors.Is(err, ErrUnknown):
		answerProblem(w, http.StatusServiceUnavailable, "outcome unknown; check before retrying: "+err.Error())
	case after != "":
		answerProblem(w, http.StatusServiceUnavailable, retryText(err))
	default:
		if r.Context().Err() == nil {
			s.opt.Log.Error("an answer failed", "path", r.URL.Path, "error", err)
		}
		answerProblem(w, http.StatusInternalServerError, err.Error())
	}
}

// commitCommand writes a command of /v1, where it may be answered that it cannot be done
// now.
func (s *Server) commitCommand(ctx context.Context, c store.Command) error {
	_, err := s.commitResult(ctx, c)
	return err
}

// commitResult is commit with the store's result.
func (s *Server) commitResult(ctx context.Context, c store.Command) (any, error) {
	result, err := s.tryCommit(ctx, c)
	switch {
	case errors.Is(err, ErrNotNow):
		return nil, newRetryableRefusal("nothing was done: %v", err)
	case err != nil:
		return nil, newRefusal(http.StatusServiceUnavailable, "outcome unknown; check before retrying: %v", err)
	}
	return result, nil
}

// openAPI serves the description of the interface.
func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(v1.OpenAPI()) // a client that is gone needs no answer
}
