package api

import (
	"encoding/json"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/columns"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// jsonError answers {"error": …}, as AUDITOR's query errors are.
func jsonError(w http.ResponseWriter, status int, message string) {
	text, err := json.Marshal(map[string]string{"error": message})
	if err != nil {
		text = []byte(`{"error":"unprintable"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	bare(w, status, string(text))
}

// view returns a picture of the store, or answers that there is none.
func (s *Server) view(w http.ResponseWriter, r *http.Request) (*store.View, bool) {
	view, err := s.opt.Reader.Read(r.Context())
	if err != nil {
		s.opt.Log.Warn("a read was refused", "path", r.URL.Path, "error", err)
		jsonError(w, http.StatusInternalServerError, "the cluster cannot answer now: "+err.Error())
		return nil, false
	}
	return view, true
}

// getRecord is GET /record/{record_id}.
func (s *Server) getRecord(w http.ResponseWriter, r *http.Request) {
	id, err := pathID(r)
	if err == nil {
		err = record.ValidateID(id)
	}
	if err != nil {
		jsonError(w, http.StatusBadRequest, err.Error())
		return
	}
	view, ok := s.view(w, r)
	if !ok {
		return
	}
	defer s.close(view)
	row, found, err := view.Get(id)
	switch {
	case err != nil:
		s.opt.Log.Error("a read failed", "record_id", id, "error", err)
		jsonError(w, http.StatusInternalServerError, err.Error())
	case !found:
		jsonError(w, http.StatusNotFound, "there is no record "+id)
	default:
		shown := shownOf(&row)
		w.Header().Set("Content-Type", "application/json")
		bare(w, http.StatusOK, string(wire.AppendJSON(nil, &shown)))
	}
}

// shownOf is the record as queries see it.
func shownOf(row *columns.Row) record.Record {
	r := row.Record
	r.Stop = row.ShownStop()
	return r
}
