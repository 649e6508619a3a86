package api

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// healthPatience is how long a health check waits for the quorum.
const healthPatience = 2 * time.Second

// getHealth is GET /health_check: 200 when a quorum confirms this node's picture.
func (s *Server) getHealth(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), healthPatience)
	defer cancel()
	view, err := s.opt.Reader.Read(ctx, access.From(ctx))
	if err != nil {
		s.opt.Log.Warn("health check failed", "error", err)
		w.Header().Set("Retry-After", afterLeader)
		answerEmpty(w, http.StatusServiceUnavailable)
		return
	}
	s.closeView(view)
	answerEmpty(w, http.StatusOK)
}

const recordPrefix = "/record/"

// getRecord is GET /record/{record_id}. The id is all that stands behind
// /record/, slashes included.
func (s *Server) getRecord(w http.ResponseWriter, r *http.Request) {
	id, err := url.PathUnescape(r.URL.EscapedPath()[len(recordPrefix):])
	if err == nil {
		err = record.ValidateID(id)
	}
	if err != nil {
		jsonError(w, http.StatusBadRequest, err.Error())
		return
	}
	view, err := s.opt.Reader.Read(r.Context(), access.From(r.Context()))
	if err != nil {
		s.answerReadError(w, r, err)
		return
	}
	defer s.closeView(view)
	row, found, err := view.Get(id)
	switch {
	case err != nil:
		s.answerReadError(w, r, err)
	case !found:
		jsonError(w, http.StatusNotFound, "there is no record "+id)
	case row.Archived:
		jsonError(w, http.StatusGone, "the details of record "+id+" are archived; restore its archive to read them")
	default:
		rec := row.Shown()
		answerRawJSON(w, http.StatusOK, wire.AppendJSON(nil, &rec))
	}
}
