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

func fail(w http.ResponseWriter, status int, detail string) {
	failAs(w, problem{Type: "about:blank", Status: status, Detail: detail})
}

// failAs answers a problem of a type that programs know.
func failAs(w http.ResponseWriter, p problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	p.Title = http.StatusText(p.Status)
	answer(w, p.Status, p)
}

// answer sends v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the answer cannot be written as JSON"}`)
		w.Header().Set("Content-Type", "application/problem+json")
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	bare(w, status, append(body, '\n'))
}

// v1Routes returns what there is below /v1.
func (s *Server) v1Routes() []route {
	const quarantined = "/v1/quarantine/{agent}/{type}/{label}/{id...}"
	parts := slices.Concat(s.snapshotRoutes(), s.memberRoutes(), s.importRoutes(), s.actionRoutes(), s.alertRoutes(), s.reportRoutes(),
		s.joinRoutes(), s.archiveRoutes(), s.auditRoutes())
	return append(parts, []route{
		{http.MethodGet, "/v1/records", s.viewing(s.v1Records)},
		{http.MethodGet, "/v1/records/{id...}", s.viewing(s.v1Record)},
		{http.MethodDelete, "/v1/records/{id...}", s.viewing(s.v1Delete)},
		{http.MethodPost, "/v1/records/{id...}:undelete", s.viewing(s.v1Undelete)},
		{http.MethodGet, "/v1/usage", s.viewing(s.v1Usage)},
		{http.MethodGet, "/v1/distributions", s.viewing(s.v1Distributions)},
		{http.MethodGet, "/v1/directory", s.viewing(s.v1Directory)},
		{http.MethodGet, "/v1/subscription", s.viewing(s.v1Subscription)},
		{http.MethodGet, "/v1/capacity", s.viewing(s.v1Capacity)},
		{http.MethodGet, "/v1/budgets", s.viewing(s.v1Budgets)},
		{http.MethodGet, "/v1/prices", s.viewing(s.v1Prices)},
		{http.MethodGet, "/v1/changes", s.viewing(s.v1Changes)},
		{http.MethodGet, "/v1/changes/digest", s.viewing(s.v1ChangesDigest)},
		{http.MethodGet, "/v1/agents", s.tabled("agents", s.viewing(s.v1Agents))},
		{http.MethodGet, "/v1/counters", s.tabled("counters", s.viewing(s.v1Counters))},
		{http.MethodGet, "/v1/quarantine", s.tabled("quarantine", s.viewing(s.v1Quarantine))},
		{http.MethodGet, quarantined, s.viewing(s.v1Quarantined)},
		{http.MethodDelete, quarantined, s.viewing(s.v1QuarantineDrop)},
		{http.MethodPost, quarantined + ":retry", s.viewing(s.v1QuarantineRetry)},
		{http.MethodGet, "/v1/conflicts", s.tabled("conflicts", s.viewing(s.v1Conflicts))},
		{http.MethodGet, "/v1/waiting", s.tabled("waiting", s.viewing(s.v1Waiting))},
		{http.MethodDelete, "/v1/waiting/{id...}", s.viewing(s.v1Dismiss)},
		{http.MethodGet, "/v1/retention", s.viewing(s.v1Retention)},
		{http.MethodGet, "/v1/kinds", s.tabled("kinds", s.viewing(s.v1Kinds))},
		{http.MethodPost, "/v1/kinds:repair", s.viewing(s.v1KindsRepair)},
		{http.MethodGet, "/v1/gaps", s.tabled("gaps", s.viewing(s.v1Gaps))},
		{http.MethodGet, "/v1/completeness", s.tabled("days", s.viewing(s.v1Completeness))},
		{http.MethodPost, "/v1/check", s.v1Check},
		{http.MethodPost, "/v1/sessions", s.v1Session},
		{http.MethodGet, "/v1/status", s.v1Status},
		{http.MethodGet, "/v1/cluster", s.tabled("nodes", s.v1Cluster)},
		{http.MethodGet, "/v1/config", s.viewing(s.v1Config)},
		{http.MethodPut, "/v1/config", s.viewing(s.v1ConfigCommit)},
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

func refuse(status int, format string, args ...any) error {
	return &refusal{status: status, detail: fmt.Sprintf(format, args...)}
}

// viewing gives a handler a picture of the store, and answers its error; a
// handler that returns one has sent nothing.
func (s *Server) viewing(h func(http.ResponseWriter, *http.Request, *access.View) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		r, stale, err := consistency(r)
		if err != nil {
			s.refused(w, r, err)
			return
		}
		err = s.within(w, r, func(r *http.Request) error {
			view, err := s.opt.Reader.Read(r.Context(), access.From(r.Context()))
			if err != nil {
				s.opt.Log.Warn("a read was refused", "path", r.URL.Path, "error", err)
				return err
			}
			defer s.close(view)
			index, _ := view.Applied()
			w.Header().Set("X-Bursar-Index", strconv.FormatUint(index, 10))
			stale.header(w.Header(), index)
			return h(w, r, view)
		})
		if err != nil {
			s.refused(w, r, err)
		}
	}
}

// refused answers the error of a handler.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, err error) {
	var known *refusal
	after := retryAfter(err)
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	switch {
	case errors.As(err, &known):
		failAs(w, problem{Type: cmp.Or(known.kind, "about:blank"), Status: known.status, Detail: known.detail})
	case errors.Is(err, access.ErrDenied), errors.Is(err, access.ErrRows), errors.Is(err, access.ErrNames):
		fail(w, http.StatusForbidden, err.Error())
	case errors.Is(err, store.ErrDetails):
		failAs(w, problem{Type: v1.TypeArchive, Status: http.StatusServiceUnavailable, Detail: err.Error()})
	case errors.Is(err, store.ErrCompacted):
		fail(w, http.StatusGone, "the ledger cannot be continued: "+err.Error()+"; "+beginAnew)
	case errors.Is(err, store.ErrArchived):
		fail(w, http.StatusUnprocessableEntity, err.Error())
	case errors.Is(err, store.ErrQuery):
		fail(w, http.StatusBadRequest, err.Error())
	case errors.Is(err, store.ErrTooMuch):
		fail(w, http.StatusUnprocessableEntity, err.Error()+"; ask for less at a time: a shorter window, longer buckets, fewer keys, smaller pages")
	case errors.Is(err, ErrUnknown):
		fail(w, http.StatusServiceUnavailable, "outcome unknown; check before retrying: "+err.Error())
	case after != "":
		fail(w, http.StatusServiceUnavailable, passing(err))
	default:
		if r.Context().Err() == nil {
			s.opt.Log.Error("an answer failed", "path", r.URL.Path, "error", err)
		}
		fail(w, http.StatusInternalServerError, err.Error())
	}
}

// commit writes a command of /v1, where it may be answered that it cannot be done
// now.
func (s *Server) commit(ctx context.Context, c store.Command) error {
	_, err := s.commitResult(ctx, c)
	return err
}

// commitResult is commit with the store's result.
func (s *Server) commitResult(ctx context.Context, c store.Command) (any, error) {
	result, err := s.try(ctx, c)
	switch {
	case errors.Is(err, ErrNotNow):
		return nil, later("nothing was done: %v", err)
	case err != nil:
		return nil, refuse(http.StatusServiceUnavailable, "outcome unknown; check before retrying: %v", err)
	}
	return result, nil
}
