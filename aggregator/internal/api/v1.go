package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
)

// Agents are what the server needs of the agents that this node pulls from.
type Agents interface {
	// Agents says how the pulls are doing.
	Agents() []AgentStatus
	// Retry has an agent map a quarantined job again. The error says why it
	// fails again or that the agent cannot be asked.
	Retry(ctx context.Context, q *store.Quarantined) error
}

// AgentStatus says how the pull from an agent is doing.
type AgentStatus struct {
	Name        string
	Address     string
	Connected   bool
	Error       string
	LastContact time.Time
	Behind      uint64
}

// problem is an error of /v1, as RFC 9457 has it.
type problem struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
}

func fail(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	answer(w, status, problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail})
}

// answer sends v as JSON.
func answer(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"type":"about:blank","title":"Internal Server Error","status":500,"detail":"the answer cannot be written as JSON"}`)
	}
	if w.Header().Get("Content-Type") == "" {
		w.Header().Set("Content-Type", "application/json")
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // a client that is gone needs no answer
}

// v1 returns the routes below /v1.
func (s *Server) v1() *http.ServeMux {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request, *store.View) error{
		"GET /v1/records":         s.v1Records,
		"GET /v1/records/{id...}": s.v1Record,
		"GET /v1/changes":         s.v1Changes,
		"GET /v1/agents":          s.v1Agents,
		"GET /v1/counters":        s.v1Counters,
		"GET /v1/quarantine":      s.v1Quarantine,
		"GET /v1/quarantine/{agent}/{type}/{label}/{id...}":    s.v1Quarantined,
		"DELETE /v1/quarantine/{agent}/{type}/{label}/{id...}": s.v1QuarantineDrop,
		"POST /v1/quarantine/{agent}/{type}/{label}/{id...}":   s.v1QuarantineRetry,
		"GET /v1/conflicts": s.v1Conflicts,
		"GET /v1/waiting":   s.v1Waiting,
		"GET /v1/status":    s.v1Status,
	} {
		mux.HandleFunc(pattern, s.viewing(h))
	}
	mux.HandleFunc("GET /v1/openapi.yaml", openAPI)
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, "there is no "+r.Method+" "+r.URL.Path+"; GET /v1/openapi.yaml lists what there is")
	})
	return mux
}

// refusal is an error that is the client's, with its status.
type refusal struct {
	status int
	detail string
}

func (e *refusal) Error() string { return e.detail }

func refuse(status int, detail string) error { return &refusal{status, detail} }

// viewing gives a handler a picture of the store, and answers its error.
func (s *Server) viewing(h func(http.ResponseWriter, *http.Request, *store.View) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		view, err := s.opt.Reader.Read(r.Context())
		if err != nil {
			s.opt.Log.Warn("a read was refused", "path", r.URL.Path, "error", err)
			fail(w, http.StatusServiceUnavailable, "the cluster cannot answer now: "+err.Error())
			return
		}
		defer s.close(view)
		index, _ := view.Applied()
		w.Header().Set("X-Bursar-Index", strconv.FormatUint(index, 10))
		s.refused(w, r, h(w, r, view))
	}
}

// refused answers the error of a handler that has sent nothing yet.
func (s *Server) refused(w http.ResponseWriter, r *http.Request, err error) {
	var known *refusal
	switch {
	case err == nil:
	case errors.As(err, &known):
		fail(w, known.status, known.detail)
	case errors.Is(err, store.ErrQuery):
		fail(w, http.StatusBadRequest, err.Error())
	default:
		if r.Context().Err() == nil {
			s.opt.Log.Error("an answer failed", "path", r.URL.Path, "error", err)
		}
		fail(w, http.StatusInternalServerError, err.Error())
	}
}

// stamp writes an instant; null for none.
func stamp(t record.Time) *string {
	if !t.Present() {
		return nil
	}
	text := t.String()
	return &text
}

func stampStd(t time.Time) *string { return stamp(record.FromStd(t)) }
