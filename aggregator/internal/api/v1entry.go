package api

import (
	"encoding/json"
	"net/http"

	"github.com/bursar-accounting/bursar/aggregator/internal/access"
	"github.com/bursar-accounting/bursar/aggregator/internal/store"
	"github.com/bursar-accounting/bursar/proto/record"
	"github.com/bursar-accounting/bursar/proto/wire"
)

// v1Record is GET /v1/records/{id}: what is shown, and what everyone says.
func (s *Server) v1Record(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := known(view, r.PathValue("id"))
	if err != nil {
		return err
	}
	row, found, err := view.Get(entry.ID)
	if err != nil {
		return err
	}
	out := entryJSON(&entry)
	if found {
		out.Record = appendV1(nil, &row)
	}
	answer(w, http.StatusOK, out)
	return nil
}

// known returns the entry of an id of which anything is known.
func known(view *access.View, id string) (record.Entry, error) {
	if err := record.ValidateID(id); err != nil {
		return record.Entry{}, refuse(http.StatusBadRequest, "%v", err)
	}
	entry, err := view.Entry(id)
	if err == nil && len(entry.Holdings) == 0 && !entry.Deleted {
		err = refuse(http.StatusNotFound, "there is no record %s", id)
	}
	return entry, err
}

// v1Delete is DELETE /v1/records/{id}: the id stays, marked, and beats every
// later write.
func (s *Server) v1Delete(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := known(view, r.PathValue("id"))
	if err == nil && !entry.Deleted {
		err = s.commit(r.Context(), &store.DeleteCommand{IDs: []string{entry.ID}, By: caller(r), Now: now()})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// v1Undelete is POST /v1/records/{id}:undelete: the mark goes, and the next write
// counts again.
func (s *Server) v1Undelete(w http.ResponseWriter, r *http.Request, view *access.View) error {
	entry, err := known(view, r.PathValue("id"))
	if err == nil && entry.Deleted {
		err = s.commit(r.Context(), &store.UndeleteCommand{IDs: []string{entry.ID}, By: caller(r), Now: now()})
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// caller names who asks.
func caller(r *http.Request) string { return access.From(r.Context()).Name }

type jsonEntry struct {
	RecordID string          `json:"record_id"`
	Deleted  bool            `json:"deleted"`
	Conflict bool            `json:"conflict"`
	Record   json.RawMessage `json:"record"`
	Holdings []jsonHolding   `json:"holdings"`
}

type jsonHolding struct {
	Origin    string          `json:"origin"`
	Rank      string          `json:"rank"`
	Ended     bool            `json:"ended"`
	Observed  *string         `json:"observed"`
	Withdrawn bool            `json:"withdrawn"`
	Stop      *string         `json:"waiting_stop"`
	Record    json.RawMessage `json:"record"`
}

func entryJSON(e *record.Entry) jsonEntry {
	out := jsonEntry{RecordID: e.ID, Deleted: e.Deleted, Conflict: e.Conflict(), Record: []byte("null"), Holdings: []jsonHolding{}}
	for i := range e.Holdings {
		h := &e.Holdings[i]
		v := h.Effective()
		j := jsonHolding{Origin: h.Origin.String(), Rank: h.Rank.String(), Ended: v.Ended, Withdrawn: h.Withdrawn(), Record: []byte("null")}
		if v.Observed != 0 {
			j.Observed = stamp(record.Time(v.Observed))
		}
		if h.Waiting() {
			j.Stop = stamp(h.Stop)
		}
		if r := h.Shown(); r != nil {
			j.Record = wire.AppendJSON(nil, r)
		}
		out.Holdings = append(out.Holdings, j)
	}
	return out
}
